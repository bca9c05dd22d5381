"""Define the tables of vectors in PostgreSQL, create them, and let an account use one collection.

``live`` has the current rows, in one partition per collection, so that each has its own statistics and indexes;
``past`` has ended versions, ``[e0, e1)``, which earlier epochs need in addition. ``word`` says which words have live
rows, and since when; ``change`` has the batches, each of which made one epoch; ``collection`` has the last epoch and is
written last. Rows of a load are in ``live`` at once, for the next epoch; ``loading`` has the load's position and the
number of its rows with each word.

Words, times, entities and audiences are ``bigint``, because all 32 bits of each are unsigned.

The owner of the tables sees all of them. Row-level security limits any other account to the collections that name it,
whatever the statement.
"""

from __future__ import annotations

from typing import Any, Final

from carag.errors import BackendUnavailable
from carag.postgres.locks import lock

FOREVER: Final = (1 << 63) - 1
"""The end of a word that still has rows."""
GONE: Final = -1
"""The number of rows of an epoch that cannot be asked for any more."""
_FORMAT: Final = "vectors of CARAG, format 2"
_PLAIN: Final = 1900
"""Greatest vector length that is kept in the row's page of 8 kB; longer ones are stored out of line, and are slower."""
_TABLES: Final = """
CREATE TABLE collection (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL UNIQUE,
    dim integer,
    epoch bigint NOT NULL DEFAULT 0,
    accounts name[] NOT NULL DEFAULT '{}'
);
CREATE TABLE change (
    collection integer NOT NULL REFERENCES collection,
    epoch bigint NOT NULL,
    batch text NOT NULL,
    at text NOT NULL DEFAULT pg_current_xact_id()::text || '@' || pg_current_wal_lsn()::text,
    rows bigint NOT NULL,
    PRIMARY KEY (collection, epoch),
    UNIQUE (collection, batch)
);
CREATE TABLE word (
    collection integer NOT NULL REFERENCES collection,
    word bigint NOT NULL,
    e0 bigint NOT NULL,
    e1 bigint NOT NULL,
    rows bigint NOT NULL,
    PRIMARY KEY (collection, e1, word)
);
CREATE TABLE live (
    collection integer NOT NULL,
    key bigint NOT NULL,
    e0 bigint NOT NULL,
    word bigint NOT NULL,
    public_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    entity bigint NOT NULL,
    audience bigint NOT NULL,
    v public.vector NOT NULL,
    PRIMARY KEY (collection, key)
) PARTITION BY LIST (collection);
CREATE INDEX ON live (collection, word);
CREATE TABLE past (
    LIKE live,
    e1 bigint NOT NULL,
    PRIMARY KEY (collection, e1, key)
);
CREATE INDEX ON past (collection, key);
CREATE TABLE loading (
    collection integer PRIMARY KEY REFERENCES collection,
    batch text NOT NULL,
    position bigint NOT NULL,
    words bigint[] NOT NULL,
    counts bigint[] NOT NULL
);
"""
_SEEN: Final = {
    "collection": "SELECT, UPDATE (epoch)",
    "change": "SELECT, INSERT, UPDATE (rows)",
    "word": "SELECT, INSERT, UPDATE",
    "live": "SELECT, INSERT, UPDATE, DELETE",
    "past": "SELECT, INSERT, DELETE",
    "loading": "SELECT, INSERT, UPDATE, DELETE",
}
"""What an account that is not the owner may do, within its collections."""
_OF_ITS_COLLECTIONS: Final = "collection = ANY (ARRAY(SELECT id FROM collection))"
"""Here, ``collection`` is read with the account's own rights."""


def make_tables(db: Any, schema: str) -> None:
    """Create schema and tables if they are missing; raise BackendUnavailable if the schema holds other tables."""
    from psycopg import sql

    found = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
    row = db.execute(found, (schema,)).fetchone()
    if row is None:
        # If two processes arrive at once, the second waits and finds what the first has created.
        lock(db, f"{_FORMAT} {schema}", 0)
        row = db.execute(found, (schema,)).fetchone()
    if row is None:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        db.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        for statement in _TABLES.split(";\n"):
            if statement.strip():
                db.execute(statement)
        for table in _SEEN:
            db.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            own = "current_user = ANY(accounts)" if table == "collection" else _OF_ITS_COLLECTIONS
            db.execute(f"CREATE POLICY own ON {table} USING ({own})")
        db.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(schema), _FORMAT))
    elif row[0] != _FORMAT:
        raise BackendUnavailable(
            f"schema {schema} of the database does not hold {_FORMAT!r}; name another schema"
        )


def make_collection(db: Any, collection: int, dim: int) -> None:
    """Create the partition of a collection whose length of vectors is now known."""
    from psycopg import sql

    name = sql.Identifier(f"live_{collection}")
    db.execute(
        sql.SQL("CREATE TABLE {} PARTITION OF live (CHECK (vector_dims(v) = {})) FOR VALUES IN ({})").format(
            name, dim, collection
        )
    )
    if dim <= _PLAIN:
        db.execute(sql.SQL("ALTER TABLE {} ALTER COLUMN v SET STORAGE PLAIN").format(name))
    db.execute("UPDATE collection SET dim = %s WHERE id = %s", (dim, collection))


def make_graph(db: Any, collection: int, dim: int, links: int, width: int) -> None:
    """Create the graph of a collection over all its rows."""
    from psycopg import sql

    db.execute(
        sql.SQL(
            "CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw ((v::vector({})) vector_ip_ops) "
            "WITH (m = {}, ef_construction = {})"
        ).format(
            sql.Identifier(graph_name(collection)), sql.Identifier(f"live_{collection}"), dim, links, width
        )
    )


def graph_name(collection: int) -> str:
    """Return the name of the index that is a collection's graph."""
    return f"live_{collection}_graph"


def let_use(db: Any, schema: str, collection: int, account: str) -> None:
    """Let an account read and change one collection, and see no other."""
    from psycopg import sql

    who = sql.Identifier(account)
    db.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), who))
    for table, rights in _SEEN.items():
        db.execute(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(rights), sql.Identifier(table), who))
    db.execute(
        "UPDATE collection SET accounts = array_append(array_remove(accounts, %(who)s), %(who)s) WHERE id = %(id)s",
        {"who": account, "id": collection},
    )
