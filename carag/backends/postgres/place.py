"""Open a collection in PostgreSQL: make what is missing, and read what this account may do there, and with what."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from carag.backends.postgres.link import driver
from carag.backends.postgres.schema import graph_name, make_collection, make_tables
from carag.backends.postgres.wire import adapt_vectors
from carag.errors import BackendUnavailable, InvalidArgument
from carag.limits import check_text, quoted
from carag.visible import logger

__all__ = [
    "Place",
    "check_batch",
    "check_dim",
    "check_version",
    "dim_of",
    "lock_epoch",
    "make_place",
    "open_place",
    "read_place",
]

_logger = logger(__name__)

_BEFORE_ALL: Final = ""
"""Name of the batch that makes epoch 0; no other can be empty."""
_MAX_DIM: Final = 2000
"""That a graph of pgvector takes."""
_LONGEST_BATCH: Final = 1000
"""Characters of the name of a batch."""


class Place(NamedTuple):
    """A collection, as this process knows it."""

    id: int
    shard: str
    """The server's own number, and that of the database on it."""
    version: str
    dim: int | None
    """None before the first batch."""
    has_graph: bool
    is_fenced: bool
    """Whether row-level security holds for this account."""


def open_place(db: Any, schema: str, collection: str, dim: int | None) -> Place:
    """Open a collection, or make it.

    Raises
    ------
    BackendUnavailable
        If the account may not, or the server does not have pgvector.
    InvalidArgument
        If its vectors have another length.
    """
    errors = driver().errors
    try:
        make_tables(db, schema)
        adapt_vectors(db)  # a type that this connection may not have known when it was made
        _make_collection(db, collection)
    except errors.InsufficientPrivilege:
        raise BackendUnavailable(
            f"the account may not use or make schema {schema}, or the collection {quoted(collection)} in it; have "
            "their owner open it with dim, and let_use() the account"
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise BackendUnavailable(
            "the server does not have the extension vector; install pgvector 0.8 or later on it"
        ) from None
    place = read_place(db, collection)
    if dim is None:
        return place
    if place.dim is None:
        db.execute(
            "SELECT FROM collection WHERE id = %s FOR UPDATE", (place.id,)
        )  # who comes second finds it made
        if dim_of(db, place.id) is None:
            make_place(db, place.id, dim)
        place = read_place(db, collection)
    check_dim(dim, place.dim)
    return place


def read_place(db: Any, collection: str) -> Place:
    """Read a collection that there is."""
    row = db.execute(
        "SELECT c.id, (SELECT system_identifier FROM pg_control_system()) || '/' || d.oid, c.dim, "
        "split_part(current_setting('server_version'), ' ', 1), e.extversion, row_security_active('live') "
        "FROM collection c, pg_database d, pg_extension e "
        "WHERE c.name = %s AND d.datname = current_database() AND e.extname = 'vector'",
        (collection,),
    ).fetchone()
    if row is None:
        raise BackendUnavailable(
            f"the account may not see the collection {quoted(collection)}; have its owner let_use() the account"
        )
    own, shard, dim, server, extension, is_fenced = row
    check_version(extension)
    (has_graph,) = db.execute(
        "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)",
        (graph_name(own),),
    ).fetchone()
    return Place(own, shard, f"postgresql {server}, pgvector {extension}", dim, has_graph, is_fenced)


def check_version(extension: str) -> None:
    """Refuse a pgvector that is too old, and warn of one with a known hole."""
    version = tuple(int(part) for part in re.findall(r"\d+", extension)[:3])
    if version < (0, 8):
        raise BackendUnavailable(
            f"pgvector is {extension}; want 0.8 or later, whose scans go on until enough"
        )
    if version < (0, 8, 7):
        _logger.warning(
            "pgvector %s can write beyond a buffer while it builds an index; update the server to "
            "0.8.7 or later",
            extension,
        )


def dim_of(db: Any, own: int) -> int | None:
    """Read the length of a collection's vectors; None before the first batch."""
    row = db.execute("SELECT dim FROM collection WHERE id = %s", (own,)).fetchone()
    return None if row is None else row[0]


def make_place(db: Any, own: int, dim: int) -> None:
    """Make room for the vectors of a collection, of a length."""
    if not 1 <= dim <= _MAX_DIM:
        raise InvalidArgument(f"vectors have length {dim}; want 1 to {_MAX_DIM}")
    make_collection(db, own, dim)


def check_dim(dim: int, known: int | None) -> None:
    """Check the length of vectors against that of the collection, if it has one."""
    if known is not None and dim != known:
        raise InvalidArgument(f"vectors have length {dim}; those of the collection have {known}")


def check_batch(batch: str) -> None:
    """Check the name of a batch."""
    check_text("batch", batch, _LONGEST_BATCH)
    if not batch:
        raise InvalidArgument("batch is empty; want a name, by which it can be repeated")


def lock_epoch(db: Any, own: int) -> int:
    """Wait for one's turn to change a collection, until the transaction ends; return its last epoch."""
    row = db.execute("SELECT epoch FROM collection WHERE id = %s FOR UPDATE", (own,)).fetchone()
    if row is None:
        raise BackendUnavailable("the collection is gone; open it anew")
    return int(row[0])


def _make_collection(db: Any, collection: str) -> None:
    is_there = "SELECT EXISTS (SELECT FROM collection WHERE name = %s)"
    if not db.execute(is_there, (collection,)).fetchone()[0]:
        made = "INSERT INTO collection (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id"
        row = db.execute(made, (collection,)).fetchone()
        if row is not None:
            first = "INSERT INTO change (collection, epoch, batch, rows) VALUES (%s, 0, %s, 0)"
            db.execute(first, (row[0], _BEFORE_ALL))
