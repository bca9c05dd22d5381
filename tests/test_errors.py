"""Errors keep what they were made of, and lose the frames that hold what others submitted."""

from __future__ import annotations

from carag.errors import Refused, type_and_place, without_frames


def _innermost(error: BaseException) -> None:
    raise error


def _outer(error: BaseException) -> None:
    _innermost(error)


def caught(error: BaseException) -> BaseException:
    """Raise an error from two calls down, and return it."""
    try:
        _outer(error)
    except BaseException as raised:  # noqa: BLE001
        return raised
    raise AssertionError("it was raised")


def test_a_refusal_has_a_code_and_words() -> None:
    """The code is for the record, the words are for a person."""
    refused = Refused("UNKNOWN_ROLE", "the role is unknown")
    assert ("UNKNOWN_ROLE", "the role is unknown") == (refused.code, str(refused))


def test_an_error_is_named_by_its_type_and_innermost_place_alone() -> None:
    """Its message may hold text; one that was never raised has no place."""
    line = _innermost.__code__.co_firstlineno + 1
    assert type_and_place(caught(ValueError("a secret"))) == f"ValueError at test_errors.py:{line}"
    assert type_and_place(ValueError("a secret")) == "ValueError"


def test_no_error_that_led_to_another_keeps_its_frames() -> None:
    """By cause, by context and in groups, behind one that was never raised, and in a circle: each is told its line."""
    first, second, third, fourth, fifth, sixth = errors = [caught(ValueError(n)) for n in range(6)]
    group, never_raised = BaseExceptionGroup("both", [third, fourth]), ValueError("never raised")
    first.__cause__, first.__context__ = group, second
    second.__cause__ = first
    group.__context__ = fifth
    fourth.__context__, never_raised.__cause__ = never_raised, sixth
    line = _innermost.__code__.co_firstlineno + 1
    without_frames(first)
    without_frames(first)  # nothing is said twice
    for error in errors:
        assert error.__traceback__ is None
        assert [f"raised in _innermost, {__file__}:{line}"] == error.__notes__
    assert not hasattr(never_raised, "__notes__")
