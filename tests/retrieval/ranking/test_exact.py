"""The fused ranker finds what a plain sort over every label finds: at any instant, for any session and history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.retrieval import Retriever
from carag.retrieval.ranking import FUSED, Best, best_of, ranker, ranker_by_name
from carag.store.store import CorpusStore
from tests.retrieval.ranking.stores import (
    Asked,
    Clock,
    collection_of,
    draw_asked,
    every,
    expected_of,
    grow,
    refreshed,
)
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.collection import Collection
    from carag.retrieval import Evidence

seeds = st.integers(0, 2**32 - 1)


def retrieved(retriever: Retriever, asked: Asked, known_at: int | None) -> tuple[Evidence, Best]:
    """Ask, and see what was scored."""
    kept: list[Best] = []

    def seen(*given: Any, **named: Any) -> Best:
        kept.append(best_of(*given, **named))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranker, "best_of", seen)
        decision = replace(asked.decision, known_at=known_at, may_know_existence=False)
        found = retriever.retrieve(asked.question, decision, asked.k, asked.where)
    return found, kept[-1]


def agrees(collection: Collection, retriever: Retriever, asked: Asked, instant: int, *, is_past: bool) -> int:
    """Hold an answer against the plain one; return how many passages it has."""
    found, best = retrieved(retriever, asked, instant if is_past else None)
    expected = expected_of(collection, asked, instant)
    assert every(found) == (*expected[:2], *expected[3:5], expected.about)
    np.testing.assert_allclose(best.scores, expected.scores, rtol=0, atol=1e-9)
    assert found.words is not None
    np.testing.assert_allclose(found.words.share, expected.share, rtol=0, atol=1e-9)
    assert len(found.passages) == min(asked.k, found.admissible)
    if found.about is not None:
        assert {one.chunk_id for one in found.shown} <= set(expected.chunk_ids[: found.about])
    assert set(found.plan.split("/")) <= {"certified"}
    return len(found.passages)


def run(seed: int, home: Path, steps: int = 5, questions: int = 8) -> int:
    """Let a store grow, and ask at every step of the present, and of an instant before, again."""
    rng, asked_of = np.random.default_rng(seed), 0
    with CorpusStore.open(home / "corpus.db", clock=Clock()) as store:
        collection = collection_of(store, home)
        retriever = Retriever(collection, ranker_by_name(FUSED, collection.catalogue))
        instants: list[int] = []
        for number in range(steps):
            grow(store, rng, number)
            instants.append(refreshed(collection))
            for _ in range(questions):
                asked = draw_asked(rng)
                asked_of += agrees(collection, retriever, asked, instants[-1], is_past=False)
                then = int(rng.choice(instants))
                agrees(collection, retriever, asked, then, is_past=True)
        collection.close()
    return asked_of


@given(seeds)
@settings(max_examples=examples(4, least=1))
def test_what_is_found_is_what_a_plain_sort_finds(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Ids, order, similarities, scores, what is named and how many are about it; for the past, after more came in."""
    run(seed, tmp_path_factory.mktemp("store"))


@pytest.mark.full
def test_a_longer_count_of_stores(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sixty stores, 4,800 questions, most of which find something."""
    found = [run(seed, tmp_path_factory.mktemp("store")) for seed in range(60)]
    assert sum(found) > 4_800


def test_without_a_store_there_is_nothing_to_rank(tmp_path: Path) -> None:
    """An empty collection has no best."""
    with CorpusStore.open(tmp_path / "corpus.db", clock=Clock()) as store:
        collection = collection_of(store, tmp_path)
        retriever = Retriever(collection, ranker_by_name(FUSED, collection.catalogue))
        found = retriever.retrieve(*draw_asked(np.random.default_rng(0))[:2], 8)
        assert (found.passages, found.admissible, found.known_at) == ((), 0, None)
        collection.close()
