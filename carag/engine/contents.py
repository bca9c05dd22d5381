"""Change what a store holds, recording each change before it can be searched: ingest, sync, add, remove."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.engine.collection import no_progress
from carag.engine.documents import add, remove, without_lost
from carag.engine.folder import placed_reader
from carag.engine.freshness import Source, read_still
from carag.engine.results import AddReport, LabelHistory, SyncReport
from carag.engine.writer import Kind, never, write
from carag.errors import AuditUnavailable, InvalidArgument
from carag.labelling.acts import document_histories
from carag.labelling.document import Document
from carag.limits import check_label
from carag.profiles.edgar.documents import labelled_filings
from carag.profiles.edgar.reading.readers import total_bytes
from carag.profiles.edgar.rules.metadata_only import histories
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from os import PathLike

    from carag.engine.collection import Collection, Progress
    from carag.engine.configuration import ConfigurationLog
    from carag.engine.folder import PlacedReader
    from carag.engine.recorder import Recorder
    from carag.engine.results import IngestReport
    from carag.engine.rules import Rules
    from carag.profiles.edgar.documents import Selection
    from carag.store.values import Counts

__all__ = ["FILINGS", "Contents"]

FILINGS: Final = Kind("edgar", histories, at_once=1)
"""Each filing is stored with what it says about earlier ones, as an event of its own."""


class Contents(ABC):
    """The part of :class:`carag.Engine` that writes documents and their labels; ``clock`` returns an aware datetime."""

    def __init__(
        self,
        collection: Collection,
        recorder: Recorder,
        configuration: ConfigurationLog,
        clock: Callable[[], datetime],
    ) -> None:
        self._collection = collection
        self._recorder = recorder
        self._configuration = configuration
        self._clock = clock
        self._closed, self._pid = False, os.getpid()
        # The profile is read at each call, since another process may put a new policy in force.
        self._documents = Kind(
            "documents", lambda facts: document_histories(facts, collection.profile.vocabulary.lifecycle)
        )

    @abstractmethod
    def _keep_up(self) -> Rules:
        """Take over what other processes brought and put in force."""

    def ingest(
        self,
        path: str | PathLike[str],
        *,
        progress: Progress = no_progress,
        only: Selection | None = None,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
    ) -> IngestReport:
        """Read documents, label, chunk, embed and store them, and bring the index up to date.

        A store with EDGAR's profile reads filings; any other reads the files of a folder (:mod:`carag.readers`), whose
        stated fields are the facts that the profile's rules turn into bits. What is stored and unchanged, by its
        content's hash, is skipped, so running a killed run again finishes it.

        ``path`` is a filing, a JSONL file of filings, or a directory of either; otherwise a file or a folder.
        ``progress`` is called in this thread with (stage, done, total, note); a total of 0 is unknown, and an exception
        from it ends the run. ``only`` holds, by accession number, the passages wanted: (type of the document, start of
        the passage in it). ``reader`` reads ``path`` instead, and returns documents, and a message for what is not one.
        """
        self._check_open()
        self._keep_up()
        own, path = self._collection.profile.vocabulary.reader, Path(path)
        if reader is None and own == "edgar":
            read, total = labelled_filings(path, only), total_bytes(path)
            writing = partial(write, self._collection, FILINGS, read, total=total, progress=progress)
            return self._written("INGESTED", writing).of_store(self._collection.store.counts())
        if only is not None:
            raise InvalidArgument(
                "`only` is for filings; leave it out, or ingest a folder with the wanted files"
            )
        return self._ingest_documents(one for _, one in self._placed(reader)(path))

    def _placed(self, reader: Callable[[Path], Iterable[Document | str]] | None) -> PlacedReader:
        """Return what reads a folder: the store's own reader, or one that is given, which states no places."""
        if reader is None:
            return placed_reader(self._collection.profile.vocabulary.reader)
        return lambda path: (("", one) for one in reader(path))

    def _ingest_documents(
        self, read: Iterable[Document | str], stop: Callable[[], bool] = never
    ) -> IngestReport:
        found = list(read)
        if odd := [one for one in found if not isinstance(one, Document | str)]:
            raise InvalidArgument(
                f"the reader returned a {type(odd[0]).__name__}; want carag.Document objects, and a text for each "
                "thing that is not a document"
            )
        documents = [one for one in found if isinstance(one, Document)]
        documents, lost = without_lost(documents, self._collection.store)
        problems = [visible_line(one) for one in found if isinstance(one, str)] + lost
        done = self._add(documents, stop, problems=problems)
        return done.of_store(self._collection.store.counts())

    def sync(
        self,
        path: str | PathLike[str],
        *,
        remove_vanished: bool = False,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
        stop: Callable[[], bool] = never,
    ) -> SyncReport:
        r"""Bring the store up to a folder, once, as :class:`carag.engine.freshness.Nightly` does each night.

        New documents are stored, and changed ones, by their content's hash, replace the old ones; unchanged ones cost
        no write. In a changed document only passages whose text or heading is new to the store are embedded. The next
        run finishes one that was killed.

        What changes while it is read is read again, and finally left to the next run. With ``remove_vanished``,
        documents that this folder gave before and no longer gives are withdrawn, unless it gives none at all, as when
        it is not mounted. ``reader`` is as for :meth:`ingest`. ``stop`` is asked before each document is stored; once
        it returns true, what is stored is recorded, and the run ends.

        Examples
        --------
        >>> import tempfile, carag
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.md").write_text("---\nclassification: internal\n---\nThe canteen opens at noon.")
        >>> with carag.Engine.open(tempfile.mkdtemp(), profile="generic", embedder="wordllama") as engine:
        ...     reports = [engine.sync(folder), engine.sync(folder)]
        >>> [(one.added, one.embedded, one.unchanged) for one in reports]
        [(1, 1, 0), (0, 0, 1)]
        """
        self._check_open()
        self._keep_up()
        own = self._collection.profile.vocabulary.reader
        if reader is None and own == "edgar":
            raise InvalidArgument(
                "sync is for documents, and this store's profile reads filings, which do not vanish; run ingest again, "
                "which takes what is new or changed"
            )
        folder, stopped = Path(path), False

        def asked() -> bool:
            nonlocal stopped
            stopped = stopped or stop()
            return stopped

        source = Source(self._collection.store, folder)
        still = read_still(folder, self._placed(reader))
        source.found(still)
        done = self._ingest_documents([*still.documents, *still.problems], asked)
        report = SyncReport(**done.to_json(), left=still.left, vanished=source.vanished(still))
        if remove_vanished and report.vanished and not asked():
            if still.documents:
                report.removed = self.remove(report.vanished)
            else:
                report.problems.append(
                    f"{len(report.vanished)} documents vanished and none is left, so none was withdrawn; check "
                    "that the folder is mounted, or withdraw them with Engine.remove(ids)"
                )
        report.stopped = stopped
        return report

    def add(
        self, documents: Iterable[Document], *, by: str | None = None, stop: Callable[[], bool] = never
    ) -> AddReport:
        """Label, chunk, embed and store your own documents, and bring the index up to date.

        A document replaces the one that the store has under its id, whose passages are no longer found but stay for
        past questions and receipts. What is stored and unchanged is skipped, so repeating a killed call finishes it. A
        document that ``supersedes`` another ends it from its own ``public_at`` on.

        All ``documents`` are read and checked before the first is stored; the record commits to who brings them,
        ``by``. Raises InvalidArgument, and stores nothing, if two with one id differ, one supersedes an unknown
        document, or itself through others, one has facts that no rule turns into bits, or the store holds filings.

        Examples
        --------
        >>> import tempfile, carag
        >>> circular = carag.Document(id="circular/7", text="Branches report by the fifth of May.", bits=())
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     engine.add([circular]).added, engine.add([circular]).unchanged
        (1, 1)
        """
        self._check_open()
        self._keep_up()
        one = self._add(documents, stop, by=by)
        counts = one.added, one.changed, one.unchanged, one.newly_quarantined, one.chunks
        return AddReport(*counts, one.embedded, one.reused, one.problems)

    def _add(
        self,
        documents: Iterable[Document],
        stop: Callable[[], bool],
        *,
        by: str | None = None,
        problems: Sequence[str] = (),
    ) -> IngestReport:
        adding = partial(add, self._collection, self._documents, documents, problems=problems, stop=stop)
        return self._written("DOCUMENTS_ADDED", adding, by=by)

    def _written(
        self, why: str, writing: Callable[[], IngestReport], *, by: str | None = None
    ) -> IngestReport:
        started = self._clock()
        with self._collection.store.turn():
            report = writing()
            self._settle(
                started,
                why,
                documents=report.added + report.changed,
                chunks=report.chunks,
                quarantined=report.newly_quarantined,
                by=by,
            )
        return report

    def remove(self, ids: Iterable[str], *, by: str | None = None) -> int:
        """Withdraw documents so that only past questions still find them; return their number.

        What a removed document superseded stays superseded, so that removing makes nothing admissible. The record
        commits to who removes them, ``by``. Raises InvalidArgument if an id is not in the store; nothing is removed
        then.
        """
        self._check_open()
        self._keep_up()
        started = self._clock()
        with self._collection.store.turn():
            removed = remove(self._collection, self._documents, ids)
            self._settle(started, "DOCUMENTS_REMOVED", documents=removed, by=by)
        return removed

    def counts(self) -> Counts:
        """Count what the store holds: documents, passages, and quarantined documents by reason."""
        self._check_open()
        return self._collection.store.counts()

    def label_history(self, chunk_id: str) -> LabelHistory | None:
        """Return every label that a passage ever had, without its text and without a record; None if it does not exist.

        It reveals that the passage exists: use it for readers of the log, or roles that may know of hidden passages.
        """
        self._check_open()
        check_label("chunk_id", chunk_id)
        store = self._collection.store
        if not (labels := store.history(chunk_id)):
            return None
        chunk = store.chunk(chunk_id)
        return LabelHistory(
            chunk_id,
            chunk.document,
            store.document(chunk.document_id, version=chunk.version),
            tuple(labels),
        )

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("this engine is closed; open the store again with carag.Engine.open(...)")
        if os.getpid() != self._pid:  # log, files and connections belong to the parent process
            raise AuditUnavailable(
                "this engine was opened before the process forked; open the store in the child instead"
            )

    def _settle(
        self,
        started: datetime,
        why: str,
        *,
        documents: int = 0,
        chunks: int = 0,
        quarantined: int = 0,
        by: str | None = None,
    ) -> None:
        """Record the state that will be searched, unless it is on record; also after a run that was killed."""
        collection = self._collection
        if collection.store.epoch and not self._configuration.is_recorded(collection.state):
            self._recorder.ingested(
                started,
                collection,
                why=why,
                documents=documents,
                chunks=chunks,
                quarantined=quarantined,
                by=by,
            )
            self._configuration.recorded(collection.state)
