"""Milvus conforms: the real server, one process, in a network namespace of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import MilvusBackend
from carag.backends.compiled import admitted_at
from carag.errors import BackendUnavailable
from carag.index import Plan
from carag.policy import policy_word
from tests.backends.conformance import Conformance
from tests.backends.loads import Loads
from tests.backends.milvus_server import MilvusServer, milvus_or_skip
from tests.backends.rows import rows
from tests.backends.worlds import EVERYTHING
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

milvus_or_skip()

pytestmark = pytest.mark.release

NAMES = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    made = MilvusServer(tmp_path_factory.mktemp("milvus"))
    yield made
    made.stop()


def opened(server: MilvusServer, collection: str | None = None, **more) -> MilvusBackend:
    return MilvusBackend(f"{server.uri}/{collection or f'test{next(NAMES)}'}", **more)


class TestMilvus(Conformance):
    """Every epoch is kept; a second connection is a second client."""

    questions, relabels, flips = examples(40), examples(20), examples(10)
    lies, all_lies = 100, 1_000
    rows = 300
    worlds, all_worlds = 10, 50  # each is a collection, and one server keeps about a hundred loaded

    @pytest.fixture(autouse=True)
    def _started(self, server):
        self.server = server

    def new(self, dim):
        return opened(self.server, keep=None)

    def another(self, backend):
        return opened(self.server, backend.state().collection, keep=None)

    def stored(self, backend, wanted):
        return wanted & {
            np.array(one["vector"], "<f4").tobytes() for one in backend._query("e0 >= 0", ["vector"])
        }

    def stop(self, backend):
        backend.close()

    @pytest.mark.full
    def test_no_lie_is_believed(self, build):
        """Only in full: the liar is a double of any backend, and a strong read takes a tick of the server's clock."""
        super().test_no_lie_is_believed(build)


class TestLoads(Loads):
    """A second connection is a second client."""

    @pytest.fixture(autouse=True)
    def _started(self, server):
        self.server = server

    def make(self):
        return opened(self.server)

    def connect(self, backend):
        return opened(self.server, backend.state().collection)


def test_a_server_that_is_killed_answers_nothing(server):
    """Neither a question, a batch nor a new connection; it stays down, so this test is the last."""
    backend = opened(server)
    backend.add(rows(range(9), policy_word(1)), batch="first")
    asked = admitted_at(backend.state().words, EVERYTHING, 0, None)
    assert 9 == backend.count(asked)
    server.kill()
    backend._timeout = 5  # else each of these takes half a minute
    with pytest.raises(BackendUnavailable):
        backend.search(np.full((1, 4), 0.5, np.float32), 5, asked, plan=Plan.EXACT)
    with pytest.raises(BackendUnavailable):
        backend.delete([1], batch="second")
    with pytest.raises(BackendUnavailable):
        opened(server, timeout=5)
