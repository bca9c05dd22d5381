"""What goes into the corpus store comes out, supersedes what was there, or is refused and leaves nothing behind."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import CaragError, InvalidArgument
from carag.policy import NEVER, NO_LISTS, QUARANTINE, TOMBSTONE, VERSION_WORD, Audience, Mask
from carag.store.store import CorpusStore
from carag.store.values import StoredChunk, StoredDocument, hash_of_text
from tests.sizes import examples
from tests.store.filings import DIM, a_filing, contents, put, some_chunks, some_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.labelling.labelled import LabelledDocument, LabelledPassage

ANYTHING = Mask(0, 0)


# --- what goes in comes out ---


def test_a_filing_and_its_passages_come_back(store: CorpusStore) -> None:
    """Every field survives, and the store adds version, key, chunk id and what the filing states."""
    quarantined = a_filing(quarantine=("FORM_UNKNOWN", "form is empty"))
    chunks = some_chunks("Item 1.", "Item 2.")
    keys = store.put(quarantined, chunks, some_vectors(2)).keys.tolist()
    number = quarantined.document_id
    expected = [
        StoredChunk(
            **asdict(c),
            key=key,
            chunk_id=f"{number}:{n:05d}",
            document_id=number,
            version=1,
            **{name: getattr(quarantined, name) for name in ("form", "company", "filed", "stated")},
        )
        for n, (c, key) in enumerate(zip(chunks, keys, strict=True))
    ]
    assert StoredDocument(**asdict(quarantined), version=1) == store.documents.document(number)
    assert expected == store.chunks(keys)
    assert expected[1] == store.chunk(f"{number}:00001")
    assert quarantined.content_hash == store.documents.content_hash(number)


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        min_size=1,
        max_size=5,
    )
)
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Controls, emoji, right-to-left, line separators: what may come in comes back character for character."""
    with CorpusStore.open(tmp_path_factory.mktemp("any") / "corpus.db") as store:
        keys = put(store, a_filing(company=texts[0], facts={"texts": texts}), *texts)
        assert texts == [c.text for c in store.chunks(keys)]
        assert texts[0] == store.documents.document("0000000001-25-000001").company
        assert {"texts": texts} == store.documents.facts_of("0000000001-25-000001")


def test_passages_come_in_the_order_of_the_keys(store: CorpusStore) -> None:
    """Order and repetition of the keys are kept."""
    first, second, third = put(store, a_filing(), "a", "b", "c")
    assert ["c", "a", "b", "a"] == [c.text for c in store.chunks(np.array([third, first, second, first]))]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.data())
