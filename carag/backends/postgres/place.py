"""Open a collection in PostgreSQL: create what is missing, and read versions and the account's rights."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from carag.backends.postgres.schema import graph_name, make_collection, make_tables
from carag.backends.postgres.wire import adapt_vectors
from carag.errors import BackendUnavailable, InvalidArgument
from carag.limits import check_text, quoted
from carag.postgres.address import driver
from carag.visible import logger

_logger = logger(__name__)

_BEFORE_ALL: Final = ""
"""Batch name of epoch 0; no other batch name can be empty."""
_MAX_DIM: Final = 2000
"""The limit of a graph in pgvector."""
_LONGEST_BATCH: Final = 1000
"""Most characters in the name of a batch."""


class PostgresCollection(NamedTuple):
    """A collection as this process knows it."""

    id: int
    shard: str
    """The identifiers of the server and of the database on it."""
    version: str
    dim: int | None
    """None before the first batch."""
    has_graph: bool
    is_fenced: bool
    """Whether row-level security applies to this account."""
    is_owner: bool
    is_superuser: bool


def open_place(db: Any, schema: str, collection: str, dim: int | None) -> PostgresCollection:
    """Open a collection, or create it.

    Raises BackendUnavailable if the account may not, or the server lacks pgvector; InvalidArgument if its vectors have
    another length.
    """
    errors = driver().errors
    try:
        make_tables(db, schema)
        adapt_vectors(db)  # the type may not have existed when this connection was made
        _make_collection(db, collection)
    except errors.InsufficientPrivilege:
        raise BackendUnavailable(
            f"the account may not use or create schema {schema}, or the collection {quoted(collection)} in it; have "
            "the owner open the collection with dim, and grant the account its use with let_use()"
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise BackendUnavailable(
            "the server does not have the extension `vector`; install pgvector 0.8 or later on it"
        ) from None
    place = read_place(db, collection)
    if dim is None:
        return place
    if place.dim is None:
        db.execute(
            "SELECT FROM collection WHERE id = %s FOR UPDATE", (place.id,)
        )  # a second process finds the collection created
        if dim_of(db, place.id) is None:
            make_place(db, place.id, dim)
        place = read_place(db, collection)
    check_dim(dim, place.dim)
    return place


def read_place(db: Any, collection: str) -> PostgresCollection:
    """Read an existing collection."""
    row = db.execute(
        "SELECT c.id, (SELECT system_identifier FROM pg_control_system()) || '/' || d.oid, c.dim, "
        "split_part(current_setting('server_version'), ' ', 1), e.extversion, row_security_active('live'), "
        "(SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'live'::regclass), r.rolsuper "
        "FROM collection c, pg_database d, pg_extension e, pg_roles r "
        "WHERE c.name = %s AND d.datname = current_database() AND e.extname = 'vector' "
        "AND r.rolname = current_user",
        (collection,),
    ).fetchone()
    if row is None:
        raise BackendUnavailable(
            f"the account may not see the collection {quoted(collection)}; have its owner call let_use()"
        )
    own, shard, dim, server, extension, *rights = row
    check_version(extension)
    (has_graph,) = db.execute(
        "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)",
        (graph_name(own),),
    ).fetchone()
    return PostgresCollection(
        own, shard, f"postgresql {server}, pgvector {extension}", dim, has_graph, *rights
    )


def check_version(extension: str) -> None:
    """Refuse a pgvector that is too old, and warn about one with a known vulnerability."""
    version = tuple(int(part) for part in re.findall(r"\d+", extension)[:3])
    if version < (0, 8):
        raise BackendUnavailable(f"pgvector is {extension}; want 0.8 or later, which has iterative scans")
    if version < (0, 8, 7):
        _logger.warning(
            "pgvector %s can write beyond a buffer while building an index; update the server to "
            "0.8.7 or later",
            extension,
        )


def dim_of(db: Any, own: int) -> int | None:
    """Read the length of a collection's vectors; None before the first batch."""
    row = db.execute("SELECT dim FROM collection WHERE id = %s", (own,)).fetchone()
    return None if row is None else row[0]


def make_place(db: Any, own: int, dim: int) -> None:
    """Create the partition for a collection's vectors."""
    if not 1 <= dim <= _MAX_DIM:
        raise InvalidArgument(f"vectors have length {dim}; want 1 to {_MAX_DIM}")
    make_collection(db, own, dim)


def check_dim(dim: int, known: int | None) -> None:
    """Check the length of vectors against the collection's, if known."""
    if known is not None and dim != known:
        raise InvalidArgument(f"vectors have length {dim}; those of the collection have {known}")


def check_batch(batch: str) -> None:
    """Check a batch name."""
    check_text("batch", batch, _LONGEST_BATCH)
    if not batch:
        raise InvalidArgument("batch is empty; want a name, so that the batch can be repeated")


def lock_epoch(db: Any, own: int) -> int:
    """Lock a collection for changes until the transaction ends; return its last epoch."""
    row = db.execute("SELECT epoch FROM collection WHERE id = %s FOR UPDATE", (own,)).fetchone()
    if row is None:
        raise BackendUnavailable("the collection is gone; open it again")
    return int(row[0])


def _make_collection(db: Any, collection: str) -> None:
    is_there = "SELECT EXISTS (SELECT FROM collection WHERE name = %s)"
    if not db.execute(is_there, (collection,)).fetchone()[0]:
        made = "INSERT INTO collection (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id"
        row = db.execute(made, (collection,)).fetchone()
        if row is not None:
            first = "INSERT INTO change (collection, epoch, batch, rows) VALUES (%s, 0, %s, 0)"
            db.execute(first, (row[0], _BEFORE_ALL))
