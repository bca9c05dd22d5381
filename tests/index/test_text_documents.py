"""A search by words in some documents is the search in all of them, without the others; no number changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index import TextIndex
from carag.policy import Mask, Policy, Search, policy_word
from tests.index.plain_text import AS_OF, draw_policy, draw_searches, draw_terms, hits
from tests.index.test_text_index import CLOSED, OPEN, draw_world, simple
from tests.sizes import examples

# Labels without a schema version are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")


def with_others(every, documents, k):
    """All hits of some documents and the k best of others, in the order of scores."""
    others = [hit for hit in every if hit.document not in documents][:k]
    return [hit for hit in every if hit.document in documents or hit in others]


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.lists(st.integers(0, 31), max_size=12), st.none() | st.integers(1, 6))
@settings(max_examples=examples(150))
def test_it_finds_what_a_filter_leaves_of_the_whole(seed, documents, k):
    """Ids, order and score bits, with documents in any order, repeated or unknown, with k and a floor."""
    rng = np.random.default_rng(seed)
    index, terms = draw_world(rng, 40).indexed(batches=3), draw_terms(rng, 5)
    policy, as_of = (draw_policy(rng), int(rng.choice(AS_OF))) if seed % 2 else (draw_searches(rng), None)
    every = hits(index.search(terms, None, policy, as_of=as_of))
    floor = float(rng.choice([0.0, *(hit.score for hit in every)]))
    found = index.search(terms, k, policy, as_of=as_of, floor=floor, documents=documents)
    left = [hit for hit in every if hit.document in documents]
    assert hits(found) == [hit for hit in left if hit.score >= floor][:k]
    beside = index.search(terms, k, policy, as_of=as_of, floor=floor, documents=documents, others=True)
    assert hits(beside) == [hit for hit in with_others(every, documents, k) if hit.score >= floor]
    counted = index.search(
        terms, k, policy, as_of=as_of, floor=floor, documents=documents, count_matched=True
    )
    assert hits(counted) == hits(found)
    assert counted.stats.matched == len(left)
    whole = index.search(terms, k, policy, as_of=as_of)
    for one in (found, counted):
        assert (one.stats.admissible, one.stats.length) == (whole.stats.admissible, whole.stats.length)
        assert one.frequencies == whole.frequencies == index.count(terms, policy, as_of=as_of).frequencies


@given(seeds, st.integers(1, 8))
def test_parts_that_are_left_out_do_not_raise_the_bar(seed, k):
    """Hits in the named documents are found even if better ones elsewhere would let their part be skipped."""
    rng = np.random.default_rng(seed)
    ranks = rng.zipf(1.2, (240, 12)).clip(max=300)
    texts = [[f"r{rank}" for rank in row[: rng.integers(0, 13)]] for row in ranks.tolist()]
    index = TextIndex()
    documents = rng.integers(0, 60, 240)
    index.add(np.arange(240), documents, texts, headings={0: ["r1"]} if 0 in documents else {})
    index.label(np.arange(240), np.arange(240), policy_word(rng.integers(1, 3, 240)))
    terms = [f"r{rank}" for rank in (1, 2, *rng.zipf(1.3, 4).clip(max=300).tolist())]
    some = rng.integers(0, 60, 5).tolist()
    for mask in (Mask(), OPEN):
        every = hits(index.search(terms, None, mask))
        beside = index.search(terms, k, mask, documents=some, others=True)
        assert hits(beside) == with_others(every, some, k)
        assert [hit for hit in every if hit.document in some][:k] == hits(
            index.search(terms, k, mask, documents=some)
        )


def test_an_empty_list_of_documents_finds_nothing():
    """None means all documents; neither changes the counts of admissible chunks."""
    index = simple([["net", "sales"], ["sales"]])
    nothing = index.search(["sales"], None, OPEN, documents=[])
    assert (len(nothing), nothing.stats.matched) == (0, 0)
    assert (nothing.stats.admissible, nothing.stats.length) == (2, 3)
    assert 2 == len(index.search(["sales"], None, OPEN, documents=None))
    assert 0 == len(TextIndex().search(["sales"], 3, OPEN, documents=[1, 2]))


def test_a_hidden_document_answers_like_an_absent_one():
    """Every number that a session sees is the same, so a document's number does not reveal that it exists."""
    index = simple([["sales"], ["sales", "net"]])
    index.add([5], [5], [["sales"]])
    index.label([5], [5], [CLOSED])
    hidden, absent = (index.search(["sales"], 3, OPEN, documents=[one]) for one in (5, 99))
    assert len(hidden) == len(absent) == 0
    assert (2, 3) == (hidden.stats.admissible, hidden.stats.length)
    assert (2, 3) == (absent.stats.admissible, absent.stats.length)
    assert [1] == index.search(["sales"], None, OPEN, documents=[99, 1, 5]).keys.tolist()


def test_a_document_added_in_two_calls_is_found_whole():
    """Its parts are in two segments; a deleted chunk of it is not found."""
    index = TextIndex()
    index.add([1, 2], [7, 8], [["sales"], ["sales"]])
    index.add([3, 4], [7, 8], [["sales", "sales"], ["sales"]])
    index.label([1, 2, 3, 4], [1, 2, 3, 4], [policy_word(1)] * 4)
    for _ in range(2):
        assert {1, 3} == set(index.search(["sales"], None, OPEN, documents=[7]).keys.tolist())
        index.compact()
    index.delete([3])
    assert [1] == index.search(["sales"], None, OPEN, documents=[7]).keys.tolist()


def test_many_documents_are_named_at_once():
    """More than the smallest table can hold, and as many as there are."""
    count = 5_000
    index = simple([["sales"]] * count)
    some = np.random.default_rng(0).permutation(count)[: count // 2]
    found = index.search(["sales"], None, OPEN, documents=np.concatenate((some, some)))
    assert sorted(some.tolist()) == sorted(found.keys.tolist())
    largest = np.iinfo(np.int64).max
    assert 0 == len(index.search(["sales"], None, OPEN, documents=[largest]))


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([0, 1, -1], "2 is -1, negative"),
        ([-(2**63)], "0 is -9223372036854775808, negative"),
        ([1.5], "documents"),
        (["x"], "documents"),
        ([[1], [2]], "documents"),
        ([2**64], "documents"),
    ],
)
def test_a_bad_document_is_refused_with_its_position(documents, message):
    """The index answers as before."""
    index = simple([["sales"], ["net"]])
    with pytest.raises(InvalidArgument, match=message):
        index.search(["sales"], 1, [Search(Policy(OPEN), 0)], documents=documents)
    assert [0] == index.search(["sales"], 1, OPEN, documents=[0]).keys.tolist()


def test_others_without_documents_are_refused():
    """There would be nothing that they are others of."""
    with pytest.raises(InvalidArgument, match="others is given without documents"):
        simple([["sales"]]).search(["sales"], 1, OPEN, others=True)
