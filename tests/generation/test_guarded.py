"""Claims about the guard: the gate before the model, the checks after it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import ModelUnavailable
from carag.generation.extractive import Extractive
from carag.generation.generator import Draft, Stop
from carag.generation.guarded import Answered, Citation, DeclineCode, Declined, GuardedGenerator
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.retrieval.confidence.gate import ConfidenceGate
from carag.retrieval.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carag.retrieval.evidence import Passage, Withheld

    Build = Callable[..., Evidence]


class Scripted:
    """A generator that gives scripted answers, and counts how often it was asked."""

    name = "scripted"
    remote = False
    fingerprint = "0" * 64

    def __init__(self, draft: Draft | Exception) -> None:
        self.draft = draft
        self.calls = 0

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        self.calls += 1
        if isinstance(self.draft, Exception):
            raise self.draft
        return self.draft


def answer(draft: Draft | Exception, evidence: Evidence, gate: float = 0.5) -> Answered | Declined:
    return GuardedGenerator(Scripted(draft), ConfidenceGate(gate)).answer("What rose?", evidence)


def test_citations_come_from_metadata(evidence: Build) -> None:
    """A citation repeats the passage's own metadata, whatever the model wrote about its source."""
    found = evidence("Net sales rose.", "Costs fell.")
    said = Draft("As filed in another filing by them: costs fell [2].", (1,))
    result = answer(said, found)
    assert isinstance(result, Answered)
    (citation,) = result.citations
    assert 2 == citation.number
    for field in fields(Citation):
        if field.name != "number":
            assert getattr(found.passages[1], field.name) == getattr(citation, field.name)
    assert said.text == result.text
    assert result.complete


@pytest.mark.parametrize(
    ("similarity", "texts", "code"),
    [
        (0.49, ("Net sales rose.",), DeclineCode.BELOW_GATE),
        (0.8, (), DeclineCode.NO_ADMISSIBLE_EVIDENCE),
    ],
)
def test_no_model_is_called_below_the_gate(
    evidence: Build, similarity: float, texts: tuple[str, ...], code: DeclineCode
) -> None:
    """Weak or missing evidence is declined before any generator runs."""
    generator = Scripted(Draft("Net sales rose [1].", (0,)))
    guarded = GuardedGenerator(generator, ConfidenceGate(0.5))
    result = guarded.answer("What rose?", evidence(*texts, similarity=similarity))
    assert isinstance(result, Declined)
    assert code is result.code
    assert 0 == generator.calls


def test_a_decline_below_the_gate_names_the_top_similarity(evidence: Build) -> None:
    """The person learns how close the best admissible passage came."""
    result = answer(Draft("x", ()), evidence("Net sales rose.", similarity=0.314))
    assert isinstance(result, Declined)
    assert "0.314" in result.message


@pytest.mark.parametrize(
    ("draft", "code"),
    [
        (Draft(INSUFFICIENT_EVIDENCE, ()), DeclineCode.MODEL_DECLINED),
        (Draft(f"{INSUFFICIENT_EVIDENCE}. [1]", (0,)), DeclineCode.MODEL_DECLINED),
        (Draft(" \n", (0,)), DeclineCode.MODEL_DECLINED),
        (Draft("I cannot help with that [1].", (0,), Stop.FILTERED), DeclineCode.MODEL_DECLINED),
        (Draft("Net sales rose.", ()), DeclineCode.BAD_CITATION),
        (Draft("Net sales rose [3].", (2,)), DeclineCode.BAD_CITATION),
        (Draft("Net sales rose [1][3].", (0, 2)), DeclineCode.BAD_CITATION),
        (Draft("Net sales rose [0].", (-1,)), DeclineCode.BAD_CITATION),
    ],
)
def test_a_draft_that_does_not_hold_is_declined(evidence: Build, draft: Draft, code: DeclineCode) -> None:
    """A refusal, an empty draft, a missing or invented citation: declined, and none of the draft shown."""
    result = answer(draft, evidence("Net sales rose.", "Costs fell."))
    assert isinstance(result, Declined)
    assert code is result.code
    assert "Net sales" not in result.message
    assert "cannot help" not in result.message


@given(cited=st.lists(st.integers(-3, 5), max_size=4), count=st.integers(1, 4))
def test_answered_means_every_citation_is_in_range(evidence: Build, cited: list[int], count: int) -> None:
    """An answer comes out if and only if it cites something and only passages that were given."""
    result = answer(Draft("Net sales rose.", tuple(cited)), evidence(*["Net sales rose."] * count))
    assert (bool(cited) and all(0 <= at < count for at in cited)) == isinstance(result, Answered)


def test_a_cut_off_answer_says_so(evidence: Build) -> None:
    """An answer cut at the token limit is marked incomplete."""
    result = answer(Draft("Net sales rose [1] and", (0,), Stop.LENGTH), evidence("Net sales rose."))
    assert isinstance(result, Answered)
    assert not result.complete


def test_a_failing_model_has_no_substitute(evidence: Build) -> None:
    """The generator's failure is the answer's failure."""
    with pytest.raises(ModelUnavailable, match="denied"):
        answer(ModelUnavailable("denied"), evidence("Net sales rose."))


def test_results_do_not_depend_on_hidden_neighbours(
    evidence: Build, withheld_with_neighbours: Withheld
) -> None:
    """Answer, decline and message are the same whatever the role may know to exist."""
    for similarity in (0.8, 0.1):
        plain = evidence("Net sales rose.", similarity=similarity)
        knowing = Evidence(plain.passages, withheld_with_neighbours, plan="exact", admissible=1)
        guarded = GuardedGenerator(Extractive(), ConfidenceGate(0.5))
        assert guarded.answer("What rose?", plain) == guarded.answer("What rose?", knowing)


def test_codes_are_stable() -> None:
    """Records keep these names."""
    assert [
        *("NO_ADMISSIBLE_EVIDENCE", "NOTHING_ABOUT_IT", "BELOW_GATE", "DRIFTED", "TOO_FEW_WORDS"),
        *("ASKED_BACK", "READER_DECLINED", "MODEL_DECLINED", "BAD_CITATION", "FIGURES_NOT_STATED"),
    ] == [*DeclineCode]
