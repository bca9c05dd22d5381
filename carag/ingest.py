"""Ingest filings: read, label, chunk, embed and store them, then bring index and snapshot up to the store.

The store is the truth and the index a copy of it. Each filing is one transaction, and what it says of earlier
filings is part of that transaction; so a kill at any point loses nothing that was stored, and leaves no replaced
filing open. The next run skips what is unchanged, by content hash, and goes on.

A filing of which a source has no text adds no passage; what it says of others is stored many filings a transaction.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np

from carag.corpus.chunking import CHUNKER_VERSION, chunk
from carag.corpus.door import problem_of
from carag.corpus.filing_events import bears_on_others
from carag.corpus.labeller import LABELLER_VERSION, chunk_word, label
from carag.corpus.metadata_only import (
    facts_of_metadata,
    facts_of_text,
    histories,
    is_metadata_only,
    quarantine_of,
    readings,
    united,
)
from carag.corpus.readers import ReadKind, read_filings, total_bytes
from carag.corpus.rules import QuarantineCode
from carag.corpus.values import StoredChunk, StoredFiling, content_hash
from carag.errors import CorruptFile
from carag.index import Index
from carag.policy import QUARANTINE
from carag.retrieval import add_labels, headed
from carag.snapshot import Snapshot
from carag.turns import Turns
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag.corpus.filing import Filing
    from carag.corpus.label import Label
    from carag.corpus.store import CorpusStore
    from carag.retrieval import Embedder

__all__ = ["IngestReport", "Ingestor", "Progress", "Selection", "no_progress"]

_logger = logger(__name__)

_T = TypeVar("_T")

_EMBED_BATCH: Final = 2048
_EVENT_BATCH: Final = 4096
_INDEX_BATCH: Final = 4096
_HEADER_SIZE: Final = 768  # csrc/FORMAT.md
_SAVE_EVERY: Final = 1 << 16
"""Rows between two saves of a growing index: what a kill during a long build may cost."""
_SAVE_SHARE: Final = 16
"""A change of less than one row in so many is saved when the index is closed: writing the file costs as much as
all of its rows, and a kill in the meantime only as much as the change, which the store still has."""


Selection = Mapping[str, Collection[tuple[str, int]]]
"""By accession number, the passages wanted: the type of their document, and where they start in it."""


class Progress(Protocol):
    """Told how far a stage is, in the thread that ingests.

    ``"filings"`` counts bytes of the files read, ``"index"`` rows; a total of 0 is unknown. The note says it in words,
    with counts and no names.
    """

    def __call__(self, stage: str, done: int, total: int, note: str, /) -> None:
        """Take note."""


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
    newly_quarantined: int = 0
    """Filings this run stored in quarantine."""
    relabelled: int = 0
    """Chunks whose labels other filings changed."""
    events: int = 0
    """Events without text: rows this run learnt a filing's facts from."""
    events_unchanged: int = 0
    """Such rows that said nothing new."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, with place and reason."""
    failures: int = 0
    """Of the problems, those that nobody foresaw: faults of the program, told by their type and where they arose."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """Filings in quarantine by reason, in the whole store."""
    total_events: int = 0
    """Filings known by metadata only."""
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
        self.known_at = -1
        """Of the store's knowledge, what the index reflects: microseconds since 1970, -1 for nothing."""
        self._unsaved = 0
        self._deleted = 0
        self._turns = Turns()
        self._running = threading.RLock()
        self.state = Snapshot(store, index_path.with_suffix(".state"))
        try:
            self.index = self._load()
            self.refresh(no_progress)
        except BaseException:
            self.state.close()
            raise

    @property
    def snapshot(self) -> bytes:
        """Root hash over every open label: chunk id, text hash, word and window."""
        return self.state.root

    @contextmanager
    def reading(self) -> Iterator[int]:
        """Keep the index as it is while something is searched, and say of which instant it is: see ``known_at``."""
        with self._turns.reading():
            yield self.known_at

    def run(self, path: Path, *, progress: Progress, only: Selection | None = None) -> IngestReport:
        """Store what is new or changed under ``path``, and bring everything derived from it up to date.

        Given a selection, other filings are left out, and of those named the passages not wanted. What a filing says of
        others is said all the same, also by one of which no passage is wanted.
        """
        report = IngestReport()
        _logger.info("ingest begins, with %d rows", len(self.index))
        with self._running:
            self._store_filings(path, report, progress, only)
            self.refresh(progress)
        counts = self._store.counts()
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

    def close(self) -> None:
        """Save what is not, and free the index."""
        if self._unsaved:
            self._save()
        self.index.close()
        self.state.close()

    # --- filings to rows ---

    def _store_filings(
        self, path: Path, report: IngestReport, progress: Progress, only: Selection | None
    ) -> None:
        batch = _Batch(self._store, self.embedder, report)
        events = _Events(self._store, report)
        total = total_bytes(path)
        seen: dict[str, str] = {}
        for outcome in read_filings(path):
            progress("filings", outcome.bytes_read, total, f"{report.filings} read, {report.chunks} chunks")
            if outcome.metadata is not None:
                batch.flush()
                events.add(outcome.metadata, outcome.where)
                continue
            events.flush()
            if outcome.filing is None:
                report.problems.append(f"{outcome.where}: {outcome.kind.name.lower()}: {outcome.reason}")
                report.failures += outcome.kind is ReadKind.FAILED
                continue
            if only is not None and outcome.filing.accession_number not in only:
                continue
            described = _attempt(report, outcome.where, partial(_describe, outcome.filing, only))
            if described is None:
                continue
            labelled, filing, facts = described
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
            before = self._store.facts_of(filing.accession_number)
            is_new = before is None or is_metadata_only(before)
            cut = _attempt(
                report, outcome.where, partial(_cut, outcome.filing, labelled, only, filing, facts, before)
            )
            if cut is None:
                continue
            filing, chunks = cut
            report.changed += not is_new
            report.added += is_new
            report.chunks += len(chunks)
            report.newly_quarantined += filing.quarantine is not None
            batch.add(filing, chunks)
        batch.flush()
        events.flush()

    # --- rows to index ---

    def refresh(self, progress: Progress) -> None:
        """Bring index and snapshot up to the store; also when opened, after a run that was killed."""
        known = self._store.known()
        # The state first: it can still prove what a search finds in the index of before.
        self.state.refresh()
        if self.known_at != known:
            self._follow(known, progress)
        if self._deleted > len(self.index):  # so that what deleted rows leave behind never outweighs the rest
            self.index.consolidate()
            self._deleted = 0
        if self._unsaved * _SAVE_SHARE > len(self.index) or not self._path.exists():
            self._save()

    def _load(self) -> Index:
        """Load the index file if it is the one this store saved last; any other starts anew, from the store."""
        if not self._path.exists():
            return self._new_index()
        if self._store.meta_get("index_header") != _header_hash(self._path):
            _logger.warning("%s is not the file this store saved last; building the index anew", self._path)
            return self._new_index()
        try:
            index = Index.load(self._path)
        except CorruptFile as error:
            raise CorruptFile(f"{error}; delete {self._path}, and the next opening builds it anew") from error
        self.known_at = int(self._store.meta_get("index_known") or -1)
        self._deleted = int(self._store.meta_get("index_deleted") or 0)
        return index

    def _new_index(self) -> Index:
        self.known_at = -1
        return Index(self.embedder.dim)

    def _save(self) -> None:
        self.index.save(self._path)
        self._store.meta_update(
            {
                "index_header": _header_hash(self._path),
                "index_known": str(self.known_at),
                "index_deleted": str(self._deleted),
            }
        )
        self._unsaved = 0

    def _follow(self, known: int, progress: Progress) -> None:
        """Bring the index to an instant of the store: add what was opened, closed, then change over in one turn.

        Whoever searches meanwhile finds the rows of before, and never half of what changed; also after a kill, for
        what was not opened is then opened by the next follow. Labels are added in the order in which the store gave
        them their keys, so the same store gives the same graph.
        """
        opened = self._store.open_labels(after=self._store.labels_by(self.known_at) - 1)
        is_here = np.isin(opened, self.index.keys(), assume_unique=True)
        words = np.empty(len(opened), np.uint32)
        words[is_here] = self._store.labels(opened[is_here]).words
        new = np.flatnonzero(~is_here)
        for start in range(0, len(new), _INDEX_BATCH):
            some = new[start : start + _INDEX_BATCH]
            words[some] = add_labels(self.index, self._store, opened[some], closed=True)
            done = start + len(some)
            self._unsaved += len(some)
            progress("index", done, len(new), f"{done} of {len(new)} rows")
            if done % _SAVE_EVERY < _INDEX_BATCH and done >= _SAVE_EVERY:
                self._save()
        closed = [key for key in self._store.closed_labels(after=self.known_at).tolist() if key in self.index]
        with self._turns.writing():
            self.index.delete(closed)
            self.index.relabel(opened, words, allow_quarantine=True)
            self.known_at = known
        self._unsaved += len(closed)
        self._deleted += len(closed)


