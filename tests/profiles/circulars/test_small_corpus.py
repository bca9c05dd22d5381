"""Six invented circulars in a store: what is in force on a day, for whom, and why, whatever arrived first."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.engine.freshness import placed_reader
from carag.errors import InvalidArgument
from carag.labelling.document import Act, ActKind
from carag.policy import Profile
from tests.profiles.circulars.conftest import DATA, NOW, opened

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "What is the limit on the balance of a small wallet?"
OLD, NEW, DIRECTION = "wallets-2022.txt", "wallets-2024.txt", "identification-2021.txt"
AMENDMENT, NOTES, DRAFT = "bae:identification-amendment", "bae:notes", "comment-2024.txt"
PROFILE = Profile.open("circulars")


def documents() -> list[Document]:
    return [one for _, one in placed_reader("circulars")(DATA) if isinstance(one, Document)]


def session(role: str, as_of: date | None = None, **more: Any) -> Session:
    (purpose,) = [cell.purpose for cell in PROFILE.table.cells if cell.role == role]
    return Session(role=role, purpose=purpose, as_of=as_of, **more)


def found(engine: Engine, who: Session, question: str = "What does the circular say?") -> set[str]:
    return {one.accession_number for one in engine.retrieve(question, who, 100).passages}


@pytest.mark.parametrize(
    ("role", "sees"),
    [
        ("compliance", {OLD, NEW, DIRECTION, AMENDMENT, NOTES, DRAFT}),
        ("analyst", {NEW, DIRECTION, AMENDMENT, DRAFT}),
        ("branch", {NEW, DIRECTION, AMENDMENT, NOTES}),
        ("public", {NEW, DIRECTION, AMENDMENT}),
    ],
)
def test_a_role_finds_what_its_cell_admits(engine: Engine, role: str, sees: set[str]) -> None:
    assert found(engine, session(role)) == sees


@pytest.mark.parametrize(
    ("day", "text", "chunk"),
    [
        (date(2024, 3, 1), "10,000", OLD),  # issued, and not yet in force
        (date(2024, 3, 31), "10,000", OLD),
        (date(2024, 4, 1), "20,000", NEW),
    ],
)
def test_the_answer_as_of_a_day_is_from_the_text_then_in_force(
    engine: Engine, day: date, text: str, chunk: str
) -> None:
    answer = engine.ask(QUESTION, session("branch", day))
    assert text in answer.text
    assert {one.accession_number for one in answer.passages} & {OLD, NEW} == {chunk}


def test_before_the_first_is_in_force_nothing_is_found_of_it(engine: Engine) -> None:
    assert found(engine, session("branch", date(2022, 6, 30))) == {DIRECTION}
    assert found(engine, session("branch", date(2022, 7, 1))) == {DIRECTION, OLD}


def test_a_question_for_what_is_in_force_narrows_what_an_analyst_sees(engine: Engine) -> None:
    as_of = session("analyst", date(2024, 3, 10))
    assert {OLD, NEW, DRAFT} <= found(engine, as_of)
    assert {OLD, NEW, DRAFT} & found(engine, as_of, "What is the limit in force for wallets?") == {OLD}
    assert found(engine, as_of, "Which draft circular is there?") == {DRAFT}


def test_the_public_may_not_ask_of_the_past(engine: Engine) -> None:
    assert engine.ask(QUESTION, session("public", date(2024, 3, 1))).outcome.value == "refuse"


def test_a_citation_is_made_of_the_circulars_own_facts(engine: Engine) -> None:
    answer = engine.ask(QUESTION, session("branch"))
    (cited,) = [one for one in answer.citations if one.accession_number == NEW]
    assert "BAE/2023-24/88" in str(cited)


def test_explain_names_the_circular_that_replaced_or_amended_another(engine: Engine) -> None:
    who = session("compliance")
    assert f"SUPERSEDED: set by {NEW}" in engine.explain(f"{OLD}:00000", who).causes
    assert f"AMENDED: set by {AMENDMENT}" in engine.explain(f"{DIRECTION}:00000", who).causes


def test_an_amended_circular_stays_in_force_together_with_its_amendment(engine: Engine) -> None:
    sees = found(engine, session("branch"), "How often is a customer of high risk identified?")
    assert {DIRECTION, AMENDMENT} <= sees


def test_a_draft_withdraws_nothing(engine: Engine) -> None:
    assert OLD in found(engine, session("branch", date(2024, 3, 20)))


@pytest.mark.parametrize("order", list(permutations([OLD, NEW, DIRECTION, AMENDMENT]))[::9])
def test_the_order_of_arrival_makes_no_difference(tmp_path: Path, order: tuple[str, ...]) -> None:
    """One transaction for each; a later arrival is linked to what came before it."""
    by_id = {one.id: one for one in documents()}
    with opened(tmp_path) as engine:
        for name in order:
            engine.add([by_id[name]])
        labels = {
            (name, day): name in found(engine, session("branch", day))
            for name in order
            for day in (date(2023, 1, 1), date(2024, 3, 20), date(2024, 5, 1))
        }
        assert labels == {
            (name, day): {
                OLD: day < date(2024, 4, 1),
                NEW: day >= date(2024, 4, 1),
                DIRECTION: True,
                AMENDMENT: day >= date(2024, 3, 15),
            }[name]
            for name, day in labels
        }


def test_what_was_known_before_the_later_circular_arrived_can_be_asked(tmp_path: Path) -> None:
    """Both time axes: as of a day, and as the store knew it."""
    by_id = {one.id: one for one in documents()}
    clock = [NOW]
    with Engine.open(tmp_path, profile="circulars", embedder="wordllama", clock=lambda: clock[0]) as engine:
        engine.add([by_id[OLD]])
        before = datetime(2026, 11, 3, tzinfo=UTC)
        clock[0] = datetime(2026, 11, 4, tzinfo=UTC)
        engine.add([by_id[NEW]])
        day = date(2024, 5, 1)
        in_force = "What is the limit in force for wallets?"
        assert found(engine, session("compliance", day), in_force) == {NEW}
        assert found(engine, session("compliance", day, known_at=before), in_force) == {OLD}


def test_a_removed_circular_still_replaces(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.add(documents())
        engine.remove([NEW])
        assert {OLD, NEW} & found(engine, session("branch")) == set()


def test_a_profile_without_the_bit_refuses_what_is_not_yet_in_force(tmp_path: Path) -> None:
    with opened(tmp_path, "generic") as engine, pytest.raises(InvalidArgument, match="pending under"):
        engine.add([Document(id="a", text="Text.", bits=(), in_force_at=date(2024, 1, 1))])


def test_under_a_profile_without_such_bits_what_is_replaced_is_found_no_more(tmp_path: Path) -> None:
    old = Document(id="a", text="Branches report monthly.", bits=(), names=["No. 1"])
    new = Document(id="b", text="Branches report daily.", bits=(), acts=[Act(ActKind.REPLACES, "No. 1")])
    with opened(tmp_path, "generic") as engine:
        engine.add([new])
        engine.add([old])
        (cell, *_) = Profile.open("generic").table.cells
        assert found(engine, Session(role=cell.role, purpose=cell.purpose)) == {"b"}
