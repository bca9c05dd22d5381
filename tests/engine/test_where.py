"""A search narrowed by metadata: as if nothing else were in the store, never wider than the policy, and on record."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.audit import Record, Verdict, verify_receipt
from carag.errors import CorruptFile, InvalidArgument
from carag.policy import Policy, Profile
from carag.retrieval import ConfidenceGate
from carag.store.store import CorpusStore
from tests.engine.documents import QUESTION, Clock, Counting, at
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GENERIC = Profile.open("generic")
CELLS = [(cell.role, cell.purpose) for cell in GENERIC.table.cells]
REVIEW = Session(role="compliance", purpose="review")
READER = Session(role="public", purpose="read")
SCRIPT = Path(__file__).parents[2] / "scripts" / "verify_receipt.py"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened(tmp_path / "store") as one:
        yield one


def opened(store: Path) -> Engine:
    return Engine.open(store, profile="generic", embedder=Counting(), clock=Clock(), gate=ConfidenceGate(-1))


def memo(name: str, **changes: Any) -> Document:
    given_ = {"id": name, "text": f"Branches report, says {name}.", "bits": (), **changes}
    return Document(**given_)


# --- laws ---

STATED = st.fixed_dictionaries(
    {},
    optional={
        "department": st.sampled_from(["Treasury", "treasury", "risk"]),
        "year": st.sampled_from([2023, 2024, "2024", 2025]),
        "dated": st.sampled_from(["2025-01-31", "2025-05-01"]),
        "title": st.sampled_from(["Rates", "Limits"]),  # which the profile does not declare
    },
)
WHERES = st.fixed_dictionaries(
    {},
    optional={
        "department": st.sampled_from(["treasury", ["risk"], ["risk", "Treasury"], "audit"]),
        "year": st.sampled_from([2024, [2023, 2025], {"gte": 2024}, {"gt": 2023, "lt": 2025}]),
        "dated": st.sampled_from(["2025-05-01", {"lte": "2025-03-01"}]),
    },
)


def expected(where: dict[str, Any], said: dict[str, Any]) -> bool:
    """Read a narrowing plainly, on what the documents above state."""
    numbers = {"year": int(said["year"])} if "year" in said else {}
    plain = {**said, **numbers, "department": said.get("department", "").lower()}
    for field, wanted in where.items():
        value = plain.get(field)
        if not value:
            return False
        if isinstance(wanted, dict):
            compared = {"gte": value >= min(wanted.values()), "lte": value <= max(wanted.values())}
            compared |= {"gt": value > min(wanted.values()), "lt": value < max(wanted.values())}
            if not all(compared[bound] for bound in wanted):
                return False
        elif value not in ([one.lower() if isinstance(one, str) else one for one in listed(wanted)]):
            return False
    return True


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@st.composite
def corpora(draw: st.DrawFn) -> list[Document]:
    """Memos of any bits, windows, entities and metadata."""
    return [
        memo(
            f"memo {number}",
            bits=draw(st.frozensets(st.sampled_from(GENERIC.vocabulary.flags), max_size=2)),
            metadata=draw(STATED),
            entities=draw(st.frozensets(st.integers(1, 3), max_size=2)),
            public_at=draw(st.none() | st.integers(0, 20).map(at)),
        )
        for number in range(draw(st.integers(1, 12)))
    ]


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    role, purpose = draw(st.sampled_from(CELLS))
    return Session(
        role=role,
        purpose=purpose,
        as_of=draw(st.none() | st.integers(0, 20).map(at)),
        allow_entities=draw(st.none() | st.frozensets(st.integers(1, 3), min_size=1)),
        restricted=draw(st.frozensets(st.integers(1, 3), max_size=1)),
    )


def compare_with_filtering_first(
    documents: Sequence[Document], wheres: Sequence[dict[str, Any]], asked: Sequence[tuple[Session, str, int]]
) -> int:
    """Ask a store narrowed, and a store that holds nothing else; return how many pairs were the same."""
    compared = 0
    with ExitStack() as stack:
        homes = [stack.enter_context(TemporaryDirectory()) for _ in range(1 + len(wheres))]
        whole, *parts = (stack.enter_context(opened(Path(home))) for home in homes)
        whole.add(documents)
        for where, part in zip(wheres, parts, strict=True):
            part.add([one for one in documents if expected(where, dict(one.metadata))])
            for session, question, k in asked:
                narrowed = whole.retrieve(question, session, k, where=where)
                alone = part.retrieve(question, session, k)
                assert [(one.chunk_id, one.similarity) for one in alone.passages] == [
                    (one.chunk_id, one.similarity) for one in narrowed.passages
                ]
                assert (alone.outcome, alone.why, alone.withheld) == (
                    narrowed.outcome,
                    narrowed.why,
                    narrowed.withheld,
                )
                records = [Record.parse(one.receipt.record) for one in (alone, narrowed)]
                assert len({one.event.index and one.event.index.admissible for one in records}) == 1  # type: ignore[union-attr]
                wide = {one.chunk_id for one in whole.retrieve(question, session, 400).passages}
                assert {one.chunk_id for one in narrowed.passages} <= wide
                assert verify_receipt(narrowed.receipt.to_bytes(), whole.vkey).verdict is Verdict.VERIFIED
                compared += 1
    return compared


ASKED = st.lists(
    st.tuples(sessions(), st.sampled_from([QUESTION, "Which rates?"]), st.integers(1, 9)),
    min_size=10,
    max_size=10,
)


@settings(max_examples=examples(12, least=3))
@given(corpora(), st.lists(WHERES, min_size=2, max_size=2), ASKED)
def test_a_narrowed_search_is_a_search_of_a_store_that_holds_nothing_else(
    documents: list[Document], wheres: list[dict[str, Any]], asked: list[tuple[Session, str, int]]
) -> None:
    """Ids, scores, counts, and what is withheld; and within what the same session finds without it."""
    assert compare_with_filtering_first(documents, wheres, asked) == 20


def test_what_only_hidden_documents_state_answers_like_what_nobody_states(engine: Engine) -> None:
    """Outcome, passages and record, but for what the asker wrote."""
    engine.add(
        [
            memo("open", metadata={"department": "risk"}),
            memo("secret", bits="SECRET", metadata={"department": "mergers"}),
        ]
    )
    told = []
    for department in ("mergers", "unknown"):
        found = engine.retrieve(QUESTION, READER, where={"department": department})
        asked = engine.ask(QUESTION, READER, where={"department": department})
        records = [json.loads(one.receipt.record) for one in (found, asked)]
        for record in records:
            for name in ("commitments", "id", "seq", "t0", "t1", "tc"):
                del record[name]
        told.append((found.outcome, found.why, found.passages, asked.text, asked.withheld, records))
    assert told[0] == told[1]
    assert told[0][2] == ()


# --- what is on record ---


def test_the_record_names_the_fields_and_commits_to_the_values(engine: Engine, tmp_path: Path) -> None:
    """The asker's receipt shows them; both verifiers accept it."""
    engine.add([memo("one", metadata={"department": "risk", "year": 2024})])
    where = {"year": {"gte": 2024}, "department": "Risk"}
    answer = engine.ask(QUESTION, READER, where=where)
    record = json.loads(answer.receipt.record)
    assert record["where"] == ["department", "year"]
    assert set(record["commitments"]) == {"answer", "query", "where"}
    assert json.loads(answer.receipt.to_bytes())["openings"]["where"]["value"] == (
        '{"department":["risk"],"year":{"gte":2024}}'
    )
    assert b"risk" not in answer.receipt.record
    path = tmp_path / "receipt.json"
    answer.receipt.write(path)
    words = [sys.executable, "-I", str(SCRIPT), str(path), "--key", engine.vkey]
    assert subprocess.run(words, check=False, capture_output=True).returncode == 0
    assert "where" not in json.loads(engine.ask(QUESTION, READER).receipt.record)


