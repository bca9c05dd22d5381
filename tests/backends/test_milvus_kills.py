"""A Milvus server that is killed answers fully or not at all, and comes back with everything that it had confirmed."""

from __future__ import annotations

import itertools

import pytest

from carag.backends import MilvusBackend
from tests.backends.kills import Kills
from tests.backends.milvus_server import MilvusServer, milvus_or_skip

milvus_or_skip()

NAMES = itertools.count()
SESSION = 30
"""Seconds, the server's default; a killed one waits for it when it starts again."""
pytestmark = pytest.mark.full  # each of the four kills per round takes a minute


class TestKills(Kills):
    """One process, which a supervisor would start again as often as necessary."""

    all_rounds = 5
    patience = 300.0

    @pytest.fixture(autouse=True)
    def _started(self, tmp_path):
        self.server = MilvusServer(tmp_path, session=SESSION)
        yield
        self.server.stop()

    def fresh(self):
        return f"killed{next(NAMES)}"

    def open(self, collection):
        return MilvusBackend(f"{self.server.uri}/{collection}", timeout=10)

    def kill(self, round_):
        self.server.kill()

    def restart(self, round_):
        self.server.restart()
