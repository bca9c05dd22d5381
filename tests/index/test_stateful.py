"""The index compared with a dict: after any sequence of changes, the same rows and the same answers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from carag.index import Index, Plan
from carag.policy import QUARANTINE, Mask, Policy, policy_word
from tests.sizes import examples

# Rows without a label are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")

DIM = 3
coordinates = st.lists(st.integers(-2, 2), min_size=DIM, max_size=DIM).filter(any)
words = st.one_of(
    st.integers(0, 7).map(policy_word),
    st.integers(0, 7),  # unlabelled
    st.integers(0, 7).map(lambda bits: policy_word(bits) | QUARANTINE),
)
masks = st.builds(lambda r, f: Mask(r, f & ~r), st.integers(0, 7), st.integers(0, 7))

audiences = st.sampled_from([0, 0, 1, 2, 64])


class IndexMachine(RuleBasedStateMachine):
    """``rows`` is what the index should hold: key -> (vector, word, public_at, entity, audience)."""

    views = 0

    def __init__(self):
        super().__init__()
        self.index = Index(DIM, M=2, ef_construction=5, seed=1, views=self.views)
        self.rows = {}

    def some_key(self, data):
        return data.draw(st.sampled_from(sorted(self.rows)))

    @rule(
        rows=st.lists(
            st.tuples(coordinates, words, st.sampled_from([0, 50, 99]), st.integers(0, 2), audiences),
            max_size=8,
        ),
        data=st.data(),
    )
    def add(self, rows, data):
        free = st.integers(0, 10**6).filter(lambda key: key not in self.rows)
        keys = data.draw(st.lists(free, min_size=len(rows), max_size=len(rows), unique=True))
        vectors = np.array([row[0] for row in rows], dtype=float).reshape(-1, DIM)
        self.index.add(
            vectors,
            np.array([row[1] for row in rows], dtype=np.uint32),
            keys,
            public_at=[row[2] for row in rows],
            entities=[row[3] for row in rows],
            audiences=[row[4] for row in rows],
            allow_quarantine=True,
        )
        self.rows |= dict(zip(keys, rows, strict=True))

    @precondition(lambda self: self.rows)
    @rule(word=words, data=st.data())
    def relabel(self, word, data):
        key = self.some_key(data)
        self.index.relabel([key], [word], allow_quarantine=True)
        vector, _, *terms = self.rows[key]
        self.rows[key] = (vector, word, *terms)

    @rule(
        mask=masks,
        denied=st.sets(st.integers(0, 2)),
        shared=st.sets(audiences),
        on=st.integers(0, 7),
        as_of=st.sampled_from([0, 60]),
    )
    def relabel_where(self, mask, denied, shared, on, as_of):
        policy = Policy(mask, deny_entities=denied, audiences=shared)
        admitted = {
            key: (vector, word & ~(7 & ~on) | on, public_at, entity, audience)
            for key, (vector, word, public_at, entity, audience) in self.rows.items()
            if policy.admits(word, entity, audience) and public_at <= as_of
        }
        assert len(admitted) == self.index.relabel_where(policy, set=on, clear=7 & ~on, as_of=as_of)
        self.rows |= admitted

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def delete(self, data):
        key = self.some_key(data)
        self.index.delete([key])
        del self.rows[key]

    @rule(mmap=st.booleans())
    def save_and_load(self, mmap):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "index.carag")
            self.index.save(path)
            self.index = Index.load(path, mmap=mmap, views=self.views)
            self.index.verify()

    @rule()
    def consolidate(self):
        self.index.consolidate()

    @rule(
        query=coordinates,
        mask=masks,
        shared=st.sets(audiences),
        as_of=st.sampled_from([0, 60]),
        k=st.integers(1, 9),
        plan=st.sampled_from(Plan),
    )
    def search(self, query, mask, shared, as_of, k, plan):
        policy = Policy(mask, audiences=shared)
        found = self.index.search(query, k, policy, plan=plan, as_of=as_of, ef_search=4)
        target = np.array(query) / np.linalg.norm(query)
        true = {
            key: float(np.array(vector) @ target / np.linalg.norm(vector))
            for key, (vector, word, public_at, _, audience) in self.rows.items()
            if mask.admits(word) and public_at <= as_of and audience in {0, *shared}
        }
        got = found.keys[0][: found.counts[0]].tolist()
        assert min(k, len(true)) == len(got) == len(set(got))
        assert set(got) <= set(true)
        assert np.allclose([true[key] for key in got], found.similarities[0][: len(got)], atol=1e-6)
        if found.stats.plans[0] in (Plan.EXACT, Plan.CERTIFIED):
            best = sorted(true.values(), reverse=True)[:k]
            assert np.allclose(best, [true[key] for key in got], atol=1e-6)

    @invariant()
    def holds_the_same_rows(self):
        assert len(self.rows) == len(self.index)
        assert sorted(self.rows) == self.index.keys().tolist()
        if self.rows:
            keys = sorted(self.rows)
            assert [self.rows[key][1] for key in keys] == self.index.words(keys).tolist()
            assert [self.rows[key][3] for key in keys] == self.index.entities(keys).tolist()
            assert [self.rows[key][4] for key in keys] == self.index.audiences(keys).tolist()
        assert () == self.index.check()


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
