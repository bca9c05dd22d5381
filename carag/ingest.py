"""Filings in: read, label, chunk, embed, store; then events, index and snapshot brought up to the store.

The store is the truth and the index a copy of it. Each filing is one transaction, so a kill at any point
loses nothing that was stored; the next run skips what is unchanged, by content hash, and goes on.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from carag.audit import StateTree
from carag.corpus import (
    CHUNKER_VERSION,
    LABELLER_VERSION,
    Filing,
    FilingFacts,
    Label,
    ReadKind,
    StoredChunk,
    StoredFiling,
    chunk,
    chunk_word,
    content_hash,
    label,
    read_filings,
    state_bits,
    total_bytes,
)
from carag.errors import CorruptFile
from carag.index import Index
from carag.policy import TOMBSTONE, bits_of
from carag.retrieval import headed

if TYPE_CHECKING:
    from pathlib import Path

    from carag.corpus import CorpusStore
    from carag.retrieval import Embedder

__all__ = ["IngestReport", "Ingestor", "Progress", "no_progress"]

_logger = logging.getLogger(__name__)

_STATE_BITS: Final = bits_of(["AMENDED", "SUPERSEDED", "NON_RELIANCE", "NOT_LATEST", "LATE", "DELISTED"])
"""What later filings say of earlier ones."""
_EMBED_BATCH: Final = 2048
_INDEX_BATCH: Final = 4096
_HEADER_SIZE: Final = 768  # csrc/FORMAT.md
_SAVE_EVERY: Final = 1 << 16
"""Rows between two saves of a growing index: what a kill during a long build may cost."""


class Progress(Protocol):
    """Told how far a stage is."""

    def __call__(self, stage: str, done: int, total: int, note: str, /) -> None:
        """Take note; a total of 0 is unknown."""


def no_progress(stage: str, done: int, total: int, note: str, /) -> None:
    """Take no note."""


@dataclass(slots=True)
class IngestReport:
    """What a run did, and what the store holds after it."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    chunks: int = 0
    """Stored by this run."""
    set_aside: int = 0
    """Filings this run stored in quarantine."""
    relabelled: int = 0
    """Chunks whose state bits later filings changed."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, with place and reason."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """Filings in quarantine by reason, in the whole store."""
    total_filings: int = 0
    total_chunks: int = 0

    @property
    def filings(self) -> int:
        """Filings read."""
        return self.added + self.changed + self.unchanged

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag ingest --json`` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


class Ingestor:
    """The only writer of a store's text, labels, vectors and index.

    Parameters
    ----------
    store : CorpusStore
    embedder : Embedder
    index_path : Path
        Where the index is saved. A file that is missing or behind the store is brought up to it when opened.

    Raises
    ------
    CorruptFile
        If the index file fails its checks; deleting it has the next opening build it anew.
    """

    def __init__(self, store: CorpusStore, embedder: Embedder, index_path: Path) -> None:
        self.embedder = embedder
        self._store = store
        self._path = index_path
        self.index = self._load()
        self.refresh(no_progress)

    @property
    def snapshot(self) -> bytes:
        """Root hash over (chunk id, text hash, word) of every chunk, sorted by id."""
        return bytes.fromhex(self._store.meta_get("snapshot") or "")

    def run(self, path: Path, *, progress: Progress) -> IngestReport:
        """Store what is new or changed under ``path``, and bring everything derived from it up to date."""
        report = IngestReport()
        self._store_filings(path, report, progress)
        report.relabelled = self.refresh(progress)
        counts = self._store.counts()
        report.quarantined = dict(counts.quarantined)
        report.total_filings, report.total_chunks = counts.filings, counts.chunks
        return report

    def close(self) -> None:
        """Free the index."""
        self.index.close()

    # --- filings to rows ---

    def _store_filings(self, path: Path, report: IngestReport, progress: Progress) -> None:
        batch = _Batch(self._store, self.embedder)
        total = total_bytes(path)
        seen: dict[str, str] = {}
        for outcome in read_filings(path):
            progress("filings", outcome.bytes_read, total, f"{report.filings} read, {report.chunks} chunks")
            if outcome.filing is None:
                whether = "skipped" if outcome.kind is ReadKind.SKIPPED else "broken"
                report.problems.append(f"{outcome.where}: {whether}: {outcome.reason}")
                continue
            labelled = label(outcome.filing)
            filing = _describe(outcome.filing, labelled)
            first = seen.setdefault(filing.accession_number, outcome.where)
            if first != outcome.where:
                # Two texts under one accession number would replace each other on every run.
                report.problems.append(
                    f"{outcome.where}: skipped: {filing.accession_number} was already read from {first}"
                )
                continue
            known = self._store.content_hash(filing.accession_number)
            if known == filing.content_hash:
                report.unchanged += 1
                continue
            chunks = _cut(outcome.filing, labelled)
            report.changed += known is not None
            report.added += known is None
            report.chunks += len(chunks)
            report.set_aside += filing.quarantine is not None
            batch.add(filing, chunks)
        batch.flush()

    def _apply_events(self) -> int:
        """Set the state bits that other filings cause (amended, superseded, ...) on every chunk they concern."""
        facts = [FilingFacts.from_json(fields) for _, fields in self._store.facts()]
        states = state_bits(facts)
        changes: list[tuple[int, int]] = []
        for fact in facts:
            state = states.get(fact.accession_number)
            keys, words, _ = self._store.filing_labels(fact.accession_number)
            wanted = (words & ~np.uint32(_STATE_BITS)) | np.uint32(state.bits if state else 0)
            moved = wanted != words
            changes.extend(zip(keys[moved].tolist(), wanted[moved].tolist(), strict=True))
        return self._store.relabel(changes) if changes else 0

    # --- rows to index ---

    def refresh(self, progress: Progress) -> int:
        """Bring state bits, snapshot and index up to the store; return how many chunks were relabelled.

        Also when opened: a run killed before its events were applied must not leave a replaced filing open.
        """
        relabelled = 0
        if self._store.meta_get("events_epoch") != str(self._store.epoch):
            relabelled = self._apply_events()
            self._store.meta_set("events_epoch", str(self._store.epoch))
        epoch = str(self._store.epoch)
        if self._store.meta_get("snapshot_epoch") != epoch:
            tree = StateTree()
            for chunk_id, text_sha256, word in self._store.snapshot_rows():
                tree.append(chunk_id, text_sha256, word)
            self._store.meta_update({"snapshot": tree.root().hex(), "snapshot_epoch": epoch})
        if self._store.meta_get("index_epoch") != epoch or not self._path.exists():
            self._follow_labels()
            self._add_rows(progress)
            self._save()
            self._store.meta_set("index_epoch", epoch)
        return relabelled

    def _load(self) -> Index:
        """Load the index file if it is the one this store saved last; any other starts anew, from the store."""
        if not self._path.exists():
            return self._new_index()
        if self._store.meta_get("index_header") != _header_hash(self._path):
            _logger.warning("%s is not the file this store saved last; building the index anew", self._path)
            return self._new_index()
        try:
            return Index.load(self._path)
        except CorruptFile as error:
            raise CorruptFile(f"{error}; delete {self._path}, and the next opening builds it anew") from error

    def _new_index(self) -> Index:
        self._store.meta_set("index_epoch", "none")
        return Index(self.embedder.dim)

    def _save(self) -> None:
        self.index.save(self._path)
        self._store.meta_set("index_header", _header_hash(self._path))

    def _follow_labels(self) -> None:
        """Delete and relabel rows the index already has."""
        keys, words, _ = self._store.labels()
        present = np.isin(keys, self.index.keys())
        keys, words = keys[present], words[present]
        gone = (words & np.uint32(TOMBSTONE)) != 0
        self.index.delete(keys[gone])
        keys, words = keys[~gone], words[~gone]
        moved = self.index.words(keys) != words
        self.index.relabel(keys[moved], words[moved], allow_quarantine=True)

    def _add_rows(self, progress: Progress) -> None:
        """Add the rows the index has not, in key order, so that the same store gives the same graph."""
        known = self.index.keys()
        last = int(known.max()) if known.size else -1
        keys, words, public_at = self._store.labels(after_key=last)
        done = 0
        for batch, vectors in self._store.vectors(after_key=last, batch=_INDEX_BATCH):
            rows = slice(done, done + len(batch))
            live = (words[rows] & np.uint32(TOMBSTONE)) == 0
            self.index.add(
                vectors[live],
                words[rows][live],
                batch[live],
                public_at=public_at[rows][live],
                allow_quarantine=True,
            )
            done += len(batch)
            progress("index", done, len(keys), f"{done} of {len(keys)} rows")
            if done % _SAVE_EVERY < _INDEX_BATCH and done >= _SAVE_EVERY:
                self._save()


class _Batch:
    """Filings waiting to be embedded together."""

    def __init__(self, store: CorpusStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._waiting: list[tuple[StoredFiling, list[StoredChunk]]] = []
        self._size = 0

    def add(self, filing: StoredFiling, chunks: list[StoredChunk]) -> None:
        self._waiting.append((filing, chunks))
        self._size += len(chunks)
        if self._size >= _EMBED_BATCH:
            self.flush()

    def flush(self) -> None:
        texts = [
            headed(chunk.text, company=filing.company, form=filing.form, filed=filing.filed)
            for filing, chunks in self._waiting
            for chunk in chunks
        ]
        vectors = (
            self._embedder.embed_documents(texts) if texts else np.empty((0, self._embedder.dim), np.float32)
        )
        done = 0
        for filing, chunks in self._waiting:
            self._store.put(filing, chunks, vectors[done : done + len(chunks)])
            done += len(chunks)
        self._waiting.clear()
        self._size = 0


def _header_hash(path: Path) -> str:
    """Hash an index file's header, which holds the checksum of every section and so names the whole."""
    with path.open("rb") as file:
        return hashlib.sha256(file.read(_HEADER_SIZE)).hexdigest()


def _describe(filing: Filing, labelled: Label) -> StoredFiling:
    facts = FilingFacts.of(filing, labelled).to_json()
    filed = filing.filed.isoformat() if filing.filed else ""
    return StoredFiling(
        accession_number=filing.accession_number,
        form=filing.form or "",
        company=filing.company,
        filed=filed,
        content_hash=content_hash(
            {
                **facts,
                "company": filing.company,
                "documents": [document.type for document in filing.documents],
                "filed": filed,
                "word": labelled.word,
            },
            [document.text for document in filing.documents],
            version=f"{CHUNKER_VERSION}.{LABELLER_VERSION}",
        ),
        facts=facts,
        causes={"bits": [[cause.bit, cause.field, cause.rule] for cause in labelled.causes]},
        public_at_source=labelled.public_at_source.value,
        quarantine=labelled.quarantine,
    )


def _cut(filing: Filing, labelled: Label) -> list[StoredChunk]:
    return [
        StoredChunk(
            document=document.type,
            start=piece.start,
            end=piece.end,
            text=piece.text,
            word=chunk_word(labelled, filing, document, piece.text, piece.start),
            public_at=labelled.public_at,
        )
        for document in filing.documents
        for piece in chunk(document.text)
    ]
