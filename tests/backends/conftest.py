"""Servers that the tests of backends share."""

from __future__ import annotations

import pytest

from tests.backends.postgres_servers import postgres_servers


@pytest.fixture(scope="session")
def servers():
    """Four PostgreSQL servers: three shards, and the one that keeps their epochs."""
    with postgres_servers(4) as running:
        yield running
