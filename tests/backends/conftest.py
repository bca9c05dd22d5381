"""Databases that the tests of backends share."""

from __future__ import annotations

import itertools

import pytest

from carag.backends import PostgresBackend

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def servers(postgres_run):
    """Two databases."""
    return [postgres_run.database() for _ in range(2)]


class Graphed(PostgresBackend):
    """Builds its graph over the first batch, which is faster than adding rows to an empty one."""

    def add(self, rows, *, batch):
        state = super().add(rows, batch=batch)
        if self.capabilities.recall is None:
            self.build_graph()
        return state


@pytest.fixture
def name():
    """Name a collection of the test's own."""
    return f"collection {next(NUMBERS)}"
