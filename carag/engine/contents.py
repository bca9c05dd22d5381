"""Change what a store holds, recording each change before it takes effect: documents, and who is in which group."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from carag.engine.collection import no_progress
from carag.engine.freshness import Source, placed_reader, read_still
from carag.engine.results import AddReport, LabelHistory, SyncReport
from carag.engine.writer import (
    Kind,
    add,
    checked,
    never,
    removable,
    remove,
    stream,
    withdraw,
    without_lost,
    write,
)
from carag.errors import InvalidArgument
from carag.labelling.acts import document_histories
from carag.labelling.document import Document
from carag.labelling.stated import remnant, removed, stated_documents
from carag.limits import ERASED, check_label, shown
from carag.policy import as_of_minutes
from carag.policy.groups.statements import GroupImport
from carag.store.values import GroupReport as GroupReport  # noqa: TC001 - the service reads it back
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from os import PathLike

    from carag.engine.collection import Collection, Progress
    from carag.engine.configuration import ConfigurationLog, InForce
    from carag.engine.directory import Lifetime
    from carag.engine.freshness import PlacedReader
    from carag.engine.recorder import Recorder
    from carag.engine.results import IngestReport
    from carag.engine.what_if.preview import Preview
    from carag.labelling.labelled import NotMade
    from carag.policy import Audience, Profile, Session
    from carag.profiles.edgar.documents import Selection
    from carag.store.values import Counts


def filings_kind() -> Kind:
    """Return the kind for EDGAR's filings, each stored with what it says about earlier ones, as an event."""
    from carag.profiles.edgar.rules.metadata_only import histories, remnant

    return Kind(
        "edgar",
        histories,
        removed=lambda stored: replace(stored, content_hash="removed"),
        remnant=lambda stored, name: (remnant(stored.facts, name), stored.ciks),
        at_once=1,
    )


def documents_kind(collection: Collection) -> Kind:
    """Return the kind for documents; the profile is read at each use, since another process may put one in force."""
    return Kind(
        "documents",
        lambda facts: document_histories(facts, collection.profile.vocabulary.lifecycle),
        removed=lambda stored: removed(stored.facts),
        remnant=lambda stored, name: remnant(stored.facts, name),
    )


def read_stated(path: str | PathLike[str], profile: Profile) -> GroupImport:
    """Read what a file states about groups, in days of the profile's time zone; InvalidArgument if it cannot."""
    from carag.policy.groups.reading import read_groups

    return read_groups(read_text(path), file=Path(path).name, zone=profile.vocabulary.zone)


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file in UTF-8; InvalidArgument if it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"cannot read {shown(str(path))}: {error}; name a readable file") from error