def test_rows_come_back_whole(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    """Any labels yield their own words, windows, entities and vectors, in key order."""
    with CorpusStore.open(tmp_path_factory.mktemp("vectors") / "corpus.db") as store:
        vectors = some_vectors(sum(sizes))
        done = 0
        for n, size in enumerate(sizes):
            part = vectors[done : done + size]
            store.put(a_filing(f"filing {n}"), some_chunks(*"x" * size), part)
            done += size
        keys = sorted(data.draw(st.sets(st.integers(0, done - 1)) if done else st.just(set())))
        labels, found = store.labels.rows(keys)
        assert keys == labels.keys.tolist() == store.labels.of(keys).keys.tolist()
        if keys:
            np.testing.assert_array_equal(vectors[keys], found)
        for bad in ([done], [*keys, done], [1, 0][: done or 2]):
            with pytest.raises(InvalidArgument, match="labels"):
                store.labels.rows(bad)


def test_labels_come_as_arrays(store: CorpusStore) -> None:
    """Keys, words, windows, entities, passages, audiences; of all passages, of those above a key, and of one filing."""
    chunks = [replace(some_chunks("a")[0], subjects=(7,), expires_at=5000), some_chunks("b")[0]]
    store.put(a_filing("one"), chunks, some_vectors(2))
    put(store, a_filing("two"), "c")
    labels = store.labels.of(store.labels.open())
    assert ["int64", *["uint32"] * 4, "int64", "uint32"] == [str(column.dtype) for column in labels]
    windows = [1000] * 3, [5000, NEVER, NEVER]
    assert [[0, 1, 2], [VERSION_WORD | 1] * 3, *windows, [7, 0, 0], [0, 1, 2], [0, 0, 0]] == [
        column.tolist() for column in labels
    ]
    assert [2] == store.labels.open(after=1).tolist() == store.labels.of_document("two").tolist()
    assert [] == store.labels.open(after=2).tolist() == store.labels.of_document("three").tolist()


def test_snapshot_rows_are_sorted_by_chunk_id(store: CorpusStore) -> None:
    """The snapshot's order does not depend on the order of ingestion."""
    put(store, a_filing("b"), "x")
    put(store, a_filing("a"), "y", "z")
    assert [store.chunk(i).chunk_id for i in ("a:00000", "a:00001", "b:00000")] == [
        r[0] for r in store.labels.snapshot()
    ]
    assert [(c.text_sha256, c.word) for c in store.chunks([1, 2, 0])] == [
        r[1:3] for r in store.labels.snapshot()
    ]


def test_counts_tell_quarantine_apart(store: CorpusStore) -> None:
    """Filings, passages and quarantine reasons, of current versions."""
    put(store, a_filing("one"), "a", "b")
    put(store, a_filing("two", quarantine=("NO_TIME", "no date")), "c")
    put(store, a_filing("three", quarantine=("NO_TIME", "no date")))
    put(store, a_filing("two"), "c")
    counts = store.documents.counts()
    assert (3, 3, {"NO_TIME": 1}) == (counts.filings, counts.chunks, counts.quarantined)


# --- versions ---


def test_a_changed_filing_supersedes_and_keeps_the_old_text(store: CorpusStore) -> None:
    """The old passage is readable by its id and admissible to no one; the new one has a new id and key."""
    old = put(store, a_filing("one", company="Old"), "old text")
    new = put(store, a_filing("one", company="New", content_hash="cd" * 32), "new text")
    assert ("old text", "new text") == (store.chunk("one:00000").text, store.chunk("one.v2:00000").text)
    assert (False, True) == tuple(ANYTHING.admits(c.word) for c in store.chunks([*old, *new]))
    assert ("Old", "New") == (
        store.documents.document("one", version=1).company,
        store.documents.document("one").company,
    )
    assert "cd" * 32 == store.documents.content_hash("one")
    assert new == store.labels.of_document("one").tolist()
    assert new == store.labels.open().tolist()
    assert 1 == store.documents.counts().filings


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=12))
def test_keys_and_ids_are_never_reused(
    tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[str, int]]
) -> None:
    """Over any history keys ascend, ids are unique, and exactly the latest versions are live."""
    with CorpusStore.open(tmp_path_factory.mktemp("keys") / "corpus.db") as store:
        keys: list[int] = []
        latest: dict[str, list[int]] = {}
        for n, (number, size) in enumerate(puts):
            latest[number] = put(store, a_filing(number), *"x" * size)
            keys += latest[number]
            assert n + 1 == store.epoch
        ids = [c.chunk_id for c in store.chunks(keys)]
        assert keys == sorted(set(keys))
        assert len(ids) == len(set(ids))
        live = [c.key for c in store.chunks(keys) if ANYTHING.admits(c.word)]
        assert sorted(key for part in latest.values() for key in part) == live


@pytest.mark.parametrize("number", ["", "one.v2", "0000000001-25-000001.v13"])
def test_a_number_that_reads_like_a_version_is_refused(store: CorpusStore, number: str) -> None:
    """Otherwise two passages could get one id."""
    with pytest.raises(InvalidArgument, match="id of a document"):
        put(store, a_filing(number), "x")


# --- notes ---


def test_notes_are_kept_and_leave_the_epoch_alone(store: CorpusStore) -> None:
    """Notes are the engine's; the epoch is the store's."""
    store.meta_set("embedder", "one")
    store.meta_update({"embedder": "two", "embedder_fingerprint": "ff"})
    assert ("two", "ff", None) == tuple(
        store.meta_get(n) for n in ("embedder", "embedder_fingerprint", "none")
    )
    assert 0 == store.epoch
    with pytest.raises(InvalidArgument, match="epoch"):
        store.meta_update({"embedder": "three", "epoch": "99"})
    assert "two" == store.meta_get("embedder")


# --- what is refused leaves nothing behind ---

GOOD = some_chunks("text")[0]


