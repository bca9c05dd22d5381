"""Open a log's directory: lock it for one writer, load its keys and find its records.

====================  ======================================================================================
``audit.db``          records, tree nodes, newest checkpoint; salts and values of the commitments, sealed
``private.key``       the keys that unseal them; without it none can be opened. Destroying it harms no proof;
                      if backups of ``audit.db`` omit it, erasure reaches those too
``shared.url``        the address of the server that holds records and values instead, for several processes
``moved.url``         the address of the server that the log was moved to; here it can only be read
``audit.key``         the signing keys (0600)
``vkey``              the public keys, for everyone; written last, so its presence means that the log exists
``anchors/``          evidence that anchors confirmed checkpoints, one file each
``audit.lock``        held by the one writer
``pinned``            the checkpoint at the last close, which detects that ``audit.db`` alone was rolled back
====================  ======================================================================================
"""

from __future__ import annotations

import contextlib
import re
import secrets
from typing import TYPE_CHECKING, Final

from carag.audit._files import WriterLock, sync_directory, write_atomically
from carag.audit._notes import MOVED_TO, SHARED_AT, remembered
from carag.audit._shared import SharedLink
from carag.audit._sqlite import SqliteLink
from carag.audit.log.keyring import KeyRing
from carag.audit.log.shared import SharedBackend, check_tables
from carag.audit.log.sqlite import RECORD_TABLES, SqliteBackend
from carag.audit.private.earlier import take_over
from carag.audit.private.shared import SharedValues
from carag.audit.private.store import VALUE_TABLES, PrivateStore
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import SigningKey
from carag.audit.tlog.note import Note
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SECOND_COPY: Final = "evidence.url"
"""The file with which versions up to 0.3 named a server that got a copy of every record."""
_PAGE: Final = 512
"""Page size of a new ``audit.db``: a commit writes whole pages, most with few changes (decision 0035)."""
_URL: Final = re.compile("([A-Za-z][A-Za-z0-9+.-]+):/")  # one slash, because Path merges a URL's two


