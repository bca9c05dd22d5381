"""The store's name says that it keeps no record; it shows no more than its one policy admits."""

from __future__ import annotations

import os
from typing import Any

import pytest

from carag import Index, Mask, Policy, policy_word
from carag.errors import InvalidArgument

if not os.environ.get("CARAG_REQUIRE_ADAPTERS"):
    pytest.importorskip(
        "langchain_core", reason="langchain-core is not installed: UnauditedVectorStore is not tested"
    )
from langchain_core.embeddings import DeterministicFakeEmbedding

from carag.adapters.unaudited import UnauditedVectorStore

US, EU = policy_word(["J_US"]), policy_word(["J_EU"])


def word(document: Any) -> int:
    return {"us": US, "eu": EU}[document.metadata["place"]]


def store(policy: Any = None) -> UnauditedVectorStore:
    made = UnauditedVectorStore(
        Index(6), DeterministicFakeEmbedding(size=6), policy or Mask(required="J_US"), words=word
    )
    made.add_texts(
        [f"text {number}" for number in range(20)],
        [{"place": "us" if number % 2 else "eu"} for number in range(20)],
        ids=[str(number) for number in range(20)],
    )
    return made


def test_nothing_that_the_policy_hides_comes_out() -> None:
    """No search, by words, by vector, by id or through a retriever, shows it."""
    held = store()
    odd = {str(number) for number in range(1, 20, 2)}
    assert odd == {one.id for one in held.similarity_search("text 4", 20)}
    assert odd == {one.id for one in held.similarity_search_by_vector([1.0, 0, 0, 0, 0, 0], 20)}
    assert odd == {one.id for one in held.get_by_ids([str(number) for number in range(30)])}
    assert odd == {one.id for one in held.as_retriever(search_kwargs={"k": 20}).invoke("text 4")}
    assert [] == store(Policy()).similarity_search("text 4")


@pytest.mark.parametrize("name", ["filter", "filters", "policy", "where", "mask", "session"])
def test_no_call_takes_a_filter(name: str) -> None:
    """A filter is an error, and never dropped without a word."""
    held = store()
    given: dict[str, Any] = {name: Mask()}
    for call in (held.similarity_search, held.similarity_search_with_score, held.as_retriever().invoke):
        with pytest.raises(TypeError, match=name):
            call("text 4", **given)
    with pytest.raises(TypeError, match=name):
        held.as_retriever(search_kwargs=given).invoke("text 4")


def test_a_batch_is_added_whole_or_not_at_all() -> None:
    """A batch whose words or vectors are refused replaces no document."""
    held = store()
    before = held.get_by_ids(["1"])
    with pytest.raises(KeyError):
        held.add_texts(["other", "x"], [{"place": "us"}, {"place": "mars"}], ids=["1", "y"])
    held._embedding = DeterministicFakeEmbedding(size=7)
    with pytest.raises(InvalidArgument):
        held.add_texts(["other"], [{"place": "us"}], ids=["1"])
    assert before == held.get_by_ids(["1"])
    assert [] == held.get_by_ids(["y"])
    assert 20 == len(held._index)


def test_a_document_replaced_or_deleted_is_gone() -> None:
    """It is gone from index and texts; deleting without ids is an error, since it might mean all."""
    held = store()
    held.add_texts(["moved"], [{"place": "eu"}], ids=["1"])
    assert [] == held.get_by_ids(["1"])
    held.delete(["3", "3", "unknown"])
    assert {"1", "3"}.isdisjoint({one.id for one in held.similarity_search("text 3", 20)})
    assert 19 == len(held._index) == len(held._documents) == len(held._keys)
    with pytest.raises(InvalidArgument):
        held.delete()


def test_what_came_out_changes_nothing_inside() -> None:
    """A caller changes only a copy."""
    held = store()
    (one,) = held.similarity_search("text 3", 1)
    one.metadata["place"] = "eu"
    assert {"us"} == {found.metadata["place"] for found in held.get_by_ids(["1", "3", "5", "7"])}


def test_it_needs_an_empty_index_and_a_policy() -> None:
    """Rows whose texts it lacks could not be shown, and a policy has no default."""
    index = Index(6)
    for policy in (None, 0, "J_US"):
        with pytest.raises(InvalidArgument):
            UnauditedVectorStore(index, DeterministicFakeEmbedding(size=6), policy, words=word)  # type: ignore[arg-type]
    index.add([[1.0, 0, 0, 0, 0, 0]], [US])
    with pytest.raises(InvalidArgument, match="1 rows"):
        UnauditedVectorStore(index, DeterministicFakeEmbedding(size=6), Mask(), words=word)
