"""Servers that the tests of backends share."""

from __future__ import annotations

import itertools

import pytest

from carag.backends import PostgresBackend, PostgresEpochs, ShardedBackend
from tests.backends.postgres_servers import postgres_servers

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def servers():
    """Four PostgreSQL servers: three shards, and the one that keeps their epochs."""
    with postgres_servers(4) as running:
        yield running


class Graphed(PostgresBackend):
    """Builds its graph over the first batch, which takes less time than to add row by row to an empty one."""

    def add(self, rows, *, batch):
        state = super().add(rows, batch=batch)
        if self.capabilities.recall is None:
            self.build_graph()
        return state


class Sharded(ShardedBackend):
    """Three shards; a second connection is made of the same."""

    def __init__(self, servers, name, **more):
        self.servers, self.name = servers, name
        self.shards = [Graphed(one.url, collection=name, **more) for one in servers[:3]]
        super().__init__(self.shards, PostgresEpochs(servers[3].url, collection=name, **more))

    def again(self):
        return Sharded(self.servers, self.name)


@pytest.fixture
def name():
    """Give a test a collection of its own."""
    return f"collection {next(NUMBERS)}"
