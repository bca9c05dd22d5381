"""The checks of :class:`Checked`, on a native backend in which one thing is changed; each of them can fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from carag.backends import Checked, NativeBackend, Rows
from carag.errors import BackendFault, BackendUnavailable, Incomplete, InvalidArgument
from carag.index import Plan
from carag.policy import Mask, Policy, policy_word
from tests.backends.conformance import CLOSED
from tests.backends.worlds import EVERYTHING, World, assert_equal, plain_rows

DIM = 8
ONES = np.ones(DIM)


class Changed:
    """A backend with one method, or its capabilities, replaced."""

    def __init__(self, backend: Any, **changes: Any) -> None:
        self._backend, self.calls = backend, []
        self.capabilities = backend.capabilities._replace(**changes.pop("capabilities", {}))
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._backend, name)
        if not callable(own):
            return own

        def call(*given: Any, **named: Any) -> Any:
            self.calls.append((name, given, named))
            if change := self._changes.get(name):
                return change(own, *given, **named)
            return own(*given, **named)

        return call


def opened(rows: Rows, **changes: Any) -> tuple[Changed, Checked, World]:
    world, native = World.of(rows), NativeBackend(DIM)
    native.add(rows, batch="first")
    backend = Changed(native, **changes)
    return backend, Checked(backend, world.labels, DIM), world


def searches(backend: Changed) -> list[Any]:
    return [(named["plan"], given[1]) for name, given, named in backend.calls if name == "search"]


# --- what holds by now ---


def test_rows_that_the_label_store_closed_are_dropped_and_replaced():
    """The next nearest take their place; dropped rows are counted, and no longer admissible."""
    _, checked, world = opened(plain_rows(100, DIM))
    nearest = world.index.search(ONES, 40, Mask(), plan="exact").keys[0].tolist()
    world.labels.update(dict.fromkeys(nearest[:30], CLOSED))
    found = checked.search(ONES, 10, EVERYTHING, plan="exact")
    assert nearest[30:40] == found.keys[0].tolist()
    assert found.stats.refilled >= 1
    assert 100 == found.stats.admissible + found.stats.lagged
    assert found.stats.lagged >= 30


def test_rows_are_closed_before_the_backend_confirms_it():
    """During the change and after it failed, but not if it was refused."""
    seen: list[Any] = []

    def relabel(own: Any, keys: Any, words: Any, *, batch: str) -> Any:
        seen.append(checked.search(ONES, 9, EVERYTHING).keys[0, :2].tolist())
        if batch == "fails":
            raise BackendUnavailable("away")
        return own(keys, words, batch=batch)

    _, checked, _ = opened(plain_rows(3, DIM), relabel=relabel)
    with pytest.raises(InvalidArgument):
        checked.relabel([0, 99], [CLOSED, CLOSED], batch="of an unknown key")
    assert 3 == checked.search(ONES, 9, EVERYTHING).counts[0]
    with pytest.raises(BackendUnavailable):
        checked.relabel([0], [CLOSED], batch="fails")
    assert [0, 1, 2] not in [sorted(one) for one in seen]
    assert {1, 2} == set(checked.search(ONES, 9, EVERYTHING).keys[0, :2].tolist())
    checked.relabel([0], [policy_word(1)], batch="opens it again")
    assert 3 == checked.search(ONES, 9, EVERYTHING).counts[0]


def test_a_widening_change_opens_nothing_before_it_is_confirmed():
    """A row is admitted only if both its words are."""
    _, checked, world = opened(plain_rows(3, DIM, bits=2))

    def relabel(own: Any, *given: Any, **named: Any) -> Any:
        assert 0 == checked.search(ONES, 9, Mask(1)).counts[0]
        return own(*given, **named)

    checked._backend._changes["relabel"] = relabel
    checked.relabel([0], [policy_word(1)], batch="widen")
    world.labels[0] = policy_word(1)
    assert 1 == checked.search(ONES, 9, Mask(1)).counts[0]


# --- the order is our own ---


def test_ties_are_in_the_order_of_keys():
    """Of 200 equal rows the smallest keys come first, even if the backend returns others: more are requested."""
    rows = plain_rows(200, DIM)
    same = rows._replace(vectors=np.repeat(rows.vectors[:1], 200, axis=0))

    def search(own: Any, queries: Any, k: int, *given: Any, **named: Any) -> Any:
        found = own(queries, 200, *given, **named)
        keys, scores = found.keys[:, ::-1][:, :k].copy(), found.scores[:, ::-1][:, :k].copy()
        chosen = np.isin(found.rows.keys, keys)
        return found._replace(keys=keys, scores=scores, rows=Rows(*(one[chosen] for one in found.rows)))

    backend, checked, world = opened(same, search=search)
    expected = world.index.search(ONES, 5, Mask(), plan="exact")
    assert_equal(expected, checked.search(ONES, 5, EVERYTHING, plan="exact"))
    assert [0, 1, 2, 3, 4] == expected.keys[0].tolist()
    assert [21, 37, 69, 133, 200] == [k for _, k in searches(backend)]


# --- lists that are short ---


def shortened(only: Plan | None) -> Any:
    def search(own: Any, queries: Any, k: int, admitted: Any, *, plan: Plan, at: int) -> Any:
        found = own(queries, k, admitted, plan=plan, at=at)
        if only is not None and plan is not only:
            return found
        keys, scores = found.keys.copy(), found.scores.copy()
        keys[:, 1:], scores[:, 1:] = -1, -np.inf
        chosen = np.isin(found.rows.keys, keys)
        return found._replace(keys=keys, scores=scores, rows=Rows(*(one[chosen] for one in found.rows)))

    return search


def test_a_short_list_of_a_graph_is_requested_again_exactly():
    """Once, by the strongest exact plan, and the result says so."""
    backend, checked, world = opened(plain_rows(50, DIM), search=shortened(Plan.GRAPH))
    found = checked.search(ONES, 5, EVERYTHING, plan="graph")
    assert_equal(world.index.search(ONES, 5, Mask(), plan="exact"), found)
    assert found.stats.retried
    assert [Plan.GRAPH, Plan.CERTIFIED] == [plan for plan, _ in searches(backend)]
    assert not checked.search(ONES, 5, EVERYTHING, plan="exact").stats.retried


def test_a_list_that_stays_short_is_incomplete():
    """After an exact plan; without one, at once."""
    _, checked, _ = opened(plain_rows(50, DIM), search=shortened(None))
    with pytest.raises(Incomplete):
        checked.search(ONES, 5, EVERYTHING)
    backend, checked, _ = opened(
        plain_rows(50, DIM), search=shortened(None), capabilities={"plans": frozenset({Plan.GRAPH})}
    )
    with pytest.raises(Incomplete):
        checked.search(ONES, 5, EVERYTHING)
    assert 1 == len(searches(backend))


# --- plans ---


@pytest.mark.parametrize(
    ("plans", "asked", "limit", "ran"),
    [
        ({Plan.EXACT}, "certified", 0, Plan.EXACT),
        ({Plan.EXACT, Plan.CERTIFIED}, "certified", 0, Plan.CERTIFIED),
        ({Plan.EXACT}, "auto", 0, Plan.EXACT),
        ({Plan.EXACT, Plan.GRAPH}, "auto", 0, Plan.GRAPH),
        ({Plan.EXACT, Plan.GRAPH}, "auto", 49, Plan.GRAPH),
        ({Plan.EXACT, Plan.GRAPH}, "auto", 50, Plan.EXACT),
        ({Plan.EXACT, Plan.GRAPH, Plan.AUTO}, "auto", 0, Plan.AUTO),
        ({Plan.GRAPH}, "auto", 50, Plan.GRAPH),
    ],
)
def test_the_plan_is_the_requested_one_or_a_better_one(plans, asked, limit, ran):
    """Certified becomes exact if necessary; auto is exact up to the limit on admissible rows."""
    backend, checked, _ = opened(plain_rows(50, DIM), capabilities={"plans": frozenset(plans)})
    checked.search(ONES, 5, EVERYTHING, plan=asked, exact_limit=limit)
    assert [ran] == [plan for plan, _ in searches(backend)]


@pytest.mark.parametrize(
    ("plans", "asked"),
    [({Plan.EXACT}, "graph"), ({Plan.GRAPH}, "exact"), ({Plan.GRAPH}, "certified"), ({Plan.EXACT}, "quick")],
)
def test_an_unavailable_plan_is_refused(plans, asked):
    """It is not replaced by a weaker one."""
    backend, checked, _ = opened(plain_rows(5, DIM), capabilities={"plans": frozenset(plans)})
    with pytest.raises(InvalidArgument, match=asked):
        checked.search(ONES, 5, EVERYTHING, plan=asked)
    assert [] == searches(backend)


def test_an_answer_by_a_weaker_plan_is_refused():
    """Such as a graph's answer to an exact search."""

    def search(own: Any, *given: Any, **named: Any) -> Any:
        return own(*given, **named)._replace(plan=Plan.GRAPH)

    _, checked, _ = opened(plain_rows(5, DIM), search=search)
    with pytest.raises(BackendFault, match="plan"):
        checked.search(ONES, 5, EVERYTHING, plan="exact")


