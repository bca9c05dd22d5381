"""The retriever finds what a loop over every passage finds: for lists, reopened cells, cooling and ended releases."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carag.errors import CorruptFile
from carag.index import Index, TextIndex
from carag.policy import (
    NEVER,
    TOMBSTONE,
    DealWindow,
    Decision,
    Intent,
    Mask,
    Policy,
    PolicyBit,
    PolicyTable,
    Profile,
    Session,
    Where,
    infer,
    policy_word,
)
from carag.retrieval import Retriever
from carag.retrieval.ranking import Dense
from carag.store._entity_sets import EntitySets, number_of
from carag.store._schema import TABLES
from carag.store.values import StoredChunk

TABLE = PolicyTable.shipped()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW, ROWS, DIM = 1_000, 600, 16


def moment(minutes: int) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


class Corpus:
    """A store and an embedder of random passages."""

    name = "random"
    labels = property(lambda self: self)

    def __init__(self, seed: int, *, ending: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.vectors = rng.standard_normal((ROWS, DIM)).astype(np.float32)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        bits = np.where(rng.random((ROWS, 27)) < 0.05, 1, 0) @ (1 << np.arange(27))
        bits |= np.where(rng.random(ROWS) < 0.4, PolicyBit.MATERIAL, 0)
        bits |= np.where(rng.random(ROWS) < 0.2, PolicyBit.OFFERING | PolicyBit.EGC, 0)
        ends = np.where(rng.random(ROWS) < ending, rng.integers(NOW // 2, 2 * NOW, ROWS), NEVER)
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        for statement in TABLES:
            self.database.execute(statement)
        self.sets = EntitySets(Path("corpus.db"))
        self.looked_up: list[tuple[list[int], int, int]] = []
        self.ended: dict[int, int] = {}
        self.known_ats: set[int | None] = set()
        # About none, one, or two of 1 to 4; now and then about an entity not stated, as well as another.
        abouts = [
            tuple(sorted(set(pair) - {9}))
            for pair in rng.choice([0, 1, 2, 3, 4, 9, 9, 9], (ROWS, 2)).tolist()
        ]
        self.rows = [
            StoredChunk(
                document="10-K",
                start=0,
                end=1,
                text="x",
                word=int(policy_word(int(word))),
                public_at=int(public_at),
                subjects=about,
                entity=number_of(self.database, about),
                expires_at=int(max(end, public_at)),
                key=key,
                chunk_id=f"a:{key}",
                document_id="a",
            )
            for key, (word, public_at, about, end) in enumerate(
                zip(bits, rng.integers(0, NOW, ROWS), abouts, ends, strict=True)
            )
        ]

    def embed_query(self, question: str) -> Any:
        rng = np.random.default_rng(len(question))
        return rng.standard_normal(DIM).astype(np.float32)

    def expanded(self, policy: Policy, where: Where, *_: object) -> Policy:
        return self.sets.expanded(self.database, policy, where)

    def chunks(self, keys: Any, *, known_at: int | None = None) -> list[StoredChunk]:
        self.known_ats.add(known_at)
        return [self.rows[int(key)] for key in keys]

    def as_of(self, keys: Any, as_of: int, *, known_at: int) -> list[StoredChunk]:
        self.looked_up.append((list(keys), as_of, known_at))
        return self.chunks(keys)  # each passage has one label here

    def chunks_and_labels(
        self, keys: Any, beside: Any, as_of: int, *, closed_by: int | None, known_at: int
    ) -> tuple[list[StoredChunk], dict[int, StoredChunk]]:
        labels = self.as_of(beside, as_of, known_at=known_at)
        return self.chunks(keys, known_at=closed_by), dict(zip(beside, labels, strict=True))

    def closed(self, *, after: int) -> list[int]:
        return [key for key, instant in self.ended.items() if instant > after]

    def index(self) -> Index:
        index = Index(DIM)
        index.add(
            self.vectors,
            np.array([row.word for row in self.rows], dtype=np.uint32),
            np.arange(ROWS),
            public_at=np.array([row.public_at for row in self.rows], dtype=np.uint32),
            expires_at=np.array([row.expires_at for row in self.rows], dtype=np.uint32),
            entities=np.array([row.entity for row in self.rows], dtype=np.uint32),
        )
        return index


class At:
    """A collection of random passages, at one instant."""

    def __init__(self, corpus: Corpus, instant: int) -> None:
        self.store = self.embedder = corpus
        self.index = corpus.index()
        self.words = TextIndex()
        self.profile = Profile.open()
        self.reading = lambda: nullcontext(instant)


@cache
def settled(ending: float = 0.0) -> At:
    """A collection for tests that only read: its index is built once."""
    return At(Corpus(7, ending=ending), 0)


def retriever_over(corpus: Corpus, **limit: int) -> Retriever:
    return Retriever(At(corpus, 0), Dense(), **limit)  # type: ignore[arg-type]


def admissible_of(corpus: Corpus, decision: Decision) -> list[StoredChunk]:
    """Ask of every passage, one by one; the verdict is the one that the reasons explain."""
    found = []
    for row in corpus.rows:
        label = (row.word, row.public_at), {"entity": row.subjects, "expires_at": row.expires_at}
        admits = decision.admits(*label[0], **label[1])
        assert admits == (not decision.reasons(*label[0], **label[1]))
        found += [row] if admits else []
    return found


DEALS = (DealWindow(1, moment(0), moment(10)), DealWindow(2, moment(NOW - 5), moment(NOW + 5)))
SESSIONS = {
    "plain": Session(role="buy_side", purpose="invest"),
    "denied": Session(role="buy_side", purpose="invest", restricted={1, 2}),
    "allowed": Session(role="auditor", purpose="assure", audit_clients={3}),
    "no one": Session(role="auditor", purpose="assure", audit_clients={3}, allow_entities={4}),
    "cooled": Session(role="buy_side", purpose="invest", cooling=timedelta(minutes=NOW // 3)),
    "cooled and denied": Session(
        role="buy_side", purpose="invest", cooling=timedelta(minutes=NOW // 3), watched={4}
    ),
    "cooled forever": Session(role="buy_side", purpose="invest", cooling=timedelta(minutes=2 * NOW)),
    "reopened": Session(role="sell_side", purpose="publish", deals=DEALS),
    "reopened and cooled": Session(
        role="sell_side", purpose="publish", deals=DEALS, cooling=timedelta(minutes=NOW // 4), restricted={3}
    ),
    "eu": Session(role="buy_side", purpose="invest", eu_transfer_basis=False),
    "latest": Session(role="public", purpose="public_qa", intents=(Intent.LATEST,)),
    "one person": Session(role="dpo", purpose="dsar", allow_entities={2}),
}


@pytest.mark.parametrize("ending", [0.0, 0.6], ids=["open ends", "ending"])
@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS)
def test_what_is_found_is_what_a_loop_finds(session: Session, ending: float) -> None:
    """The same passages in the same order, for every k, with the count of what is admissible."""
    corpus, retriever = settled(ending).store, Retriever(settled(ending), Dense())  # type: ignore[arg-type]
    decision = infer(session, TABLE, now=moment(NOW))
    admissible = admissible_of(corpus, decision)
    for question in ("a", "an other"):
        similarity = corpus.vectors @ corpus.embed_query(question)
        nearest = sorted(admissible, key=lambda row: -similarity[row.key])
        for k in (1, 8, 60, ROWS):
            found = retriever.retrieve(question, decision, k)
            assert [one.chunk_id for one in found.passages] == [row.chunk_id for row in nearest[:k]]
            assert found.admissible == len(admissible)
    kinds = {kind.rule.value for kind in found.withheld.kinds}
    assert ("COOLING" in kinds) == bool(decision.cooling)
    assert ("ENTITY_DENIED" in kinds) == any(policy.deny_entities for policy in decision.policies)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 60, ROWS])
def test_what_ended_while_it_cooled_is_not_searched(k: int) -> None:
    """Where all that is admissible is material, nothing is found or counted that ended while it cooled."""
    corpus = Corpus(7, ending=0.95)
    policy = Policy(Mask(required=PolicyBit.MATERIAL))
    decision = Decision("r", "p", policy, NOW, None, False, "", cooling=NOW // 2)
    admissible = admissible_of(corpus, decision)
    assert len(admissible) > 8
    similarity = corpus.vectors @ corpus.embed_query("a")
    nearest = sorted(admissible, key=lambda row: -similarity[row.key])
    found = retriever_over(corpus).retrieve("a", decision, k)
    assert [one.chunk_id for one in found.passages] == [row.chunk_id for row in nearest[:k]]
    assert found.admissible == len(nearest)


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS)
def test_above_the_exact_limit_nothing_inadmissible_comes_and_none_too_few(session: Session) -> None:
    """An approximate plan may miss a passage; it admits no other, and puts one in its place."""
    collection = settled(0.6)
    decision = infer(session, TABLE, now=moment(NOW))
    admissible = {row.chunk_id for row in admissible_of(collection.store, decision)}
    for k in (1, 8, ROWS):
        found = Retriever(collection, Dense(), exact_limit=0).retrieve("a", decision, k)  # type: ignore[arg-type]
        names = [one.chunk_id for one in found.passages]
        assert len(names) == len(set(names)) == min(k, len(admissible))
        assert set(names) <= admissible
        assert "certified" not in found.plan


def test_the_exact_limit_is_of_rows_that_are_admissible() -> None:
    """With few admissible among many the answer is exact, whatever the size of the index."""
    corpus = Corpus(7)
    decision = Decision("r", "p", Policy(Mask(required=PolicyBit.OFFERING)), NOW, None, False, "")
    size = retriever_over(corpus).retrieve("a", decision, 1).admissible
    assert 0 < size < ROWS
    for limit, is_exact in ((size * DIM, True), (size * DIM - 1, False), (ROWS * DIM, True), (0, False)):
        found = retriever_over(corpus, exact_limit=limit).retrieve("a", decision, 1)
        assert is_exact == (found.plan == "certified"), limit
        assert found.admissible == size
    nothing = replace(decision, policy=Policy())
    for limit, is_exact in ((DIM - 1, False), (DIM, True)):
        assert is_exact == (
            retriever_over(corpus, exact_limit=limit).retrieve("a", nothing, 1).plan == "certified"
        )


def test_each_search_of_a_decision_runs_its_own_plan_and_the_record_names_them() -> None:
    """Of two searches the one over few rows is exact, and the one over many is not."""
    corpus = Corpus(7)
    decision = Decision("r", "p", Policy(Mask()), NOW, None, False, "", cooling=NOW // 2)
    index = corpus.index()
    sizes = [
        index.count(search.policy, as_of=search.as_of, alive_at=search.alive_at)
        for search in decision.searches
    ]
    found = retriever_over(corpus, exact_limit=min(sizes) * DIM).retrieve("a", decision, 1)
    assert [size == min(sizes) for size in sizes] == [plan == "certified" for plan in found.plan.split("/")]
    assert 1 == sizes.count(min(sizes))


def test_sessions_differ_so_that_the_loop_proves_something() -> None:
    """Each but the last narrows in its own way."""
    corpus = Corpus(7)
    admissible = {
        name: sum(
            not decision.reasons(row.word, row.public_at, entity=row.subjects, expires_at=row.expires_at)
            for row in corpus.rows
        )
        for name, session in SESSIONS.items()
        if (decision := infer(session, TABLE, now=moment(NOW)))
    }
    assert admissible["no one"] == 0
    assert 0 < admissible["cooled"] < admissible["plain"]
    assert 0 < admissible["denied"] < admissible["plain"]
    assert 0 < admissible["one person"] < admissible["allowed"] < admissible["plain"]


@pytest.mark.parametrize(
    "changes",
    [{"subjects": (1,)}, {"subjects": (3, 1)}, {"expires_at": NOW}, {"public_at": NOW + 1}, {"word": 0}],
)
@pytest.mark.parametrize("cooling", [0, NOW // 2], ids=["now", "cooled"])
def test_a_store_that_would_not_admit_a_hit_stops_everything(changes: dict[str, Any], cooling: int) -> None:
    """Two statements of one rule: entities, window and word are all tested again."""
    corpus = Corpus(7)
    retriever = retriever_over(corpus)
    decision = replace(infer(SESSIONS["denied"], TABLE, now=moment(NOW)), cooling=cooling)
    best = retriever.retrieve("a", decision, 1).passages[0]
    key = int(best.chunk_id.split(":")[1])
    corpus.rows[key] = replace(corpus.rows[key], **changes)
    with pytest.raises(CorruptFile, match="disagree"):
        retriever.retrieve("a", decision, 1)


def test_what_was_closed_since_the_index_was_read_makes_room_and_before_is_a_disagreement() -> None:
    """In a search that began at an instant, a label closed later was open, but is still not returned."""
    corpus = Corpus(7)
    retriever = retriever_over(corpus)  # at the instant 0
    decision = infer(SESSIONS["denied"], TABLE, now=moment(NOW))
    best, *others = (one.chunk_id for one in retriever.retrieve("a", decision, 9).passages)
    key = int(best.split(":")[1])
    corpus.rows[key] = replace(corpus.rows[key], word=corpus.rows[key].word | TOMBSTONE)
    corpus.ended = {key: 1}
    assert others == [one.chunk_id for one in retriever.retrieve("a", decision, 8).passages]
    assert {None} == corpus.known_ats  # the store is asked what it says now
    for closed in ({key: 0}, {}):
        corpus.ended = closed
        with pytest.raises(CorruptFile, match="disagree"):
            retriever.retrieve("a", decision, 8)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 60, ROWS])
def test_however_much_was_closed_since_what_is_left_is_found(k: int) -> None:
    """The nearest two thirds were closed: it asks for more until the k nearest of the rest are there."""
    corpus = Corpus(7)
    retriever = retriever_over(corpus)
    decision = infer(SESSIONS["plain"], TABLE, now=moment(NOW))
    similarity = corpus.vectors @ corpus.embed_query("a")
    nearest = sorted(admissible_of(corpus, decision), key=lambda row: -similarity[row.key])
    closed = nearest[: 2 * len(nearest) // 3]
    for row in closed:
        corpus.rows[row.key] = replace(row, word=row.word | TOMBSTONE)
        corpus.ended[row.key] = 1
    left = nearest[len(closed) :]
    assert len(left) > 8
    found = retriever.retrieve("a", decision, k)
    assert [one.chunk_id for one in found.passages] == [row.chunk_id for row in left[:k]]
    assert found.admissible == len(left) or k < len(left)


def test_what_is_hidden_is_what_of_the_nearest_there_is_a_reason_against() -> None:
    """For a session that may know that it exists, as of the session; what was admitted is not looked up again."""
    corpus = Corpus(7)
    session = Session(role="compliance", purpose="surveil", restricted={1, 2}, as_of=moment(NOW - 100))
    decision = infer(session, TABLE, now=moment(NOW))
    nearest = sorted(corpus.rows, key=lambda row: -(corpus.vectors @ corpus.embed_query("a"))[row.key])
    admissible = {row.key for row in admissible_of(corpus, decision)}
    for k in (1, 8, 60):
        found = retriever_over(corpus).retrieve("a", decision, k)
        expected = [row for row in nearest[:k] if row.key not in admissible]
        assert [row.chunk_id for row in expected] == [one.chunk_id for one in found.withheld.hidden]
        assert all(one.reasons for one in found.withheld.hidden)
        assert ([row.key for row in expected], decision.as_of, 0) == corpus.looked_up.pop()
    assert len(expected) > 8
    assert (
        retriever_over(corpus).retrieve("a", replace(decision, may_know_existence=False), 8).withheld.hidden
        == ()
    )


def test_what_was_closed_since_and_lies_near_is_told_of_with_its_reason() -> None:
    """A label that was found, and then refused, is read again as of the session, and it alone."""
    corpus = Corpus(7)
    retriever = retriever_over(corpus)
    session = Session(role="compliance", purpose="surveil", restricted={1, 2}, as_of=moment(NOW - 100))
    decision = infer(session, TABLE, now=moment(NOW))
    before = retriever.retrieve("a", decision, 8)
    key = int(before.passages[0].chunk_id.split(":")[1])
    corpus.rows[key] = replace(corpus.rows[key], word=corpus.rows[key].word | TOMBSTONE)
    corpus.ended = {key: 1}
    corpus.looked_up.clear()
    found = retriever.retrieve("a", decision, 8)
    assert {one.chunk_id for one in found.withheld.hidden} == {
        f"a:{key}",
        *(one.chunk_id for one in before.withheld.hidden),
    }
    assert ([key], decision.as_of, 0) == corpus.looked_up[-1]
    assert len(corpus.looked_up) == 2


@pytest.mark.parametrize("limit", [0, ROWS * DIM], ids=["auto", "certified"])
@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS)
def test_the_index_is_asked_once_for_both_and_never_for_what_may_not_be_known(
    session: Session, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each search of the decision; the first one also finds hidden rows, if they may be known."""
    asked: list[int] = []
    search = Index.search
    monkeypatch.setattr(
        Index, "search", lambda *given, **more: asked.append(more["also_hidden"]) or search(*given, **more)
    )
    collection = settled()
    decision = infer(session, TABLE, now=moment(NOW))
    retriever = Retriever(collection, Dense(), exact_limit=limit)  # type: ignore[arg-type]
    for may in (False, True):
        asked.clear()
        collection.store.looked_up.clear()
        retriever.retrieve("a", replace(decision, may_know_existence=may), 8)
        assert [may, *[False] * (len(decision.searches) - 1)] == [more > 0 for more in asked]
        assert may == bool(collection.store.looked_up)


