"""The addresses of Redis, Qdrant and Milvus, and their secrets, without a server."""

from __future__ import annotations

import traceback
from importlib.util import find_spec

import pytest

from carag.backends import Admitted, MilvusBackend, QdrantBackend, RedisBackend
from carag.backends.address import check_collection
from carag.backends.milvus import _filter as milvus_filter
from carag.backends.redis import _filter as redis_filter
from carag.errors import BackendUnavailable, InvalidArgument
from carag.policy import policy_word
from tests.backends.worlds import EVERYTHING

_NEEDS = pytest.mark.skipif
ENGINES = [
    pytest.param(make, scheme, variable, marks=_NEEDS(not find_spec(client), reason=f"needs {client}"))
    for make, scheme, variable, client in (
        (RedisBackend, "redis", "CARAG_REDIS_PASSWORD", "redis"),
        (QdrantBackend, "qdrant", "CARAG_QDRANT_API_KEY", "qdrant_client"),
        (MilvusBackend, "milvus", "CARAG_MILVUS_TOKEN", "pymilvus"),
    )
]
HOSTILE = [
    *["a b", "{a}", "a:b", "a/b", "a*", "1a", "_a", "a__b", "a_", "é", "a\n", "a?x=1", "a#b", "../a", "a;b"],
    'a" or "1',
    "a" * 64,
]
ONE = policy_word(1)


@pytest.mark.parametrize(("make", "scheme", "variable"), ENGINES)
def test_a_hostile_name_of_a_collection_is_refused(make, scheme, variable):
    """Before a server is asked, and without being quoted."""
    for name in HOSTILE:
        with pytest.raises(InvalidArgument, match=f"want {scheme}://HOST:PORT/COLLECTION") as said:
            make(f"{scheme}://127.0.0.1:1/{name}")
        assert f"/{name};" not in str(said.value)
        with pytest.raises(InvalidArgument, match="not the name of a collection"):
            check_collection(name)


@pytest.mark.parametrize(("make", "scheme", "variable"), ENGINES)
def test_a_secret_is_never_sent_unencrypted_to_another_machine(make, scheme, variable, monkeypatch):
    """Whether the address or the environment has it; nor is it quoted."""
    with pytest.raises(InvalidArgument, match="unencrypted") as refused:
        make(f"{scheme}://me:hunter2@db.example:1")
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv(variable, "hunter2")
    with pytest.raises(InvalidArgument, match="unencrypted"):
        make(f"{scheme}://db.example:1,127.0.0.1:1")


@pytest.mark.skipif(not find_spec("redis"), reason="needs redis")
@pytest.mark.parametrize("nodes", ["redis://me:hunter2@127.0.0.1:1", ["127.0.0.1:1"]])
def test_an_unreachable_server_is_reported_without_its_secret(nodes, monkeypatch):
    """Whether an address or a list of nodes was given."""
    monkeypatch.setenv("CARAG_REDIS_PASSWORD", "hunter2")
    with pytest.raises(BackendUnavailable) as said:
        RedisBackend(nodes)
    assert "hunter2" not in "".join(traceback.format_exception(said.value))


def test_a_filter_has_no_empty_list():
    """Nor a list that the policy lacks."""
    asked = Admitted((ONE,), 0, 0, None, (), (0,), EVERYTHING)
    assert ".n" not in redis_filter(asked, 1)
    assert "[]" not in redis_filter(asked, 1)
    assert "entity" not in milvus_filter(asked, 1)
    assert "audience in [0]" in milvus_filter(asked, 1)
    assert "audience" not in milvus_filter(asked._replace(audiences=None), 1)
    assert ".s in [0,7]" in redis_filter(asked._replace(audiences=(0, 7)), 1)
    both = asked._replace(allow_entities=(1, 2), deny_entities=(3,))
    assert ".n in [1,2] and not (.n in [3])" in redis_filter(both, 1)
    assert "entity in [1, 2] and entity not in [3]" in milvus_filter(both, 1)