def test_an_answer_from_elsewhere_keeps_what_it_was_narrowed_by(engine: Engine) -> None:
    """It is the retrieval's record again."""
    engine.add([memo("one", metadata={"year": 2024})])
    found = engine.retrieve(QUESTION, READER, where={"year": 2024})
    receipt = engine.record_answer(found, "On day one. [1]", model="house")
    assert json.loads(receipt.record)["where"] == ["year"]


@pytest.mark.parametrize(
    "where", [{"yaer": 2024}, {"year": "soon"}, {"author": "Rates"}, "year=2024", {"year": []}]
)
def test_what_is_no_narrowing_is_refused_before_anything_is_recorded(engine: Engine, where: Any) -> None:
    """A slip must not search the whole store."""
    engine.add([memo("one", metadata={"year": 2024, "author": "Rates"})])
    before = engine.retrieve(QUESTION, READER).receipt.seq
    with pytest.raises(InvalidArgument, match="where"):
        engine.ask(QUESTION, READER, where=where)
    assert engine.retrieve(QUESTION, READER).receipt.seq == before + 1


def test_filings_declare_nothing_of_their_own_to_narrow_by(tmp_path: Path) -> None:
    """A refusal says what every document states, not a search that finds nothing."""
    with (
        Engine.open(tmp_path / "store", embedder=Counting()) as engine,
        pytest.raises(InvalidArgument, match="want one of company, filed, form"),
    ):
        engine.retrieve(QUESTION, Session(role="public", purpose="public_qa"), where={"department": "risk"})


