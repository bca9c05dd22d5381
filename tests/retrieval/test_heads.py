"""Claims about heads of torn tables: from which passages they are carried, and that hidden ones are as if not there."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.index import Index, TextIndex
from carag.policy import (
    EVERYWHERE,
    NEVER,
    QUARANTINE,
    Decision,
    PolicyBit,
    PolicyTable,
    Profile,
    Session,
    Where,
    infer,
    policy_word,
)
from carag.retrieval import Evidence, Retriever, add_labels
from carag.retrieval.ranking import Dense
from carag.retrieval.tables import head_of, torn_row
from carag.store.store import CorpusStore
from carag.store.values import StoredChunk
from tests.sizes import examples
from tests.store.filings import a_filing

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW, DIM = 1_000, 3
TABLE = PolicyTable.shipped()
HEAD = "In millions | 2018 | 2017"
TEXTS = (
    f"Statements of Income\n{HEAD}\nNet sales | 12 | 11",
    "Cost of sales | 7 | 6\nGross profit | 5 | 5",
    "Operating expenses | 2 | 1\nOperating income | 3 | 4",
)
WORD = int(policy_word(0))
RISK = Where(one_of=(("team", frozenset({"risk"})),))
SESSIONS = (
    Session(role="buy_side", purpose="invest"),
    Session(role="buy_side", purpose="invest", restricted={1}),
    Session(role="buy_side", purpose="invest", cooling=timedelta(minutes=NOW // 2)),
    Session(role="compliance", purpose="surveil"),
    Session(role="public", purpose="public_qa"),
)


def moment(minutes: int) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


def decided(session: Session = SESSIONS[0], **changes: Any) -> Decision:
    return replace(infer(session, TABLE, now=moment(NOW)), may_know_existence=False, **changes)


def pieces(*changes: dict[str, Any], texts: tuple[str, ...] = TEXTS, gap: int = 1) -> list[StoredChunk]:
    """Make the passages of one document, with a gap after each; the last has the direction that questions have."""
    found, start = [], 0
    for text, change in zip(texts, [*changes, *({} for _ in texts)][: len(texts)], strict=True):
        place = {"document": "10-K", "start": start, "end": start + len(text)}
        one = StoredChunk(**place, text=text, word=WORD, public_at=0, subjects=(2,))  # type: ignore[arg-type]
        found.append(replace(one, **change))
        start += len(text) + gap
    return found


class Shelf:
    """A collection over a store: at the instant up to which its index was brought."""

    name = "shelf"

    def __init__(self, store: CorpusStore) -> None:
        self.store, self.embedder, self.profile = store, self, Profile.open()
        self.index, self.words = Index(DIM), TextIndex()
        add_labels(self.index, store, store.labels.open())
        instant = store.known()
        self.reading = lambda: nullcontext(instant)

    def embed_query(self, _: str) -> Any:
        """Most like the last passage, and then the one before it."""
        return np.arange(1, DIM + 1, dtype=np.float32) ** 3


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        yield Path(directory)


def stored(home: Path, chunks: list[StoredChunk]) -> Path:
    """Store the passages of one document."""
    path, instants = home / "corpus.db", iter(range(1, 1_000))
    with CorpusStore.open(path, clock=lambda: next(instants)) as store:
        store.put(a_filing(), chunks, np.eye(len(chunks), DIM, dtype=np.float32))
    return path


def ask(path: Path, decision: Decision, k: int = 1, where: Where = EVERYWHERE) -> Evidence:
    with CorpusStore.open(path, create=False) as store:
        return Retriever(Shelf(store), Dense()).retrieve("a", decision, k, where)  # type: ignore[arg-type]


# --- what is carried ---


def test_the_head_rows_come_word_for_word_from_the_passages_before(home: Path) -> None:
    """From the one right before it, or through it from the one before that; the lender is named."""
    evidence = ask(stored(home, pieces()), decided(), 2)
    document = "\n".join(TEXTS)
    for passage, number in zip(evidence.passages, (2, 1), strict=True):
        assert passage.text == TEXTS[number]
        assert passage.head is not None
        assert HEAD in passage.head.text
        assert document[passage.head.start : passage.head.end] == passage.head.text
    [lender] = evidence.lenders
    assert (lender.text, lender.head) == (TEXTS[0], None)
    assert {lender.chunk_id} == {passage.head.chunk_id for passage in evidence.passages if passage.head}
    assert lender.similarity == pytest.approx(1 / np.sqrt(1 + 8**2 + 27**2))
    whole = ask(home / "corpus.db", decided(), 3)
    assert (whole.lenders, whole.passages[2].head) == ((), None)


def test_a_reranker_that_drops_a_passage_keeps_it_as_a_lender(home: Path) -> None:
    """Of what is returned all heads have their lender on hand, and no other is."""

    class Backwards:
        name, remote, fingerprint = "backwards", False, "1"

        def rerank(self, _: str, passages: list[str]) -> list[float]:
            return [float(TEXTS.index(one) == 1) for one in passages]

    path = stored(home, pieces())
    with CorpusStore.open(path, create=False) as store:
        retriever = Retriever(Shelf(store), Dense(), reranker=Backwards())  # type: ignore[arg-type]
        evidence = retriever.retrieve("a", decided(), 1)
    assert [TEXTS[1]] == [one.text for one in evidence.passages]
    assert [(TEXTS[0], None)] == [(one.text, one.head) for one in evidence.lenders]


HIDING: dict[str, dict[str, Any]] = {
    "another label": {"word": int(policy_word(PolicyBit.PD_SPECIAL))},
    "quarantine": {"word": WORD | QUARANTINE},
    "not yet public": {"public_at": NOW + 1},
    "expired": {"expires_at": NOW},
    "a company on the list": {"subjects": (1,)},
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("why", HIDING)
def test_no_head_comes_from_or_through_a_hidden_passage(home: Path, why: str, place: int) -> None:
    """Nor is it a lender."""
    changes: list[dict[str, Any]] = [{}, {}]
    changes[place] = HIDING[why]
    evidence = ask(stored(home, pieces(*changes)), decided(SESSIONS[1]))
    assert ([TEXTS[2]], (), None) == (
        [one.text for one in evidence.passages],
        evidence.lenders,
        evidence.passages[0].head,
    )


def test_no_head_comes_from_outside_of_a_narrowed_search(home: Path) -> None:
    """What `where` does not admit is as if it were not in the store."""
    risk, other = {"metadata": {"team": "risk"}}, {"metadata": {"team": "deals"}}
    chunks = pieces(other, risk, risk)
    assert ask(stored(home, chunks), decided(), 1, RISK).passages[0].head is None
    assert ask(home / "corpus.db", decided()).passages[0].head is not None


def test_a_passage_that_was_closed_lends_nothing_but_to_who_asks_about_then(home: Path) -> None:
    """Superseded or erased; also while the index has not heard of it yet."""
    path = stored(home, pieces())
    with CorpusStore.open(path, create=False) as store:
        late = Retriever(Shelf(store), Dense())  # type: ignore[arg-type]
        assert late.retrieve("a", decided(), 1).passages[0].head is not None
        then = store.known()
        with closing(sqlite3.connect(path, isolation_level=None)) as sql:
            sql.execute(
                "INSERT INTO changes (known_at, filing, opened, closed) VALUES (?, 1, 0, 1)", (then + 1,)
            )
            sql.execute("UPDATE labels SET known_to = ? WHERE key = 0", (then + 1,))
        assert late.retrieve("a", decided(), 1).passages[0].head is None
    assert ask(path, decided()).passages[0].head is None
    past = ask(path, decided(known_at=then)).passages[0].head
    assert past is not None
    assert HEAD in past.text
    assert ask(path, decided(known_at=then + 1)).passages[0].head is None


def test_a_label_that_was_known_later_lends_nothing_to_who_asks_about_then(home: Path) -> None:
    """Hidden then and open now: heads as of what was known."""
    path = stored(home, pieces(HIDING["another label"]))
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        [(then,)] = sql.execute("SELECT max(known_at) FROM changes")
        sql.execute("INSERT INTO changes (known_at, filing, opened, closed) VALUES (?, 1, 1, 1)", (then + 1,))
        sql.execute(
            "INSERT INTO labels SELECT 3, key, ?, valid_from, valid_to, entity, ?, NULL, causes FROM labels "
            "WHERE key = 0",
            (WORD, then + 1),
        )
        sql.execute("UPDATE labels SET known_to = ? WHERE label = 0", (then + 1,))
    assert ask(path, decided(known_at=then)).passages[0].head is None
    assert ask(path, decided()).passages[0].head is not None


def test_a_hidden_passage_is_not_even_read(home: Path) -> None:
    """That its text was altered in the file is not found out by asking next to it."""
    path = stored(home, pieces({}, HIDING["another label"]))
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("UPDATE chunks SET text = 'altered' WHERE key = 1")
    with CorpusStore.open(path, create=False) as store:
        assert Retriever(Shelf(store), Dense()).retrieve("a", decided(), 1).passages[0].head is None  # type: ignore[arg-type]


def test_no_head_comes_from_another_document(home: Path) -> None:
    """Though it was stored right before, and its text would go on in this one."""
    first, second, third = pieces()
    path = stored(home, [first])
    with CorpusStore.open(path, create=False) as store:
        store.put(a_filing("0000000001-25-000002"), [second, third], np.eye(DIM, dtype=np.float32)[1:])
    assert ask(path, decided()).passages[0].head is None


# --- laws ---

LABELS = st.fixed_dictionaries(
    {},
    optional={
        "word": st.sampled_from([WORD, *(one["word"] for one in HIDING.values() if "word" in one)]),
        "public_at": st.sampled_from([0, NOW // 2 + 1, NOW, NOW + 1]),
        "expires_at": st.sampled_from([NOW + 1, NEVER]),
        "subjects": st.sampled_from([(), (1,), (2,), (1, 2)]),
        "metadata": st.sampled_from([{}, {"team": "risk"}, {"team": "deals"}]),
    },
)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.tuples(LABELS, LABELS, LABELS),
    st.sampled_from(SESSIONS),
    st.sampled_from([EVERYWHERE, RISK]),
    st.integers(1, 3),
)
def test_two_worlds_that_differ_in_what_is_hidden_give_the_same_evidence(
    labels: tuple[dict[str, Any], ...], session: Session, where: Where, k: int
) -> None:
    """A store, and that store without what the session may not use; and a head exactly from what it may."""
    decision, chunks = decided(session), pieces(*labels)
    admitted = [
        decision.admits(one.word, one.public_at, entity=one.subjects, expires_at=one.expires_at)
        and where.admits(one.metadata)
        for one in chunks
    ]
    with ExitStack() as stack:
        first, second = (Path(stack.enter_context(TemporaryDirectory())) for _ in range(2))
        whole, part = ask(stored(first, chunks), decision, k, where), stored(second, chunks)
        with closing(sqlite3.connect(part, isolation_level=None)) as sql:
            for key, is_admitted in enumerate(admitted):
                if not is_admitted:
                    sql.execute("DELETE FROM labels WHERE key = ?", (key,))
                    sql.execute("DELETE FROM vectors WHERE key = ?", (key,))
                    sql.execute("DELETE FROM chunks WHERE key = ?", (key,))
        if not any(admitted):
            assert whole.passages == whole.lenders == ()
            return
        assert whole == ask(part, decision, k, where)
    for passage in whole.passages:
        number = TEXTS.index(passage.text)
        assert (passage.head is not None) == (number > 0 and all(admitted[:number]))


ROWS = st.lists(
    st.sampled_from(
        ["Net sales | 12 | 11", " | 2018 | 2017", "Prose that says nothing.", "", "Total", "7 8"]
    ),
    min_size=1,
    max_size=12,
).map("\n".join)


def test_heads_in_two_passages_are_carried_from_neither() -> None:
    texts = "Prose that says nothing.", "7 8\n | 2018 | 2017\nProse that says nothing.", "Net sales | 12 | 11"
    first, second, third = pieces(texts=texts, gap=0)
    assert head_of(third, [second, first]) is None


@settings(max_examples=examples(200))
@given(st.lists(ROWS.filter(str.strip), min_size=2, max_size=4), st.integers(0, 3), st.data())
def test_a_head_is_a_span_of_one_passage_before(texts: list[str], gap: int, data: st.DataObject) -> None:
    """Whatever the texts: word for word, whole, and before the passage; and none where it begins inside no table."""
    chunks = [replace(one, chunk_id=f"d:{n}") for n, one in enumerate(pieces(texts=tuple(texts), gap=gap))]
    at = data.draw(st.integers(1, len(chunks) - 1))
    head = head_of(chunks[at], chunks[at - 1 :: -1] if at else [])
    if head is None:
        return
    assert torn_row(chunks[at].text) is not None
    lender = chunks[int(head.chunk_id[2:])]
    assert lender.start <= head.start < head.end <= lender.end <= chunks[at].start
    assert lender.text[head.start - lender.start : head.end - lender.start] == head.text


# --- traps ---


def test_only_what_goes_on_without_a_break_is_joined() -> None:
    """Not another part, not across a long gap, not in another order; an overlap is joined where both say the same."""
    first, second = pieces(texts=TEXTS[:2])
    assert head_of(second, [first]) is not None
    assert head_of(second, [replace(first, document="EX-99.1")]) is None
    for above, below in (
        ("page 3", "page 4"),
        ("Annex, clause 4", "Annex, clauses 5(a)-(c), page 9"),
        ("", "clause 1"),
    ):
        assert head_of(replace(second, document=below), [replace(first, document=above)]) is not None
    assert head_of(replace(second, document="Annex II"), [replace(first, document="Annex I")]) is None
    assert head_of(*apart(first, second, by=200)) is not None
    assert head_of(*apart(first, second, by=201)) is None
    assert head_of(first, [second]) is None
    assert head_of(second, [replace(first, start=second.start, end=second.start + len(first.text))]) is None
    assert head_of(second, [replace(second, chunk_id="a copy"), first]) is None
    overlapping = replace(first, text=f"{TEXTS[0]}\n{TEXTS[1][:13]}", end=first.end + 14)
    assert head_of(second, [overlapping]) == head_of(second, [first])
    assert head_of(second, [replace(overlapping, text=f"{TEXTS[0]}\n{'x' * 13}")]) is None


def test_a_passage_that_begins_with_heads_lends_them_without_what_stands_above_it() -> None:
    """A line of units in the passage before would make the span one of two passages."""
    texts = (
        "Statements of Income\nIn millions",
        "Items | 2018 | 2017\nNet sales | 12 | 11",
        "Cost of sales | 7 | 6",
    )
    first, second, third = pieces({"chunk_id": "d:0"}, {"chunk_id": "d:1"}, texts=texts)
    head = head_of(third, [second, first])
    assert head is not None
    assert (head.chunk_id, head.text) == ("d:1", "Items | 2018 | 2017")


def apart(first: StoredChunk, second: StoredChunk, *, by: int) -> tuple[StoredChunk, list[StoredChunk]]:
    return replace(second, start=first.end + by, end=first.end + by + len(second.text)), [first]
