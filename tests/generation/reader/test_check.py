"""A reader behind the gate can only decline: it adds no answer, changes no passage, and has no substitute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, ModelUnavailable
from carag.generation.generator import Draft
from carag.generation.guarded import Answered, DeclineCode, Declined, GuardedGenerator
from carag.generation.reader.check import READ, AnswerCheck, check_for
from carag.generation.reader.onnx import OnnxReader
from carag.generation.reader.port import own_reader
from carag.policy import Profile
from carag.policy.shipped import SHIPPED
from carag.retrieval.confidence.gate import ConfidenceGate
from tests.retrieval.classifier import WORDS, expected, folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from carag.retrieval.evidence import Evidence, Passage, Withheld

    Build = Callable[..., Evidence]

QUESTION = "What rose?"
GENERIC, CIRCULARS = Profile.open("generic"), Profile.open("circulars")


class Scored:
    """A reader with given scores, which keeps what it was shown."""

    name = "scored"

    def __init__(self, scores: Any, **more: Any) -> None:
        self.scores = scores
        self.shown: list[tuple[str, list[str]]] = []
        self.__dict__ |= more

    def holds(self, question: str, texts: Sequence[str]) -> Any:
        self.shown.append((question, list(texts)))
        if isinstance(self.scores, Exception):
            raise self.scores
        return self.scores(texts) if callable(self.scores) else self.scores


class Citing:
    """A generator that says one draft, and keeps the passages that it was given."""

    name, remote, fingerprint = "citing", False, "0"

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.given: list[tuple[Passage, ...]] = []

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        self.given.append(tuple(passages))
        return self.draft


def check(reader: Any, threshold: float = 0.5) -> AnswerCheck:
    return AnswerCheck(own_reader(reader), threshold)


# --- laws ---

SCORES = st.lists(st.floats(0, 1), min_size=READ, max_size=READ)


@given(
    st.integers(0, 5),
    SCORES,
    st.floats(0, 1),
    st.sampled_from([Draft("Sales rose [1].", (0,)), Draft("Sales rose.", ()), Draft("", ())]),
    st.sampled_from([0.3, 0.8]),
)
def test_a_reader_only_declines_and_changes_no_passage(
    evidence: Build, count: int, scores: list[float], threshold: float, draft: Draft, similarity: float
) -> None:
    """What is declined without it stays so; what it lets pass is as without it; the rest has a code of its own."""
    found = evidence(*[f"Sales rose by {at}." for at in range(count)], similarity=similarity)
    reader = Scored(lambda texts: scores[: len(texts)])
    plain, beside = Citing(draft), Citing(draft)
    without = GuardedGenerator(plain, ConfidenceGate(0.5)).answer(QUESTION, found)
    result = GuardedGenerator(beside, ConfidenceGate(0.5), check(reader, threshold)).answer(QUESTION, found)
    is_open = bool(count) and similarity > 0.5
    assert [(QUESTION, [one.text for one in found.passages[:READ]])] * is_open == reader.shown
    if is_open and max(scores[:count]) < threshold:
        assert isinstance(result, Declined)
        assert (DeclineCode.READER_DECLINED, []) == (result.code, beside.given)
    else:
        assert (without, plain.given) == (result, beside.given)


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("What did sales rise to?", True),
        ("KYC records retention period", True),
        ("Wie lange werden die Unterlagen aufbewahrt?", False),
        ("Combien de temps faut-il garder les documents ?", False),
        ("记录保存多久？", False),
        ("Сколько лет хранятся записи?", False),
    ],
)
def test_only_questions_in_english_are_read_unless_the_reader_says_otherwise(
    evidence: Build, question: str, is_asked: bool
) -> None:
    for more, expected_ in (({}, is_asked), ({"every_language": True}, True)):
        reader = Scored([0.0], **more)
        guarded = GuardedGenerator(Citing(Draft("Sales rose [1].", (0,))), ConfidenceGate(0.5), check(reader))
        result = guarded.answer(question, evidence("Sales rose."))
        assert (expected_, expected_) == (bool(reader.shown), isinstance(result, Declined))


def test_nothing_is_shown_to_a_remote_reader_before_that_is_on_record(evidence: Build) -> None:
    """The generator is local, so only the reader can be told of; a reader that stays here is not."""

    def unrecorded() -> None:
        raise OSError("the log is full")

    found, draft = evidence("Sales rose."), Draft("Sales rose [1].", (0,))
    away, here = Scored([1.0], remote=True), Scored([1.0])
    with pytest.raises(OSError, match="the log is full"):
        GuardedGenerator(Citing(draft), ConfidenceGate(0.5), check(away)).answer(
            QUESTION, found, before_remote=unrecorded
        )
    assert [] == away.shown
    result = GuardedGenerator(Citing(draft), ConfidenceGate(0.5), check(here)).answer(
        QUESTION, found, before_remote=unrecorded
    )
    assert isinstance(result, Answered)


def test_the_message_says_what_was_read_and_what_was_needed(evidence: Build) -> None:
    guarded = GuardedGenerator(Citing(Draft("", ())), ConfidenceGate(0.5), check(Scored([0.1234, 0.0]), 0.25))
    result = guarded.answer(QUESTION, evidence("Sales rose.", "Costs fell."))
    assert not isinstance(result, Answered)
    assert all(one in result.message for one in ("scored", "0.123", "0.250"))


def test_a_model_of_ones_own_in_onnx_scores_as_its_graph(tmp_path: Path) -> None:
    reader = OnnxReader(folder(tmp_path / "mine"), threshold=0.4)
    (found,) = own_reader(reader).holds(" ".join(WORDS[5:7]), [WORDS[4]])
    assert pytest.approx(float(expected(" ".join(WORDS[5:7]), WORDS[4])[0]), abs=1e-6) == found
    made = check_for(reader, GENERIC)
    assert made is not None
    assert ("onnx:mine", 0.4, False) == (made.reader.name, made.threshold, made.reader.every_language)


# --- traps ---

WRONG = {
    "too few": [0.9],
    "too many": [0.9] * 3,
    "NaN": [0.9, float("nan")],
    "infinite": [0.9, float("inf")],
    "above one": [0.9, 1.5],
    "negative": [0.9, -0.1],
    "text": ["a", "b"],
    "nothing": None,
    "nested": [[0.9], [0.9]],
}


@pytest.mark.parametrize("scores", WRONG.values(), ids=WRONG)
def test_wrong_scores_are_an_error_and_no_answer(evidence: Build, scores: Any) -> None:
    generator = Citing(Draft("Sales rose [1].", (0,)))
    guarded = GuardedGenerator(generator, ConfidenceGate(0.5), check(Scored(scores)))
    with pytest.raises(InvalidArgument, match="the reader 'scored' gave"):
        guarded.answer(QUESTION, evidence("Sales rose.", "Costs fell."))
    assert [] == generator.given


def test_one_that_raises_is_unavailable_and_its_message_is_not_told(evidence: Build) -> None:
    guarded = GuardedGenerator(
        Citing(Draft("Sales rose [1].", (0,))), ConfidenceGate(0.5), check(Scored(RuntimeError("a secret")))
    )
    with pytest.raises(ModelUnavailable, match="the reader 'scored' raised RuntimeError") as raised:
        guarded.answer(QUESTION, evidence("Sales rose."))
    assert "secret" not in str(raised.value)


def test_numbers_of_numpy_are_scores() -> None:
    assert [0.25, 1.0] == own_reader(Scored(np.array([0.25, 1], np.float32))).holds("Who?", ["a", "b"])


# --- which reader, and which threshold ---


@pytest.mark.parametrize("name", SHIPPED)
def test_no_profile_has_a_reader_on(name: str) -> None:
    """Of older questions ours declines two in five that the circulars answer."""
    assert check_for(None, Profile.open(name)) is None


def test_the_profile_of_circulars_states_the_threshold_of_ours() -> None:
    made = check_for("carag-reader-1", CIRCULARS)
    assert made is not None
    assert ("carag-reader-1", 0.12) == (made.reader.name, made.threshold)


def test_the_threshold_of_the_reader_comes_before_that_of_the_profile() -> None:
    found = [
        check_for(Scored([], name="carag-reader-1", **more), CIRCULARS) for more in ({}, {"threshold": 0.7})
    ]
    assert [0.12, 0.7] == [one and one.threshold for one in found]


@pytest.mark.parametrize(
    ("reader", "why"),
    [
        (Scored([]), "neither the reader 'scored' nor the profile 'generic' states the least score"),
        ("carag-reader-1", "neither"),
        ("onnx", "there is no reader 'onnx'; want one of carag-reader-1, onnx:FOLDER"),
        (7, "want one from reader_by_name"),
        (Scored, "want one from reader_by_name"),
        (SimpleNamespace(name="a"), "want one from reader_by_name"),
        (Scored([], name="a\n"), "the reader's name"),
        (Scored([], threshold=True), "threshold is True; want a number from 0 to 1"),
        (Scored([], threshold=1.1), "threshold is 1.1"),
        (Scored([], threshold=float("nan")), "threshold is nan"),
        (Scored([], threshold=0.5, fingerprint="f" * 195), "share one field of a record"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_what_is_not_a_reader_with_a_threshold_is_refused(reader: Any, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        check_for(reader, GENERIC)
