"""Ask a backend at one epoch until the best rows are certain and complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.backends.judged import SearchAsked, error_of, judge
from carag.backends.results import CheckedResult, CheckedStats
from carag.errors import BackendFault, Incomplete, InvalidArgument
from carag.index import Plan
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from carag.backends.judged import CheckedAnswer
    from carag.backends.protocol import Admitted, IndexState, Rows, VectorBackend


_PAGE: Final = 16
"""Rows asked for beyond ``k``: two engines may rank rows of almost equal similarity differently."""
_EXACT: Final = (Plan.CERTIFIED, Plan.EXACT)


class Queries(NamedTuple):
    """Queries, (nq, dim), as given and scaled to unit length."""

    given: NDArray[np.float32]
    unit: NDArray[np.float32]

    @classmethod
    def of(cls, values: ArrayLike, dim: int) -> Queries:
        """Convert one or many queries; raise InvalidArgument if they have another shape or no direction."""
        try:
            array = np.asarray(values)
            with np.errstate(over="ignore"):
                given = np.atleast_2d(np.array(array, np.float32))
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidArgument(
                f"queries do not form an array: {error}; want rows of equal length"
            ) from error
        if array.dtype.kind not in "fiu" or given.ndim != 2 or given.shape[1] != dim:
            raise InvalidArgument(
                f"queries are {array.dtype} of shape {array.shape}; want real numbers, (nq, {dim})"
            )
        lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise InvalidArgument("a query is zero, or holds a NaN or an infinity; want a direction")
        return cls(given, (given / lengths).astype(np.float32))


class _Gathered(NamedTuple):
    keys: list[NDArray[np.int64]]
    similarities: list[NDArray[np.float32]]
    plan: Plan
    admissible: int
    lagged: int
    refilled: int


class Gatherer(NamedTuple):
    """A backend at one epoch."""

    backend: VectorBackend
    at: IndexState
    counted: Callable[[Admitted, IndexState], int]
    """Counts rows by a separate question."""
    lagged: Callable[[Rows, Admitted, IndexState], NDArray[np.int64]]
    """Returns the keys of the rows that are closed by now."""

    def found(
        self, queries: Queries, k: int, admitted: Admitted | None, plan: Plan | str, exact_limit: int
    ) -> CheckedResult:
        """Find the ``k`` nearest admitted rows; arguments and errors as of :meth:`Checked.search`."""
        chosen = self._plan(plan, exact_limit, admitted)
        if admitted is None:
            nothing = _Gathered([], [], self._exact or chosen, 0, 0, 0)
            return self._result(nothing, len(queries.given), k, retried=False)
        gathered = self._gather(queries, k, admitted, chosen)
        retried = gathered is None
        if gathered is None and self._exact is not None:
            gathered = self._gather(queries, k, admitted, self._exact)
        if gathered is None:
            raise Incomplete(
                f"{self.at.backend} returned fewer rows than are admissible, even when asked again; check its "
                "parts"
            )
        return self._result(gathered, len(queries.given), k, retried=retried)

    @property
    def _exact(self) -> Plan | None:
        return next((plan for plan in _EXACT if plan in self.backend.capabilities.plans), None)

    def _plan(self, plan: Plan | str, exact_limit: int, admitted: Admitted | None) -> Plan:
        plans, exact = self.backend.capabilities.plans, self._exact
        try:
            asked = Plan(plan)
        except ValueError:
            raise InvalidArgument(
                f"plan is {quoted(plan)}; want one of {', '.join(map(repr, Plan))}"
            ) from None
        if asked is Plan.CERTIFIED:
            asked = exact or asked
        if asked is Plan.AUTO:
            others = [one for one in (Plan.AUTO, Plan.GRAPH) if one in plans]
            is_small = exact_limit > 0 and (
                admitted is None or self.counted(admitted, self.at) <= exact_limit
            )
            if exact and (is_small or not others):
                return exact
            asked = others[0] if others else Plan.EXACT
        if asked not in plans:
            raise InvalidArgument(
                f"{self.at.backend} has no plan {asked.value!r}; want one of {', '.join(sorted(plans))}"
            )
        return asked

    def _gather(self, queries: Queries, k: int, admitted: Admitted, plan: Plan) -> _Gathered | None:
        """Ask for a page beyond ``k``, then twice as much, until the ``k`` best are certain; None if too few."""
        extra, refilled = _PAGE, 0
        admissible = self.counted(admitted, self.at)
        while True:
            # At least 1, so that a backend has to report twice that no row is admissible.
            wanted = max(1, min(k + extra, admissible))
            asked = SearchAsked(queries.given, wanted, admitted, plan, self.at)
            found = self.backend.search(queries.unit, wanted, admitted, plan=plan, at=self.at.epoch)
            judged = judge(found, asked)
            if self.backend.capabilities.exact_count and judged.admissible != admissible:
                raise BackendFault(
                    f"the backend counts {judged.admissible} admissible rows, but {admissible} when asked for the count"
                )
            if any(len(keys) < min(wanted, admissible) for keys in judged.keys):
                return None
            lagged = self.lagged(judged.rows, admitted, self.at)
            best = [_best(judged, query, lagged) for query in range(len(judged.keys))]
            if all(_is_sure(judged, query, k, best[query], admissible) for query in range(len(best))):
                return _Gathered(
                    [keys[:k] for keys, _ in best],
                    [similarities[:k] for _, similarities in best],
                    judged.plan,
                    admissible - len(lagged),
                    len(lagged),
                    refilled,
                )
            extra, refilled = 2 * extra, refilled + 1

    def _result(self, gathered: _Gathered, queries: int, k: int, *, retried: bool) -> CheckedResult:
        keys = np.full((queries, k), -1, np.int64)
        similarities = np.full((queries, k), -np.inf, np.float32)
        counts = np.zeros(queries, np.int64)
        for query, (own, ours) in enumerate(zip(gathered.keys, gathered.similarities, strict=True)):
            counts[query] = own.size
            keys[query, : own.size], similarities[query, : own.size] = own, ours
        stats = CheckedStats(
            (gathered.plan,) * queries,
            gathered.admissible,
            sum(shard.rows for shard in self.at.shards),
            self.at,
            gathered.lagged,
            gathered.refilled,
            retried,
        )
        return CheckedResult(keys, similarities, counts, stats)


_Best = tuple["NDArray[np.int64]", "NDArray[np.float32]"]


def _best(judged: CheckedAnswer, query: int, lagged: NDArray[np.int64]) -> _Best:
    """Return the open rows of one query, in our own order."""
    keys, similarities = judged.keys[query], judged.similarities[query]
    if lagged.size:
        is_open = ~np.isin(keys, lagged)
        keys, similarities = keys[is_open], similarities[is_open]
    order = np.lexsort((keys, -similarities))
    return keys[order], similarities[order]


def _is_sure(judged: CheckedAnswer, query: int, k: int, best: _Best, admissible: int) -> bool:
    """Tell whether no row that was left out can be among the ``k`` best that the plan finds.

    Such a row scores at most the least score that the backend reported, and hardly more in our kernel.
    """
    _, similarities = best
    if len(judged.keys[query]) >= admissible:
        return True
    if similarities.size < k or judged.plan not in _EXACT:
        return similarities.size >= k
    doubt = error_of(len(judged.rows.vectors[0]))
    return bool(similarities[k - 1] > judged.least[query] + doubt)
