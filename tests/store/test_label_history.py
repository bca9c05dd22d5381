"""Labels on two time axes: one word a minute, nothing forgotten, and no row touched that need not be."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.labelling.labelled import LabelledDocument, LabelledPassage
from carag.labelling.lifecycle import StateSpan
from carag.policy import NEVER, TOMBSTONE, VERSION_WORD, PolicyBit, as_of_minutes
from carag.profiles.edgar.rules.filing_events import state_history
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.metadata_only import histories
from carag.store.store import CorpusStore
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.store.values import Change

DAY = 24 * 60
START = as_of_minutes(date(2020, 1, 1))


def facts(accession: str, form: str, day: int, **changes: Any) -> FilingFacts:
    base = form.removesuffix("/A")
    values: dict[str, Any] = {
        "accession_number": accession,
        "form": base,
        "is_amendment": form.endswith("/A"),
        "ciks": (1,),
        "period": date(2019, 12, 31),
        "since": START + day * DAY,
        "public_at": START + day * DAY,
        "statements": base == "10-K",
    }
    return FilingFacts(**values | changes)


def put(store: CorpusStore, one: FilingFacts, passages: int = 2) -> Any:
    filing = LabelledDocument(
        document_id=one.accession_number,
        form=one.form,
        company="",
        filed="",
        content_hash="",
        facts=one.to_json(),
        causes={},
        public_at_source="",
        ciks=one.ciks,
    )
    chunk = LabelledPassage(
        document="10-K", start=0, end=4, text="text", word=VERSION_WORD | 1, public_at=one.public_at
    )
    return put_with_events(store, filing, [chunk] * passages)


def put_with_events(store: CorpusStore, filing: LabelledDocument, chunks: list[LabelledPassage]) -> Change:
    with store.writing() as transaction:
        transaction.put([(filing, chunks)], np.ones((len(chunks), 4), np.float32))
        return transaction.relabel(histories(transaction.facts()))


def ticking(*readings: int) -> Callable[[], int]:
    rest = iter(readings)
    return lambda: next(rest)


FORMS = ["10-K", "10-K/A", "8-K", "NT 10-K", "25"]
ARRIVALS = st.lists(
    st.builds(
        lambda name, form, ciks, year, day, width, certified: facts(
            name,
            form,
            day + width,
            ciks=ciks,
            period=date(2019, 12, 31) + timedelta(days=365 * year),
            since=START + day * DAY,
            items=("4.02",) if form == "8-K" else (),
            certified=certified and form.endswith("/A"),
        ),
        st.sampled_from("abcdefg"),  # a name that comes again is a changed filing
        st.sampled_from(FORMS),
        st.sampled_from([(1,), (2,), (1, 2), (3,), ()]),
        st.integers(0, 2),
        st.integers(0, 900),
        st.sampled_from([0, 0, 200]),
        st.booleans(),
    ),
    min_size=1,
    max_size=9,
)


def rows(store: CorpusStore, known_at: int | None = None) -> list[tuple[Any, ...]]:
    return list(store.labels.snapshot(known_at=known_at))


@settings(max_examples=examples(60))
@given(ARRIVALS)
def test_one_word_a_minute_and_nothing_forgotten(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[FilingFacts]
) -> None:
    """After every arrival labels tile each passage's time; before it, they were what they were."""
    current: dict[str, FilingFacts] = {}
    with CorpusStore.open(tmp_path_factory.mktemp("law") / "corpus.db") as store:
        seen: dict[int, list[tuple[Any, ...]]] = {}
        for one in arrivals:
            known_at = put(store, one).known_at
            current[one.accession_number] = one
            seen[known_at] = rows(store)
            wanted = state_history(current.values())
            for accession, published in current.items():
                keys = store.labels.of_document(accession)
                windows = store.chunks(keys)
                for chunk_id in {chunk.chunk_id for chunk in windows}:
                    own = sorted(
                        (c for c in windows if c.chunk_id == chunk_id), key=lambda chunk: chunk.public_at
                    )
                    edges = [chunk.public_at for chunk in own] + [own[-1].expires_at]
                    assert edges == [*(span.since for span in wanted[accession]), NEVER]
                    assert edges[0] == published.public_at
                    assert edges[1:-1] == [chunk.expires_at for chunk in own[:-1]]
                    assert [chunk.word for chunk in own] == [
                        VERSION_WORD | 1 | span.bits for span in wanted[accession]
                    ]
                    assert [chunk.causes for chunk in own] == [
                        tuple(map(tuple, span.causes)) for span in wanted[accession]
                    ]
        assert len(store.labels.open()) == len(seen[store.known()])
        for known_at, then in seen.items():
            assert then == rows(store, known_at)
        assert [] == rows(store, min(seen) - 1)