# --- epochs ---


def test_a_search_starts_again_if_its_epoch_is_gone():
    """A writer moved it between two questions; if that happens every time, the search says so."""
    moves = iter([True, False])

    def search(own: Any, *given: Any, **named: Any) -> Any:
        if next(moves, True):
            backend._backend.relabel([0], [CLOSED], batch=str(len(backend.calls)))
        return own(*given, **named)

    backend, checked, _ = opened(plain_rows(5, DIM), search=search)
    found = checked.search(ONES, 5, EVERYTHING, plan="exact")
    assert ([1, 2, 3, 4], 2) == (sorted(found.keys[0, :4].tolist()), found.stats.state.epoch)
    with pytest.raises(BackendUnavailable, match="changed 16 times"):
        checked.search(ONES, 5, EVERYTHING, plan="exact")


def test_an_epoch_that_goes_back_is_refused():
    """So is a change of collection, and words out of order."""
    back: dict[str, Any] = {}
    _, checked, _ = opened(plain_rows(5, DIM), state=lambda own: own()._replace(**back))
    checked.relabel([0], [CLOSED], batch="close")
    for one, said in (
        ({"epoch": 1}, "but was at 2"),
        ({"collection": "other"}, "changed from collection"),
        ({"words": (3, 3)}, "not in order"),
    ):
        back.clear()
        back.update(one)
        with pytest.raises(BackendFault, match=said):
            checked.search(ONES, 5, EVERYTHING)


