"""Keep the logs of a test on a PostgreSQL server, each in a schema of its own."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from carag.audit import AuditLog
from carag.audit.log.postgres import backend_at
from carag.audit.log.postgres_setup import set_up

NUMBERS = itertools.count()


class Server:
    """A server, by the URL of its administrator, and the schemas of one test."""

    ROLE = "carag_app"

    def __init__(self, admin):
        self.admin = admin
        self.application = self.as_role(self.ROLE)
        self.schemas = {}

    def as_role(self, role):
        return self.admin.replace("//postgres:@", f"//{role}@")

    def schema_of(self, directory):
        key = str(Path(directory).absolute())
        if key not in self.schemas:
            self.schemas[key] = f"log{next(NUMBERS)}"
            set_up(self.admin, role=self.ROLE, schema=self.schemas[key])
        return self.schemas[key]

    def alter(self, directory, *statements):
        """Do what the server's administrator can."""
        import psycopg

        with psycopg.connect(self.admin, autocommit=True) as admin:
            admin.execute(f"SET search_path TO {self.schema_of(directory)}")
            return [admin.execute(statement) for statement in statements][-1]


@pytest.fixture
def server(postgres, tmp_path):
    """Empty the server of what other tests left, and see that no log of this test was founded in a file."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as admin:
        for (name,) in admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'log%'").fetchall():
            admin.execute(f"DROP SCHEMA {name} CASCADE")
    yield Server(postgres)
    founded = {path.parent for path in tmp_path.rglob("audit.db")}
    assert founded <= {tmp_path / "copy", tmp_path / "out"}  # every log of the test was on the server


@pytest.fixture
def database(server, monkeypatch):
    """Let every log of the test have its evidence on the server, whatever its directory says."""
    opened = AuditLog.open.__func__

    def open_there(cls, directory, **more):
        backend = backend_at(server.application, schema=server.schema_of(directory))
        return opened(cls, directory, **{"backend": backend, **more})

    monkeypatch.setattr(AuditLog, "open", classmethod(open_there))
    return server
