"""Open what a store directory holds, in the order that keeps it consistent, and close it however its owner ends.

An engine ends when it is closed or dropped, or is still open when the interpreter exits. Finalizers of its parts would
run in any order, so resources are closed after the program's last statement.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import os
import shutil
import threading
import time
import warnings
import weakref
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from carag.audit import AuditLog
from carag.audit._files import WriterLock
from carag.audit._notes import SHARED_AT
from carag.audit.anchors import Anchoring
from carag.audit.private.earlier import EARLIER
from carag.engine.collection import Collection, no_progress
from carag.engine.corpus import NO_EMBEDDER, has_store, keep_names, open_corpus
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument
from carag.policy import known_at_microseconds
from carag.readers.versions import may_read_otherwise
from carag.retrieval.public_names import PublicNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from carag.audit.anchors import Anchor, Window
    from carag.backends import VectorBackend
    from carag.engine.collection import Progress
    from carag.policy import Profile
    from carag.store.store import CorpusStore


class Lifetime:
    """The time during which an engine's parts may be used; all of them share one object."""

    def __init__(self) -> None:
        self.is_over = False
        self._pid = os.getpid()

    def check(self) -> None:
        """Raise InvalidArgument after the end, AuditUnavailable in a forked process."""
        if self.is_over:
            raise InvalidArgument("this engine is closed; open the store again with carag.Engine.open(...)")
        if os.getpid() != self._pid:  # log, files and connections belong to the parent process
            raise AuditUnavailable(
                "this engine was opened before the process forked; open the store in the child instead"
            )


_open: Final[dict[Ending, None]] = {}
"""What is open, in the order of opening."""


class Closes(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Close it; idempotent."""


class Ending:
    """Closes what one owner opened.

    Nothing in ``resources`` may refer to ``owner``; when the owner is gone, they are closed.
    """

    def __init__(self, owner: Closes, what: str, resources: ExitStack) -> None:
        self._what, self._resources, self._pid = what, resources, os.getpid()
        self._closing = threading.RLock()
        self._owner = weakref.ref(owner, self._dropped)
        _open[self] = None

    @property
    def owner(self) -> Closes | None:
        """The owner; None once it is gone."""
        return self._owner()

    def close(self) -> None:
        """Close everything, the last opened first; idempotent. In a forked child, do nothing: the parent owns it."""
        if os.getpid() != self._pid:
            return
        with self._closing:
            try:
                self._resources.close()
            finally:
                _open.pop(self, None)

    def _dropped(self, _: object) -> None:
        """Close in a separate thread: the collector may have interrupted this one while it holds a lock."""
        if os.getpid() == self._pid and self in _open:
            _thread.start_new_thread(self.close, ())
            warnings.warn(
                f"{self._what} was not closed; close it, or open it in a with statement",
                ResourceWarning,
                stacklevel=2,
            )


def close_dropped() -> None:
    """Close what was dropped and is not closed yet, or wait until it is closed, so that the store can be reopened."""
    for ending in list(_open):
        if ending.owner is None:
            ending.close()


def _close_all() -> None:
    with ExitStack() as all_open:
        for ending in list(_open):
            all_open.callback((ending.owner or ending).close)


def _leave_to_parent() -> None:
    """Keep what was inherited, forever: SQLite forbids a child even to close a connection (How To Corrupt, 2.6)."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dict(_open)))
    _open.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_leave_to_parent)


class Opened(NamedTuple):
    """What a store directory holds, open."""

    log: AuditLog
    anchoring: Anchoring
    collection: Collection


