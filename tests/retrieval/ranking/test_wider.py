"""What a session may know of hidden passages is what a search of its own would find, and moves nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.policy import NEVER, Mask, Policy, Search
from carag.retrieval import Retriever
from carag.retrieval.past_index import PastIndex
from carag.retrieval.ranking import DENSE, FUSED, Question, Wider, ranker_by_name
from carag.store.store import CorpusStore
from tests.retrieval.ranking.stores import (
    Asked,
    Clock,
    collection_of,
    draw_asked,
    draw_store,
    grow,
    refreshed,
)
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.collection import Collection
    from carag.index import Index, TextIndex
    from carag.retrieval import Evidence
    from carag.retrieval.ranking import Ranked, Ranker

seeds = st.integers(0, 2**32 - 1)
RANKERS = (DENSE, FUSED, f"{DENSE}+mmr-0.5-6", f"{FUSED}+mmr-0.7-9")


def order_of(ranked: Ranked) -> tuple[object, ...]:
    return ranked.keys, ranked.similarities, ranked.scores, ranked.about


def beside(collection: Collection, ranker: Ranker, asked: Asked, k: int, limit: int | None) -> int:
    """Hold both orders of one call against those of two; return how many rows the second has."""
    store, rows = collection.store, (collection.index, collection.words)
    question = Question(asked.question, collection.embedder.embed_query(asked.question))
    searches = [
        replace(one, policy=store.expanded(one.policy, asked.where)) for one in asked.decision.searches
    ]
    anything = Search(store.expanded(Policy(Mask()), asked.where), NEVER - 1)
    alone = ranker.rank(*rows, question, searches, asked.k, exact_limit=limit)
    second = ranker.rank(*rows, question, [anything], k, exact_limit=limit)
    both = ranker.rank(*rows, question, searches, asked.k, exact_limit=limit, wider=Wider(anything, k))
    assert both.wider is not None
    assert both._replace(wider=None) == alone
    assert order_of(both.wider) == order_of(second)
    return len(second.keys)


def run_both(seed: int, home: Path, name: str) -> int:
    rng, found = np.random.default_rng(seed), 0
    with CorpusStore.open(home / "corpus.db", clock=Clock()) as store:
        collection = collection_of(store, home)
        draw_store(store, rng, 4)
        refreshed(collection)
        ranker = ranker_by_name(name, collection.catalogue)
        for limit in (None, 1 << 20, 0):
            for _ in range(4):
                asked = draw_asked(rng)
                found += beside(collection, ranker, asked, int(rng.choice([1, 5, 8, asked.k])), limit)
    return found


@pytest.mark.parametrize("name", RANKERS)
@settings(max_examples=examples(10, least=3))
@given(seed=seeds)
def test_a_wider_search_is_ranked_as_if_it_were_alone(
    seed: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And the session's own order has the same rows, scores and words to the last bit."""
    run_both(seed, tmp_path_factory.mktemp("both"), name)


def test_worlds_have_something_to_find(tmp_path: Path) -> None:
    """So that the laws here prove something."""
    assert run_both(1, tmp_path, FUSED) > 40


# ---------------------------------------------------------------- evidence


def hidden_by_two_searches(
    collection: Collection, rows: tuple[Index, TextIndex], asked: Asked, found: Evidence, known_at: int
) -> list[tuple[str, object]]:
    """Rank without a policy, and give the reasons against each of the best that is not among the passages."""
    store = collection.store
    question = Question(asked.question, collection.embedder.embed_query(asked.question))
    anything = Search(store.expanded(Policy(Mask()), asked.where), NEVER - 1)
    ranker = ranker_by_name(FUSED, collection.catalogue)
    keys = ranker.rank(*rows, question, [anything], asked.k, exact_limit=None).keys
    shown = {one.chunk_id for one in found.passages}
    return [
        (one.chunk_id, why)
        for one in store.labels.as_of(keys, asked.decision.as_of, known_at=known_at)
        if one.chunk_id not in shown
        and asked.where.admits(one.metadata)
        and (why := asked.decision.reasons_for(one))
    ]


def run_evidence(seed: int, home: Path) -> int:
    rng, told = np.random.default_rng(seed), 0
    with CorpusStore.open(home / "corpus.db", clock=Clock()) as store:
        collection = collection_of(store, home)
        retriever = Retriever(collection, ranker_by_name(FUSED, collection.catalogue))
        past = PastIndex(store, collection.index.dim, collection.profile.vocabulary.heading)
        instants: list[int] = []
        for number in range(4):
            grow(store, rng, number)
            instants.append(refreshed(collection))
            for at in range(6):
                asked, then = draw_asked(rng), int(rng.choice(instants)) if at % 2 else None
                may, may_not = (
                    retriever.retrieve(
                        asked.question,
                        replace(asked.decision, may_know_existence=knows, known_at=then),
                        asked.k,
                        asked.where,
                    )
                    for knows in (True, False)
                )
                assert may_not.withheld.hidden == ()
                assert replace(may, withheld=may_not.withheld) == may_not
                known_at = instants[-1] if then is None else then
                asked = asked._replace(decision=replace(asked.decision, known_at=then))
                with past.at(known_at) as rows:
                    expected = hidden_by_two_searches(collection, rows, asked, may, known_at)
                assert expected == [(one.chunk_id, one.reasons) for one in may.withheld.hidden]
                told += len(expected)
    return told


@settings(max_examples=examples(20))
@given(seed=seeds)
def test_evidence_tells_of_hidden_passages_what_a_second_search_would(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By name and reason, in order, now and as of then; everything else is as for a session that must not know."""
    run_evidence(seed, tmp_path_factory.mktemp("evidence"))


def test_passages_are_hidden_in_these_worlds(tmp_path: Path) -> None:
    """So that the law proves something."""
    assert run_evidence(1, tmp_path) > 20
