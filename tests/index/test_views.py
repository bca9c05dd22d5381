"""Materialised views give the index's answers sooner; an outdated view is not asked, and would leak nothing."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from carag.errors import InvalidArgument
from carag.index import Index, Plan, views
from carag.policy import Mask, Policy, policy_word
from tests.index.test_stateful import IndexMachine, coordinates, masks
from tests.sizes import examples

ROOM = 1 << 30
OPEN, CLOSED = policy_word(1), policy_word(2)
POLICY = Policy(Mask(required=1))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Make a view at the first query, unless a test says otherwise."""
    monkeypatch.setattr(views, "QUERIES_BEFORE", 1)


def settle(index):
    """Wait for the views that are being made."""
    maker = index._views._maker
    if maker is not None:
        maker.join()


def filled(n=300, dim=4, *, room=ROOM, seed=0, **terms):
    """Rows of which every second is open, with ties."""
    rng = np.random.default_rng(seed)
    index = Index(dim, M=4, ef_construction=20, views=room)
    index.add(rng.integers(-2, 3, (n, dim)) + 0.5, [CLOSED if i % 2 else OPEN for i in range(n)], **terms)
    return index


def asked(index, query, k=10, policy=POLICY, **when):
    """Return the answer once the view requested for it is made, if any."""
    index.search(query, k, policy, **when)
    settle(index)
    return index.search(query, k, policy, **when)


def same(found, wanted):
    """Count, keys and similarities, to the last bit."""
    return (
        found.keys.tolist() == wanted.keys.tolist()
        and found.counts.tolist() == wanted.counts.tolist()
        and found.similarities.tobytes() == wanted.similarities.tobytes()
        and found.stats.admissible == wanted.stats.admissible
        and found.stats.rows == wanted.stats.rows
    )


# ---------------------------------------------------------------- laws

rows = st.lists(
    st.tuples(
        coordinates,
        st.integers(0, 7).map(policy_word),
        st.sampled_from([0, 50, 99]),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=40,  # few enough that every answer is exact
)
policies = st.builds(
    lambda some, allow, deny, shared: Policy(
        *some, allow_entities=allow, deny_entities=deny, audiences=shared
    ),
    st.lists(masks, min_size=1, max_size=3),
    st.none() | st.sets(st.integers(0, 3)),
    st.sets(st.integers(0, 3), max_size=2),
    st.sets(st.integers(0, 2)),
)


@given(
    rows,
    policies,
    st.lists(coordinates, min_size=1, max_size=3),
    st.integers(1, 70),
    st.sampled_from([0, 60, 99]),
)
@settings(deadline=None)
def test_a_view_answers_what_the_index_would(drawn, policy, queries, k, as_of):
    """Keys in order including ties, similarities to the last bit, and min(k, admissible) rows."""
    vectors, words, public_at, entities, audiences = zip(*drawn, strict=True)
    with Index(3, M=3, ef_construction=5, views=ROOM) as index:
        index.add(
            np.array(vectors, float),
            words,
            np.arange(len(drawn))[::-1],
            public_at=public_at,
            entities=entities,
            audiences=audiences,
        )
        for _ in range(2):
            found = index.search(queries, k, policy, as_of=as_of)
            assert same(found, index.search(queries, k, policy, as_of=as_of, plan=Plan.EXACT))
            settle(index)
        admissible = index.count(policy, as_of=as_of)
        assert (0 < admissible <= 0.9 * len(drawn)) is found.stats.over_view
        assert found.counts.tolist() == [min(k, admissible)] * len(queries)
        assert index.stats().view_error == ""


class ViewedMachine(IndexMachine):
    """The index compared with a dict, as without views, where every repeated policy has a view."""

    views = ROOM

    @rule()
    def let_the_views_be_made(self):
        settle(self.index)

    @rule(query=coordinates, mask=masks, as_of=st.sampled_from([0, 60]), k=st.integers(1, 9))
    def ask_again(self, query, mask, as_of, k):
        found = asked(self.index, query, k, mask, as_of=as_of)
        if found.stats.plans == (Plan.EXACT,):
            assert same(found, self.index.search(query, k, mask, as_of=as_of, plan=Plan.EXACT))

    def teardown(self):
        assert self.index.stats().view_error == ""
        self.index.close()


TestViewed = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")(ViewedMachine.TestCase)
TestViewed.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)


