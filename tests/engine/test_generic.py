"""A store of a firm's own documents, under the generic profile: the promises of filings hold for them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.audit import Record, Verdict, verify_receipt
from carag.errors import InvalidArgument
from carag.policy import PolicyBit, Profile, infer
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROFILE = Profile.open("generic")
BITS = PROFILE.vocabulary.flags
CELLS = [(cell.role, cell.purpose) for cell in PROFILE.table.cells]
NOW = datetime(2026, 11, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store of one document for each subset of the six bits."""
    home = tmp_path_factory.mktemp("generic")
    with Engine.open(home, profile="generic", embedder="wordllama", clock=lambda: NOW) as engine:
        report = engine.add(
            Document(
                id=f"memo-{vector}", text=f"The canteen memo number {vector} tells of lunch.", bits=vector
            )
            for vector in range(1 << len(BITS))
        )
        assert (report.added, report.quarantined) == (64, 0)
        yield engine


@pytest.mark.parametrize(("role", "purpose"), CELLS)
def test_a_cell_finds_all_that_it_admits_and_nothing_else(engine: Engine, role: str, purpose: str) -> None:
    """Judged by the cell's own masks, document by document; and the receipt verifies."""
    session = Session(role=role, purpose=purpose)
    cell = PROFILE.table.get(role, purpose)
    assert cell is not None
    admissible = {f"memo-{v}:00000" for v in range(64) if cell.policy.admits(v | 0x0800_0000)}
    found = engine.retrieve("What does the canteen tell?", session, 100)
    assert {passage.chunk_id for passage in found.passages} == admissible
    assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    answer = engine.ask("What does the canteen memo tell of?", session)
    assert {one.chunk_id for one in answer.passages} <= admissible


def test_what_a_cell_hides_is_explained_in_the_words_of_the_profile(engine: Engine) -> None:
    """To whom may know; to others there is nothing to explain."""
    secret = BITS["SECRET"].value
    told = engine.explain(f"memo-{secret}:00000", Session(role="compliance", purpose="review"))
    assert told.why == "ADMISSIBLE"
    assert any(cause.startswith("SECRET: ") for cause in told.causes)
    untold = engine.explain(f"memo-{secret}:00000", Session(role="employee", purpose="work"))
    assert untold.why == "NOTHING_TO_EXPLAIN"
    withheld = engine.retrieve("Lunch?", Session(role="employee", purpose="work")).withheld
    assert withheld is not None
    assert "FORBIDDEN:SECRET" in [kind.code for kind in withheld.kinds]
    assert not [kind.text for kind in withheld.kinds if "filer" in kind.text or "filing" in kind.text]


FACTS = st.fixed_dictionaries(
    {},
    optional={
        "classification": st.sampled_from(["public", "internal", "Confidential", "secret", "?", ""]),
        "personal_data": st.sampled_from([True, False, "yes", "maybe"]),
        "draft": st.booleans(),
        "privileged": st.booleans(),
        "department": st.sampled_from(["treasury", "legal"]),
    },
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FACTS, min_size=1, max_size=12), st.sampled_from(CELLS))
def test_facts_decide_and_what_states_none_is_open_to_nobody(
    tmp_path_factory: pytest.TempPathFactory, several: list[dict[str, Any]], cell: tuple[str, str]
) -> None:
    """A session finds exactly the documents whose labels its masks admit; what has no label is counted and hidden."""
    with Engine.open(
        tmp_path_factory.mktemp("facts"), profile="generic", embedder="wordllama", clock=lambda: NOW
    ) as engine:
        report = engine.add(
            Document(id=f"d{n}", text=f"Paper {n} on lunch.", facts=facts) for n, facts in enumerate(several)
        )
        labels = {
            f"d{n}:00000": engine._collection.store.chunk(f"d{n}:00000").word for n in range(len(several))
        }
        decision = infer(Session(role=cell[0], purpose=cell[1]), PROFILE.table, now=NOW)
        found = engine.retrieve("Lunch?", Session(role=cell[0], purpose=cell[1]), 50)
    assert {one.chunk_id for one in found.passages} == {
        name for name, word in labels.items() if decision.admits(word, 0)
    }
    unstated = [facts for facts in several if facts.get("classification", "") in ("", "?")]
    assert report.quarantined >= len(unstated)


@pytest.mark.parametrize(
    "bits", [PolicyBit.J_US, ["INTERNAL", "J_US"], "SECERT", 1 << 6, [BITS["SECRET"], PolicyBit.J_US]]
)
def test_bits_of_another_profile_enter_no_store(engine: Engine, bits: Any) -> None:
    """Nor a misspelt one; nothing of the call is stored."""
    with pytest.raises(InvalidArgument):
        engine.add([Document(id="new", text="x", bits=()), Document(id="other", text="y", bits=bits)])
    assert engine._collection.store.documents.facts_of("new") is None


def test_a_refused_question_about_a_day_is_on_record_with_that_days_end(engine: Engine) -> None:
    """In the profile's time zone, as an answered one is."""
    refused = engine.retrieve("Lunch?", Session(role="visitor", purpose="work", as_of=date(2026, 1, 1)))
    event = Record.parse(refused.receipt.record).event
    assert event.as_of == int(datetime(2026, 1, 1, 23, 59, tzinfo=UTC).timestamp()) // 60  # type: ignore[union-attr]


def test_a_folder_is_no_name(tmp_path: Path) -> None:
    """A profile that does not ship is asked for by its path."""
    with pytest.raises(InvalidArgument, match="no profile"):
        Engine.open(tmp_path / "store", profile="office", embedder="wordllama")