@pytest.mark.parametrize(("instant", "expected"), [(-1, None), (0, 0), (1, 1)])
def test_what_is_found_says_up_to_which_instant_it_was_known(instant: int, expected: int | None) -> None:
    """An index without labels has no instant."""
    corpus = Corpus(7)
    decision = infer(SESSIONS["plain"], TABLE, now=moment(NOW))
    retriever = Retriever(At(corpus, instant), Dense())  # type: ignore[arg-type]
    assert expected == retriever.retrieve("a", decision, 1).known_at


def test_a_passage_is_told_as_the_store_has_it() -> None:
    """Every member that both have."""
    corpus = Corpus(7)
    stated = {"form": "10-K", "company": "Example plc", "filed": "2024-03-01"}
    corpus.rows = [replace(row, **stated, stated=stated) for row in corpus.rows]
    decision = infer(SESSIONS["plain"], TABLE, now=moment(NOW))
    for passage in retriever_over(corpus).retrieve("a", decision, 8).passages:
        row = corpus.rows[int(passage.chunk_id.split(":")[1])]
        told = {
            field.name: getattr(passage, field.name)
            for field in fields(passage)
            if field.name not in ("similarity", "source", "head", "accession_number")
        }
        assert row.document_id == passage.document_id == passage.accession_number
        assert {name: getattr(row, name) for name in told} == told
        assert passage.source == "Example plc, 10-K, 10-K, filed 2024-03-01, a"


def test_a_set_that_comes_in_during_a_search_is_no_disagreement() -> None:
    """A list put into numbers before that is put into them again: no hit of the new set leaves, and nothing fails."""
    corpus = Corpus(7)
    retriever = retriever_over(corpus)
    decision = infer(SESSIONS["denied"], TABLE, now=moment(NOW))
    wanted = retriever.retrieve("a", decision, 60)
    behind, corpus.expanded = corpus.expanded, None  # type: ignore[assignment, method-assign]
    stale = iter([Policy(*decision.policy.masks, deny_entities=[0, 1, 2])])  # no set of two is on it yet
    corpus.expanded = lambda policy, where, _: next(stale, None) or behind(policy, where)  # type: ignore[method-assign]
    assert retriever.retrieve("a", decision, 60) == wanted
    assert next(stale, None) is None
