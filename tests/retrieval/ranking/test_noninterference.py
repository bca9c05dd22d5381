"""What a session may not use changes nothing that the ranker says: no id, no bit of a score, no word of a topic."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from carag.index import Index, TextIndex
from carag.policy import Mask, Policy
from tests.retrieval.ranking.worlds import Said, World, draw_world, said_of, with_other_hidden
from tests.sizes import examples

OTHERS = 3
"""Worlds with other hidden text that are made of each that is drawn."""


def differing(seeds: range) -> tuple[int, list[int], list[Said]]:
    """Compare drawn worlds, and others with other hidden text, each with the world in which nothing is hidden.

    Returns
    -------
    tuple
        How many worlds with hidden text were asked; the seeds of those that differ; what the worlds without it said.
    """
    found, said = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        world = draw_world(rng)
        visible = world.visible()
        expected = said_of(visible)
        worlds = [world, *(with_other_hidden(rng, visible) for _ in range(OTHERS))]
        found += [seed for one in worlds if said_of(one) != expected]
        said.append(expected)
    return len(seeds) * (1 + OTHERS), found, said


@pytest.mark.parametrize(
    "drawn",
    [range(examples(60)), pytest.param(range(60, 1_000), marks=pytest.mark.release)],
    ids=["few worlds", "3,760 worlds"],
)
def test_hidden_text_changes_no_bit(drawn: range) -> None:
    """And what is drawn is worth drawing: most worlds have passages, words, and something that the question names."""
    asked, found, said = differing(drawn)
    assert found == []
    assert asked == len(drawn) * 4
    counts = Counter(
        name
        for one in said
        for name, holds in {
            "passages": one.keys,
            "words": float.fromhex(one.share) > 0,
            "named": one.topic[0],
            "absent": one.topic[1],
            "missing": one.topic[2],
            "about": one.about,
        }.items()
        if holds
    )
    assert min(counts[name] for name in ("passages", "words", "named")) > len(drawn) / 2
    assert min(counts[name] for name in ("absent", "about")) > len(drawn) / 8


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(10))
def test_the_long_count(chunk: int) -> None:
    """10^5 worlds with hidden text, in ten parts; those of one part are the same on every machine."""
    first = 10**6 + chunk * 2_500
    asked, found, _ = differing(range(first, first + 2_500))
    assert (asked, found) == (10_000, [])


# --- the comparison has eyes ---


def leaking(world: World) -> int:
    """Count the worlds with other hidden text that give another answer."""
    rng = np.random.default_rng(0)
    expected = said_of(world)
    return sum(said_of(with_other_hidden(rng, world)) != expected for _ in range(examples(40)))


def wide_policy() -> Policy:
    """All rows but those in quarantine."""
    return Policy(Mask())


def a_world() -> World:
    """The first drawn in which several passages are found by words and something is named."""
    for seed in range(1_000):
        world = draw_world(np.random.default_rng(seed)).visible()
        said = said_of(world)
        if len(said.keys) > 3 and said.about and float.fromhex(said.share) > 0:
            return world
    raise AssertionError


@pytest.mark.parametrize("leak", ["documents", "scores", "counts", "neighbours"])
def test_a_ranker_that_looks_at_what_is_hidden_is_found_out(
    leak: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the question among all documents, statistics of all passages, or the nearest of all rows."""
    world = a_world()
    assert leaking(world) == 0
    wide = [replace(one, policy=wide_policy()) for one in world.decision.searches[:1]]
    documents, search, nearest = TextIndex.documents, TextIndex.search, Index.search
    if leak == "documents":
        monkeypatch.setattr(TextIndex, "documents", lambda self, policy: documents(self, wide))
    elif leak == "scores":

        def of_all(self, terms, *, policy, **more):
            """The best score of all passages as the unit of scores."""
            found, every = (
                search(self, terms, policy=policy, **more),
                search(self, terms, policy=wide, **more),
            )
            if len(found):
                found.scores[0] = every.scores[0]
            return found

        monkeypatch.setattr(TextIndex, "search", of_all)
    elif leak == "counts":

        def how_often(self, terms, *, policy, **more):
            """How many of all passages hold each term."""
            found, every = (search(self, terms, policy=one, **more) for one in (policy, wide))
            return replace(found, frequencies=every.frequencies)

        monkeypatch.setattr(TextIndex, "search", how_often)
    else:

        def of_each(self, query, k, policy, **more):
            """One row fewer where a hidden one is nearer."""
            found = nearest(self, query, k, policy, **more)
            every = nearest(self, query, 1, wide_policy(), **more)
            if found.counts[0] and every.keys[0, 0] != found.keys[0, 0]:
                found.similarities[0, 0] = np.nextafter(found.similarities[0, 0], 2)
            return found

        monkeypatch.setattr(Index, "search", of_each)
    assert leaking(world) > 0
