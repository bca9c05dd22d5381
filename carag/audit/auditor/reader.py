"""Read a log as an auditor: from its files alone, without the writer's lock and without its signing key.

The directory may be a copy; ``audit.db`` and a vkey from a trusted source are enough. Sealed values are not read, and
stay closed without ``private.key``. Nothing is written. A file that no writer has open is read as it is; a file that a
writer has open is read as of one commit.

:class:`CorruptFile` is evidence of tampering or damage: something is missing or contradicts a signature.
:class:`AuditUnavailable` means that no verdict is possible: the file does not exist, is not a database, cannot be read,
or was written while it was read.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from carag.audit._notes import SHARED_AT, remembered
from carag.audit._shared import LOG, Snapshot
from carag.audit._sqlite import read_only
from carag.audit.log.sqlite import RECORD_TABLES
from carag.audit.log.stored import END, SHARED_TABLES, START, Stored
from carag.audit.records.record import Record
from carag.audit.records.upkeep import KeyAction, KeyChange
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import VerifierKey
from carag.audit.tlog.log_verifier import LogVerifier, signed_by_others
from carag.audit.tlog.note import Note
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from carag.audit.tlog.note import NoteKey


class LogReader(Stored):
    """A log opened for reading, in one fixed state.

    ``directory`` holds ``audit.db``, or ``shared.url`` of a log in PostgreSQL. Give ``vkey`` from a source you trust:
    the key in the directory can be replaced together with the log.

    Raises AuditUnavailable if there is no readable log, its name differs from the key's, or its newest checkpoint is
    signed by a key that, according to the log's own records, replaced another key, which only a key or receipt from
    outside can confirm; InvalidArgument if ``vkey`` is not an Ed25519 vkey; CorruptFile if its newest checkpoint is
    missing, malformed, or not signed by the key.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, Recovery
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with AuditLog.open(directory) as log:
    ...         receipt = log.append(Recovery("DRILL"))
    ...     with LogReader(directory, vkey=log.vkey) as reader:
    ...         reader.size, reader.prove(0) == receipt.proof
    (1, True)
    """

    def __init__(self, directory: str | PathLike[str], *, vkey: str | None = None) -> None:
        self._file = Path(directory) / "audit.db"
        self._where = str(self._file)
        self.key = key_of(Path(directory), vkey)
        self.trusts_own_key = vkey is None
        self._db: Any
        if (address := remembered(Path(directory), SHARED_AT)) is not None:
            self._db, self._wal = Snapshot(address, LOG, "SELECT FROM checkpoint LIMIT 1"), True
            self._where, self.tables, self._stream = self._db.where, SHARED_TABLES, self._db.stream
        else:
            self._before = self._files()
            self._wal = self._before[1] is not None
            self._db = self._begun()
            self._stream = self._db.execute
        try:
            self.checkpoint = self._newest_checkpoint()
        except BaseException:
            self._db.close()
            raise
        self.tree = Checkpoint.parse(self.checkpoint.text)

    @property
    def size(self) -> int:
        """Number of records that the newest checkpoint covers."""
        return self.tree.size

    @property
    def where(self) -> str:
        """Path of the file, or server and schema."""
        return self._where

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; InvalidArgument beyond the checkpoint, CorruptFile if the record is missing."""
        if not 0 <= seq < self.size:
            raise InvalidArgument(f"there is no record {seq}; the log has {self.size}, numbered from 0")
        return super().body(seq)

    def checkpoints(self) -> Iterator[tuple[int, str]]:
        """Yield (size, note) of all checkpoints that are kept, oldest first."""
        query = f"SELECT size, note FROM {self.tables[1]} WHERE size >= ? AND size < ? ORDER BY size"  # noqa: S608
        yield from self._rows(query, START, END)

    def prove(self, seq: int) -> str:
        """Prove a record under the newest checkpoint, as a ``c2sp.org/tlog-proof@v1`` text.

        Raises InvalidArgument if the checkpoint covers no such record; CorruptFile if the stored nodes do not lead to
        the signed root.
        """
        with self._unchanged():
            return self.inclusion(seq, self.checkpoint)

    def consistency(self, old: int) -> str:
        """Prove that the first ``old`` records are unchanged, as a ``c2sp.org/tlog-witness`` request body.

        Raises InvalidArgument unless ``0 < old <= size``; CorruptFile if the stored nodes do not lead to the signed
        root.
        """
        with self._unchanged():
            return self.extension(old, self.checkpoint)

    @contextlib.contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Do not call a file corrupt that was merely written to meanwhile."""
        try:
            yield
        except CorruptFile:
            self.check_unchanged()
            raise

    def check_unchanged(self) -> None:
        """Raise AuditUnavailable if the file was written to, although no writer had it open."""
        if not self._wal and self._files() != self._before:
            raise AuditUnavailable(f"{self._where} was written to while it was being read; read it again")

    def close(self) -> None:
        """Close the file; idempotent."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _files(self) -> list[tuple[int, int, int] | None]:
        """Identify the files: the database, and the write-ahead log if it is not empty."""
        found: list[tuple[int, int, int] | None] = []
        for path in (self._file, Path(f"{self._file}-wal")):
            try:
                stat = path.stat()
            except FileNotFoundError:
                stat = None
            except OSError as error:
                raise AuditUnavailable(f"{path} cannot be read: {error.strerror}") from error
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat and stat.st_size else None)
        if found[0] is None:
            raise AuditUnavailable(f"{self._where} is missing or empty; name the directory of an audit log")
        return found

    def _begun(self) -> sqlite3.Connection:
        with self._reading():
            db = read_only(self._file, wal=self._wal)
            try:
                self._check_tables(db)
            except BaseException:
                db.close()
                raise
        return db

    def _check_tables(self, db: sqlite3.Connection) -> None:
        # Compare the statements themselves: a view or virtual table of that name could execute an attacker's code.
        found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE type = 'table'")}
        if not set(RECORD_TABLES) <= found:
            raise AuditUnavailable(f"{self._where} does not have the tables of an audit log")

    def _newest_checkpoint(self) -> Note:
        text = self.newest()
        with contextlib.suppress(CorruptFile):
            note = Note.parse(text)
            names = [signature.name for signature in note.signatures]
            if self.key.name not in names:
                raise AuditUnavailable(
                    f"{self._where} is the log {', '.join(names)}, not {self.key.name}; give the key of that log"
                )
            if self.key.signature_on(note) is None and (announced := self._announced(note)) is not None:
                # A history forged under another key can contain such a record too, so this verifies nothing.
                raise AuditUnavailable(
                    f"{self._where}: {signed_by_others(note, self.key)}. Record {announced} says that this key took "
                    "over, but a forger of the log could have written that too"
                )
        return open_checkpoint(text, self.key, f"{self._where}: the newest checkpoint")

    def _announced(self, note: Note) -> int | None:
        """Find the record by which a signer of this note became the log's key; by itself it proves nothing."""
        signers = {(one.name, one.key_id) for one in note.signatures}
        found = None
        for seq, body in self.bodies():
            if b'"kind":"key"' not in body:
                continue
            with contextlib.suppress(CorruptFile):
                event = Record.parse(body).event
                if isinstance(event, KeyChange) and event.action is KeyAction.ROTATE:
                    key = VerifierKey(self.key.name, event.public)
                    found = seq if (key.name, key.key_id) in signers else found
        return found

    def _one(self, query: str, *parameters: object) -> Any:
        with self._reading():
            return self._db.execute(query, parameters).fetchone()

    def _rows(self, query: str, start: int, stop: int) -> Iterator[Any]:
        run = self._stream if stop == END else self._db.execute
        with self._reading():
            for row in run(query, (start, stop)):  # noqa: UP028 - yield from would close the cursor, which fails once the file is closed
                yield row

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            hint = "; it was not closed: copy the directory to a place you can write to" if self._wal else ""
            raise AuditUnavailable(f"{self._where} cannot be read: {error}{hint}") from error