@settings(max_examples=examples(30))
@given(ARRIVALS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[FilingFacts], random: Any
) -> None:
    """What is known in the end is a function of the filings: a later event may be ingested first."""
    filings = list({one.accession_number: one for one in arrivals}.values())
    shuffled = random.sample(filings, len(filings))
    ends = []
    for n, order in enumerate((filings, shuffled)):
        with CorpusStore.open(tmp_path_factory.mktemp("order") / f"{n}.db") as store:
            for one in order:
                put(store, one)
            ends.append(rows(store))
    assert ends[0] == ends[1]


def test_news_touches_only_the_rows_it_is_about(store: CorpusStore) -> None:
    """Of many filings of many companies, an amendment closes its predecessor's labels, and opens two for each."""
    for cik in range(20):
        for year in range(5):
            put(store, facts(f"{cik}-{year}", "8-K", 10, ciks=(cik,), period=date(2019 - year, 12, 31)))
        put(store, facts(f"{cik}", "10-K", 30, ciks=(cik,)), passages=7)
    before = set(store.labels.open().tolist())
    change = put(store, facts("new", "10-K/A", 60, ciks=(7,), certified=True), passages=3)
    after = set(store.labels.open().tolist())
    assert (7, 2 * 7 + 3, 7) == (change.closed, change.opened, change.relabelled)
    assert 7 == len(before - after)
    assert {"7"} == {chunk.document_id for chunk in store.chunks(sorted(before - after))}
    assert set(change.keys.tolist()) <= after - before
    quiet = put(store, facts("other", "8-K", 61, ciks=(7,)), passages=1)
    assert (0, 1, 0) == (quiet.closed, quiet.opened, quiet.relabelled)


def test_two_questions_about_one_passage(store: CorpusStore) -> None:
    """What was so on a day, and what was known to be so: four answers, each with its cause."""
    put(store, facts("a", "10-K", 0), passages=1)
    first = store.known()
    put(store, facts("b", "10-K/A", 50, certified=True), passages=1)
    amended = PolicyBit.AMENDED | PolicyBit.SUPERSEDED
    words = {
        (day, known): store.chunk("a:00000", as_of=START + day * DAY, known_at=known).word & amended
        for day in (10, 60)
        for known in (first, None)
    }
    assert {(10, first): 0, (60, first): 0, (10, None): 0, (60, None): amended} == words
    assert (("AMENDED", "b"), ("SUPERSEDED", "b")) == store.chunk("a:00000").causes
    assert store.chunk("a:00000", as_of=0).public_at == START


def test_labels_as_of_a_minute_are_those_of_each_passage_by_itself(store: CorpusStore) -> None:
    """Whichever label of a passage is named, open or closed, known now or then."""
    put(store, facts("a", "10-K", 0), passages=2)
    first, keys = store.known(), store.labels.open().tolist()
    put(store, facts("b", "10-K/A", 50, certified=True), passages=3)
    every = [*store.labels.open().tolist()[::-1], *keys]
    for known, named in ((None, every), (first, keys)):
        ids = [chunk.chunk_id for chunk in store.chunks(named)]
        for day in (-1, 10, 50, 60):
            minute = START + day * DAY
            alone = [store.chunk(name, as_of=minute, known_at=known) for name in ids]
            assert [
                (
                    *(one.chunk_id, one.word, one.public_at, one.expires_at),
                    *(one.subjects, one.metadata, one.audience),
                )
                for one in alone
            ] == store.labels.as_of(named, minute, known_at=known)
    assert [] == store.labels.as_of([], START)
    for missing in (10**9, -1):
        with pytest.raises(InvalidArgument, match=str(missing)):
            store.labels.as_of([keys[0], missing], START)
    with pytest.raises(InvalidArgument):
        store.labels.as_of([max(every)], START, known_at=first)  # which did not know it yet


def test_a_superseded_version_is_what_it_was_then_and_gone_now(store: CorpusStore) -> None:
    """Its labels stay for those who ask as of then; now its word carries the tombstone."""
    change = put(store, facts("a", "10-K", 0), passages=1)
    then = store.chunk("a:00000")
    again = put(store, facts("a", "10-K", 5, ciks=(2,)), passages=1)
    assert [then] == store.chunks(change.keys, known_at=change.known_at)
    assert [then] == [store.chunk("a:00000", known_at=again.known_at - 1)]
    assert replace(then, word=then.word | TOMBSTONE) == store.chunk("a:00000")
    assert [replace(then, word=then.word | TOMBSTONE)] == store.chunks(change.keys)
    with pytest.raises(InvalidArgument, match="no passage"):
        store.chunk("a.v2:00000", known_at=change.known_at)


