"""Milvus does what every backend must do: the real server, one process, in a network of its own."""

from __future__ import annotations

import itertools
import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from carag.backends import MilvusBackend
from tests.backends.conformance import Conformance
from tests.backends.kills import Kills
from tests.backends.milvus_server import MilvusServer

if TYPE_CHECKING:
    from collections.abc import Iterator

if not (find_spec("pymilvus") and find_spec("milvus")):
    pytest.skip("needs a Milvus server and its client: pip install milvus pymilvus", allow_module_level=True)
if os.geteuid() or not (all(map(shutil.which, ("ip", "setpriv", "unshare")))):
    pytest.skip(
        "Milvus listens on every interface, so it needs root, ip, setpriv and unshare to be alone",
        allow_module_level=True,
    )

NAMES = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    made = MilvusServer(tmp_path_factory.mktemp("milvus"))
    yield made
    made.stop()


def opened(server: MilvusServer, collection: str | None = None, **more) -> MilvusBackend:
    return MilvusBackend(f"{server.uri}/{collection or f'test{next(NAMES)}'}", **more)


class TestMilvus(Conformance):
    """Every epoch kept; a second connection is a second client."""

    questions = 40
    all_questions = 2_000
    lies = 100
    all_lies = 4_000
    relabels = 20
    flips = 10

    @pytest.fixture(autouse=True)
    def _started(self, server):
        self.server = server

    def new(self, dim):
        return opened(self.server, keep=None)

    def another(self, backend):
        return opened(self.server, backend.state().collection, keep=None)

    def stop(self, backend):
        backend.close()

    @pytest.mark.full
    def test_no_lie_is_believed(self, build):
        """In the long run alone: it is a double that lies, whatever is behind it, and a strong read takes a tick."""
        super().test_no_lie_is_believed(build)


class TestKills(Kills):
    """The one process there is."""

    @pytest.fixture(autouse=True)
    def _started(self, server):
        self.server = server

    def fresh(self):
        return f"killed{next(NAMES)}"

    def open(self, collection):
        return opened(self.server, collection, timeout=10)

    def kill(self, round_):
        self.server.kill()

    def restart(self, round_):
        self.server.restart()
