"""A PostgreSQL database with shared stores, as an administrator sets them up and applications open them."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING, Any, Final

from carag.engine.sharing import share
from carag.store.postgres import PostgresStore, set_up

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres import Database

ROLE: Final = "carag_app"
KEYS: Final = ("audit.key", "vkey", "private.key")
_NUMBERS = itertools.count()


class SharedServer:
    """A database for stores that several processes share."""

    def __init__(self, database: Database) -> None:
        self.database, self.url = database, database.url
        self.alter(
            f"DO $$ BEGIN CREATE ROLE {ROLE} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
        )

    def admin(self) -> Any:
        return self.database.connect()

    def alter(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute statements as the administrator; return the rows of the last one."""
        with self.admin() as db:
            done = [db.execute(statement) for statement in statements][-1]
            return done.fetchall() if done.description else []

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.database.as_account(ROLE), autocommit=True)

    def a_schema(self) -> str:
        return f"shared_{self.database.name}_{next(_NUMBERS)}"

    def address(self, schema: str) -> str:
        return f"{self.database.as_account(ROLE)}&schema={schema}"

    def a_corpus(self) -> str:
        """Set up the tables of documents; return the schema."""
        schema = self.a_schema()
        with self.admin() as db:
            set_up(db, schema, ROLE)
        return schema

    def emptied(self, schema: str) -> str:
        """Empty the tables of documents, which must not be open; return their schema."""
        tables = (
            "erased_labels",
            "erased",
            "label_audiences",
            "document_audiences",
            "principals",
            "audiences",
            "memberships",
            "groups",
            "group_changes",
            "embedded",
            "vectors",
            "labels",
            "changes",
            "chunks",
            "entity_sets",
            "filing_ciks",
            "filings",
        )
        self.alter(
            "SET synchronous_commit TO off",
            *(f"DELETE FROM {schema}.{table}" for table in (*tables, "meta")),  # noqa: S608
            f"INSERT INTO {schema}.meta VALUES ('epoch', '0')",  # noqa: S608
        )
        return schema

    def opened(self, schema: str, path: Path, **more: Any) -> PostgresStore:
        return PostgresStore(self.database.as_account(ROLE), schema, path, **more)

    def shared(self, directory: Path, schema: str | None = None) -> str:
        """Let a directory share a store, by default a new one; return its schema."""
        made = schema or self.a_schema()
        share(directory, self.address(made), admin=None if schema else self.url)
        return made

    def joined(self, directory: Path, other: Path, schema: str) -> Path:
        """Let a directory share the store of another one, with its keys."""
        self.shared(directory, schema)
        for name in KEYS:
            shutil.copy(other / name, directory / name)
        return directory
