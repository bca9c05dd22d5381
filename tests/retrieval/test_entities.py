"""Over a real store and index, lists of companies admit what a plain reading of the sets admits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.engine.collection import Collection, no_progress
from carag.errors import CorruptFile
from carag.labelling.labelled import LabelledDocument, LabelledPassage
from carag.policy import PolicyTable, Session, bits_of, infer, policy_word
from carag.retrieval import Retriever
from carag.retrieval.ranking import Dense
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = PolicyTable.shipped()
NOW = datetime(2026, 1, 2, 15, 0, tzinfo=UTC)
CIKS = [1, 2, 3, 4, 5, 2**31, 9_990_000_101, 10**10 - 1]
OPEN = int(policy_word(bits_of(["PD_COMP"])))  # open to compliance, to auditors, and on an access request
FILINGS = 80


class Unit:
    """An embedder of as many dimensions as a test needs."""

    name, dim, fingerprint = "unit", 8, "unit"

    def embed_query(self, text: str) -> Any:
        return np.random.default_rng(len(text)).standard_normal(self.dim).astype(np.float32)


class Built(NamedTuple):
    store: CorpusStore
    retriever: Retriever
    collection: Collection
    abouts: dict[str, frozenset[int]]
    instants: list[tuple[int, dict[str, frozenset[int]]]]
    """What was known when: of every open passage, whom it is about."""


def put(store: CorpusStore, number: int, about: frozenset[int], content: str = "") -> str:
    accession = f"{number:010}-25-000001"
    rng = np.random.default_rng([number, len(about)])
    filing = LabelledDocument(
        document_id=accession,
        form="10-K",
        company="A",
        filed="",
        content_hash=content,
        facts={},
        causes={"bits": []},
        public_at_source="",
    )
    chunk = LabelledPassage(
        document="10-K", start=0, end=1, text="x", word=OPEN, public_at=0, subjects=tuple(about)
    )
    store.put(filing, [chunk], rng.standard_normal((1, Unit.dim)).astype(np.float32))
    return accession


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """Filings of random sets, in portions; some of them come again about others."""
    rng = np.random.default_rng(5)
    home = tmp_path_factory.mktemp("sets")
    clock = iter(range(1_000_000, 2_000_000, 10))
    with CorpusStore.open(home / "corpus.db", clock=lambda: next(clock)) as store:
        collection = Collection(store, Unit(), home / "index.carag")  # type: ignore[arg-type]
        abouts: dict[str, frozenset[int]] = {}
        instants = []
        for number in [*range(FILINGS), *range(0, FILINGS, 7)]:
            about = frozenset(int(cik) for cik in rng.choice([*CIKS, 0], rng.integers(0, 4)))
            version = ".v2" if f"{number:010}-25-000001:00000" in abouts else ""
            if version:
                del abouts[f"{number:010}-25-000001:00000"]
            abouts[f"{put(store, number, about)}{version}:00000"] = about
            if number % 20 == 19 or version:
                collection.refresh(no_progress)
                instants.append((store.known(), dict(abouts)))
        collection.refresh(no_progress)
        retriever = Retriever(collection, Dense())
        yield Built(store, retriever, collection, abouts, instants)
        collection.close()


def found(built: Built, session: Session) -> set[str]:
    decision = infer(session, TABLE, now=NOW)
    evidence = built.retriever.retrieve("a", decision, 400)
    assert evidence.admissible == len(evidence.passages)
    return {passage.chunk_id for passage in evidence.passages}


def read(abouts: dict[str, frozenset[int]], session: Session) -> set[str]:
    """Read the session's lists in words, over sets."""
    denied = session.restricted | session.watched
    open_to = set()
    for chunk_id, about in abouts.items():
        whom = about or {0}
        if denied and (whom & denied or 0 in whom):
            continue
        if session.purpose == "dsar" and session.audit_clients is None:
            allowed = bool(whom & session.allow_entities) if session.allow_entities else False
        else:
            allowed = all(
                whom <= listed
                for listed in (session.allow_entities, session.audit_clients)
                if listed is not None
            )
        if allowed:
            open_to.add(chunk_id)
    return open_to


few = st.frozensets(st.sampled_from(CIKS), max_size=5)
CELLS = [("compliance", "surveil"), ("auditor", "assure"), ("dpo", "dsar")]
OF_THE_PAST = CELLS[:2]
"""Those that may ask what was known then."""