class _Batch:
    """Filings waiting to be embedded together."""

    def __init__(self, store: CorpusStore, embedder: Embedder, report: IngestReport) -> None:
        self._store = store
        self._embedder = embedder
        self._report = report
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
            own = vectors[done : done + len(chunks)]
            with self._store.writing() as transaction:
                transaction.put(filing, chunks, own)
                change = transaction.relabel(histories(transaction.facts()))
            self._report.relabelled += change.relabelled
            done += len(chunks)
        self._waiting.clear()
        self._size = 0


class _Events:
    """Filings without text, waiting to be stored together."""

    def __init__(self, store: CorpusStore, report: IngestReport) -> None:
        self._store = store
        self._report = report
        self._waiting: dict[str, StoredFiling] = {}

    def add(self, filing: Filing, where: str) -> None:
        """Take a row, unless all it says is known."""
        number = filing.accession_number
        waiting = self._waiting.get(number)
        known = waiting.facts if waiting else self._store.facts_of(number)
        stored = _attempt(self._report, where, partial(_known_by_facts, filing, known))
        if stored is None:
            return
        if stored.facts == known:
            self._report.events_unchanged += 1
            return
        why = stored.quarantine
        if why and why[0] == QuarantineCode.FACTS_DISAGREE and why != (known and quarantine_of(known)):
            self._report.problems.append(f"{where}: quarantined: {number}: {why[1]}")
            self._report.newly_quarantined += 1
        self._report.events += 1
        self._waiting[number] = stored
        if len(self._waiting) >= _EVENT_BATCH:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            with self._store.writing() as transaction:
                transaction.put_metadata(list(self._waiting.values()))
                change = transaction.relabel(histories(transaction.facts()))
            self._report.relabelled += change.relabelled
            self._waiting.clear()