def test_a_large_view_finds_what_the_index_finds(build):
    """With its own cells and graph, it gives the same similarities to the bit, and misses few rows."""
    rng = np.random.default_rng(3)
    index = Index(16, M=16, ef_construction=60, views=ROOM)
    rows = examples(20_000, least=10_000)
    vectors = rng.standard_normal((rows, 16)).astype(np.float32)
    index.add(vectors, [OPEN if i % 2 else CLOSED for i in range(rows)])
    queries = rng.standard_normal((50, 16)).astype(np.float32)
    found, exact = asked(index, queries), index.search(queries, 10, POLICY, plan=Plan.EXACT)
    assert found.stats.over_view
    shared = 0
    for query, mine, theirs in zip(queries, found, exact, strict=True):
        shared += len(set(mine.keys.tolist()) & set(theirs.keys.tolist()))
        assert mine.similarities.tobytes() == index.similarities(query, mine.keys).tobytes()
    assert shared >= 0.99 * 500


# ---------------------------------------------------------------- when there is one


def test_there_is_none_unless_it_is_asked_for():
    """Neither by default nor with room for 0 bytes."""
    for index in (Index(2), Index(2, views=0)):
        index.add([[1, 0], [0, 1]], [OPEN, CLOSED])
        for _ in range(5):
            assert not index.search([1, 1], 1, POLICY).stats.over_view
        assert (2, 2, 0, 0, 0, "") == (
            *(index.stats().rows, index.stats().classes, index.stats().views),
            *(index.stats().view_bytes, index.stats().view_hits, index.stats().view_error),
        )


@pytest.mark.parametrize("bad", [-1, 1.5, "1 GB", None, True, 2**63])
def test_room_is_a_number_of_bytes(bad, tmp_path):
    """In a new index and a loaded one."""
    path = tmp_path / "index.carag"
    Index(2).save(path)
    with pytest.raises(InvalidArgument, match=r"views is .*; want an integer from 0"):
        Index(2, views=bad)
    with pytest.raises(InvalidArgument, match=r"views is .*; want an integer from 0"):
        Index.load(path, views=bad)


def test_it_is_made_after_a_number_of_queries_and_not_sooner(monkeypatch):
    """Queries are counted, not calls, separately for each policy; explain and stats report what answered."""
    monkeypatch.setattr(views, "QUERIES_BEFORE", 10)
    index = filled()
    for count in (3, 6):
        index.search(np.ones((count, 4)), 3, POLICY)
        index.search(np.ones((count, 4)), 3, Policy(Mask(required=2)))
        settle(index)
        assert 0 == index.stats().views
    found = index.search(np.ones(4), 3, POLICY)
    settle(index)
    assert (False, 1, 0) == (found.stats.over_view, index.stats().views, index.stats().view_hits)
    found = index.search(np.ones((2, 4)), 3, Mask(required=1))  # the same policy
    assert (True, 2) == (found.stats.over_view, index.stats().view_hits)
    assert " over a view: " in found.stats.explain(1)
    assert " over a view: " not in index.search(np.ones(4), 3, POLICY, plan="exact").stats.explain()


@pytest.mark.parametrize("plan", [plan for plan in Plan if plan is not Plan.AUTO])
def test_a_named_plan_runs_over_the_index(plan):
    """A view is used only when the plan is left open."""
    index = filled()
    asked(index, np.ones(4))
    assert 1 == index.stats().views
    assert not index.search(np.ones(4), 3, POLICY, plan=plan).stats.over_view


def test_none_is_made_of_nothing_or_of_nearly_everything():
    """It would not be faster."""
    index = filled()
    for policy in (Policy(), Mask(required=4), Mask()):
        assert not asked(index, np.ones(4), 3, policy).stats.over_view
    assert (0, "") == (index.stats().views, index.stats().view_error)


# ---------------------------------------------------------------- when it is behind

