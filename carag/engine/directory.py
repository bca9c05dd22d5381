"""Open what a store directory holds, in the order that keeps it consistent, or upgrade it to this version."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from carag.audit import AuditLog
from carag.audit._files import WriterLock
from carag.audit._notes import SHARED_AT
from carag.audit.anchors import Anchoring
from carag.engine.collection import Collection, no_progress
from carag.engine.kept_embedder import NO_EMBEDDER
from carag.engine.kept_profile import keep_names
from carag.engine.sharing import has_store, open_corpus
from carag.errors import CorruptFile, InvalidArgument
from carag.policy import known_at_microseconds
from carag.readers.versions import may_read_otherwise
from carag.retrieval.public_names import PublicNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack
    from os import PathLike
    from pathlib import Path

    from carag.audit.anchors import Anchor, Window
    from carag.backends import VectorBackend
    from carag.engine.collection import Progress
    from carag.policy import Profile
    from carag.store.store import CorpusStore


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
    # The log's lock is the store's: there is one writer, and a store without a writable log stays closed.
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
    """Remove a store that is new in this context if nothing came to be stored in it."""
    made = [path for path in (home, *home.parents) if not path.exists()]
    try:
        yield
    finally:
        if made and home.exists():
            lock = WriterLock(home / "audit.lock")  # so that it is not opened meanwhile
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
    """Upgrade a store that an earlier version made, as opening does, without embedding anything, and check it."""
    started = time.monotonic()
    _check_home(home, create=False)
    with AuditLog.open(home) as log, log.alone("an upgrade"):  # its lock is the store's
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
