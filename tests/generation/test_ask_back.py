"""Claims about the question back: where a question names nothing, and several documents speak of all that it says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Outcome, Session
from carag.generation.ask_back import question_back
from carag.retrieval import ConfidenceGate
from carag.retrieval.evidence import NOTHING_NAMED, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from carag.retrieval.evidence import Passage

TEXTS = {"gold loans": "public", "microfinance loans": "public", "student loans": "secret"}


@pytest.fixture
def found(passages: Callable[..., tuple[Passage, ...]]) -> Callable[..., list[Passage]]:
    """Passages of documents, by name and text."""

    def build(**texts: str) -> list[Passage]:
        return [
            replace(one, source=f"{name} loans", form="", company="", chunk_id=f"{name}:00000")
            for name, one in zip(texts, passages(*texts.values()), strict=True)
        ]

    return build


def asked_back(question: str, found: Sequence[Passage], topic: Topic = NOTHING_NAMED) -> bool:
    return bool(question_back(question, found, topic))


def test_it_names_the_documents_and_each_once(found: Callable[..., list[Passage]]) -> None:
    two = found(Gold="The penalty is Rs. 5.", Housing="A penalty of Rs. 7 is due.", Farm="No fee is due.")
    said = question_back("What is the penalty?", [*two, two[0]], NOTHING_NAMED)
    assert said.endswith("Which is meant: Gold loans; or Housing loans?")
    many = found(**{f"Kind{number}": "The penalty is Rs. 5." for number in range(9)})
    assert question_back("What is the penalty?", many, NOTHING_NAMED).endswith("Kind3 loans; or another?")


def test_a_question_that_tells_which_is_answered(found: Callable[..., list[Passage]]) -> None:
    """It names one in words or otherwise, one alone speaks of it or is called so, or it says more than a few words."""
    two = found(Gold="The penalty is Rs. 5.", Housing="A penalty of Rs. 7 is due. A fee is Rs. 9.")
    assert asked_back("What is the penalty?", two)
    for question in (
        "What is the penalty for gold?",
        "What is the fee?",
        "Who is the king?",
        "What is it?",
        "What is the penalty if a borrower repays before maturity?",
    ):
        assert not asked_back(question, two), question
    assert not asked_back("What is the penalty?", two, Topic("Amcor", is_particular=True))
    assert not asked_back("What is the penalty?", found(Penalty="A penalty is 5.", Gold="No penalty is due."))


def test_what_is_hidden_is_not_offered_and_changes_nothing(tmp_path: Path) -> None:
    """The answer is the same with a secret document that speaks of it and without; and no generator is called."""
    said = {}
    for has_secret in (False, True):
        with Engine.open(
            tmp_path / str(has_secret), profile="generic", embedder="wordllama", gate=ConfidenceGate(-1)
        ) as engine:
            engine.add(
                Document(id=name, text=f"The penalty for {name} is 5 euros.", facts={"classification": level})
                for name, level in TEXTS.items()
                if has_secret or level == "public"
            )
            answer = engine.ask("What is the penalty?", Session(role="employee", purpose="work"))
        assert (Outcome.DECLINE, "ASKED_BACK", False) == (answer.outcome, answer.why, answer.model_called)
        said[has_secret] = answer.text
    assert said[True] == said[False]
    assert "gold loans" in said[True]
    assert "student" not in said[True]
