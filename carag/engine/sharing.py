"""Share one store between processes: set it up, move an existing store there, open it from each process's directory.

Texts, labels and the log are in PostgreSQL. The keys, which the server must not learn, are copied from a directory that
already shares the store. What is moved goes to the server in one transaction, and is read back before the transaction
ends. Before that, the source is marked with ``moved.url`` and is never opened for writing again: a log that continued
in two places would be two logs with one key.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit import AuditLog
from carag.audit._files import WriterLock, write_atomically
from carag.audit._notes import MOVED_TO, SHARED_AT, remember, remembered
from carag.audit._shared import LOG, VALUES, check_alone, talking
from carag.audit.auditor.examine import examine_log
from carag.audit.log.shared import set_up_shared
from carag.audit.private.earlier import EARLIER
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import Frontier, peak_positions, stored_hash_index
from carag.audit.tlog.note import Note
from carag.engine.corpus import has_store, open_corpus
from carag.engine.rows import NATIVE, PLACE
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument
from carag.postgres.address import Address
from carag.postgres.connection import check_same_database, connected, not_durable
from carag.store.postgres import set_up
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Moved", "has_store", "move", "open_corpus", "share"]


_LONGEST: Final = 50
"""The longest name of a schema, in characters."""
_OTHERS: Final = ("corpus.db", "audit.db", "vkey")
"""Files of a directory that has, or had, a store of its own."""


def share(directory: Path, url: str, *, admin: str | None = None) -> Address:
    """Record that a directory's store is in PostgreSQL; given an administrator's address, set the store up there.

    ``url`` is ``postgresql://ROLE@HOST/DATABASE?schema=NAME``, the application's account, whose password is in
    ``~/.pgpass``. The administrator makes role, schemas, tables and grants; what is there is kept.
    """
    place = shared_place(url)
    check_new(directory, place)
    if admin is not None:
        with talking(admin), connected(admin) as db:
            set_up_shared(db, place.schema, place.role)
            set_up(db, place.schema, place.role)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    remember(directory, place, SHARED_AT)
    return place


def shared_place(url: str) -> Address:
    """Read the address of a shared store."""
    place = Address.parse(url)
    if len(place.schema) > _LONGEST:  # the server truncates longer names, so two names could become the same
        raise InvalidArgument(
            f"schema {place.schema!r} is longer than {_LONGEST} characters; name a shorter one"
        )
    return place


def check_new(directory: Path, place: Address) -> None:
    """Check that a directory has no store of its own, and shares no other."""
    if (known := remembered(directory, SHARED_AT)) not in (None, place):
        raise InvalidArgument(f"{directory} shares the store at {known}; name another directory")
    if known is None and (found := [name for name in _OTHERS if (directory / name).exists()]):
        raise InvalidArgument(
            f"{directory} holds {found[0]}, so it has a store of its own; name an empty directory, or move this store "
            f"there with: carag share URL --admin URL --from {directory} --store EMPTY"
        )


_KEYS: Final = ("audit.key", "private.key", "vkey")
_ANCHORS: Final = "anchors"
_TABLES: Final = {
    "": (
        "meta",
        "filings",
        "filing_ciks",
        "entity_sets",
        "chunks",
        "changes",
        "labels",
        "vectors",
        "embedded",
        "group_changes",
        "groups",
        "memberships",
        "audiences",
        "principals",
        "document_audiences",
        "label_audiences",
        "erased",
        "erased_labels",
    ),
    f"_{LOG}": ("record", "node", "checkpoint", "begun"),
    f"_{VALUES}": ("shelf", "holder", "value", "erased", "planned", "hold", "state"),
}
"""Maps the ending of a schema's name to its tables, each after the tables that it refers to."""
_IN_FILE: Final = {
    "record": "(SELECT seq, body FROM rec)",
    "checkpoint": "(SELECT size, note FROM cp)",
    # Left by a process that is gone: the next process to open the log ends what that one began.
    "begun": "(SELECT seq, 0 AS process FROM begun)",
}
"""Queries for tables of the server that the file does not have under the same name."""
_EMPTY: Final = {"meta": 1}
"""Rows in the tables of a new store: its epoch."""


class Moved(NamedTuple):
    """What :func:`move` found on the server at the end."""

    place: Address
    records: int
    passages: int


def move(source: Path, directory: Path, url: str, *, admin: str) -> Moved:
    """Move a store into PostgreSQL, and let a new directory share it; the same call finishes a run that was killed.

    ``source`` is a store in files that no process has open; it stays as it is, and can no longer be opened for writing.
    ``directory`` gets its keys. ``url`` is as for :func:`~carag.engine.sharing`; ``admin`` is the same database
    as an administrator.
    """
    place = shared_place(url)
    check_new(directory, place)
    if not (source / "corpus.db").exists() or not (source / "vkey").exists():
        raise InvalidArgument(
            f"{source} does not hold a store in files; name a store that carag init or ingest has made"
        )
    with ExitStack() as held:
        is_marked = _held(source, place, held)
        note = _checked(source)
        with talking(admin), connected(admin) as db:
            if (wrong := not_durable(db)) is not None:
                raise AuditUnavailable(f"the server {wrong}")
            set_up_shared(db, place.schema, place.role)
            set_up(db, place.schema, place.role)
            with closing(connected(place.url)) as own:
                check_same_database(own, db)
            if not (is_marked and _is_there(db, place.schema, note)):
                _transfer(db, place, source)
            passages = _count(db, place.schema, "chunks")
    _let_share(source, directory, place, note)
    return Moved(place, Checkpoint.parse(Note.parse(note).text).size, passages)


