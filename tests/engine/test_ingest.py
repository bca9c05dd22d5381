"""After every ingest the index holds what the store holds, whatever came in which order."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from carag.engine import rows
from carag.engine.collection import Collection
from carag.policy import NEVER, Mask, Policy, PolicyBit
from carag.retrieval import embedder_by_name
from carag.store._label_history import LabelChange
from carag.store.store import CorpusStore
from tests.engine.filings import ingest_filings
from tests.sizes import SIZE, examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ORIGINAL, AMENDED = "9990000102-24-000005", "9990000102-24-000021"  # a 10-K, and a 10-K/A that replaces it
SUPERSEDED = PolicyBit.SUPERSEDED


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        opened = Collection(store, embedder_by_name("wordllama"), tmp_path / "index.carag")
        yield opened
        opened.close()


def ingest(collection: Collection, path: Path) -> None:
    ingest_filings(collection, path)
    agree(collection)


def agree(collection: Collection) -> None:
    """Assert that the index has exactly the store's open labels, with their words and windows, and no graph fault."""
    index, keys = collection.index, collection.store.labels.open()
    labels = collection.store.labels.of(keys)
    assert keys.tolist() == index.keys().tolist()
    for column, held in (
        (labels.words, index.words(keys)),
        (labels.public_at, index.public_at(keys)),
        (labels.expires_at, index.expires_at(keys)),
        (labels.entities, index.entities(keys)),
    ):
        assert column.tolist() == held.tolist()
    assert collection.known_at == collection.store.known()
    assert index.check() == ()


def words_of(collection: Collection, accession: str) -> list[int]:
    """Words that hold at the end of time."""
    labels = collection.store.labels.of(collection.store.labels.of_document(accession))
    return labels.words[labels.expires_at == NEVER].tolist()


def test_order_and_portions_do_not_matter(collection: Collection, small_corpus: Path, tmp_path: Path) -> None:
    """Filing by filing, newest first, then the rest, ends in the same text and words as all at once."""
    corpus, files = tmp_path / "corpus", sorted(small_corpus.glob("*.txt"), reverse=True)
    corpus.mkdir()
    for file in files[:: len(files) // 12 if SIZE == "quick" else 1]:
        shutil.copy(file, corpus)
    for accession in (AMENDED, ORIGINAL):
        shutil.copy(small_corpus / f"{accession}.txt", corpus)
    for file in sorted(corpus.iterdir(), reverse=True)[: examples(12, least=5)]:
        ingest(collection, file)
    ingest(collection, small_corpus / f"{AMENDED}.txt")
    ingest(collection, corpus)
    with CorpusStore.open(tmp_path / "other.db") as store:
        store.meta_set("state_key", collection.store.meta_get("state_key") or "")
        whole = Collection(store, embedder_by_name("wordllama"), tmp_path / "other.carag")
        ingest(whole, corpus)
        assert whole.state.root == collection.state.root


def test_a_later_amendment_relabels_its_predecessor(collection: Collection, small_corpus: Path) -> None:
    """The original is open until the amendment with a certificate comes in, and hidden from then on."""
    buy_side = Policy(Mask(0, 0x194000))
    ingest(collection, small_corpus / f"{ORIGINAL}.txt")
    assert not any(word & SUPERSEDED for word in words_of(collection, ORIGINAL))
    open_before = collection.index.count(buy_side, as_of=2**31)
    assert open_before == len(words_of(collection, ORIGINAL))
    ingest(collection, small_corpus / f"{AMENDED}.txt")
    assert all(word & SUPERSEDED for word in words_of(collection, ORIGINAL))
    assert not any(word & SUPERSEDED for word in words_of(collection, AMENDED))
    assert collection.index.count(buy_side, as_of=2**31) == len(words_of(collection, AMENDED))


def test_an_accession_number_read_twice_counts_once_and_is_reported(
    collection: Collection, small_corpus: Path, tmp_path: Path
) -> None:
    """The first file stands, on every run; two texts never take turns."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    text = (small_corpus / f"{ORIGINAL}.txt").read_text()
    (corpus / "a.txt").write_text(text)
    (corpus / "b.txt").write_text(text.replace("fiscal", "financial"))
    for added in (1, 0):
        report = ingest_filings(collection, corpus)
        assert (added, 0) == (report.added, report.changed)
        assert ["b.txt: skipped: 9990000102-24-000005 was already read from a.txt"] == report.problems


def test_a_kill_between_store_and_index_leaves_no_replaced_filing_open(
    collection: Collection, small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an amendment says of its predecessor is stored with it, and the index follows when opened."""
    ingest(collection, small_corpus / f"{ORIGINAL}.txt")
    with monkeypatch.context() as killed:
        killed.setattr(Collection, "refresh", _killed)
        with pytest.raises(KeyboardInterrupt):
            ingest_filings(collection, small_corpus / f"{AMENDED}.txt")
    assert all(word & SUPERSEDED for word in words_of(collection, ORIGINAL))
    reopened = Collection(collection.store, collection.embedder, tmp_path / "index.carag")
    agree(reopened)
    reopened.close()


@pytest.mark.parametrize("step", ["__init__", "retire", "apply", "_relabel", "_close", "_open"])
def test_a_kill_inside_the_transaction_stores_nothing_of_it(
    collection: Collection, small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Neither the amendment without its relabelling, nor the other way round; and the next run makes it good."""
    ingest(collection, small_corpus / f"{ORIGINAL}.txt")
    file = tmp_path / f"{ORIGINAL}.txt"
    file.write_text((small_corpus / file.name).read_text().replace("fiscal", "financial"))
    path = file if step == "retire" else small_corpus / f"{AMENDED}.txt"
    before = contents(collection)
    with monkeypatch.context() as killed:
        killed.setattr(LabelChange, step, _killed)
        with pytest.raises(KeyboardInterrupt):
            ingest_filings(collection, path)
    assert before == contents(collection)
    ingest(collection, path)
    assert before != contents(collection)


def contents(collection: Collection) -> list[str]:
    connection = sqlite3.connect(collection.store.path)
    try:
        return [line for line in connection.iterdump() if "INTO meta" not in line]
    finally:
        connection.close()


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_index_file_of_another_moment_is_not_believed(
    collection: Collection, small_corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A valid file put back from a backup is not searched: the index is built again, and that is logged."""
    path = tmp_path / "index.carag"
    ingest(collection, small_corpus / f"{ORIGINAL}.txt")
    backup = path.read_bytes()
    ingest(collection, small_corpus / f"{AMENDED}.txt")
    path.write_bytes(backup)
    reopened = Collection(collection.store, collection.embedder, path)
    agree(reopened)
    assert "building the index again" in caplog.text
    reopened.close()
    other = Collection(collection.store, collection.embedder, tmp_path / "other.carag")
    assert path.read_bytes() == (tmp_path / "other.carag").read_bytes()
    other.close()


def test_a_small_change_waits_for_the_closing_and_a_kill_costs_only_that(
    collection: Collection, small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has it at once; the index file follows, whether it was closed or killed."""
    monkeypatch.setattr(rows, "_SAVE_FRACTION", 0)
    path = tmp_path / "index.carag"
    ingest(collection, small_corpus / f"{ORIGINAL}.txt")
    saved = path.read_bytes()
    ingest(collection, small_corpus / f"{AMENDED}.txt")
    assert saved == path.read_bytes()
    killed = Collection(collection.store, collection.embedder, path)
    agree(killed)
    killed.close()
    assert saved != path.read_bytes()