@st.composite
def sessions(draw: st.DrawFn, cells: list[tuple[str, str]] = CELLS) -> Session:
    role, purpose = draw(st.sampled_from(cells))
    is_dsar = purpose == "dsar"
    return Session(
        role=role,
        purpose=purpose,
        allow_entities=draw(few.filter(bool)) if is_dsar else draw(st.none() | few),
        audit_clients=draw(st.none() | few),
        restricted=draw(st.just(frozenset()) | few),
        watched=draw(st.just(frozenset()) | few),
    )


@given(sessions())
def test_what_is_found_is_what_the_sets_admit(built: Built, session: Session) -> None:
    """Engine and plain reading, for random lists over random sets."""
    assert found(built, session) == read(built.abouts, session)


@given(sessions(OF_THE_PAST), st.data())
def test_what_was_known_is_read_over_the_sets_of_then(
    built: Built, session: Session, data: st.DataObject
) -> None:
    """A filing that came again about others is, as known before, about the same entities."""
    known_at, abouts = data.draw(st.sampled_from(built.instants))
    instant = datetime.fromtimestamp(known_at / 1_000_000, UTC)
    then = Session(
        role=session.role,
        purpose=session.purpose,
        known_at=instant,
        allow_entities=session.allow_entities,
        audit_clients=session.audit_clients,
        restricted=session.restricted,
        watched=session.watched,
    )
    assert found(built, then) == read(abouts, session)


@given(sessions(), st.sampled_from(CIKS))
def test_a_deny_list_with_any_member_hides_and_never_widens(built: Built, session: Session, cik: int) -> None:
    """One more CIK on a list takes away what it is in, and brings nothing."""
    more = session.narrow(restricted=[cik])
    tighter = found(built, more)
    assert tighter <= found(built, session)
    assert not any(cik in built.abouts[chunk_id] for chunk_id in tighter)


def test_the_lists_prove_something(built: Built) -> None:
    """Sets of several are there, in numbers beyond every CIK, and lists with a second member hide them."""
    several = {chunk_id for chunk_id, about in built.abouts.items() if len(about) > 1}
    assert len(several) > FILINGS // 4
    numbers = {built.store.chunk(chunk_id).entity for chunk_id in several}
    assert min(numbers) >= 2**31
    everything = found(built, Session(role="compliance", purpose="surveil"))
    assert everything == set(built.abouts)
    second = {max(built.abouts[chunk_id]) for chunk_id in several}
    assert (
        not found(built, Session(role="compliance", purpose="surveil", restricted=frozenset(second)))
        & several
    )


def test_a_set_that_was_changed_in_the_store_stops_the_answer(built: Built) -> None:
    """The index's number stands for a set; the store is asked again at every hit."""
    session = Session(role="compliance", purpose="surveil", restricted=frozenset({5}))
    hit = next(chunk_id for chunk_id in sorted(found(built, session)) if len(built.abouts[chunk_id]) > 1)
    number = built.store.chunk(hit).entity
    sql = built.store._connection
    assert sql is not None
    (before,) = sql.execute("SELECT ciks FROM entity_sets WHERE number = ?", (number,)).fetchone()
    try:
        sql.execute("UPDATE entity_sets SET ciks = '[5, 7]' WHERE number = ?", (number,))
        with pytest.raises(CorruptFile, match="disagree"):
            found(built, session)
    finally:
        sql.execute("UPDATE entity_sets SET ciks = ? WHERE number = ?", (before, number))


def test_numbers_are_kept_when_the_store_is_opened_again(tmp_path: Path) -> None:
    """The same set, the same number, for an index that was saved with it."""
    sets = [frozenset(one) for one in ({1, 2}, {2, 3}, set(), {4}, {10**10 - 1})]
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        first = [store.chunk(f"{put(store, n, about)}:00000").entity for n, about in enumerate(sets)]
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        again = [store.chunk(f"{put(store, 100 + n, about)}:00000") for n, about in enumerate(reversed(sets))]
    assert [one.entity for one in reversed(again)] == first == [2**31, 2**31 + 1, 0, 4, 2**31 + 2]
    assert [frozenset(one.subjects) for one in reversed(again)] == sets
