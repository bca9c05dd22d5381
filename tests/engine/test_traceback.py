"""Errors of a guarded call carry out no text that is not on record."""

from __future__ import annotations

import pytest

from carag.engine.recorder import no_text_in_traceback

PASSAGE = "what was found"


@no_text_in_traceback
def found(number: int, *, fails: BaseException | None = None) -> str:
    """Find a passage."""
    text = f"{PASSAGE} {number}"
    if fails is not None:
        raise fails
    return text


def test_a_guarded_call_is_called_as_before() -> None:
    """With the same arguments, result, name and words."""
    assert f"{PASSAGE} 7" == found(7)
    assert ("found", "Find a passage.") == (found.__name__, found.__doc__)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_no_frame_of_what_failed_is_carried_out(error: BaseException) -> None:
    """Whatever ended it: the same error, by a way on which no passage was."""
    error.__context__ = behind = LookupError("behind")
    with pytest.raises(type(error)) as caught:
        found(7, fails=error)
    assert (error, behind, None) == (caught.value, error.__context__, error.__cause__)
    assert ["found" in note for note in error.__notes__] == [True]
    frame = error.__traceback__
    while frame is not None:
        assert PASSAGE not in [str(value)[: len(PASSAGE)] for value in frame.tb_frame.f_locals.values()]
        frame = frame.tb_next