def _attempt(report: IngestReport, where: str, make: Callable[[], _T]) -> _T | None:
    """Make the rows of one filing; if that fails, the filing is a problem with its place, and the run goes on."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - one filing never ends a run, and what nobody foresaw is counted
        problem = problem_of(error)
        report.problems.append(f"{where}: {'broken' if problem.foreseen else 'failed'}: {problem.reason}")
        report.failures += not problem.foreseen
        return None


def _known_by_facts(filing: Filing, known: Mapping[str, Any] | None) -> StoredFiling:
    """Return a filing without text as the store keeps it, with what was known of it before."""
    new = facts_of_metadata(filing, label(filing, metadata_only=True))
    facts = new if known is None else united(known, new)
    return StoredFiling(
        accession_number=filing.accession_number,
        form=filing.form or "",
        company=filing.company,
        filed=filing.filed.isoformat() if filing.filed else "",
        content_hash=content_hash(facts, (), version=LABELLER_VERSION),
        facts=facts,
        causes={"bits": []},
        public_at_source="facts alone",
        quarantine=quarantine_of(facts),
        ciks=_bearing(facts),
    )


def _bearing(facts: Mapping[str, Any]) -> tuple[int, ...]:
    """Return whose filings an event can concern: none, if it can set no bit; then it costs no later filing anything."""
    return tuple(sorted({cik for one in readings(facts) if bears_on_others(one) for cik in one.ciks}))


def _with_what_was_known(
    filing: StoredFiling, facts: Mapping[str, Any], before: Mapping[str, Any] | None
) -> tuple[StoredFiling, int]:
    """Unite a filing's facts with those of rows without its text; return it and the quarantine bit that follows."""
    known = united(before, facts) if before is not None else dict(facts)
    quarantine = quarantine_of(known)
    ciks = tuple(dict.fromkeys((*filing.ciks, *(cik for one in readings(known) for cik in one.ciks))))
    return replace(filing, facts=known, quarantine=quarantine, ciks=ciks), QUARANTINE if quarantine else 0


def _header_hash(path: Path) -> str:
    """Hash an index file's header, which holds the checksum of every section and so names the whole."""
    with path.open("rb") as file:
        return hashlib.sha256(file.read(_HEADER_SIZE)).hexdigest()


def _describe(filing: Filing, only: Selection | None) -> tuple[Label, StoredFiling, dict[str, Any]]:
    """Label a filing; return it as the store keeps it, and its facts, which what was known before may add to."""
    labelled = label(filing)
    # A part is another content than the whole.
    part = "" if only is None else f".{sorted(only[filing.accession_number])}"
    facts = facts_of_text(filing, labelled)
    filed = filing.filed.isoformat() if filing.filed else ""
    stored = StoredFiling(
        accession_number=filing.accession_number,
        form=filing.form or "",
        company=filing.company,
        filed=filed,
        content_hash=content_hash(
            {
                **facts,
                "subjects": filing.subjects,
                "company": filing.company,
                "documents": [document.type for document in filing.documents],
                "filed": filed,
                "word": labelled.word,
            },
            [document.text for document in filing.documents],
            version=f"{CHUNKER_VERSION}.{LABELLER_VERSION}{part}",
        ),
        facts=facts,
        causes={"bits": [[cause.bit, cause.field, cause.rule] for cause in labelled.causes]},
        public_at_source=labelled.public_at_source.value,
        quarantine=labelled.quarantine,
        ciks=filing.ciks,
    )
    return labelled, stored, facts


def _cut(
    filing: Filing,
    labelled: Label,
    only: Selection | None,
    stored: StoredFiling,
    facts: Mapping[str, Any],
    before: Mapping[str, Any] | None,
) -> tuple[StoredFiling, list[StoredChunk]]:
    """Return a filing with what was known of it before, and its passages, labelled."""
    stored, quarantine_bit = _with_what_was_known(stored, facts, before)
    labelled = replace(labelled, word=labelled.word | quarantine_bit)
    wanted = None if only is None else only[filing.accession_number]
    return stored, [
        StoredChunk(
            document=document.type,
            start=piece.start,
            end=piece.end,
            text=piece.text,
            word=chunk_word(labelled, filing, document, piece.text, piece.start),
            public_at=labelled.public_at,
            subjects=filing.subjects,
        )
        for document in filing.documents
        for piece in chunk(document.text)
        if wanted is None or (document.type, piece.start) in wanted
    ]