def test_a_filing_that_changes_its_filer_lets_go_of_the_old_ones(store: CorpusStore) -> None:
    """What the first version said of its company's other filings is taken back."""
    put(store, facts("a", "10-K", 0), passages=1)
    put(store, facts("b", "25", 9), passages=1)
    assert store.chunk("a:00000").word & PolicyBit.DELISTED
    put(store, facts("b", "25", 9, ciks=(2,)), passages=1)
    assert not store.chunk("a:00000").word & PolicyBit.DELISTED


def test_what_one_filer_did_stays_when_the_other_brings_news(store: CorpusStore) -> None:
    """A report of two filers: news of the one does not forget what was learnt of the other alone."""
    put(store, facts("a", "10-K", 0, ciks=(1, 2)), passages=1)
    put(store, facts("b", "25", 9, ciks=(2,)), passages=1)
    put(store, facts("c", "10-K/A", 20, ciks=(1,)), passages=1)
    assert (("AMENDED", "c"), ("DELISTED", "b")) == store.chunk("a:00000").causes


def test_no_two_changes_are_known_at_one_instant(tmp_path: Path) -> None:
    """A clock that stands still or goes back does not turn history round."""
    with CorpusStore.open(tmp_path / "corpus.db", clock=ticking(100, 100, 7, 200)) as store:
        assert [100, 101, 102, 200] == [put(store, facts(name, "8-K", 1)).known_at for name in "abcd"]
        assert [-1, 101, 102, 200] == [store.known(at) for at in (99, 101, 150, None)]


def test_a_passage_keeps_its_own_window(store: CorpusStore) -> None:
    """Events divide it and do not widen it; one that is never open has one label, which no one sees."""
    one = facts("a", "10-K", 0)
    filing = LabelledDocument(
        document_id="a", form="10-K", company="", filed="", content_hash="", facts=one.to_json(),
        causes={}, public_at_source="", ciks=(1,),
    )  # fmt: skip
    base = LabelledPassage(document="10-K", start=0, end=4, text="text", word=VERSION_WORD, public_at=START)
    chunks = [
        replace(base, expires_at=START + 70 * DAY),
        replace(base, expires_at=START + 30 * DAY),
        replace(base, public_at=START + 60 * DAY),
        replace(base, public_at=NEVER),
        replace(base, public_at=START + 60 * DAY, expires_at=START + 60 * DAY),
    ]
    put_with_events(store, filing, chunks)
    put(store, facts("d", "25", 50))
    gone = START + 50 * DAY
    labels = store.chunks(store.labels.of_document("a"))
    assert [
        (0, START, gone, False),
        (0, gone, START + 70 * DAY, True),
        (1, START, START + 30 * DAY, False),
        (2, START + 60 * DAY, NEVER, True),
        (3, NEVER, NEVER, True),
        (4, START + 60 * DAY, START + 60 * DAY, True),
    ] == sorted(
        (int(one.chunk_id[-5:]), one.public_at, one.expires_at, bool(one.word & PolicyBit.DELISTED))
        for one in labels
    )


def test_a_history_out_of_order_is_refused(store: CorpusStore) -> None:
    """And the filing it came with is not stored."""

    def put_disordered() -> None:
        with store.writing() as transaction:
            transaction.put(*one_passage())
            transaction.relabel({"a": (StateSpan(0, 0), StateSpan(9, 1), StateSpan(3, 0))})

    with pytest.raises(InvalidArgument, match="order"):
        put_disordered()
    assert store.documents.content_hash("a") is None
    assert store.known() == -1


def test_filings_without_settled_labels_are_not_stored(store: CorpusStore) -> None:
    """A passage without a label could never be found; and an empty transaction is refused."""
    with pytest.raises(InvalidArgument, match="relabel"), store.writing() as transaction:
        transaction.put(*one_passage())
    with pytest.raises(InvalidArgument, match="at least one"), store.writing() as transaction:
        transaction.relabel()
    assert store.documents.content_hash("a") is None
    assert store.known() == -1


def one_passage() -> tuple[list[tuple[LabelledDocument, list[LabelledPassage]]], NDArray[np.float32]]:
    filing = LabelledDocument(
        document_id="a", form="", company="", filed="", content_hash="", causes={}, public_at_source="",
        facts=facts("a", "10-K", 0).to_json(),
    )  # fmt: skip
    chunk = LabelledPassage(document="", start=0, end=1, text="x", word=VERSION_WORD, public_at=0)
    return [(filing, [chunk])], np.ones((1, 4), np.float32)
