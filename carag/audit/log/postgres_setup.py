"""Set up a log in PostgreSQL: create tables and grants, note the server in a log's directory, copy it to a file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.audit._files import write_atomically
from carag.audit.log.backend import Batch
from carag.audit.log.postgres import (
    COLUMNS,
    CONNECT_SECONDS,
    DEFAULT_SCHEMA,
    check_name,
    failing,
    psycopg_driver,
)
from carag.audit.log.sqlite import SqliteBackend
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import Node, stored_hash_count
from carag.audit.tlog.note import Note
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    import os

    from carag.audit.log.postgres import PostgresReader

__all__ = ["copy_to", "remember", "remembered", "role_of", "set_up"]

_REMEMBERED: Final = "evidence.url"
"""Name of the file in a log's directory that holds the server's URL."""
_PAGE_ROWS: Final = 1000
"""Rows copied at a time."""


def set_up(url: str, *, role: str, schema: str = DEFAULT_SCHEMA) -> None:
    """Create the tables, and grant a role the privileges that the log needs: to insert and to read.

    Run once, by an administrator who is not that role. Existing tables stay unchanged. The role is created if it is
    missing, able to log in and without a password: give it one, or another way to authenticate.

    Parameters
    ----------
    url : str
        ``postgresql://...`` as an administrator.
    role : str
        The role the application connects as.
    schema : str
        A schema for this log alone.

    Raises
    ------
    InvalidArgument
        If a name is not lower case letters, digits and underscores.
    AuditUnavailable
        If the server refuses.
    MissingExtra
        If psycopg is not installed.
    """
    for name in (role, schema):
        check_name(name)
    driver = psycopg_driver()
    with failing(url), driver.connect(url, connect_timeout=CONNECT_SECONDS) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            db.execute(f"CREATE ROLE {role} LOGIN")
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for table, columns in COLUMNS.items():
            (key, kind), *rest = columns.items()
            more = "".join(f", {name} {of} NOT NULL" for name, of in rest)
            db.execute(f"CREATE TABLE IF NOT EXISTS {schema}.{table} ({key} {kind} PRIMARY KEY{more})")
            db.execute(f"REVOKE ALL ON {schema}.{table} FROM PUBLIC, {role}")
            db.execute(f"GRANT SELECT, INSERT ON {schema}.{table} TO {role}")
        db.execute(f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {role}")
        db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")


def remember(directory: str | os.PathLike[str], url: str, *, schema: str = DEFAULT_SCHEMA) -> None:
    """Note in a log's directory that its records are on a server, so that opening the directory is enough.

    Parameters
    ----------
    directory : path
        Directory of a log that does not exist yet, or whose records are on that server.
    url, schema : str
        As in :func:`backend_at`; without a password, which belongs in ``~/.pgpass`` or a service file.

    Raises
    ------
    InvalidArgument
        If the URL is invalid or holds a password, or the log has its records in ``audit.db``.
    """
    check_name(schema)
    home = Path(directory)
    role_of(url)
    if (home / "audit.db").exists():
        raise InvalidArgument(f"{home} has its evidence in audit.db; a log does not move, found a new one")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(home / _REMEMBERED, f"{url}\n{schema}\n".encode())


def remembered(directory: Path) -> tuple[str, str] | None:
    """Return the URL and the schema that :func:`remember` noted; None for a log in files.

    Raises
    ------
    CorruptFile
        If the note is malformed.
    """
    note = directory / _REMEMBERED
    if not note.exists():
        return None
    try:
        url, schema = note.read_text("utf-8").splitlines()
        check_name(schema)
    except ValueError as error:
        raise CorruptFile(f"{note} does not name a server and a schema; write it again") from error
    return url, schema


def role_of(url: str) -> str:
    """Return the role in a URL.

    Raises
    ------
    InvalidArgument
        If it is not the URL of a server, names no role, or holds a password.
    """
    driver = psycopg_driver()
    try:
        fields = driver.conninfo.conninfo_to_dict(url)
    except driver.Error:
        fields = {}
    if not url.startswith(("postgresql://", "postgres://")) or "password" in fields or "user" not in fields:
        raise InvalidArgument("want postgresql://ROLE@HOST/DATABASE, and the password in ~/.pgpass")
    return str(fields["user"])


def copy_to(source: PostgresReader, path: str | os.PathLike[str]) -> int:
    """Copy the records into an ``audit.db``, for auditors or as a backup.

    The copy is of the newest checkpoint when it starts; appends continue meanwhile.

    Parameters
    ----------
    source : PostgresReader
    path : path
        A file that does not exist yet.

    Returns
    -------
    int
        Number of records copied.

    Raises
    ------
    InvalidArgument
        If the file exists.
    CorruptFile
        If records or nodes are missing on the server.
    """
    target = Path(path)
    if target.exists():
        raise InvalidArgument(f"{target} is there already; name another file")
    note = source.checkpoint()
    size = Checkpoint.parse(Note.parse(note).text).size
    open_begins = set(source.unended())
    with contextlib.closing(SqliteBackend(target, create=True, empty=note)) as file:
        for first in range(0, size, _PAGE_ROWS):
            stop = min(first + _PAGE_ROWS, size)
            bodies = [body for _, body in source.bodies(first, stop)]
            start, end = stored_hash_count(first), stored_hash_count(stop)
            nodes = [Node(0, i, value) for i, value in source.nodes(start, end)]
            if (len(bodies), len(nodes)) != (stop - first, end - start):
                raise CorruptFile(f"{source.where} lacks records or nodes below {stop}; restore it")
            begun = [seq for seq in open_begins if first <= seq < stop]
            file.append(Batch(first, bodies, nodes, note, begun))
    return size
