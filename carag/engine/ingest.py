"""Store each filing in one transaction with what it says about earlier ones, then bring the collection up to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from carag.engine.filing_rows import Accepted, Listed, Rejected, attempt, classify, rows_of_listed
from carag.engine.results import IngestReport
from carag.labelling.naming import named
from carag.profiles.edgar.reading.readers import read_filings, total_bytes
from carag.profiles.edgar.rules.metadata_only import histories, is_metadata_only, quarantine_of
from carag.profiles.edgar.rules.rules import QuarantineCode
from carag.retrieval import headed
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.engine.collection import Collection, Progress
    from carag.engine.filing_rows import Selection
    from carag.profiles.edgar.reading.readers import ReadOutcome
    from carag.store.store import CorpusStore
    from carag.store.values import StoredChunk, StoredFiling

__all__ = ["Ingestor"]

_logger = logger(__name__)

_EMBED_BATCH: Final = 2048
"""Passages embedded together; waiting filings are stored when they have this many."""
_LISTED_BATCH: Final = 4096
"""Filings without text that one transaction stores."""


class Ingestor:
    """The only writer of a collection: filings go into its store, then index and state follow."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def run(self, path: Path, *, progress: Progress, only: Selection | None = None) -> IngestReport:
        """Store what is new or changed under ``path``, as selected, and bring the collection up to it."""
        report, store = IngestReport(), self._collection.store
        _logger.info("ingest begins, with %d rows", len(self._collection.index))
        with self._collection.writing("edgar"):
            self._store_filings(path, report, progress, only)
            self._collection.refresh(progress)
        counts = store.counts()
        report.quarantined = dict(counts.quarantined)
        report.total_filings, report.total_chunks = counts.filings, counts.chunks
        report.total_events = counts.metadata_only
        _logger.info(
            "ingest ends: %d added, %d changed, %d unchanged, %d events, %d problems, %d quarantined",
            report.added,
            report.changed,
            report.unchanged,
            report.events,
            len(report.problems),
            report.newly_quarantined,
        )
        _logger.debug("quarantined, in all: %s", report.quarantined)
        return report

    def _store_filings(
        self, path: Path, report: IngestReport, progress: Progress, only: Selection | None
    ) -> None:
        filings = _Filings(self._collection, report)
        listed = _ListedFilings(self._collection.store, report)
        for one in classify(_reported(path, report, progress), only):
            # The store gets filings in the order in which they were read.
            if isinstance(one, Listed):
                filings.flush()
                listed.add(one)
                continue
            listed.flush()
            if isinstance(one, Accepted):
                filings.add(one)
            else:
                _reject(report, one)
        filings.flush()
        listed.flush()


def _reported(path: Path, report: IngestReport, progress: Progress) -> Iterator[ReadOutcome]:
    total = total_bytes(path)
    for outcome in read_filings(path):
        progress("filings", outcome.bytes_read, total, f"{report.filings} read, {report.chunks} chunks")
        yield outcome


def _reject(report: IngestReport, one: Rejected) -> None:
    report.problems.append(one.text)
    report.failures += one.is_fault


class _Filings:
    def __init__(self, collection: Collection, report: IngestReport) -> None:
        self._collection = collection
        self._store = collection.store
        self._heading = collection.profile.vocabulary.heading
        self._report = report
        self._waiting: list[tuple[StoredFiling, list[StoredChunk]]] = []
        self._size = 0

    def add(self, one: Accepted) -> None:
        number = one.stored.accession_number
        if self._store.content_hash(number) == one.stored.content_hash:
            self._report.unchanged += 1
            return
        before = self._store.facts_of(number)
        rows = attempt(one.where, partial(one.rows, before))
        if isinstance(rows, Rejected):
            _reject(self._report, rows)
            return
        filing, chunks = rows
        is_new = before is None or is_metadata_only(before)
        self._report.changed += not is_new
        self._report.added += is_new
        self._report.chunks += len(chunks)
        self._report.newly_quarantined += filing.quarantine is not None
        self._waiting.append((filing, chunks))
        self._size += len(chunks)
        if self._size >= _EMBED_BATCH:
            self.flush()

    def flush(self) -> None:
        texts = [
            headed(chunk.text, " ".join(named(self._heading, filing.stated)))
            for filing, chunks in self._waiting
            for chunk in chunks
        ]
        vectors, hashes, embedded = self._collection.vectors_of(texts)
        self._report.embedded += embedded
        self._report.reused += len(texts) - embedded
        done = 0
        for filing, chunks in self._waiting:
            own = slice(done, done + len(chunks))
            with self._store.writing() as transaction:
                transaction.put([(filing, chunks)], vectors[own], embedded=hashes[own])
                change = transaction.relabel(histories(transaction.facts()))
            self._report.relabelled += change.relabelled
            done += len(chunks)
        self._waiting.clear()
        self._size = 0


class _ListedFilings:
    def __init__(self, store: CorpusStore, report: IngestReport) -> None:
        self._store = store
        self._report = report
        self._waiting: dict[str, StoredFiling] = {}

    def add(self, one: Listed) -> None:
        number = one.filing.accession_number
        waiting = self._waiting.get(number)
        known = waiting.facts if waiting else self._store.facts_of(number)
        stored = attempt(one.where, partial(rows_of_listed, one.filing, known))
        if isinstance(stored, Rejected):
            _reject(self._report, stored)
            return
        if stored.facts == known:
            self._report.events_unchanged += 1
            return
        quarantine = stored.quarantine
        is_new = quarantine != (known and quarantine_of(known))
        if quarantine and quarantine[0] == QuarantineCode.FACTS_DISAGREE and is_new:
            self._report.problems.append(f"{one.where}: quarantined: {number}: {quarantine[1]}")
            self._report.newly_quarantined += 1
        self._report.events += 1
        self._waiting[number] = stored
        if len(self._waiting) >= _LISTED_BATCH:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            with self._store.writing() as transaction:
                transaction.put_metadata(list(self._waiting.values()))
                change = transaction.relabel(histories(transaction.facts()))
            self._report.relabelled += change.relabelled
            self._waiting.clear()