class Contents:
    """The documents of a store and their labels; what changes them is on record before it can be searched."""

    def __init__(
        self,
        collection: Collection,
        recorder: Recorder,
        configuration: ConfigurationLog,
        in_force: InForce,
        lifetime: Lifetime,
    ) -> None:
        self._collection = collection
        self._recorder = recorder
        self._configuration = configuration
        self._in_force = in_force
        self._lifetime = lifetime
        self._documents = documents_kind(collection)

    def ingest(
        self,
        path: str | PathLike[str],
        *,
        progress: Progress = no_progress,
        only: Selection | None = None,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
    ) -> IngestReport:
        """See :meth:`carag.Engine.ingest`."""
        self._lifetime.check()
        self._in_force.keep_up()
        own, path = self._collection.profile.vocabulary.reader, Path(path)
        if reader is None and own == "edgar":
            return self._ingest_filings(path, only, progress)
        if only is not None:
            raise InvalidArgument(
                "`only` is for filings; leave it out, or ingest a folder with the wanted files"
            )
        return self._ingest_documents(one for _, one in self._placed(reader)(path))

    def _ingest_filings(self, path: Path, only: Selection | None, progress: Progress) -> IngestReport:
        from carag.profiles.edgar.documents import labelled_filings
        from carag.profiles.edgar.reading.readers import total_bytes

        read, total = labelled_filings(path, only), total_bytes(path)
        writing = partial(write, self._collection, filings_kind(), read, total=total, progress=progress)
        return self._written("INGESTED", writing).of_store(self._collection.store.documents.counts())

    def _placed(self, reader: Callable[[Path], Iterable[Document | str]] | None) -> PlacedReader:
        """Return what reads a folder: the store's own reader, or the one given, which states no places."""
        if reader is None:
            return placed_reader(self._collection.profile.vocabulary.reader)
        return lambda path: (("", one) for one in reader(path))

    def _ingest_documents(
        self, read: Iterable[Document | str], stop: Callable[[], bool] = never
    ) -> IngestReport:
        documents, problems = self._read(read)
        done = self._add(documents, stop, problems=problems)
        return done.of_store(self._collection.store.documents.counts())

    def _read(self, read: Iterable[Document | str]) -> tuple[list[Document], list[str]]:
        """Return the documents that can be added, and the problems of what was read."""
        found = list(read)
        if odd := [one for one in found if not isinstance(one, Document | str)]:
            raise InvalidArgument(
                f"the reader returned a {type(odd[0]).__name__}; want carag.Document objects, and a message for each "
                "thing that is not a document"
            )
        documents = [one for one in found if isinstance(one, Document)]
        documents, lost = without_lost(documents, self._collection.store)
        return documents, [visible_line(one) for one in found if isinstance(one, str)] + lost

    def preview(
        self,
        path: str | PathLike[str] | None = None,
        *,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
        sync: bool = False,
        remove_vanished: bool = False,
        remove: Iterable[str] = (),
    ) -> Preview:
        r"""Say what :meth:`ingest`, :meth:`sync` or :meth:`remove` would do, and change nothing.

        Raises InvalidArgument where they do.

        Examples
        --------
        >>> import tempfile, carag
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.md").write_text("---\nclassification: internal\n---\nThe canteen opens at noon.")
        >>> with carag.Engine.open(tempfile.mkdtemp(), profile="generic", embedder="wordllama") as engine:
        ...     before = engine.contents.preview(folder)
        ...     _ = engine.ingest(folder)
        ...     after = engine.contents.preview(folder, remove=["a.md"])
        >>> before.added, after.unchanged, after.removed
        (['a.md'], 1, ['a.md'])
        """
        from carag.engine.what_if.preview import Preview, preview

        self._lifetime.check()
        self._in_force.keep_up()
        store = self._collection.store
        if path is None:
            return Preview(removed=removable(store, remove))
        folder = Path(path)
        if reader is None and self._collection.profile.vocabulary.reader == "edgar":
            from carag.profiles.edgar.documents import labelled_filings

            self._not_edgar(sync=sync)
            return preview(store.documents, (one for _, one in labelled_filings(folder, None)))
        missing: list[str] = []
        read: list[Document | str]
        if sync:
            still = read_still(folder, self._placed(reader))
            missing, read = Source(store, folder).missing(still), [*still.documents, *still.problems]
        else:
            read = [one for _, one in self._placed(reader)(folder)]
        documents, problems = self._read(read)
        labelled = stated_documents(documents, self._collection.profile.vocabulary)
        found = preview(store.documents, checked(labelled, store, problems))
        found.vanished = missing
        gone = missing if remove_vanished and documents else []
        found.removed = [*gone, *removable(store, remove)]
        return found

    @staticmethod
    def _not_edgar(*, sync: bool) -> None:
        if sync:
            raise InvalidArgument(
                "sync is for documents, and this store's profile reads filings, which do not vanish; run ingest "
                "again, which stores what is new or changed"
            )

    def sync(
        self,
        path: str | PathLike[str],
        *,
        remove_vanished: bool = False,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
        stop: Callable[[], bool] = never,
    ) -> SyncReport:
        """See :meth:`carag.Engine.sync`."""
        self._lifetime.check()
        self._in_force.keep_up()
        own = self._collection.profile.vocabulary.reader
        self._not_edgar(sync=reader is None and own == "edgar")
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
                    f"{len(report.vanished)} documents vanished and no other is left, so none was withdrawn; check "
                    "that the folder is mounted, or withdraw them with Engine.remove(ids)"
                )
        report.stopped = stopped
        return report

    def add(
        self, documents: Iterable[Document], *, by: str | None = None, stop: Callable[[], bool] = never
    ) -> AddReport:
        """See :meth:`carag.Engine.add`."""
        self._lifetime.check()
        self._in_force.keep_up()
        one = self._add(documents, stop, by=by)
        counts = one.added, one.changed, one.unchanged, one.newly_quarantined, one.chunks
        return AddReport(*counts, one.embedded, one.reused, one.problems)

    def stream(self, read: Iterable[Document | NotMade]) -> IngestReport:
        """Store what is new or changed, as :meth:`carag.Engine.add` does, while it is read: too much for memory.

        Each id comes once. What cannot be stored is a problem of the report, and one record counts all of it.
        """
        self._lifetime.check()
        self._in_force.keep_up()
        writing = partial(stream, self._collection, self._documents, read)
        return self._written("DOCUMENTS_ADDED", writing).of_store(self._collection.store.documents.counts())

    def read_by(self, reader: str) -> list[str]:
        """Return the ids of documents that a reader made (:attr:`carag.Document.read_by`), without those removed."""
        last = dict(self._collection.store.documents.stated())  # the last version of each
        return [one for one, facts in last.items() if facts.get("read_by") == reader and not facts["removed"]]

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
        started = self._recorder.clock()
        with self._collection.store.turn():
            report = writing()
            self.settle(
                started,
                why,
                documents=report.added + report.changed,
                chunks=report.chunks,
                quarantined=report.newly_quarantined,
                by=by,
            )
        return report

    def remove(self, ids: Iterable[str], *, by: str | None = None) -> int:
        """See :meth:`carag.Engine.remove`."""
        self._lifetime.check()
        self._in_force.keep_up()
        started = self._recorder.clock()
        with self._collection.store.turn():
            count = remove(self._collection, self._documents, ids)
            self.settle(started, "DOCUMENTS_REMOVED", documents=count, by=by)
        return count

    def kind(self) -> Kind:
        """Return the kind of documents that the store holds."""
        return filings_kind() if self._collection.reader == "edgar" else self._documents

    def withdraw(self, ids: Sequence[str], *, by: str) -> None:
        """Close the labels of documents that are about to be erased, on record."""
        started = self._recorder.clock()
        withdraw(self._collection, self.kind(), ids)
        self.settle(started, "DOCUMENTS_REMOVED", documents=len(ids), by=by)

    def import_groups(
        self, stated: str | PathLike[str] | GroupImport, *, by: str | None = None, dry_run: bool = False
    ) -> GroupReport:
        r"""Bring groups to what is stated about them, on record; with ``dry_run``, only report what would change.

        ``stated`` is a file (:mod:`carag.policy.groups.reading`), in which days are those of the profile's time zone,
        or statements. Groups that it does not name stay. The record commits to what is stated, and to the person who
        imports it, ``by``; it is written before the change takes effect.

        Raises InvalidArgument, and changes nothing, if anything in the file is not understood, a group would be inside
        itself, or is known under another spelling; AuditUnavailable, and changes nothing, if there can be no record.

        Examples
        --------
        >>> import tempfile, carag
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "groups.jsonl"
        >>> _ = file.write_text('{"group": "group:treasury", "members": ["user:ana", "group:desk-fx"]}\n')
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     reports = [engine.contents.import_groups(file) for _ in range(2)]
        >>> [(one.opened, one.closed, one.undefined) for one in reports]
        [(2, 0, ('group:desk-fx',)), (0, 0, ('group:desk-fx',))]
        """
        self._lifetime.check()
        self._in_force.keep_up()
        read = stated if isinstance(stated, GroupImport) else read_stated(stated, self._collection.profile)
        store = self._collection.store
        with store.turn():
            return store.groups.import_(read, dry_run=dry_run, record=partial(self._recorder.grouped, by=by))

    def counts(self) -> Counts:
        """Count what the store holds: documents, passages, and quarantined documents by reason."""
        self._lifetime.check()
        return self._collection.store.documents.counts()

    def label_history(self, chunk_id: str) -> LabelHistory | None:
        """Return every label that a passage ever had, without its text or a record; None if there is no such passage.

        This reveals that the passage exists: use it for readers of the log, or roles that may know of hidden passages.
        """
        self._lifetime.check()
        check_label("chunk_id", chunk_id)
        store = self._collection.store
        if chunk_id.startswith(ERASED) or not (labels := store.labels.history(chunk_id)):
            return None
        chunk = store.chunk(chunk_id)
        return LabelHistory(
            chunk_id,
            chunk.document,
            store.documents.document(chunk.document_id, version=chunk.version),
            tuple(labels),
            tuple(store.labels.audiences(chunk.document_id)),
        )

    def opened_to(self, session: Session, audiences: Iterable[Audience]) -> list[tuple[str, ...] | None]:
        """Return by which of a session's own principals it belongs to each of some audiences, with the groups of now.

        Each principal counts alone; None where the session belongs to an audience by none of them in particular. This
        is what the session's own requests tell, narrowed to one principal or none, and nothing about anyone else.
        """
        self._lifetime.check()
        minute, groups = as_of_minutes(self._recorder.clock()), self._collection.store.groups
        bare = groups.identity(session.narrow(principals=()), minute)
        held = {
            one: groups.identity(session.narrow(principals=(one,)), minute) for one in sorted(session.held)
        }
        return [
            None if bare.admits(one) else tuple(name for name, alone in held.items() if alone.admits(one))
            for one in audiences
        ]

    def settle(
        self,
        started: datetime,
        why: str,
        *,
        documents: int = 0,
        chunks: int = 0,
        quarantined: int = 0,
        by: str | None = None,
    ) -> None:
        """Record the state that will be searched, unless it is on record; needed also after a run that was killed."""
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
