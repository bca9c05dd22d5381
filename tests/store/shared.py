"""A PostgreSQL server with corpora, as an administrator sets them up and an application opens them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from carag.store.postgres import PostgresStore, set_up
from tests.backends.postgres_servers import Server, postgres_servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLE = "carag_app"


class StoreServer:
    def __init__(self, server: Server) -> None:
        self.server = server

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[StoreServer]:
        with postgres_servers(1) as (server,):
            made = cls(server)
            with made.admin() as db:
                db.execute(f"CREATE ROLE {ROLE} LOGIN")
            yield made

    def admin(self) -> Any:
        import psycopg

        return psycopg.connect(self.server.url, autocommit=True)

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.server.as_account(ROLE), autocommit=True)

    def new(self, schema: str) -> str:
        """Set up a schema; return its name."""
        with self.admin() as db:
            set_up(db, schema, ROLE)
        return schema

    def opened(self, schema: str, path: Path, **more: Any) -> PostgresStore:
        return PostgresStore.open_at(self.connect, schema, path, **more)
