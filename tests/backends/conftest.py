"""Databases that the tests of backends share."""

from __future__ import annotations

import itertools

import pytest

from carag.backends import PostgresBackend, PostgresEpochs, ShardedBackend

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def servers(postgres_run):
    """Four databases: three shards, and one that keeps their epochs."""
    return [postgres_run.database() for _ in range(4)]


class Graphed(PostgresBackend):
    """Builds its graph over the first batch, which is faster than adding rows to an empty one."""

    def add(self, rows, *, batch):
        state = super().add(rows, batch=batch)
        if self.capabilities.recall is None:
            self.build_graph()
        return state


class Sharded(ShardedBackend):
    """Three shards in databases."""

    def __init__(self, servers, name, **more):
        self.servers, self.name = servers, name
        self.shards = [Graphed(one.url, collection=name, **more) for one in servers[:3]]
        super().__init__(self.shards, PostgresEpochs(servers[3].url, collection=name, **more))

    def again(self):
        return Sharded(self.servers, self.name)


@pytest.fixture
def name():
    """Name a collection of the test's own."""
    return f"collection {next(NUMBERS)}"
