"""Loads on the backends in this process, and on PostgreSQL."""

from __future__ import annotations

import pytest

from carag.backends import NativeBackend, PostgresBackend
from tests.backends.in_memory import MemoryBackend, Store
from tests.backends.loads import DIM, Loads


class TestNative(Loads):
    """In this process; a second connection is the same object."""

    def make(self):
        return NativeBackend(DIM)

    def connect(self, backend):
        return backend


class TestVersioned(Loads):
    """What Redis, Qdrant and Milvus have in common."""

    def make(self):
        return MemoryBackend(Store())

    def connect(self, backend):
        return MemoryBackend(backend.store)


class TestPostgres(Loads):
    """One database."""

    @pytest.fixture(autouse=True)
    def _with(self, servers, name):
        self.url, self.name = servers[0].url, name

    def make(self):
        return PostgresBackend(self.url, collection=self.name)

    def connect(self, backend):
        return self.make()


class TestFencedPostgres(TestPostgres):
    """An account that does not own the tables, under row-level security."""

    @pytest.fixture(autouse=True)
    def _with(self, servers, name):
        account = f"{servers[0].name}_{name.replace(' ', '_')}"
        with servers[0].connect() as admin:
            admin.execute(f"CREATE ROLE {account} LOGIN")
        owner = PostgresBackend(servers[0].url, collection=name, dim=DIM)
        owner.let_use(account)
        owner.close()
        self.url, self.name = servers[0].as_account(account), name
