"""Milvus does what every backend must do: the real server, one process, in a network of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import MilvusBackend
from carag.backends.compiled import admitted_at
from carag.errors import BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.policy import policy_word
from tests.backends.conformance import Conformance
from tests.backends.loads import Loads
from tests.backends.milvus_server import MilvusServer, milvus_or_skip
from tests.backends.rows import rows
from tests.backends.worlds import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

milvus_or_skip()

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
    lies = 100
    all_lies = 1_000
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


class TestLoads(Loads):
    """A second connection is a second client."""

    @pytest.fixture(autouse=True)
    def _started(self, server):
        self.server = server

    def make(self):
        return opened(self.server)

    def connect(self, backend):
        return opened(self.server, backend.state().collection)


@pytest.mark.parametrize("name", ["a b", "a/b", "a__register", "../a", "1a", "a" * 64, 'a" or "1'])
def test_a_hostile_name_of_a_collection_is_refused(name):
    """Before anybody is asked."""
    with pytest.raises(InvalidArgument, match="want milvus://HOST:PORT/COLLECTION"):
        MilvusBackend(f"milvus://127.0.0.1:1/{name}")


def test_a_server_that_is_killed_answers_nothing(server):
    """Neither a question nor a batch, nor who comes new; it stays down, so this comes last."""
    backend = opened(server)
    backend.add(rows(range(9), policy_word(1)), batch="first")
    asked = admitted_at(backend.state().words, EVERYTHING, 0, None)
    assert 9 == backend.count(asked)
    server.kill()
    backend._timeout = 5  # or each of these takes half a minute
    with pytest.raises(BackendUnavailable):
        backend.search(np.full((1, 4), 0.5, np.float32), 5, asked, plan=Plan.EXACT)
    with pytest.raises(BackendUnavailable):
        backend.delete([1], batch="second")
    with pytest.raises(BackendUnavailable):
        opened(server, timeout=5)