@pytest.mark.parametrize(
    ("filing", "chunk", "vectors"),
    [
        (a_filing(facts={"when": object()}), GOOD, some_vectors(1)),
        (a_filing(facts={"n": float("nan")}), GOOD, some_vectors(1)),
        (a_filing(company="\ud83d"), GOOD, some_vectors(1)),
        (a_filing(form=None), GOOD, some_vectors(1)),
        (a_filing(), replace(GOOD, word=1), some_vectors(1)),
        (a_filing(), replace(GOOD, word=None), some_vectors(1)),  # type: ignore[arg-type]
        (a_filing(), replace(GOOD, public_at=1.5), some_vectors(1)),  # type: ignore[arg-type]
        (a_filing(), replace(GOOD, start="0"), some_vectors(1)),  # type: ignore[arg-type]
        (a_filing(), replace(GOOD, word=QUARANTINE), some_vectors(1)),
        (a_filing(), replace(GOOD, word=2 << 27), some_vectors(1)),
        (a_filing(), replace(GOOD, public_at=1 << 32), some_vectors(1)),
        (a_filing(), replace(GOOD, public_at=-1), some_vectors(1)),
        (a_filing(), replace(GOOD, word=GOOD.word | TOMBSTONE), some_vectors(1)),
        (a_filing(), replace(GOOD, expires_at=999), some_vectors(1)),
        (a_filing(), replace(GOOD, expires_at=1 << 32), some_vectors(1)),
        (a_filing(), replace(GOOD, subjects=(10**10,)), some_vectors(1)),
        (a_filing(), replace(GOOD, subjects=(-1,)), some_vectors(1)),
        (a_filing(), replace(GOOD, subjects=("1",)), some_vectors(1)),  # type: ignore[arg-type]
        (a_filing(), replace(GOOD, subjects=[1]), some_vectors(1)),  # type: ignore[arg-type]
        (a_filing(ciks=(10**10,)), GOOD, some_vectors(1)),
        (a_filing(ciks=("1",)), GOOD, some_vectors(1)),
        (a_filing(), replace(GOOD, end=GOOD.end + 1), some_vectors(1)),
        (a_filing(), replace(GOOD, text="", end=0), some_vectors(1)),
        (a_filing(), replace(GOOD, text="\udc00", end=1), some_vectors(1)),
        (a_filing(), GOOD, some_vectors(2)),
        (a_filing(), GOOD, some_vectors(0)),
        (a_filing(), GOOD, some_vectors(1, dim=DIM + 1)),
        (a_filing(), GOOD, some_vectors(1, dim=0)),
        (a_filing(), GOOD, some_vectors(1).astype(np.float64)),
        (a_filing(), GOOD, some_vectors(1)[0]),
        (a_filing(), GOOD, some_vectors(1) * np.float32("nan")),
        (a_filing(), GOOD, [[1.0] * DIM]),
    ],
)
def test_a_bad_put_changes_nothing(
    store: CorpusStore, filing: LabelledDocument, chunk: LabelledPassage, vectors: NDArray[np.float32]
) -> None:
    """What does not fit together is refused whole, also as the new version of a stored filing."""
    put(store, a_filing(), "first")
    before = contents(store)
    with pytest.raises(InvalidArgument):
        store.put(filing, [chunk], vectors)
    assert before == contents(store)


def test_a_full_disk_loses_nothing(store: CorpusStore) -> None:
    """When space runs out the put fails whole, and smaller ones go on."""
    put(store, a_filing("one"), "first")
    before = contents(store)
    connection = store._connection
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(CaragError, match="no space"):
        put(store, a_filing("two"), *["x" * 4000] * 9)
    assert before == contents(store)
    assert [1] == put(store, a_filing("three"), "small")


def test_reading_what_is_not_there_is_refused(store: CorpusStore) -> None:
    """Unknown ids, keys, filings and versions are the caller's mistake; an unknown hash is an answer."""
    put(store, a_filing("one"), "text")
    for read in (
        lambda: store.chunk("one:00001"),
        lambda: store.chunks([0, 1]),
        lambda: store.chunks(["one:00000"]),  # type: ignore[list-item]
        lambda: store.documents.document("two"),
        lambda: store.documents.document("one", version=2),
        lambda: store.chunk("one:00000", known_at=0),
        lambda: store.labels.rows([1]),
    ):
        with pytest.raises(InvalidArgument):
            read()
    assert store.documents.content_hash("two") is None


