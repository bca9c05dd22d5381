"""Claims about misspelt words: mended by what a session may use, shown, and never a name."""

from __future__ import annotations

import pytest

import carag
from carag.retrieval.reading import respelt
from tests.engine.documents import Counting

HELD = {
    "collateral": 7,
    "loan": 9,
    "limits": 4,
    "depositor": 3,
    "franchise": 2,
    "store": 5,
    "form": 4,
    "from": 2,
}


def mended(question: str) -> str:
    found = respelt(question, lambda terms: [HELD.get(one, 0) for one in terms])
    return question if found is None else found.text


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("colateral free laon limits?", "collateral free loan limits?"),
        ("What is a depositer owed, or a depsoitor?", "What is a depositor owed, or a depositor?"),
        ("Is colateral wanted? COLATERAL?", "Is collateral wanted? COLATERAL?"),
    ],
)
def test_a_slip_is_mended_in_place(asked: str, meant: str) -> None:
    """A letter too many, too few, wrong or out of place, of words in small letters."""
    assert meant == mended(asked)


@pytest.mark.parametrize(
    "question",
    [
        "What does Colateral owe Depositer plc?",  # names
        "Is a loans limit due?",  # an inflection of what is held
        "Is it on the stove?",  # short words are too near to each other
        "Is the torm due?",
        "Are the franchisee's colateral's forms due?",
        "wievil kostet das darlehn fuer haeuser heute noch?",  # no word of it is known
    ],
)
def test_what_is_no_slip_stands(question: str) -> None:
    """Names, words that are merely absent, and questions on something else."""
    assert question == mended(question)


def test_two_corrections_alike_are_none() -> None:
    """Where a word could be either, it is neither."""
    held = {"casual": 3, "causal": 3}
    assert (
        respelt("a casuall matter", lambda terms: [held.get(one, 0) for one in terms]).text
        == "a casual matter"
    )  # type: ignore[union-attr]
    held = {"marital": 3, "martial": 3}
    assert respelt("the maritial law", lambda terms: [held.get(one, 0) for one in terms]) is None


DOCUMENTS = [
    carag.Document(id="a", text="Collateral of 40 crore is wanted for a loan.", bits=["INTERNAL"]),
    carag.Document(id="b", text="Lunch is served at noon in the canteen.", bits=["INTERNAL"]),
]
HIDDEN = carag.Document(id="c", text="A colateral is a bird of Zeta Wing Holdings.", bits=["SECRET"])


@pytest.mark.parametrize("documents", [DOCUMENTS, [*DOCUMENTS, HIDDEN]], ids=["alone", "with a hidden one"])
def test_the_engine_asks_what_was_meant_and_shows_it(tmp_path, documents) -> None:
    """The passages are those of the question spelt right; a hidden passage that holds the word changes nothing."""
    session = carag.Session(role="employee", purpose="work")
    with carag.Engine.open(tmp_path / "store", profile="generic", embedder=Counting()) as engine:
        engine.add(documents)
        slip = engine.retrieve("How much colateral is wanted?", session)
        right = engine.retrieve("How much collateral is wanted?", session)
    assert (slip.passages, slip.understood) == (right.passages, "“colateral” read as “collateral”")
    assert right.understood == ""


def test_a_name_that_is_unknown_is_reported_with_what_is_near(tmp_path) -> None:
    """It may be somebody else's name, so the answer is not guessed."""
    session = carag.Session(role="employee", purpose="work")
    with carag.Engine.open(tmp_path / "store", profile="generic", embedder=Counting()) as engine:
        engine.add([carag.Document(id="a", text="Gringotts pays 40 crore for storage.", bits=["INTERNAL"])])
        answer = engine.ask("What did Gringots pay for storage?", session)
    assert answer.outcome == "decline"
    assert "is about Gringots. Some of them speak of “gringotts”." in answer.text
