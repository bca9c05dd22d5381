"""Define the tables of a store file, tell it from other files, and translate SQLite's errors.

Nothing here depends on the meaning of a row.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from carag.errors import CaragError, CorruptFile, StoreLocked
from carag.store._audiences import AUDIENCE_TABLES
from carag.store._group_tables import GROUP_TABLES
from carag.store.erasures import ERASURE_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APPLICATION_ID: Final = int.from_bytes(b"CRAG")
"""SQLite's application id in the file's header, by which ``file`` and SQLite recognise a store."""

SCHEMA_VERSION: Final = 5
"""SQLite's user version of a store: the version of these tables. Opening upgrades a store of version 1, whose sets of
CIKs had no metadata, of version 2, which did not note the text of each vector, of version 3, which had no groups and
no audiences, and of version 4, which could not erase.
"""

PAGE_BYTES: Final = 16384
"""Bytes of a page. A row takes about 1 KiB; a page of 4 KiB would hold three rows and waste the rest."""

_ENTITY_SETS: Final = """
    -- What passages are about: a single CIK below the first number is its own, all else has one here.
    CREATE TABLE entity_sets (
        number INTEGER PRIMARY KEY CHECK (number BETWEEN 0x80000000 AND 0xFFFFFFFF),
        ciks TEXT NOT NULL,                 -- JSON, ascending; no row is ever changed or deleted
        metadata TEXT NOT NULL,             -- JSON: the fields that the profile declares
        UNIQUE (ciks, metadata)
    ) STRICT"""

_EMBEDDED: Final = """
    -- By the SHA-256 of a text that was embedded, heading included, the first passage with its vector. A store has one
    -- embedder, so that a text has one vector.
    CREATE TABLE embedded (
        sha256 BLOB PRIMARY KEY,
        key INTEGER NOT NULL REFERENCES vectors
    ) STRICT, WITHOUT ROWID"""

TABLES: Final = (
    """
    CREATE TABLE meta (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """
    CREATE TABLE filings (
        filing INTEGER PRIMARY KEY,
        accession_number TEXT NOT NULL,
        version INTEGER NOT NULL,
        superseded_by_version INTEGER,      -- NULL in the current version
        form TEXT NOT NULL,
        company TEXT NOT NULL,
        filed TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        facts TEXT NOT NULL,                -- JSON
        causes TEXT NOT NULL,               -- JSON
        public_at_source TEXT NOT NULL,
        quarantine_code TEXT,               -- NULL where a label was established
        quarantine_text TEXT,
        history TEXT NOT NULL,              -- JSON: the events its current labels are made of
        UNIQUE (accession_number, version)
    ) STRICT""",
    """
    CREATE UNIQUE INDEX one_current_version ON filings (accession_number)
        WHERE superseded_by_version IS NULL""",
    """
    CREATE VIEW current_filings AS SELECT * FROM filings WHERE superseded_by_version IS NULL""",
    # CIKs of every filing, superseded versions included: an event concerns filings that share a CIK.
    """
    CREATE TABLE filing_ciks (
        cik INTEGER NOT NULL,
        filing INTEGER NOT NULL REFERENCES filings,
        PRIMARY KEY (cik, filing)
    ) STRICT, WITHOUT ROWID""",
    """
    CREATE INDEX ciks_of_filing ON filing_ciks (filing)""",
    _ENTITY_SETS,
    """
    CREATE TABLE chunks (
        key INTEGER PRIMARY KEY,
        chunk_id TEXT NOT NULL UNIQUE,
        filing INTEGER NOT NULL REFERENCES filings,
        document TEXT NOT NULL,
        start_offset INTEGER NOT NULL,
        end_offset INTEGER NOT NULL,
        -- The label by itself, before any event:
        word INTEGER NOT NULL CHECK (word BETWEEN 0 AND 0xFFFFFFFF),
        public_at INTEGER NOT NULL CHECK (public_at BETWEEN 0 AND 0xFFFFFFFF),
        expires_at INTEGER NOT NULL CHECK (expires_at BETWEEN public_at AND 0xFFFFFFFF),
        entity INTEGER NOT NULL CHECK (entity BETWEEN 0 AND 0xFFFFFFFF),  -- a CIK, or a number of entity_sets
        text_sha256 BLOB NOT NULL,
        text TEXT NOT NULL
    ) STRICT""",
    """
    CREATE INDEX chunks_of_filing ON chunks (filing)""",
    # One row per transaction that opened or closed labels: when it became known, and with which filing.
    """
    CREATE TABLE changes (
        known_at INTEGER PRIMARY KEY,       -- microseconds since 1970, strictly rising
        filing INTEGER NOT NULL REFERENCES filings,
        opened INTEGER NOT NULL,
        closed INTEGER NOT NULL
    ) STRICT""",
    # Labels and vectors are stored apart from the text, so that reading all labels, or all vectors, reads nothing
    # else; therefore the entity is repeated here.
    """
    CREATE TABLE labels (
        label INTEGER PRIMARY KEY,          -- the index's key; never reused, for no row is ever deleted
        key INTEGER NOT NULL REFERENCES chunks,
        word INTEGER NOT NULL CHECK (word BETWEEN 0 AND 0xFFFFFFFF),
        valid_from INTEGER NOT NULL CHECK (valid_from BETWEEN 0 AND 0xFFFFFFFF),
        valid_to INTEGER NOT NULL CHECK (valid_to BETWEEN valid_from AND 0xFFFFFFFF),
        entity INTEGER NOT NULL CHECK (entity BETWEEN 0 AND 0xFFFFFFFF),
        known_from INTEGER NOT NULL REFERENCES changes,
        known_to INTEGER REFERENCES changes CHECK (known_to > known_from),
        causes TEXT NOT NULL                -- JSON: [bit, accession number] of every state bit
    ) STRICT""",
    """
    CREATE INDEX labels_of_chunk ON labels (key)""",
    """
    CREATE INDEX closed_labels ON labels (known_to) WHERE known_to IS NOT NULL""",
    """
    CREATE TABLE vectors (
        key INTEGER PRIMARY KEY REFERENCES chunks,
        vector BLOB NOT NULL                -- float32, little-endian
    ) STRICT""",
    _EMBEDDED,
    *GROUP_TABLES,
    *AUDIENCE_TABLES,
    *ERASURE_TABLES,
    """
    INSERT INTO meta (name, value) VALUES ('epoch', '0')""",
)


