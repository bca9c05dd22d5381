"""Many threads search, relabel and write at once; the GIL is released, so they run in parallel in C."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from carag.errors import InvalidArgument
from carag.index import Index, Plan
from carag.policy import Mask, policy_word

HIDDEN, SHOWN = policy_word(0), policy_word(1)


def test_search_while_others_relabel_and_add():
    """Rows that are never opened are never returned, and rows that stay open are always found."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((600, 8))
    index = Index(8, M=4, ef_construction=20)
    index.add(vectors, [HIDDEN if i % 2 else SHOWN for i in range(600)])
    flickering = np.arange(0, 600, 4)
    steady = set(range(2, 600, 4))

    def relabel(seed):
        local = np.random.default_rng(seed)
        for _ in range(150):
            index.relabel(flickering, policy_word(local.integers(0, 2, flickering.size)))

    def add():
        for i in range(60):
            key = index.add(vectors[i : i + 1], [HIDDEN])
            if i % 2:
                index.delete(key)

    def change_all():
        for _ in range(100):
            index.relabel_where(Mask(required=1), set=8)
            index.relabel_where(Mask(required=8), clear=8)
        for _ in range(3):
            index.consolidate(threads=1)

    def search(seed):
        for i in range(60):
            plan = list(Plan)[(i + seed) % len(Plan)]
            found = index.search(vectors[i], 1_000, Mask(required=1), plan=plan)
            got = set(found.keys[0][: found.counts[0]].tolist())
            assert not any(key % 2 for key in got)
            assert steady <= got
            count = int(found.counts[0])
            again = index.similarities(vectors[i], found.keys[0][:count])
            if plan in (Plan.EXACT, Plan.CERTIFIED):
                assert found.similarities[0][:count].tobytes() == again.tobytes()

    with ThreadPoolExecutor(7) as pool:
        jobs = [pool.submit(relabel, 1), pool.submit(relabel, 2), pool.submit(add), pool.submit(change_all)]
        jobs += [pool.submit(search, seed) for seed in range(3)]
        for job in jobs:
            job.result()
    assert () == index.check()


def test_closing_under_a_search_is_safe(build):
    """close() in one thread lets running calls finish and makes later ones raise."""
    for _ in range(20):
        index = build(200, 16)

        def search(index=index):
            try:
                while True:
                    index.search(np.ones((50, 16)), 10, Mask(), plan="graph")
            except InvalidArgument:
                return True

        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(search) for _ in range(2)]
            index.close()
            assert all(job.result() for job in jobs)