def _held(source: Path, place: Address, held: ExitStack) -> bool:
    """Lock everything; tell whether an earlier run has marked the store as moved to the same place."""
    if (known := remembered(source, MOVED_TO)) is None:
        held.enter_context(AuditLog.open(source))  # which first ends what a killed process left
        return False
    if known != place:
        raise InvalidArgument(f"{source} was moved to {known}, not to {place}; give the first of the two")
    held.callback(WriterLock(source / "audit.lock").release)
    return True


def _checked(source: Path) -> str:
    """Return the checkpoint of a sound log, after checking that the rows are where a shared store has them."""
    with CorpusStore.open(source / "corpus.db", create=False) as store:  # in this version's tables
        if (where := store.meta_get(PLACE) or NATIVE) != NATIVE:
            raise InvalidArgument(
                f"the rows of {source} are in {where}, which a shared store cannot have; move them back first, "
                "with carag "
                "backend copy and switch --to native"
            )
    found = examine_log(source)
    if found.verdict is not Verdict.VERIFIED or found.checkpoint is None:
        raise CorruptFile(f"the log of {source} fails its own checks, so nothing was moved: {found.reason}")
    return found.checkpoint


def _is_there(db: Any, schema: str, note: str) -> bool:
    tree = Checkpoint.parse(Note.parse(note).text)
    wanted = [stored_hash_index(level, n) for level, n in peak_positions(tree.size)]
    query = f"SELECT i, hash FROM {schema}_{LOG}.node WHERE i = ANY(%s)"  # noqa: S608 - a name that was checked
    found = {i: bytes(node) for i, node in db.execute(query, (wanted,)).fetchall()}
    if len(found) < len(wanted):
        return False
    return tree.size > 0 and Frontier(tree.size, [found[i] for i in wanted]).root() == tree.root


def _transfer(db: Any, place: Address, source: Path) -> None:
    """Copy all tables and read them back, in one transaction under the lock of the server's log."""
    is_whole = False
    try:
        with db.transaction():
            check_alone(db, f"{place.schema}_{LOG}", "moving a store")
            _check_empty(db, place)
            remember(source, place, MOVED_TO)
            for part, tables in _TABLES.items():
                with closing(_file(source, part)) as file:
                    for table in tables:
                        _copy(file, db, f"{place.schema}{part}.{table}", table)
            is_whole = True
    except BaseException:
        if not is_whole:  # otherwise the server may have everything, which the next run finds out
            (source / MOVED_TO).unlink(missing_ok=True)
        raise


def _check_empty(db: Any, place: Address) -> None:
    for part, tables in _TABLES.items():
        for table in tables:
            if _count(db, f"{place.schema}{part}", table) > _EMPTY.get(table, 0):
                raise InvalidArgument(
                    f"{place} has a store already, with rows in {table}; name a new schema: ?schema=NAME"
                )


def _file(source: Path, part: str) -> sqlite3.Connection:
    """Open the file that holds a part's tables; values may still be where versions up to 0.3 kept them."""
    name = "audit.db" if part else "corpus.db"
    if part == f"_{VALUES}" and (source / EARLIER).is_file():
        name = EARLIER
    return sqlite3.connect(f"{(source / name).absolute().as_uri()}?mode=ro", uri=True)


def _copy(file: sqlite3.Connection, db: Any, target: str, table: str) -> None:
    rows = f"SELECT * FROM {_IN_FILE.get(table, table)}"  # noqa: S608 - names of this file, as below
    columns = ", ".join(name for name, *_ in file.execute(f"{rows} LIMIT 0").description)
    if table in _EMPTY:
        db.execute(f"DELETE FROM {target}")  # noqa: S608
    with db.cursor() as cursor, cursor.copy(f"COPY {target} ({columns}) FROM STDIN") as copy:
        for row in file.execute(rows):
            copy.write_row(row)
    with db.cursor(name="back") as back:
        back.execute(f"SELECT {columns} FROM {target}")  # noqa: S608
        if _digest(back) != _digest(file.execute(rows)):
            raise CorruptFile(
                f"the server returned other rows of {table} than it was given; nothing was moved"
            )


def _digest(rows: Iterable[tuple[Any, ...]]) -> tuple[int, int]:
    """Return the number of rows and the sum of their hashes, which does not depend on the order of the rows."""
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.sha256(repr(tuple(row)).encode()).digest(), "big")
    return count, total


def _count(db: Any, schema: str, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone()[0])  # noqa: S608


def _let_share(source: Path, directory: Path, place: Address, note: str) -> None:
    """Let a directory share the store, and copy what the directory lacks: keys, evidence from anchors, a checkpoint."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    remember(directory, place, SHARED_AT)  # first, because keys without it would begin another log
    (directory / _ANCHORS).mkdir(mode=0o700, exist_ok=True)
    anchored = [f"{_ANCHORS}/{one.name}" for one in sorted((source / _ANCHORS).glob("*"))]
    for name in (*anchored, *_KEYS):
        if not (directory / name).exists():  # an erasure since then has replaced a key
            data = (source / name).read_bytes()
            write_atomically(directory / name, data, (source / name).stat().st_mode & 0o777)
    if not (directory / "pinned").exists():
        write_atomically(directory / "pinned", note.encode(), 0o644)
