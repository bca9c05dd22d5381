"""A new profile works from the documentation alone: the TOML of its page, and nothing under carag/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.audit import Outcome, Verdict, verify_receipt
from carag.policy import Profile
from carag.policy.lint import lint

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-policy.md"
INFORM = Session(role="resident", purpose="inform")
DECIDE = Session(role="officer", purpose="decide")
ASKED = "How many parking spaces are planned at Mill Lane 4?"
TEXTS = {
    "plan": ("Nine parking spaces are planned at Mill Lane 4.", {"status": "released"}),
    "draft": ("Fourteen parking spaces are now planned at Mill Lane 4.", {"status": "Draft"}),
    "cost": ("Each of the parking spaces costs 900 pounds.", {"status": "released", "kind": "viability"}),
    "letter": (
        "Ada Brook wants no parking spaces at Mill Lane 4.",
        {"status": "released", "names_residents": True},
    ),
    "unknown": ("Some parking spaces are planned at Mill Lane 4.", {"kind": "viability"}),
    "slip": (
        "Many parking spaces are planned at Mill Lane 4.",
        {"status": "released", "name_residents": True},
    ),
}
SEEN = {INFORM: {"plan"}, DECIDE: {"plan", "draft", "letter"}}


def from_the_page(file: str) -> str:
    """Return a file as the page writes it."""
    (text,) = re.findall(
        rf"^cat > planning/{re.escape(file)} <<'END'\n(.*?)^END$",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return text


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store under the profile of the page, with a document of each kind."""
    folder = tmp_path_factory.mktemp("planning")
    for file in ("profile.toml", "roles.toml"):
        (folder / file).write_text(from_the_page(file), "utf-8")
    store = tmp_path_factory.mktemp("store")
    with Engine.open(store, profile=folder, embedder="wordllama") as engine:
        report = engine.add(Document(id=id_, text=text, facts=facts) for id_, (text, facts) in TEXTS.items())
        assert (report.added, report.quarantined) == (6, 2)
        yield engine


def test_the_profile_is_not_a_shipped_one() -> None:
    """It is valid and clean, with three bits, two roles and one intent."""
    profile = Profile.from_texts(from_the_page("profile.toml"), from_the_page("roles.toml"))
    assert (profile.name, profile.is_shipped, lint(profile.table)) == ("planning", False, ())
    assert [bit.name for bit in profile.vocabulary.flags] == ["DRAFT", "PERSONAL", "COMMERCIAL"]
    assert profile.table.roles == ("resident", "officer")


@pytest.mark.parametrize("session", SEEN, ids=lambda session: session.role)
def test_a_role_finds_what_its_cell_admits_and_nothing_else(engine: Engine, session: Session) -> None:
    """In every retrieval and answer; both receipts verify."""
    found, answer = engine.retrieve(ASKED, session, 20), engine.ask(ASKED, session)
    assert {one.chunk_id for one in found.passages} == {f"{id_}:00000" for id_ in SEEN[session]}
    assert answer.outcome is Outcome.ANSWER
    assert {one.chunk_id for one in answer.passages} <= {f"{id_}:00000" for id_ in SEEN[session]}
    for receipt in (found.receipt, answer.receipt):
        assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED


def test_the_words_of_a_question_tighten(engine: Engine) -> None:
    """An officer who asks for what is released gets no draft."""
    found = engine.retrieve("How many parking spaces are in the released papers?", DECIDE, 20)
    assert {one.chunk_id for one in found.passages} == {"plan:00000", "letter:00000"}


def test_an_officer_is_told_who_could_lift_what(engine: Engine) -> None:
    """In the profile's own words; a resident is told nothing, for a hidden document as for none."""
    told = engine.explain("cost:00000", DECIDE)
    (why,) = told.reasons
    assert (why.reason.code, why.lift) == ("FORBIDDEN:COMMERCIAL", "the applicant, by consent")
    assert told.causes[0].startswith("COMMERCIAL: kind: ")
    hidden, absent = (engine.explain(id_, INFORM) for id_ in ("cost:00000", "none:00000"))
    assert (hidden.outcome, hidden.text) == (absent.outcome, absent.text.replace("none", "cost"))


def test_an_altered_receipt_fails(engine: Engine) -> None:
    """The receipt of an answer proves its text."""
    receipt = engine.ask(ASKED, INFORM).receipt.to_bytes()
    altered = receipt.replace(b"Nine parking", b"Nice parking")
    assert altered != receipt
    assert verify_receipt(altered, engine.vkey).verdict is Verdict.FAILED


def test_another_purpose_is_refused(engine: Engine) -> None:
    """The pair has no cell."""
    assert engine.ask(ASKED, Session(role="resident", purpose="decide")).why == "NO_SUCH_CELL"