CHANGES = {
    "add": lambda index: index.add(np.ones((1, 4)), [OPEN], [1_000]),
    "add many": lambda index: index.add(np.ones((500, 4)), [OPEN] * 500),
    "close": lambda index: index.relabel([0], [CLOSED]),
    "open": lambda index: index.relabel([1], [OPEN]),
    "close all of a class": lambda index: index.relabel_where(POLICY, set=2),
    "close many": lambda index: index.relabel(index.keys(), [CLOSED] * len(index)),
    "delete": lambda index: index.delete([0]),
    "consolidate": lambda index: index.consolidate(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_in_the_next_answer(change):
    """The outdated view is not asked, and is replaced like the first."""
    index = filled()
    assert asked(index, np.ones(4), 200).stats.over_view
    CHANGES[change](index)
    found = index.search(np.ones(4), 1_000, POLICY)
    assert not found.stats.over_view
    assert same(found, index.search(np.ones(4), 1_000, POLICY, plan="exact"))
    again = asked(index, np.ones(4), 1_000)
    assert same(again, found)


@pytest.mark.parametrize("change", CHANGES)
def test_a_view_that_is_behind_is_not_asked(change, monkeypatch):
    """An outdated view in place of a current one is refused; its rows are tested as well (test_materialised.c)."""
    index = filled()
    asked(index, np.ones(4))
    monkeypatch.setattr(views, "QUERIES_BEFORE", 1_000)
    (kept,) = index._views._asked.values()
    before = kept.view
    CHANGES[change](index)
    for query in np.random.default_rng(0).standard_normal((50, 4)):
        kept.view = before
        found = index.search(query, 5, POLICY)
        assert not found.stats.over_view
        assert all(POLICY.admits(int(word)) for word in index.words(found.keys[0][: found.counts[0]]))


def test_an_instant_that_passes_is_noticed():
    """A view is valid at every instant until a row opens or expires, and at no other."""
    index = filled(4, public_at=[0, 0, 100, 0], expires_at=[500, 2**32 - 1, 2**32 - 1, 2**32 - 1])
    wanted = {99: 1, 100: 2, 499: 2, 500: 1, 501: 1}
    for made_at in wanted:
        asked(index, np.ones(4), as_of=made_at)
        for as_of, count in wanted.items():
            assert [count] == index.search(np.ones(4), 9, POLICY, as_of=as_of).counts.tolist()
            settle(index)
    index = filled(4, public_at=[0, 0, 100, 0], expires_at=[500, 2**32 - 1, 2**32 - 1, 2**32 - 1])
    assert asked(index, np.ones(4), as_of=200).stats.over_view
    assert index.search(np.ones(4), 9, POLICY, as_of=499).stats.over_view
    assert index.search(np.ones(4), 9, POLICY, as_of=100, alive_at=499).stats.over_view
    assert not index.search(np.ones(4), 9, POLICY, as_of=100, alive_at=500).stats.over_view


def test_two_instants_do_not_take_the_view_from_each_other(monkeypatch):
    """A view that answers every second query stays; one that answers none is replaced."""
    index = filled(4, public_at=[0, 0, 100, 0])
    asked(index, np.ones(4), as_of=50)
    monkeypatch.setattr(views, "QUERIES_BEFORE", 5)
    over = [index.search(np.ones(4), 9, POLICY, as_of=as_of).stats.over_view for as_of in (50, 100) * 20]
    assert [True, False] * 20 == over
    assert index._views._maker is None
    for _ in range(5):
        index.search(np.ones(4), 9, POLICY, as_of=100)
    settle(index)
    assert index.search(np.ones(4), 9, POLICY, as_of=100).stats.over_view


def test_a_view_is_of_one_index(tmp_path):
    """A loaded index has none, and makes its own."""
    index = filled()
    asked(index, np.ones(4))
    index.save(tmp_path / "index.carag")
    for mmap in (False, True):
        other = Index.load(tmp_path / "index.carag", mmap=mmap, views=ROOM)
        assert 0 == other.stats().views
        other.relabel([0], [CLOSED])
        found = asked(other, np.ones(4), 200)
        assert (True, 149) == (found.stats.over_view, int(found.counts[0]))
    assert 150 == index.search(np.ones(4), 200, POLICY).counts[0]


# ---------------------------------------------------------------- how much memory


def test_views_stay_within_their_bytes():
    """The least recently asked is dropped first."""
    policies = [Policy(Mask(required=1), deny_entities=[number]) for number in range(1, 5)]
    one = filled()
    asked(one, np.ones(4))
    size = one.stats().view_bytes
    assert 0 < size
    index = filled(room=2 * size)
    kept = []
    for number in (0, 1, 0, 2, 3):
        asked(index, np.ones(4), 3, policies[number])
        assert index.stats().view_bytes == index.stats().views * size <= 2 * size
        kept.append([at for at, one in enumerate(policies) if _has_view(index, one)])
    assert [[0], [0, 1], [0, 1], [0, 2], [2, 3]] == kept


def _has_view(index, policy):
    asked = index._views._asked.get(policy)
    return asked is not None and asked.view is not None


def test_a_view_that_is_too_large_is_reported():
    """The report states its size and the limit; the index answers."""
    index = filled(room=1_000)
    found = asked(index, np.ones(4))
    assert not found.stats.over_view
    assert "a view of the policy takes" in index.stats().view_error
    assert "1,000" in index.stats().view_error


# ---------------------------------------------------------------- the thread that makes them


def test_a_failure_to_make_a_view_is_reported(monkeypatch):
    """It is never silent, does not disturb a search, and does not prevent the next view."""

    def fail(*_):
        raise MemoryError("none left")

    index = filled()
    with monkeypatch.context() as broken:
        broken.setattr(views.Views, "_make", fail)
        assert not asked(index, np.ones(4)).stats.over_view
        settle(index)
    assert index.stats().view_error == "MemoryError: none left"
    assert asked(index, np.ones(4)).stats.over_view


def test_a_bad_query_is_refused_over_a_view_as_over_the_index():
    """The error is the same."""
    index = filled()
    asked(index, np.ones(4))
    for bad in (np.zeros(4), np.full(4, np.nan)):
        with pytest.raises(InvalidArgument) as over_view:
            index.search(bad, 3, POLICY)
        with pytest.raises(InvalidArgument) as over_index:
            index.search(bad, 3, POLICY, plan="exact")
        assert str(over_view.value) == str(over_index.value)


def test_searches_during_relabels_see_no_closed_row():
    """While views are made and replaced, rows change, rows are added and the index is consolidated."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((800, 8))
    index = Index(8, M=4, ef_construction=20, views=ROOM)
    index.add(vectors, [CLOSED if i % 2 else OPEN for i in range(800)])
    flickering, steady = np.arange(0, 800, 4), set(range(2, 800, 4))
    done = threading.Event()

    def change(seed):
        local = np.random.default_rng(seed)
        while not done.wait(0.002):
            index.relabel(flickering, np.where(local.integers(0, 2, flickering.size), OPEN, CLOSED))
            if local.integers(0, 20) == 0:
                index.consolidate(threads=1)
            if local.integers(0, 10) == 0:
                index.delete(index.add(vectors[:1], [CLOSED]))

    def search(seed):
        for i in range(400):
            found = index.search(vectors[(i + seed) % 800], 800, POLICY)
            got = set(found.keys[0][: found.counts[0]].tolist())
            assert not any(key % 2 for key in got)
            assert steady <= got

    with ThreadPoolExecutor(4) as pool:
        changing = pool.submit(change, 1)
        jobs = [pool.submit(search, seed) for seed in range(3)]
        for job in jobs:
            job.result()
        done.set()
        changing.result()
    assert () == index.check()
    assert index.stats().view_error == ""
    settle(index)  # the one that was under way may be behind
    assert asked(index, vectors[0], 800).stats.over_view


def test_a_closed_row_is_gone_at_once_from_a_view():
    """After relabel() returned, no search finds the row."""
    index = filled(examples(2_000, least=600))
    for key in range(0, examples(400, least=120), 2):
        asked(index, np.ones(4), 5) if key % 20 == 0 else None
        index.relabel([key], [CLOSED])
        assert key not in index.search(np.ones(4), len(index), POLICY).keys[0]
    assert index.stats().view_error == ""


def test_closing_waits_for_the_view_that_is_made(monkeypatch):
    """Then all views are dropped; closing twice has no further effect."""
    began, finish, order = threading.Event(), threading.Event(), []
    index, make = filled(), views.Views._make

    def slowly(self, *about):
        is_ours = self is index._views  # an earlier test's index may still be at it
        if is_ours:
            began.set()
            finish.wait(10)
        make(self, *about)
        if is_ours:
            order.append("made")

    monkeypatch.setattr(views.Views, "_make", slowly)
    index.search(np.ones(4), 3, POLICY)
    assert began.wait(10)
    assert index.search(np.ones(4), 3, POLICY).counts[0] == 3  # a search does not wait
    threading.Timer(0.1, finish.set).start()
    index.close()
    order.append("closed")
    index.close()
    assert ["made", "closed"] == order
    with pytest.raises(InvalidArgument, match="closed"):
        index.search(np.ones(4), 3, POLICY)


def test_an_unreferenced_index_is_freed():
    """The thread references an index only while it makes a view."""
    index = filled()
    kept = index._views
    asked(index, np.ones(4))
    del index
    assert kept._maker is None or not kept._maker.is_alive()
    assert not kept._wanted


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_makes_its_own(monkeypatch):
    """Forked while views are made and rows are copied, the child searches, changes its index and makes views."""
    rows, attempts = examples(5_000, least=1_500), examples(8, least=3)
    index = filled(rows)
    for attempt in range(attempts):
        index.search(np.ones(4), 3, Policy(Mask(required=1), deny_entities=[attempt + 1]))
        if (child := os.fork()) == 0:
            status = 1
            try:
                index.relabel([0], [CLOSED])
                index.add(np.ones((1, 4)), [OPEN])
                found = asked(index, np.ones(4), rows)
                status = 0 if found.stats.over_view and found.counts[0] == rows // 2 else 2
            finally:
                os._exit(status)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    settle(index)
    assert attempts == index.stats().views
    assert rows // 2 == asked(index, np.ones(4), rows).counts[0]
