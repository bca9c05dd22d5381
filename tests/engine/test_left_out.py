"""What a model writes leaves without the sentences whose figures the passages do not state, and the answer says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Outcome, Session
from carag.generation import Unheld
from carag.retrieval import ConfidenceGate
from tests.engine.documents import Angles

if TYPE_CHECKING:
    from pathlib import Path

    from carag import Answer

EMPLOYEE = Session(role="employee", purpose="work")
TERMS = "Nail Co paid a milestone payment of $4,000,000 and owes a royalty of 5% of net sales."
TABLE = "(in millions) | 2023 | 2022\nNet sales | $ 1,204 | $ 1,187\nCost of sales | 700 | 690"
RIGHT, WRONG = "The royalty is 5% of net sales [1].", "The royalty is $4,000,000 [1]."


def asked(tmp_path: Path, says: Any, *, text: str = TERMS, question: str = "q 0.9") -> Answer:
    with Engine.open(
        tmp_path / "store",
        profile="generic",
        embedder=Angles(),
        generator=says if isinstance(says, str) and says == "extractive" else lambda *_: says,
        gate=ConfidenceGate(0.5),
    ) as engine:
        engine.add([Document(id="terms", text=text, facts={"classification": "public"})])
        return engine.ask(question, EMPLOYEE)


def test_what_holds_leaves_and_the_answer_counts_the_rest(tmp_path: Path) -> None:
    """The text left out is nowhere: not in the answer, its JSON or its sentence for people."""
    answer = asked(tmp_path, f"{RIGHT} {WRONG} The milestone payment was $4 million in 2019 [1].")
    assert (Outcome.ANSWER, RIGHT) == (answer.outcome, answer.text)
    assert (Unheld.OTHER_LABEL, Unheld.OTHER_PERIOD) == answer.left_out
    assert ["OTHER_LABEL", "OTHER_PERIOD"] == answer.to_json()["left_out"]
    assert answer.left_out_said.startswith("2 sentences were left out")
    said = json.dumps(answer.to_json()) + answer.left_out_said + repr(answer)
    assert "4,000,000" not in said.replace(TERMS, "")
    assert "2019" not in said


def test_the_record_commits_to_what_left(tmp_path: Path) -> None:
    """And not to the draft."""
    answer = asked(tmp_path, f"{RIGHT} {WRONG}")
    assert RIGHT == answer.receipt.openings["answer"].value


def test_if_nothing_holds_it_is_declined_with_its_own_code(tmp_path: Path) -> None:
    """A model ran, none of its text is shown, and the reasons are counted."""
    answer = asked(tmp_path, WRONG)
    assert (Outcome.DECLINE, "FIGURES_NOT_STATED", ()) == (answer.outcome, answer.why, answer.citations)
    assert answer.model_called
    assert (Unheld.OTHER_LABEL,) == answer.left_out
    assert "4,000,000" not in answer.text


@pytest.mark.parametrize("says", [RIGHT, "Nail Co pays a royalty [1]."])
def test_nothing_is_left_out_of_what_holds(tmp_path: Path, says: str) -> None:
    answer = asked(tmp_path, says)
    assert (says, (), "") == (answer.text, answer.left_out, answer.left_out_said)


def test_a_citation_that_only_a_lost_sentence_had_is_lost_with_it(tmp_path: Path) -> None:
    """Citations are of the text that leaves."""
    generator = lambda question, passages, withheld: "It owes a royalty [1]. The royalty is 6% [2]."  # noqa: E731
    with Engine.open(
        tmp_path / "store",
        profile="generic",
        embedder=Angles(),
        generator=generator,
        gate=ConfidenceGate(0.5),
    ) as engine:
        engine.add(
            [Document(id=name, text=TERMS, facts={"classification": "public"}) for name in ("one", "two")]
        )
        answer = engine.ask("q 0.9", EMPLOYEE)
    assert ("It owes a royalty [1].", [1]) == (answer.text, [one.number for one in answer.citations])


def test_quotes_of_our_own_hold(tmp_path: Path) -> None:
    """The extractive generator's rows and sentences go through the same check."""
    answer = asked(tmp_path, "extractive", text=TABLE, question="What were net sales? q 0.9")
    assert (Outcome.ANSWER, ()) == (answer.outcome, answer.left_out)
    assert "1,204" in answer.text
