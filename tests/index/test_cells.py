"""Scans by cells are complete, admissible and the same from memory and from a file; forged files are refused."""

from __future__ import annotations

import numpy as np
import pytest

from carag.errors import CorruptFile
from carag.index import Index
from carag.policy import Mask, Policy, policy_word

ROWS, DIM = 10_000, 24
OPEN = 1 << 3
"""Set on nine rows in ten."""


@pytest.fixture(scope="module")
def grouped():
    """Rows around two hundred directions, a thousand companies and two instants; and queries of the same kind."""
    rng = np.random.default_rng(8)
    centres = rng.standard_normal((200, DIM))
    groups = rng.integers(0, 200, ROWS + 50)
    vectors = (centres[groups] + 0.4 * rng.standard_normal((ROWS + 50, DIM))).astype(np.float32)
    bits = np.where(rng.random(ROWS) < 0.9, OPEN, 0) | (groups[:ROWS] % 2)
    index = Index(DIM, M=8, ef_construction=40)
    entities = rng.integers(0, 1_000, ROWS)
    index.add(vectors[:ROWS], policy_word(bits), public_at=groups[:ROWS] // 50, entities=entities)
    return index, vectors[ROWS:], bits, entities, groups[:ROWS] // 50


@pytest.fixture
def saved(grouped, tmp_path):
    """The same index in a file."""
    grouped[0].save(tmp_path / "index")
    return tmp_path / "index"


def test_a_scan_looks_at_a_part_and_finds_nearly_all(grouped):
    """Fewer estimates than admissible rows, recall 0.99 or more."""
    index, queries, *_ = grouped
    found, exact = (index.search(queries, 10, Mask(OPEN), as_of=9, plan=plan) for plan in ("scan", "exact"))
    assert found.stats.estimates.mean() < 0.7 * found.stats.admissible
    assert (found.similarities >= exact.similarities[:, -1:]).mean() >= 0.99


@pytest.mark.parametrize("summed", [1, 2, 4])
def test_a_walk_finds_what_lies_in_several_places(grouped, summed):
    """Near a row, between two, and among four from distant groups: the graph alone answers every query."""
    index, *_ = grouped
    rng = np.random.default_rng(summed)
    rows = rng.integers(0, ROWS, (1_000, summed))
    queries = index.vectors(rows.ravel()).reshape(1_000, summed, DIM).sum(axis=1)
    found, exact = (
        index.search(queries, 10, Mask(), as_of=9, plan=plan, fallback=plan != "graph")
        for plan in ("graph", "exact")
    )
    recall = (found.similarities >= exact.similarities[:, -1:]).mean(axis=1)
    assert recall.mean() >= 0.99
    assert np.percentile(recall, 1) >= 0.9
    assert found.stats.distance_computations.mean() < 0.2 * ROWS


def test_a_walk_begins_in_the_nearest_cells(grouped):
    """It estimates the rows of a few cells, and no more under a policy."""
    index, queries, *_ = grouped
    for policy in (Mask(), Mask(OPEN | 1)):
        walked = index.search(queries, 10, policy, as_of=9, plan="graph", ef_search=16, fallback=False)
        assert walked.stats.estimates.min() > 0
        assert walked.stats.estimates.max() < 0.1 * ROWS


def test_terms_are_tested_inside_the_cells(grouped):
    """Instants and deny lists apply to what a scan by cells finds, and no row is lost because of them."""
    index, queries, bits, entities, public_at = grouped
    policy = Policy(Mask(OPEN), deny_entities=range(0, 1_000, 5))
    result = index.search(queries, 10, policy, as_of=2, plan="scan")
    rows = result.keys[result.keys >= 0]
    assert (bits[rows] & OPEN).all()
    assert (public_at[rows] <= 2).all()
    assert (entities[rows] % 5 != 0).all()
    exact = index.search(queries, 10, policy, as_of=2, plan="exact")
    assert (result.similarities >= exact.similarities[:, -1:]).mean() >= 0.99


def test_a_policy_of_the_query_s_neighbourhood_reads_little(grouped):
    """If all admissible rows are near the query, the first cells hold them and the others are not read."""
    index, queries, *_ = grouped
    near = index.search(queries, 10, Mask(OPEN | 1), as_of=9, plan="scan")
    assert near.stats.estimates.min() < 0.3 * near.stats.admissible


def test_a_scan_for_few_rows_near_the_query_reads_little_and_misses_none():
    """One row in fifty is admissible, all of two groups: from there it ends early, from elsewhere late."""
    rng = np.random.default_rng(4)
    centres = rng.standard_normal((100, DIM))
    groups = rng.integers(0, 100, ROWS)
    vectors = (centres[groups] + 0.4 * rng.standard_normal((ROWS, DIM))).astype(np.float32)
    index = Index(DIM, M=8, ef_construction=40)
    index.add(vectors, policy_word(np.where(groups < 2, OPEN, 0)))
    near, far = vectors[groups < 2][:50], vectors[groups >= 2][:50]
    for queries in (near, far):
        found, exact = (index.search(queries, 10, Mask(OPEN), plan=plan) for plan in ("scan", "exact"))
        assert (found.similarities >= exact.similarities[:, -1:]).mean() >= 0.99
        assert (found.stats.estimates.mean() < 0.7 * found.stats.admissible) == (queries is near)


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_cells_are_kept_in_the_file(grouped, saved, tmp_path, mmap):
    """A loaded index has the same cells: the same answers, the same work, the same bytes."""
    index, queries, *_ = grouped
    loaded = Index.load(saved, mmap=mmap)
    loaded.verify()
    assert () == loaded.check()
    ours, theirs = (each.search(queries, 10, Mask(OPEN), as_of=9, plan="scan") for each in (index, loaded))
    assert ours.keys.tobytes() == theirs.keys.tobytes()
    assert ours.stats.estimates.tolist() == theirs.stats.estimates.tolist()
    loaded.save(tmp_path / "again")
    assert saved.read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_forged_members_are_refused(saved, mmap):
    """Members that do not exist or are repeated must not reach a scan, which trusts them."""
    forged = bytearray(saved.read_bytes())
    entry = forged.find(b"members\0")
    at = int.from_bytes(forged[entry + 8 : entry + 16], "little")
    rng = np.random.default_rng(0)
    members = rng.choice(np.array([0, 1, 2, ROWS, 2**32 - 1], dtype=np.uint32), ROWS)
    forged[at : at + 4 * ROWS] = members.tobytes()
    saved.write_bytes(forged)
    with pytest.raises(CorruptFile, match="members"):
        Index.load(saved, mmap=mmap)


def test_same_rows_same_cells(tmp_path):
    """The file is the same for any number of threads, byte for byte."""
    rng = np.random.default_rng(1)
    vectors, words = rng.standard_normal((4_500, 9)), policy_word(rng.integers(0, 4, 4_500))
    for threads in (1, 3):
        index = Index(9, M=4, ef_construction=20)
        index.add(vectors, words, threads=threads)
        index.save(tmp_path / str(threads))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
def test_audiences_alone_decide_as_words_do(share):
    """Whole neighbourhoods are for other audiences: what is found, and what a walk reads before it, is as by words."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((100, DIM))
    groups = rng.integers(0, 100, ROWS)
    vectors = centres[groups] + 0.6 * rng.standard_normal((ROWS, DIM))
    queries = centres[rng.integers(0, 100, 100)] + 0.6 * rng.standard_normal((100, DIM))
    most = round(100 * share)
    words, audiences = (Index(DIM, M=16, ef_construction=60) for _ in range(2))
    words.add(vectors, policy_word(groups << 4 | np.where(groups < most, OPEN, 0)))
    audiences.add(vectors, policy_word(np.zeros(ROWS, np.int64)), audiences=groups + 1)
    shared = Policy(Mask(), audiences=range(1, 1 + most))
    for plan in ("auto", "scan"):
        exact = words.search(queries, 10, Mask(OPEN), plan="exact")
        found = audiences.search(queries, 10, shared, plan=plan)
        assert (found.similarities >= exact.similarities[:, -1:]).mean() >= 0.99
        assert (groups[found.keys] < most).all()
    walks = [
        index.search(queries, 10, policy, plan="graph", ef_search=16, fallback=False)
        for index, policy in ((words, Mask(OPEN)), (audiences, shared))
    ]
    assert walks[0].stats.estimates.tolist() == walks[1].stats.estimates.tolist()