def open_checkpoint(text: str, key: NoteKey, what: str) -> Note:
    """Read a checkpoint and check that this key signed it.

    Raises CorruptFile if it is malformed, belongs to another log, or is not signed by the key; the message calls it
    ``what``.
    """
    try:
        note = Note.parse(text)
        checkpoint = Checkpoint.parse(note.text)
    except CorruptFile as error:
        raise CorruptFile(f"{what} cannot be read: {error}") from error
    if key.signature_on(note) is None:
        raise CorruptFile(f"{what} is not signed by the given key of the log: {signed_by_others(note, key)}")
    if not key.verifies(note):
        raise CorruptFile(f"{what} is not signed by {key.name}+{key.key_id.hex()}")
    if checkpoint.origin != key.name:
        raise CorruptFile(f"{what} belongs to the log {checkpoint.origin}, not {key.name}")
    return note


def key_of(directory: Path, vkey: str | None) -> LogVerifier:
    """Read the given vkeys, one per line, or else those in the log's directory.

    Raises InvalidArgument if a given vkey is not an Ed25519 vkey; AuditUnavailable if none is given and the directory
    has none.
    """
    if vkey is not None:
        return LogVerifier.parse(vkey)
    path = directory / "vkey"
    try:
        return LogVerifier.parse(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise AuditUnavailable(f"{path} cannot be read: {error}; give the log's vkey") from error
    except InvalidArgument as error:
        raise AuditUnavailable(f"{path}: {error}") from error
