"""Keep the logs of a test on a PostgreSQL server, too, each in a schema of its own."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from carag.audit import AuditLog
from carag.audit.auditor.evidence import compare_evidence
from carag.audit.auditor.reader import LogReader
from carag.audit.log.postgres import EvidenceReader, Place
from carag.audit.log.postgres_setup import set_up
from carag.audit.private.openable import PrivateReader

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

    def url(self, schema, *, role=ROLE):
        return f"{self.as_role(role)}&schema={schema}"

    def new(self):
        """Set up a schema; return its URL for the application."""
        url = self.url(f"log{next(NUMBERS)}")
        set_up(self.admin, url)
        return url

    def evidence_of(self, directory):
        """Return where the log of a directory has its evidence."""
        key = str(Path(directory).absolute())
        if key not in self.schemas:
            self.schemas[key] = self.new()
        return self.schemas[key]

    def schema_of(self, directory):
        return self.evidence_of(directory).partition("schema=")[2]

    def alter(self, directory, *statements, stopped=False):
        """Do what the server's administrator can, after lifting the triggers, unless these are to stop it."""
        import psycopg

        with psycopg.connect(self.admin, autocommit=True) as admin:
            admin.execute(f"SET search_path TO {self.schema_of(directory)}")
            changed = ("record", "checkpoint", "request")
            if not stopped:
                for table in changed:
                    admin.execute(f"ALTER TABLE {table} DISABLE TRIGGER carag_append_only")
            try:
                done = [admin.execute(statement) for statement in statements][-1]
                return done.fetchall() if done.description else done.rowcount
            finally:
                if not stopped:
                    for table in changed:
                        admin.execute(
                            f"ALTER TABLE IF EXISTS {table} ENABLE ALWAYS TRIGGER carag_append_only"
                        )

    def rows(self, directory, query):
        return self.alter(directory, query, stopped=True)


def compared_with_server(directory):
    """Compare as ``carag audit verify`` does; return the number of requests."""
    place = Place.parse((Path(directory) / "evidence.url").read_text().strip())
    with (
        LogReader(directory) as reader,
        PrivateReader(directory) as values,
        contextlib.closing(EvidenceReader(place)) as evidence,
    ):
        return compare_evidence(reader, evidence, values.openings)


@pytest.fixture
def compared():
    """Give tests that comparison."""
    return compared_with_server


@pytest.fixture
def server(postgres):
    """Empty the server of what other tests left."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as admin:
        for (name,) in admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'log%'").fetchall():
            admin.execute(f"DROP SCHEMA {name} CASCADE")
    return Server(postgres)


@pytest.fixture
def database(server, monkeypatch):
    """Let every log of the test have its evidence on the server, too."""
    opened = AuditLog.open.__func__

    def open_there(cls, directory, **more):
        return opened(cls, directory, **{"evidence": server.evidence_of(directory), **more})

    monkeypatch.setattr(AuditLog, "open", classmethod(open_there))
    return server