def test_a_state_that_arrives_late_has_not_gone_back():
    """A state read before a change may arrive after it, on another connection; the newest one stays."""
    changes: list[Any] = []

    def slowly(own: Any) -> Any:
        state = own()
        if changes:
            changes.pop()()
        return state

    _, checked, _ = opened(plain_rows(5, DIM), state=slowly)
    changes.append(lambda: checked.relabel([0], [CLOSED], batch="close"))
    assert (1, 2) == (checked.state().epoch, checked.state().epoch)


def test_a_count_is_asked_once_per_epoch():
    """Its answer cannot change within one."""
    backend, checked, _ = opened(plain_rows(50, DIM))
    for _ in range(3):
        checked.search(ONES, 5, EVERYTHING)
    assert 1 == sum(name == "count" for name, *_ in backend.calls)
    checked.relabel([0], [CLOSED], batch="close")
    assert 49 == checked.search(ONES, 5, EVERYTHING).stats.admissible
    assert 2 == sum(name == "count" for name, *_ in backend.calls)


@pytest.mark.parametrize("count", [-1, 49, 51, True, 50.0])
def test_two_counts_that_differ_are_refused(count):
    """Whichever of them is wrong."""
    _, checked, _ = opened(plain_rows(50, DIM), count=lambda own, *given, **named: count)
    with pytest.raises(BackendFault, match="count"):
        checked.search(ONES, 5, EVERYTHING)


# --- arguments ---


def test_a_policy_of_too_many_words_is_refused():
    """The backend's searches have a limit."""
    backend, checked, _ = opened(plain_rows(50, DIM, bits=np.arange(50)), capabilities={"most_words": 10})
    with pytest.raises(InvalidArgument, match="admits 50 words"):
        checked.search(ONES, 5, EVERYTHING)
    assert 2 == checked.search(ONES, 5, Mask(48)).counts[0]
    assert 1 == len(searches(backend))


@pytest.mark.parametrize(
    "wrong",
    [
        {"queries": np.ones(DIM + 1)},
        {"queries": np.zeros(DIM)},
        {"queries": [np.nan] * DIM},
        {"queries": ["a"] * DIM},
        {"queries": [[1.0], [1.0, 2.0]]},
        {"k": 0},
        {"k": 1.5},
        {"k": True},
        {"policy": None},
        {"policy": 7},
        {"as_of": -1},
        {"as_of": "now"},
        {"as_of": 9, "alive_at": 8},
        {"policy": Policy(Mask(), deny_entities=[2**32])},
        {"exact_limit": -1},
        {"also_hidden": -1},
        {"hidden_among": "everywhere"},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_the_backend_is_asked(wrong):
    """As by the index."""
    backend, checked, _ = opened(plain_rows(5, DIM))
    with pytest.raises(InvalidArgument):
        checked.search(**({"queries": ONES, "k": 5, "policy": EVERYTHING} | wrong))
    assert [] == searches(backend)


def test_rows_of_another_length_are_not_added():
    """Before the backend is asked."""
    backend, checked, _ = opened(plain_rows(5, DIM))
    with pytest.raises(InvalidArgument, match="want \\(n, 8\\)"):
        checked.add(plain_rows(5, DIM + 1, first=5), batch="longer")
    assert "add" not in [name for name, *_ in backend.calls]


@pytest.mark.parametrize("change", ["dtype", "shape", "key", "other"])
def test_wrong_rows_are_refused(change):
    """A column's type or length, a repeated key, or rows that were not asked for."""

    def get(own: Any, keys: Any, **named: Any) -> Any:
        rows = own(keys, **named)
        return {
            "dtype": rows._replace(words=rows.words.astype(np.int64)),
            "shape": rows._replace(entities=rows.entities[1:]),
            "key": rows._replace(keys=np.full_like(rows.keys, 3)),
            "other": own([2], **named),
        }[change]

    _, checked, _ = opened(plain_rows(5, DIM), get=get)
    with pytest.raises(BackendFault):
        checked.vectors([3, 4])
