"""What a search reports about rows that its policy refuses, compared with a model of every row."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index import HiddenRows, Index, Plan, SearchResult
from carag.policy import NEVER, QUARANTINE, Mask, Policy, Search, policy_word
from carag.policy.mask import ANY_AUDIENCE

# Rows without a label are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")

TIMES = (0, 10, 20, NEVER - 1, NEVER)
EXACT = (Plan.EXACT, Plan.CERTIFIED)
LAST = NEVER - 1


class Drawn:
    """An index over few directions, so that ties are common; some rows relabelled, deleted or added late."""

    def __init__(self, seed: int, rows: int, dim: int) -> None:
        rng = np.random.default_rng(seed)
        self.vectors = rng.integers(-2, 3, (rows, dim)).astype(np.float32)
        self.vectors[~self.vectors.any(axis=1)] = 1.0
        self.public_at, self.expires_at = rng.choice(TIMES, rows), rng.choice([20, NEVER, NEVER], rows)
        self.entities, self.audiences = rng.integers(0, 4, rows), rng.choice([0, 0, 1, 2], rows)
        self.index = Index(dim, M=3, ef_construction=10)
        late = rows - rows // 5
        for part in (slice(0, late), slice(late, rows)):
            self.index.add(
                self.vectors[part],
                self._words(rng, rows)[part],
                np.arange(rows)[part],
                public_at=self.public_at[part],
                expires_at=self.expires_at[part],
                entities=self.entities[part],
                audiences=self.audiences[part],
                allow_quarantine=True,
            )
        moved = rng.permutation(rows)[: rows // 4]
        self.index.relabel(moved, self._words(rng, moved.size), allow_quarantine=True)
        self.index.delete(rng.permutation(rows)[: rows // 6])
        self.live = self.index.keys()

    def _words(self, rng: np.random.Generator, count: int) -> Any:
        words = policy_word(rng.integers(0, 8, count))
        closed = rng.integers(0, 12, count)
        return np.where(closed == 0, 3, np.where(closed == 1, words | QUARANTINE, words))

    def admits(self, search: Search) -> dict[int, bool]:
        """Ask of every live row whether a search may find it."""
        alive_at = search.as_of if search.alive_at is None else search.alive_at
        words = self.index.words(self.live).tolist()
        return {
            key: search.policy.admits(word, int(self.entities[key]), int(self.audiences[key]))
            and bool(self.public_at[key] <= search.as_of and alive_at < self.expires_at[key])
            for key, word in zip(self.live.tolist(), words, strict=True)
        }

    def nearest(self, query: Any, search: Search) -> list[float]:
        """Return the similarities of all rows that a search may find, in float64, the greatest first."""
        keys = [key for key, may in self.admits(search).items() if may]
        rows = self.vectors[keys].astype(np.float64)
        return sorted(rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query), reverse=True)


drawn = st.builds(
    Drawn, st.integers(0, 2**32 - 1), st.one_of(st.integers(0, 60), st.integers(100, 300)), st.integers(1, 6)
)
masks = st.builds(lambda r, f: Mask(r, f & ~r), st.integers(0, 7), st.integers(0, 7))
policies = st.builds(
    lambda some, deny, shared: Policy(*some, deny_entities=deny, audiences=shared),
    st.lists(masks, max_size=3),
    st.sets(st.integers(0, 3), max_size=2),
    st.sets(st.integers(0, 3)),
)
instants = st.sampled_from([0, 10, 15, 20, LAST])
searches = st.builds(Search, policies, instants)
widers = st.one_of(st.none(), searches)
counts = st.one_of(st.integers(1, 12), st.integers(1, 320))


def everything(among: Search | None) -> Search:
    return among or Search(Policy(Mask(), audiences=ANY_AUDIENCE), LAST)


def asked(index: Index, query: Any, k: int, search: Search, **more: Any) -> SearchResult:
    return index.search(query, k, search.policy, as_of=search.as_of, alive_at=search.alive_at, **more)


def bytes_of(result: SearchResult) -> tuple[object, ...]:
    arrays = result.keys, result.similarities, result.counts
    return *(array.tobytes() for array in arrays), result.stats.admissible


@given(drawn, searches, widers, counts, counts, st.sampled_from(Plan), st.sampled_from([0, 20, 400]))
def test_looking_for_hidden_rows_changes_no_answer(made, search, among, k, more, plan, limit):
    """Rows, order, scores, count and plan stay the same, to the last byte."""
    query = np.arange(1.0, made.index.dim + 1)
    alone = asked(made.index, query, k, search, plan=plan, exact_limit=limit)
    both = asked(
        made.index, query, k, search, plan=plan, exact_limit=limit, also_hidden=more, hidden_among=among
    )
    assert bytes_of(alone) == bytes_of(both)
    assert (alone.stats.plans, alone.stats.whys) == (both.stats.plans, both.stats.whys)
    assert alone.stats.distance_computations.tolist() == both.stats.distance_computations.tolist()


@given(drawn, searches, widers, counts, counts, st.sampled_from(Plan), st.sampled_from([0, 20, 400]))
def test_hidden_rows_are_those_that_a_second_search_finds_and_the_policy_refuses(
    made, search, among, k, more, plan, limit
):
    """Byte for byte if both plans are exact or both estimate; otherwise as many, admissible and with true scores."""
    query, wider = np.arange(1.0, made.index.dim + 1), everything(among)
    both = asked(
        made.index, query, k, search, plan=plan, exact_limit=limit, also_hidden=more, hidden_among=among
    )
    second = asked(made.index, query, more, wider, plan=plan, exact_limit=limit)
    assert second.stats.admissible == both.wider.stats.admissible
    assert second.counts.tolist() == both.wider.counts.tolist()
    if both.wider.stats.plans != (Plan.GRAPH,):
        assert bytes_of(second) == bytes_of(both.wider)
    may, refused = made.admits(wider), {key for key, may in made.admits(search).items() if not may}
    found = both.wider.keys[0][: both.wider.counts[0]].tolist()
    assert all(may[key] for key in found)
    near = [
        (key, similarity) for key, similarity in next(iter(both.wider)) if key in refused
    ]  # nearest first, as found
    hidden = both.hidden
    count = int(hidden.counts[0])
    assert near == list(
        zip(hidden.keys[0][:count].tolist(), hidden.similarities[0][:count].tolist(), strict=True)
    )
    assert hidden.words[0][:count].tolist() == made.index.words([key for key, _ in near]).tolist()
    assert set(hidden.keys[0][count:].tolist()) <= {-1}
    assert set(hidden.words[0][count:].tolist()) <= {0}
    assert set(hidden.similarities[0][count:].tolist()) <= {-np.inf}


@given(drawn, searches, widers, counts, counts, st.sampled_from(EXACT))
def test_exact_plans_find_the_nearest_hidden_rows_there_are(made, search, among, k, more, plan):
    """They equal the float64 model of all rows, except where similarities differ by less than 1e-6."""
    query, wider = np.arange(1.0, made.index.dim + 1), everything(among)
    both = asked(made.index, query, k, search, plan=plan, also_hidden=more, hidden_among=among)
    best = made.nearest(query, wider)[:more]
    assert np.allclose(best, both.wider.similarities[0][: len(best)], rtol=0, atol=1e-6)
    assert len(best) == both.wider.counts[0]


@given(drawn, searches, st.integers(1, 20), st.integers(1, 20), st.sampled_from(Plan), st.integers(0, 5))
def test_each_query_of_several_has_its_own_hidden_rows(made, search, k, more, plan, count):
    """In a batch or alone, whatever the number of threads."""
    queries = np.random.default_rng(count).standard_normal((count, made.index.dim))
    both = asked(made.index, queries, k, search, plan=plan, also_hidden=more, threads=3)
    assert (count, more) == both.hidden.keys.shape == both.hidden.words.shape
    assert len(both.hidden) == len(both.wider) == count
    for at, query in enumerate(queries):
        one = asked(made.index, query, k, search, plan=plan, also_hidden=more)
        assert one.keys[0].tobytes() == both.keys[at].tobytes()
        for name in ("keys", "similarities", "words"):
            assert getattr(one.hidden, name)[0].tobytes() == getattr(both.hidden, name)[at].tobytes()


@pytest.fixture(scope="module")
def big() -> tuple[Index, Any]:
    rng, rows, dim = np.random.default_rng(5), 12_000, 24
    centres = rng.standard_normal((60, dim))
    vectors = centres[rng.integers(0, 60, rows)] + 0.7 * rng.standard_normal((rows, dim))
    index = Index(dim, M=8, ef_construction=60, seed=1)
    index.add(vectors, policy_word(rng.integers(0, 4, rows)))
    return index, centres[rng.integers(0, 60, 80)] + 0.9 * rng.standard_normal((80, dim))


def test_a_walk_over_the_graph_finds_no_less_of_what_is_hidden(big):
    """The rows met by the first walk include as many of the nearest as a second walk finds, without further steps."""
    index, queries = big
    for policy in (Mask(required=1), Mask(forbidden=3), Mask()):
        true = index.search(queries, 10, Mask(), plan="exact").keys
        alone = index.search(queries, 10, Mask(), plan="graph").keys
        both = index.search(queries, 10, policy, plan="graph", also_hidden=10)
        assert set(both.wider.stats.plans) == {Plan.GRAPH}
        walked = both.wider.stats.hops[np.array(both.stats.plans) == Plan.GRAPH]
        assert walked.size > 40
        assert not walked.any()
        hits = [
            sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), true.tolist(), strict=True))
            for found in (both.wider.keys, alone)
        ]
        assert hits[0] >= hits[1]


@pytest.mark.parametrize("plan", EXACT)
def test_exact_plans_score_each_row_once_for_both(big, plan):
    """The second pass omits rows that the first has scored."""
    index, queries = big
    both = index.search(queries, 10, Mask(required=1), plan=plan, also_hidden=10)
    second = index.search(queries, 10, Mask(), plan=plan)
    together = both.stats.distance_computations + both.wider.stats.distance_computations
    assert (together <= second.stats.distance_computations + 100).all()
    assert (both.stats.distance_computations > len(index) // 3).all()


def test_which_rows_are_refused_is_decided_as_of_the_search():
    """A row that opens later, or has ended, is refused now, though the policy admits its word."""
    index = Index(2)
    index.add([[1, 0]] * 3, [policy_word(1)] * 3, public_at=[0, 50, 0], expires_at=[NEVER, NEVER, 10])
    now = index.search([1, 0], 3, Mask(required=1), as_of=20, also_hidden=3)
    assert (now.keys.tolist(), now.hidden.keys.tolist()) == ([[0, -1, -1]], [[1, -1, -1]])
    ended = Search(Policy(Mask()), 5)
    assert index.search(
        [1, 0], 3, Mask(required=1), as_of=20, also_hidden=3, hidden_among=ended
    ).hidden.keys.tolist() == [[2, -1, -1]]


def test_rows_that_are_deleted_quarantined_or_unlabelled_are_never_reported():
    """Whatever the wider policy: it is closed by default like any other."""
    index = Index(2)
    words = [policy_word(1), policy_word(1) | QUARANTINE, 1, policy_word(2)]
    index.add([[1, 0]] * 4, words, allow_quarantine=True)
    index.delete([0])
    for plan in Plan:
        found = index.search([1, 0], 4, Mask(required=4), plan=plan, also_hidden=4)
        assert (found.counts.tolist(), found.hidden.keys.tolist()) == ([0], [[3, -1, -1, -1]])
    assert index.search([1, 0], 4, Policy(), also_hidden=4).hidden.counts.tolist() == [1]


@pytest.mark.parametrize("also_hidden", [-1, 2**31, True, 1.0, "1", None, np.array([1, 2])])
def test_a_bad_number_of_hidden_rows_is_refused(build, also_hidden):
    """The error states what came and what is wanted."""
    with pytest.raises(InvalidArgument, match=r"also_hidden is .*; want an integer from 0 to 2147483647"):
        build().search(np.ones(8), 1, Mask(), also_hidden=also_hidden)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"also_hidden": 2**20 + 1},
            "also_hidden is 1,048,577; want at most 1,048,576, or the 50 rows of the index",
        ),
        ({"also_hidden": 1, "hidden_among": Mask()}, r"hidden_among is .*; want a carag.policy.Search"),
        ({"also_hidden": 1, "hidden_among": 5}, r"hidden_among is 5; want a carag.policy.Search"),
        ({"hidden_among": Search(Policy(Mask()), 0)}, r"also_hidden, their number, is 0; give both"),
        ({"also_hidden": 1, "hidden_among": Search(Policy(Mask()), 9, 3)}, r"alive_at \(minute 3\)"),
    ],
)
def test_senseless_requests_are_refused(build, more, message):
    """They are refused before anything is searched."""
    with pytest.raises(InvalidArgument, match=message):
        build().search(np.ones(8), 1, Mask(), **more)
    assert build().search(np.ones(8), 2**20, Mask(), also_hidden=np.int64(2)).wider.keys.shape == (1, 2)


def test_hidden_rows_that_were_not_asked_for_are_an_error(build):
    """The error says how to ask; an empty list would suggest that no rows are hidden."""
    found = build().search(np.ones(8), 3, Mask(required=1))
    for name in ("hidden", "wider"):
        with pytest.raises(InvalidArgument, match="did not look for hidden rows; pass also_hidden"):
            getattr(found, name)


def test_hidden_rows_are_kept_with_a_result(build):
    """They survive copies, pickling and later searches."""
    index = build()
    found = index.search(np.ones(8), 3, Mask(required=7), also_hidden=5)
    for other in range(3):
        index.search(np.eye(8)[other], 5, Mask(), also_hidden=3 + other)
    kept = found.hidden
    for one in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):  # noqa: S301 - our own bytes
        assert one.hidden.keys.tolist() == kept.keys.tolist()
        assert one.hidden.words.tolist() == kept.words.tolist()
    assert isinstance(kept, HiddenRows)

    assert 0 < kept.counts[0] <= 5