def test_many_content_hashes_are_those_of_each(store: CorpusStore) -> None:
    """Of current versions only; what is not stored is left out, and a quotation mark in an id is no more than that."""
    for number, text in (("one", "a"), ("t\"w'o", "b"), ("one", "c")):
        filing = replace(a_filing(), document_id=number, content_hash=text * 64)
        store.put(filing, some_chunks(text), some_vectors(1))
    assert store.documents.content_hashes(["one", "t\"w'o", "three"]) == {"one": "c" * 64, "t\"w'o": "b" * 64}
    assert store.documents.content_hashes([]) == {}


FILINGS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.lists(st.tuples(st.text("xyz", min_size=1), st.sets(st.integers(0, 4))), max_size=3),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one[0],
)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(FILINGS, max_size=4))
def test_filings_put_together_are_stored_as_those_put_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, calls: list[list[tuple[str, list[tuple[str, set[int]]]]]]
) -> None:
    """Row for row: numbers, versions, keys, sets of CIKs and labels do not depend on how many come in one call."""
    home = tmp_path_factory.mktemp("together")
    readings = [iter(range(len(calls))) for _ in range(2)]
    with (
        CorpusStore.open(home / "one", clock=lambda: next(readings[0])) as one,
        CorpusStore.open(home / "all", clock=lambda: next(readings[1])) as together,
    ):
        for call in calls:
            filings = [
                (
                    a_filing(number, ciks=(int(number, 16), 7), content_hash=f"{about}"),
                    [
                        replace(chunk, subjects=tuple(subjects))
                        for chunk, (_, subjects) in zip(
                            some_chunks(*(text for text, _ in about)), about, strict=True
                        )
                    ],
                )
                for number, about in call
            ]
            vectors = some_vectors(sum(len(chunks) for _, chunks in filings))
            with together.writing() as transaction:
                transaction.put(filings, vectors)
                changed = transaction.relabel()
            done = 0
            with one.writing() as transaction:
                for filing, chunks in filings:
                    transaction.put([(filing, chunks)], vectors[done : done + len(chunks)])
                    done += len(chunks)
                expected = transaction.relabel()
            assert expected.keys.tolist() == changed.keys.tolist()
        assert contents(one) == contents(together)


def test_a_filing_given_twice_in_one_call_is_refused(store: CorpusStore) -> None:
    twice = [(a_filing("one"), some_chunks("a")), (a_filing("one"), some_chunks("b"))]
    with pytest.raises(InvalidArgument, match="once"), store.writing() as transaction:
        transaction.put(twice, some_vectors(2))
    assert store.documents.content_hash("one") is None


@pytest.mark.parametrize("dims", [(DIM, DIM + 1), (DIM + 1, DIM)])
def test_one_transaction_takes_vectors_of_one_length(store: CorpusStore, dims: tuple[int, int]) -> None:
    def put_both() -> None:
        with store.writing() as transaction:
            for number, dim in zip(("one", "two"), dims, strict=True):
                filing = replace(a_filing(), document_id=number)
                transaction.put([(filing, some_chunks(number))], np.ones((1, dim), np.float32))

    with pytest.raises(InvalidArgument, match="dimensions"):
        put_both()
    assert store.documents.content_hashes(["one", "two"]) == {}


def test_what_labels_say_at_a_minute(store: CorpusStore) -> None:
    """Each kind once, of open labels that hold then, with the document and the number of the audience."""
    shared, word = Audience(allow=["user:ana"]), VERSION_WORD | 1
    put(store, a_filing("a"), "first")
    put(store, a_filing("a", content_hash="cd"), "other", "more")
    put(store, a_filing("b", facts={"audience": json.loads(shared.text)}), "shared")
    assert sorted(store.labels.standing(1001)) == [("a", word, 0), ("b", word, 1)]
    assert [sorted(store.labels.standing(at)) for at in (999, NEVER)] == [[], []]
    assert [store.audience(number) for number in (0, 1)] == [NO_LISTS, shared]


def test_passages_of_all_versions_are_streamed(store: CorpusStore) -> None:
    """By id, with the hash of the text."""
    put(store, a_filing("a"), "first")
    put(store, a_filing("a", content_hash="cd"), "other")
    hashes = {hash_of_text(text) for text in ("first", "other")}
    found = dict(store.documents.passages())
    assert (set(found), {*found.values()}) == ({"a:00000", "a.v2:00000"}, hashes)
