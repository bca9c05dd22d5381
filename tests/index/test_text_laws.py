"""A text index compared with its plain definition: after any history, the same answers to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.index import TextIndex
from tests.index.plain_text import (
    AS_OF,
    World,
    add,
    draw_chunks,
    draw_label,
    draw_policy,
    draw_searches,
    draw_terms,
    hits,
    label,
    overlap,
)
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

# Labels without a schema version are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")

seeds = st.integers(0, 2**32 - 1)


class History:
    """An index under random changes, and the model of what it must hold."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.rng = np.random.default_rng(seed)
        self.index, self.world, self.path = TextIndex(), World(), directory / "words.carag"
        self.next_key = 0

    def some(self, keys):
        keys = sorted(keys)
        return (
            self.rng.permutation(keys)[: self.rng.integers(0, min(len(keys), 6) + 1)].tolist() if keys else []
        )

    def add(self):
        chunks = draw_chunks(self.rng, int(self.rng.integers(0, 12)), 10 * self.next_key)
        add(self.index, chunks)
        self.world.chunks |= chunks
        self.next_key += 1 + len(chunks)

    def label(self):
        """Close some labels and open others, by chunk or by document, as far as windows allow."""
        closes = self.some(self.world.labels)
        for key in closes:
            del self.world.labels[key]
        chunks = list(self.world.chunks)
        opened = {}
        for _ in range(int(self.rng.integers(0, 12)) if chunks else 0):
            one = int(self.rng.choice(chunks))
            drawn = draw_label(self.rng, one)
            together = [one]
            if self.rng.random() < 0.5:
                together = [
                    c for c in chunks if self.world.chunks[c].document == self.world.chunks[one].document
                ]
            for chunk in together:
                fresh = drawn._replace(chunk=chunk)
                live = [*self.world.labels.values(), *opened.values()]
                if not any(old.chunk == chunk and overlap(old, fresh) for old in live):
                    self.next_key += 1
                    opened[10**6 - 7 * self.next_key % 10**6] = fresh
        label(self.index, opened, closes)
        self.world.labels |= opened

    def delete(self):
        gone = self.some(self.world.chunks)
        self.index.delete(gone)
        for key in gone:
            del self.world.chunks[key]
        self.world.labels = {key: one for key, one in self.world.labels.items() if one.chunk not in gone}

    def compact(self):
        self.index.compact()

    def save_and_load(self):
        self.index.save(self.path)
        self.index = TextIndex.load(self.path, mmap=bool(self.rng.random() < 0.5))
        self.index.verify()

    def step(self):
        steps = [
            self.add,
            self.add,
            self.label,
            self.label,
            self.label,
            self.delete,
            self.compact,
            self.save_and_load,
        ]
        steps[int(self.rng.integers(0, len(steps)))]()

    def ask(self):
        """Ask one question in every way: all, the k best, those above a floor, and term counts."""
        rng, index = self.rng, self.index
        terms = draw_terms(rng, 6)
        policy, as_of = draw_policy(rng), int(rng.choice(AS_OF))
        if rng.random() < 0.5:
            policy, as_of = draw_searches(rng), None
        k1, b = rng.choice([0.0, 0.4, 0.9, 1.0], 2).tolist()
        expected = self.world.answer(terms, policy, as_of, k1, b)
        admitted = self.world.admitted(policy, as_of)
        found = index.search(terms, None, policy, as_of=as_of, k1=k1, b=b)
        assert expected == hits(found)
        assert (len(admitted), len(expected)) == (found.stats.admissible, found.stats.matched)
        k = int(rng.integers(1, 6))
        floor = float(rng.choice([0.0, *(hit.score for hit in expected)]))
        best = index.search(terms, k, policy, as_of=as_of, k1=k1, b=b, floor=floor)
        assert [hit for hit in expected if hit.score >= floor][:k] == hits(best)
        counts = index.count(terms, policy, as_of=as_of)
        texts = [self.world.chunks[key] for key in admitted]
        assert (len(texts), sum(len(t.heading + t.tokens) for t in texts)) == counts[:2]
        often = tuple(sum(term in t.heading + t.tokens for t in texts) for term in terms)
        assert often == counts.frequencies == found.frequencies == best.frequencies
        self.ask_for_lists(policy, as_of, admitted)

    def ask_for_lists(self, policy, as_of, admitted):
        """Compare the documents with admissible chunks, and all such chunks of some of them."""
        document = {chunk: self.world.chunks[chunk].document for chunk in admitted}
        assert sorted(set(document.values())) == self.index.documents(policy, as_of=as_of).tolist()
        asked = self.rng.integers(0, 31, int(self.rng.integers(0, 12)))
        expected = sorted(
            (key, one, document[one]) for one, key in admitted.items() if document[one] in asked
        )
        found = self.index.admissible(policy, asked, as_of=as_of)
        assert expected == list(zip(*(column.tolist() for column in found), strict=True))

    def holds(self):
        assert sorted(self.world.chunks) == self.index.chunks().tolist()
        assert sorted(self.world.labels) == self.index.labels().tolist()


def run(seed: int, steps: int, questions: int, directory: Path) -> int:
    history = History(seed, directory)
    for _ in range(steps):
        history.step()
        history.holds()
        for _ in range(questions):
            history.ask()
    return steps * questions


@given(seeds)
@settings(max_examples=examples(40), deadline=None)
def test_after_any_history_answers_are_those_of_the_definition(tmp_path_factory, seed):
    """After adds, labels, closes, deletes, compactions and saves: scores to the last bit, order, counts."""
    run(seed, 12, 3, tmp_path_factory.mktemp("history"))


@pytest.mark.release
def test_a_part_of_the_long_count(tmp_path):
    """A tenth of the full count."""
    assert 10**4 <= sum(run(seed, 20, 5, tmp_path) for seed in range(100))


@pytest.mark.full
def test_the_long_count(tmp_path):
    """10^5 questions after histories of twenty steps."""
    assert 10**5 <= sum(run(10**6 + seed, 20, 5, tmp_path) for seed in range(1_000))