def connect(path: Path, *, timeout: float) -> sqlite3.Connection:
    """Open an existing file with all of SQLite's defences, because the file may be malicious."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    for pragma in ("foreign_keys = ON", "trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def create_or_check(connection: sqlite3.Connection, path: Path, *, create: bool) -> None:
    """Create the tables in an empty file; raise CorruptFile for any other file that is not a store of this version."""
    if create and _is_blank(connection):
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _use_wal(connection, path)
        _create(connection)
    application, version = _identity(connection)
    if application != APPLICATION_ID:
        raise CorruptFile(
            f"{path} is an SQLite file, but not a corpus store; restore a backup, or choose another path"
        )
    if version in range(1, SCHEMA_VERSION):
        _bring_up(connection, path)
    elif version != SCHEMA_VERSION:
        raise CorruptFile(
            f"{path} has store schema {version}, but this CARAG reads {SCHEMA_VERSION}; use the CARAG that wrote "
            "it, or ingest into a new store"
        )
    _check_definitions(connection, path)
    _use_wal(connection, path)


def _check_definitions(connection: sqlite3.Connection, path: Path) -> None:
    if _definitions(connection) != _expected_definitions():
        raise CorruptFile(
            f"{path} has tables, views or triggers that do not belong in a store; restore a backup"
        )


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    """Give the sets of version 1 empty metadata, note the text of each new vector, add the tables of later versions.

    The texts of existing vectors are unknown, because a profile's heading may have changed since. Either everything is
    changed or nothing.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _identity(connection)[1]  # another process may have done it in the meantime
        if version == 1:
            connection.execute("ALTER TABLE entity_sets RENAME TO sets_of_version_1")
            connection.execute(_ENTITY_SETS)
            connection.execute("INSERT INTO entity_sets SELECT number, ciks, '{}' FROM sets_of_version_1")
            connection.execute("DROP TABLE sets_of_version_1")
        if version < 3:
            connection.execute(_EMBEDDED)
        if version < 4:
            for statement in (*GROUP_TABLES, *AUDIENCE_TABLES):
                connection.execute(statement)
        if version < SCHEMA_VERSION:
            for statement in ERASURE_TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            _check_definitions(connection, path)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _is_blank(connection: sqlite3.Connection) -> bool:
    return _identity(connection) == (0, 0) and not _definitions(connection)


def _identity(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def _definitions(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()


def _expected_definitions() -> list[tuple[str, ...]]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        _create(connection)
        return _definitions(connection)
    finally:
        connection.close()


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_blank(connection):  # another process may have created them in the meantime
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise CaragError(
            f"{path} lies where SQLite cannot keep a write-ahead log; choose a local file system"
        )


@contextmanager
def translating(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    except OSError as error:
        raise CaragError(
            f"cannot open {path}: {error.strerror}; check the path and its permissions"
        ) from error


def _translated(error: sqlite3.Error, path: Path) -> CaragError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF  # the low byte is the primary code
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(f"{path} is in use by another writer; wait until it is done, or stop it")
    damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT) or path.is_dir()
    if damaged or "decode" in str(error) or "malformed JSON" in str(error):
        return CorruptFile(
            f"{path} is damaged or not a corpus store ({error}); restore a backup, or delete it and ingest again"
        )
    if code == sqlite3.SQLITE_FULL:
        return CaragError(
            f"no space is left to write {path}, and nothing was stored; free some space and run again"
        )
    return CaragError(f"{path}: {error}; nothing was stored")