# --- time ---


def test_another_version_is_found_by_what_it_states(engine: Engine) -> None:
    """And the past by what was stated then; what is removed is not found."""
    engine.add([memo("one", metadata={"year": 2023})])
    clock = engine.requests.recorder.clock
    then = clock()
    clock.pass_(days=2)  # type: ignore[attr-defined]
    engine.add([memo("one", metadata={"year": 2024})])

    def found(year: int, session: Session) -> list[str]:
        return [one.chunk_id for one in engine.retrieve(QUESTION, session, where={"year": year}).passages]

    past = Session(role="compliance", purpose="review", as_of=then, known_at=then)
    assert (found(2023, REVIEW), found(2024, REVIEW)) == ([], ["one.v2:00000"])
    assert (found(2023, past), found(2024, past)) == (["one:00000"], [])
    engine.remove(["one"])
    assert found(2024, REVIEW) == []


def test_what_a_document_outside_superseded_stays_superseded(engine: Engine) -> None:
    """A narrowing leaves out passages, never the effect of one document on another."""
    engine.add([memo("old", metadata={"year": 2023}), memo("new", supersedes="old", metadata={"year": 2024})])
    assert engine.retrieve(QUESTION, REVIEW, where={"year": 2023}).passages == ()


# --- what is not as declared ---


@pytest.mark.parametrize("facts", [{"bits": ()}, {"bits": None, "facts": {"classification": "public"}}])
def test_a_value_of_another_kind_quarantines_its_document(engine: Engine, facts: dict[str, Any]) -> None:
    """However it is labelled: no one finds it until it is corrected."""
    report = engine.add([memo("one", metadata={"year": "next"}, **facts)])
    assert report.quarantined == 1
    assert "UNKNOWN_VALUE: year is 'next'; want a finite number" in report.problems[0]
    assert engine.retrieve(QUESTION, REVIEW).passages == ()
    assert engine.add([memo("one", metadata={"year": "2024"}, **facts)]).changed == 1
    assert len(engine.retrieve(QUESTION, REVIEW, where={"year": 2024}).passages) == 1


def test_a_store_that_forgets_to_narrow_is_stopped(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hit is tested a second time, by what the store states of it."""
    engine.add([memo("one", metadata={"year": 2023}), memo("two", metadata={"year": 2024})])

    def forgetful(_: CorpusStore, policy: Policy, *__: object) -> Policy:
        return policy

    monkeypatch.setattr(CorpusStore, "expanded", forgetful)
    with pytest.raises(CorruptFile, match="index and store disagree"):
        engine.retrieve(QUESTION, REVIEW, where={"year": 2024})
