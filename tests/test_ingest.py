"""Ingestion: the index always says what the store says, whatever came in which order."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.corpus import CorpusStore
from carag.ingest import Ingestor, no_progress
from carag.policy import TOMBSTONE, Mask, Policy, PolicyBit
from carag.retrieval import embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ORIGINAL, AMENDED = "9990000102-24-000005", "9990000102-24-000021"  # a 10-K, and a 10-K/A that replaces it
SUPERSEDED = PolicyBit.SUPERSEDED.flag


@pytest.fixture
def ingestor(tmp_path: Path) -> Iterator[Ingestor]:
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        opened = Ingestor(store, embedder_by_name("wordllama"), tmp_path / "index.carag")
        yield opened
        opened.close()


def ingest(ingestor: Ingestor, path: Path) -> None:
    ingestor.run(path, progress=no_progress)
    agree(ingestor)


def agree(ingestor: Ingestor) -> None:
    """Assert that the index has exactly the store's live rows, with the store's words and no other graph fault."""
    keys, words, _ = ingestor._store.labels()
    live = (words & np.uint32(TOMBSTONE)) == 0
    assert sorted(ingestor.index.keys().tolist()) == keys[live].tolist()
    assert words[live].tolist() == ingestor.index.words(keys[live]).tolist()
    ingestor.index.check()


def words_of(ingestor: Ingestor, accession: str) -> list[int]:
    return ingestor._store.filing_labels(accession)[1].tolist()


def test_order_and_portions_do_not_matter(ingestor: Ingestor, small_corpus: Path, tmp_path: Path) -> None:
    """Filing by filing, newest first, ends in the same text and words as all at once."""
    for file in sorted(small_corpus.glob("*.txt"), reverse=True)[:12]:
        ingest(ingestor, file)
    ingest(ingestor, small_corpus)
    with CorpusStore.open(tmp_path / "other.db") as store:
        whole = Ingestor(store, embedder_by_name("wordllama"), tmp_path / "other.carag")
        ingest(whole, small_corpus)
        assert whole.snapshot == ingestor.snapshot


def test_a_later_amendment_relabels_its_predecessor(ingestor: Ingestor, small_corpus: Path) -> None:
    """The original is open until the amendment with a certificate comes in, and hidden from then on."""
    buy_side = Policy(Mask(0, 0x194000))
    ingest(ingestor, small_corpus / f"{ORIGINAL}.txt")
    assert not any(word & SUPERSEDED for word in words_of(ingestor, ORIGINAL))
    open_before = ingestor.index.count(buy_side, as_of=2**31)
    assert open_before == len(words_of(ingestor, ORIGINAL))
    ingest(ingestor, small_corpus / f"{AMENDED}.txt")
    assert all(word & SUPERSEDED for word in words_of(ingestor, ORIGINAL))
    assert not any(word & SUPERSEDED for word in words_of(ingestor, AMENDED))
    assert ingestor.index.count(buy_side, as_of=2**31) == len(words_of(ingestor, AMENDED))


def test_a_changed_filing_replaces_its_rows_and_keeps_its_past(
    ingestor: Ingestor, small_corpus: Path, tmp_path: Path
) -> None:
    """New text is found under new keys; the old text stays readable by its id and reachable by no policy."""
    file = tmp_path / f"{ORIGINAL}.txt"
    shutil.copy(small_corpus / file.name, file)
    ingest(ingestor, file)
    before = ingestor._store.chunks(ingestor.index.keys())
    file.write_text(file.read_text().replace("fiscal", "financial"))
    ingest(ingestor, file)
    assert not set(ingestor.index.keys()) & {chunk.key for chunk in before}
    for chunk in before:
        past = ingestor._store.chunk(chunk.chunk_id)
        assert past.text == chunk.text
        assert past.word & TOMBSTONE


def test_an_accession_number_read_twice_counts_once_and_is_reported(
    ingestor: Ingestor, small_corpus: Path, tmp_path: Path
) -> None:
    """The first file stands, on every run; two texts never take turns."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    text = (small_corpus / f"{ORIGINAL}.txt").read_text()
    (corpus / "a.txt").write_text(text)
    (corpus / "b.txt").write_text(text.replace("fiscal", "financial"))
    for added in (1, 0):
        report = ingestor.run(corpus, progress=no_progress)
        assert (added, 0) == (report.added, report.changed)
        assert ["b.txt: skipped: 9990000102-24-000005 was already read from a.txt"] == report.problems


def test_the_same_store_gives_the_same_index_bytes(
    ingestor: Ingestor, small_corpus: Path, tmp_path: Path
) -> None:
    """Rebuilt from nothing, the file is what it was."""
    ingest(ingestor, small_corpus)
    rebuilt = Ingestor(ingestor._store, ingestor.embedder, tmp_path / "again.carag")
    assert (tmp_path / "index.carag").read_bytes() == (tmp_path / "again.carag").read_bytes()
    rebuilt.close()


def test_events_left_undone_by_a_kill_are_applied_when_opened(
    ingestor: Ingestor, small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replaced filing is not open in the meantime."""
    ingest(ingestor, small_corpus / f"{ORIGINAL}.txt")
    with monkeypatch.context() as killed:
        killed.setattr(Ingestor, "_apply_events", _killed)
        with pytest.raises(KeyboardInterrupt):
            ingestor.run(small_corpus / f"{AMENDED}.txt", progress=no_progress)
    assert not any(word & SUPERSEDED for word in words_of(ingestor, ORIGINAL))
    reopened = Ingestor(ingestor._store, ingestor.embedder, tmp_path / "index.carag")
    assert all(word & SUPERSEDED for word in words_of(reopened, ORIGINAL))
    agree(reopened)
    reopened.close()


def _killed(_: Ingestor) -> int:
    raise KeyboardInterrupt


def test_an_index_file_of_another_moment_is_not_believed(
    ingestor: Ingestor, small_corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A valid file put back from a backup is not searched: the index is built anew, and that is logged."""
    path = tmp_path / "index.carag"
    ingest(ingestor, small_corpus / f"{ORIGINAL}.txt")
    backup = path.read_bytes()
    ingest(ingestor, small_corpus / f"{AMENDED}.txt")
    current = path.read_bytes()
    path.write_bytes(backup)
    reopened = Ingestor(ingestor._store, ingestor.embedder, path)
    agree(reopened)
    assert "anew" in caplog.text
    assert current == path.read_bytes()
    reopened.close()
