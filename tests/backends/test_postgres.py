"""PostgreSQL with pgvector as a backend: what every backend must do, and what only this one can go wrong in."""

from __future__ import annotations

import pytest

from carag.backends import PostgresBackend
from tests.backends.conformance import Conformance
from tests.backends.conftest import NUMBERS, Graphed

HOSTILE = """c{} '"; DROP TABLE live; -- %s %(x)s $1 \\ é漢"""


class TestPostgres(Conformance):
    """One server, with a graph, which no exact plan may take."""

    lies = 800

    @pytest.fixture(autouse=True)
    def _with(self, servers):
        self.server = servers[0]
        self.is_stopped = False
        yield
        if self.is_stopped:
            self.server.start()

    def new(self, dim):
        return Graphed(self.server.url, collection=HOSTILE.format(next(NUMBERS)))

    def another(self, backend):
        return PostgresBackend(self.server.url, collection=backend.state().collection)

    def stop(self, backend):
        self.server.kill()
        self.is_stopped = True