class LogDirectory:
    """An opened log directory, locked against other writers.

    Raises StoreLocked if another writer holds the directory; AuditUnavailable if it cannot be created or written;
    InvalidArgument if it is a URL, or the log was moved from here.
    """

    def __init__(self, path: Path) -> None:
        if (url := _URL.match(str(path))) is not None:
            raise InvalidArgument(  # without the rest of the URL, which may hold a password
                f"a log is opened in a directory, which keeps its keys and private values; got a {url[1]} URL. To "
                "keep records in PostgreSQL, share the store: carag share URL --store DIRECTORY"
            )
        self.path = path
        self.records = path / "audit.db"
        self.pin = path / "pinned"
        self._key, self._vkey = path / "audit.key", path / "vkey"
        with self._reachable():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = WriterLock(path / "audit.lock")
            self.founded = self._vkey.exists()
        self._link: SharedLink | None = None
        try:
            self._check_here()
            if (place := remembered(path, SHARED_AT)) is not None:
                self._link = SharedLink(place, check_tables)
        except BaseException:
            self._lock.release()
            raise

    def signing_key(self, origin: str | None, clock: Callable[[], int] | None = None) -> KeyRing:
        """Load the log's keys, or generate the first on first use.

        A missing key is never replaced once a log exists: the new key would start another history.
        """
        with self._reachable():
            if self._key.exists():
                return self._load(origin, clock)
            if self.founded or self._has_records():
                raise CorruptFile(
                    f"{self._key} is missing though the log exists; restore it from a backup, or copy audit.key, vkey "
                    "and private.key from the directory of a process that shares the log"
                )
            key = SigningKey.generate(origin or f"carag.local/{secrets.token_hex(16)}")
            write_atomically(self._key, key.to_skey().encode() + b"\n")
        return self._ring(key, clock)

    def open_backend(self, empty: str) -> SqliteBackend | SharedBackend:
        """Open ``audit.db``, or the records on the server."""
        if self._link is not None:
            return SharedBackend(self._link, empty)
        tables, new, first = RECORD_TABLES + VALUE_TABLES, not self.founded, "INSERT INTO cp VALUES (0, ?)"
        link = SqliteLink(
            self.records, tables, page=_PAGE, create=new, first=[(first, (empty,))], later=VALUE_TABLES
        )
        return SqliteBackend(link)

    def open_values(self, backend: SqliteBackend | SharedBackend, *, accept_loss: bool) -> PrivateStore:
        """Open the sealed values of a backend's records."""
        size = backend.size()
        may_lose = accept_loss or size == 0
        if isinstance(backend, SqliteBackend):
            take_over(backend.link, size)
            return PrivateStore(backend.link, may_lose=may_lose)
        return SharedValues(backend.link, self.path, may_lose=may_lose)

    def finish(self, ring: KeyRing) -> None:
        """Publish the vkey on first use; later, check that it still belongs to the key."""
        with self._reachable():
            if not self.founded:
                sync_directory(self.path)
                ring.save()
                self.founded = True
            ring.check_listed()

    def pinned(self) -> Note | None:
        """Read the checkpoint stored at the last close, if any."""
        with self._reachable():
            if not self.pin.exists():
                return None
            try:
                note = Note.parse(self.pin.read_text("utf-8"))
                Checkpoint.parse(note.text)
            except (UnicodeDecodeError, CorruptFile) as error:
                raise CorruptFile(
                    f"{self.pin} is not a checkpoint: {error}; restore it from a backup"
                ) from error
            return note

    def write_pin(self, note: Note) -> None:
        """Store a checkpoint for the next opening."""
        with self._reachable():
            write_atomically(self.pin, note.to_text().encode(), mode=0o644)

    def release(self) -> None:
        """Release the lock for other writers."""
        if self._link is not None:
            self._link.close()
        self._lock.release()

    def _check_here(self) -> None:
        if (moved := remembered(self.path, MOVED_TO)) is not None:
            raise InvalidArgument(
                f"{self.path} was moved to {moved}, where its log continues; use a directory that shares it. If the "
                f"move was interrupted, run it again: carag share {moved} --admin URL --from {self.path} --store DIR"
            )
        if (copy := self.path / SECOND_COPY).exists():
            raise InvalidArgument(
                f"{copy} names a server for a second copy of every record, which is no longer written; the log in "
                f"{self.path} is complete. Move {SECOND_COPY} out of the store to continue with the log in files; to "
                f"have the records in PostgreSQL, then move the store there: carag share URL --admin URL --from "
                f"{self.path} --store DIR"
            )

    def _has_records(self) -> bool:
        if self._link is None:
            return self.records.exists()
        return bool(self._link.execute("SELECT EXISTS (SELECT FROM checkpoint)").fetchone()[0])

    def _load(self, origin: str | None, clock: Callable[[], int] | None) -> KeyRing:
        keys = self._key.read_bytes()
        if self._key.stat().st_mode & 0o077:
            raise AuditUnavailable(
                f"{self._key} can be read by others; chmod 600 it, or replace the log's key"
            )
        try:
            ring = self._ring(keys.decode("utf-8"), clock)
        except ValueError as error:
            raise CorruptFile(f"{self._key}: {error}; restore it from a backup") from error
        if origin not in (None, ring.name):
            raise InvalidArgument(f"{self.path} is the log {ring.name}, not {origin}; leave the origin out")
        return ring

    def _ring(self, keys: SigningKey | str, clock: Callable[[], int] | None) -> KeyRing:
        return KeyRing(self._key, self._vkey, keys, **({} if clock is None else {"clock": clock}))

    @contextlib.contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except IsADirectoryError as error:
            raise CorruptFile(
                f"{error.filename} is a directory; remove it, and restore the file from a backup"
            ) from error
        except OSError as error:
            raise AuditUnavailable(f"{self.path} cannot be used for the audit log: {error}") from error