def opened(
    resources: ExitStack,
    home: Path,
    *,
    create: bool,
    profile: str | PathLike[str] | Profile | None,
    embedder: object | None,
    clock: Callable[[], int],
    anchors: Sequence[Anchor],
    window: Window | None,
    retain: str,
    not_before: str | None,
    scrub_every: float | None,
    accept: frozenset[str],
    backend: str | VectorBackend | None,
) -> Opened:
    """Open a store directory, until ``resources`` are closed; otherwise as :meth:`carag.Engine.open`."""
    _check_home(home, create=create)
    # The log's lock covers the store: there is one writer, and a store without a writable log stays closed.
    log = resources.enter_context(
        AuditLog.open(
            home,
            clock=clock,
            retain=retain,
            not_before=not_before,
            accept_lost_values="lost_values" in accept,
        )
    )
    if "labels" in accept:
        resources.enter_context(log.alone("accepting other labels"))
    if scrub_every is not None:
        log.scrub_in_background(every=scrub_every)
    anchoring = resources.enter_context(Anchoring(log, anchors, home / "anchors", window=window, clock=clock))
    collection = resources.enter_context(
        Collection.open(
            home,
            create=create,
            embedder=embedder,
            clock=clock,
            profile=profile,
            backend=backend,
            accept=accept,
        )
    )
    return Opened(log, anchoring, collection)


@contextmanager
def undone_if_empty(home: Path) -> Iterator[None]:
    """Remove a store that is new in this context if nothing was stored in it."""
    made = [path for path in (home, *home.parents) if not path.exists()]
    try:
        yield
    finally:
        if made and home.exists():
            lock = WriterLock(home / "audit.lock")  # so that the store is not opened meanwhile
            try:
                _remove_if_empty(home, made[1:])
            finally:
                lock.release()


def _remove_if_empty(home: Path, parents: Sequence[Path]) -> None:
    if has_store(home):
        with open_corpus(home) as store:
            if store.epoch:
                return
    shutil.rmtree(home)
    with suppress(OSError):  # another process has put something there
        for path in parents:
            path.rmdir()


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What a store has after :func:`upgrade`, and what was made for it."""

    documents: int
    passages: int
    """Passages of these documents, without superseded versions."""
    rows: int
    rows_made: int
    """Rows added to the index, from vectors that the store keeps."""
    words: int
    """Passages whose words are indexed, superseded versions included."""
    words_made: int
    names: int
    """Rows of the public table of names; 0 without one."""
    names_sha256: str
    moved_values: bool
    """Whether the log's sealed values were in a file of their own, as up to 0.3, and are now in ``audit.db``."""
    read_before: list[str]
    """Ids of the documents that an earlier version of the reader took from a file, and may have read differently."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag upgrade --json`` prints."""
        return asdict(self)


def upgrade(
    home: Path,
    *,
    names: tuple[bytes, str] | None = None,
    backend: str | VectorBackend | None = None,
    progress: Progress = no_progress,
) -> Upgraded:
    """Upgrade a store made by an earlier version, as opening it does, without embedding anything, and check it."""
    started = time.monotonic()
    _check_home(home, create=False)
    moved_values = (home / EARLIER).is_file()
    with AuditLog.open(home) as log, log.alone("an upgrade"):  # its lock covers the store
        if names is not None:
            keep_names(home, *names)
        with Collection.open(
            home, create=False, embedder=NO_EMBEDDER, clock=_now, backend=backend, progress=progress
        ) as collection:
            collection.check()
            counts, table = collection.store.documents.counts(), PublicNames.kept_in(collection.store)
            return Upgraded(
                documents=counts.filings,
                passages=counts.chunks,
                rows=len(collection.index),
                rows_made=collection.added,
                words=len(collection.words),
                words_made=collection.words_read,
                names=len(table.rows),
                names_sha256=table.sha256 if table.rows else "",
                moved_values=moved_values,
                read_before=_read_before(collection.store),
                seconds=time.monotonic() - started,
            )


def _read_before(store: CorpusStore) -> list[str]:
    names = dict.fromkeys(row[1] for row in store.documents.described())  # each version is a row
    known = ((name, store.documents.facts_of(name) or {}) for name in names)
    return [name for name, facts in known if not facts.get("removed") and may_read_otherwise(facts)]


def _now() -> int:
    return known_at_microseconds(datetime.now(UTC))


def _check_home(home: Path, *, create: bool) -> None:
    is_there = has_store(home)
    if not create and not is_there:
        raise InvalidArgument(
            f"{home} does not hold a store; make one with: carag init --profile NAME --store {home}"
        )
    if is_there and not (home / SHARED_AT).exists() and not (home / "vkey").exists():
        raise CorruptFile(
            f"{home} has documents but no audit log, so its history is gone; restore audit.db, audit.key and "
            "vkey from a backup, or ingest into a new store"
        )
