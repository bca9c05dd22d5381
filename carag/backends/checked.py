"""Search a backend without trusting it. This is the part of this package that the engine uses.

A policy is compiled to the words that it admits at an epoch, and the backend is asked at that epoch. Every hit is then
tested by the word, times, entity and audience that came with it and by the word in the label store, and scored again
by our own kernel; and the number of hits must be right.

:func:`carag.backends.judged.judge` lists what is refused with :class:`~carag.errors.BackendFault`. A hit that fails
only the label store's test is lag: its label was closed and the backend is behind. The backend must report the same row
when asked for it by key; then the row is dropped, another is asked for, and both are counted.

Three faults cannot be noticed here: a row left out of every answer and of the count as well; an exact plan that returns
a farther admissible row in place of a nearer one while more rows are admissible than were asked for; and one row's
vector in place of another's, if both have unit length and the score fits. Only the oracle of
``tests/backends/conformance.py``, which knows all rows, sees those. The checks compare the list with the search's
count, that count with :meth:`~carag.backends.VectorBackend.count`, which is asked separately, and a short list with the
list of an exact plan.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from carag.backends.compiled import admitted_at
from carag.backends.current import CurrentWords
from carag.backends.gathered import Gatherer, Queries
from carag.backends.rows import index_of
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.index import Index, Plan
from carag.limits import quoted
from carag.policy import NEVER, QUARANTINE, Mask, Policy, Search
from carag.policy.bits import whole_number
from carag.policy.mask import ANY_AUDIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date, datetime

    from numpy.typing import ArrayLike, NDArray

    from carag.backends.current import Words
    from carag.backends.protocol import Admitted, Capabilities, IndexState, Rows, VectorBackend
    from carag.backends.results import CheckedResult


_TRIES: Final = 16
"""How often a search starts again because a writer has moved on from its epoch."""
_COUNTS: Final = 1024
"""Most counts that are cached."""
_MOST: Final = 2**31 - 1
_ANYTHING: Final = Search(Policy(Mask(), audiences=ANY_AUDIENCE), NEVER - 1)

_Answer = TypeVar("_Answer")


class Checked:
    """A backend of vectors whose every answer is checked.

    Parameters
    ----------
    backend : VectorBackend
    labels : Words
        Knows the word of every row that was ever added.
    dim : int
        Length of every vector.

    Examples
    --------
    >>> import numpy as np
    >>> from carag.backends import NativeBackend, rows_of
    >>> from carag.policy import policy_word
    >>> class Labels(dict):
    ...     words_of = lambda self, keys: {key: self[key] for key in keys if key in self}
    >>> checked = Checked(NativeBackend(2), Labels({7: policy_word(1), 8: policy_word(2)}), 2)
    >>> state = checked.add(rows_of([[1, 0], [0, 1]], [policy_word(1), policy_word(2)], [7, 8]), batch="first")
    >>> found = checked.search([1, 1], 5, Mask(required=1))
    >>> found.keys.tolist(), found.stats.admissible, found.stats.state.epoch
    ([[7, -1, -1, -1, -1]], 1, 1)
    """

    def __init__(self, backend: VectorBackend, labels: Words, dim: int) -> None:
        self._backend = backend
        self._labels = CurrentWords(labels, backend)
        self._dim = dim
        self._counts: dict[tuple[Policy, int, int, int], int] = {}
        self._lock = threading.Lock()
        self._last = backend.state()
        self.state()

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._dim

    @property
    def capabilities(self) -> Capabilities:
        """What the backend promises."""
        return self._backend.capabilities

    def __len__(self) -> int:
        """Count the live rows as of the last epoch seen."""
        return sum(shard.rows for shard in self._last.shards)

    def __repr__(self) -> str:
        seen = self._last
        return f"<Checked {seen.backend}, {seen.collection!r}, epoch {seen.epoch}: {len(self)} rows>"

    @property
    def beyond(self) -> tuple[str, ...]:
        """What the backend says that it cannot reach."""
        return tuple(self._backend.beyond)

    def purge(self) -> None:
        """Ask the backend to free what deleted rows took."""
        self._backend.purge()

    def state(self) -> IndexState:
        """Read the last epoch; raise BackendFault if it is earlier than one seen before, or another collection's."""
        return self._newest(self._backend.state)

    def close(self) -> None:
        """Close the backend's connections; idempotent."""
        self._backend.close()

    # ------------------------------------------------------------ change

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """Add rows made by :func:`carag.backends.rows_of`.

        Raises
        ------
        InvalidArgument
            If a key is in use, or vectors have another length.
        BackendUnavailable
            If the rows may not have been added; repeat with the same batch name.
        """
        if rows.vectors.shape[1:] != (self._dim,):
            raise InvalidArgument(f"vectors have shape {rows.vectors.shape}; want (n, {self._dim})")
        return self._newest(lambda: self._backend.add(rows, batch=batch))

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """Give rows new words; rows that these close are closed at once, even before the backend confirms it.

        Raises
        ------
        InvalidArgument
            If a key is unknown; no row was changed.
        BackendUnavailable
            If the rows may not have been changed: rows to be closed stay closed. Repeat with the same batch name.
        """
        with self._labels.holding(dict(zip(keys, words, strict=True))):
            return self._newest(lambda: self._backend.relabel(keys, words, batch=batch))

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """Delete rows, which are closed at once; errors are as for :meth:`relabel`."""
        with self._labels.holding(dict.fromkeys(keys, QUARANTINE)):
            return self._newest(lambda: self._backend.delete(keys, batch=batch))

    # ------------------------------------------------------------ read

    def search(
        self,
        queries: ArrayLike,
        k: int,
        policy: Policy | Mask,
        *,
        plan: Plan | str = Plan.AUTO,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
        exact_limit: int = 0,
        also_hidden: int = 0,
        hidden_among: Search | None = None,
    ) -> CheckedResult:
        """Find the ``k`` nearest rows that the policy admits; parameters as of :meth:`carag.Index.search`.

        ``"certified"`` is the exact plan if the backend has no certified one, and the result's ``stats.plans`` say so;
        it is never less than exact. ``"auto"`` is the backend's own choice, or its graph if more than ``exact_limit``
        rows are admissible.

        Raises
        ------
        InvalidArgument
            If an argument is not valid, or the backend lacks the plan or cannot search for that many words.
        BackendUnavailable
            If the backend, or a part of it, does not answer.
        BackendFault
            If its answer cannot be true.
        Incomplete
            If it returned fewer rows than are admissible, even with an exact plan.
        """
        asked = Queries.of(queries, self._dim)
        wanted = _number("k", k, 1)
        beside = _number("also_hidden", also_hidden, 0)
        if hidden_among is not None and not beside:
            raise InvalidArgument(
                "hidden_among says where to look for hidden rows, but also_hidden is 0; set it to their number"
            )
        limit = _number("exact_limit", exact_limit, 0)
        other = hidden_among or _ANYTHING

        def answer(at: IndexState) -> CheckedResult:
            gatherer = Gatherer(self._backend, at, self._count, self._labels.lagged)
            admitted = self._admitted(policy, as_of, alive_at, at)
            found = gatherer.found(asked, wanted, admitted, plan, limit)
            if not beside:
                return found
            wider = self._admitted(other.policy, other.as_of, other.alive_at, at)
            return replace(found, beside=gatherer.found(asked, beside, wider, plan, limit))

        return self._at_one_epoch(answer)

    def count(
        self,
        policy: Policy | Mask,
        *,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
    ) -> int:
        """Count the rows that a policy admits, as the backend reports it."""

        def answer(at: IndexState) -> int:
            admitted = self._admitted(policy, as_of, alive_at, at)
            return 0 if admitted is None else self._count(admitted, at)

        return self._at_one_epoch(answer)

    def similarities(self, query: ArrayLike, keys: ArrayLike) -> NDArray[np.float32]:
        """Compute the similarities of some rows to a query, as :meth:`carag.Index.similarities`."""
        wanted = np.asarray(keys, np.int64)
        with self._rows(wanted) as index:
            return index.similarities(query, wanted)

    def vectors(self, keys: ArrayLike) -> NDArray[np.float32]:
        """Read the vectors of some rows, in the order of their keys, as :meth:`carag.Index.vectors`."""
        wanted = np.asarray(keys, np.int64)
        with self._rows(wanted) as index:
            return index.vectors(wanted)

    def words(self, keys: Sequence[int]) -> dict[int, int]:
        """Read the words of the given rows that the backend has."""
        rows = self._get(keys)
        return dict(zip(rows.keys.tolist(), rows.words.tolist(), strict=True))

    def _rows(self, keys: NDArray[np.int64]) -> Index:
        return index_of(self._get(keys.tolist()), self._dim)

    def _get(self, keys: Sequence[int]) -> Rows:
        rows = self._at_one_epoch(lambda at: self._backend.get(keys, at=at.epoch))
        if not np.isin(rows.keys, np.asarray(keys, np.int64)).all():
            raise BackendFault("the backend returned rows that were not asked for")
        return rows

    # ------------------------------------------------------------ one epoch

    def _newest(self, ask: Callable[[], IndexState]) -> IndexState:
        """Ask for a state, which must not be earlier than what was seen before."""
        seen = self._last
        state = ask()
        if state.collection != seen.collection:
            raise BackendFault(
                f"the backend changed from collection {seen.collection!r} to {state.collection!r}; check its address"
            )
        if state.epoch < seen.epoch:
            raise BackendFault(
                f"the backend is at epoch {state.epoch} but was at {seen.epoch}: it lost confirmed changes, or an "
                "older copy answered; restore the newest copy"
            )
        if any(left >= right for left, right in pairwise(state.words)):
            raise BackendFault("the backend's words are not in order")
        with self._lock:
            if state.epoch >= self._last.epoch:
                self._last = state
        return state

    def _at_one_epoch(self, ask: Callable[[IndexState], _Answer]) -> _Answer:
        """Ask at the last epoch; start again if a writer has moved on and the epoch is gone."""
        for _ in range(_TRIES):
            at = self.state()
            try:
                return ask(at)
            except BackendFault:
                self._counts.clear()  # it is unknown which of the two counts was wrong
                raise
            except BackendUnavailable:
                if self.state().epoch == at.epoch:
                    raise
        raise BackendUnavailable(f"the backend changed {_TRIES} times while it was searched; ask again")

    def _admitted(
        self,
        policy: Policy | Mask,
        as_of: datetime | date | int | None,
        alive_at: datetime | date | int | None,
        at: IndexState,
    ) -> Admitted | None:
        admitted = admitted_at(at.words, policy, as_of, alive_at)
        most = self.capabilities.most_words
        if admitted is not None and len(admitted.words) > most:
            raise InvalidArgument(
                f"the policy admits {len(admitted.words):,} words, but one search of {at.backend} can name {most:,}; "
                "narrow the policy, or use a backend with a higher limit"
            )
        return admitted

    def _count(self, admitted: Admitted, at: IndexState) -> int:
        """Count what is admitted at an epoch; the count is cached, because it cannot change."""
        question = admitted.policy, admitted.as_of, admitted.alive_at, at.epoch
        count = self._counts.get(question)
        if count is None:
            count = self._backend.count(admitted, at=at.epoch)
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise BackendFault(f"the backend counts {count!r} admissible rows")
            if len(self._counts) >= _COUNTS:
                self._counts.clear()
            self._counts[question] = count
        return count


AnyIndex: TypeAlias = Index | Checked
"""What passages are searched in."""


def _number(name: str, value: object, least: int) -> int:
    try:
        number = whole_number(value)
    except TypeError:
        number = least - 1
    if not least <= number <= _MOST:
        raise InvalidArgument(f"{name} is {quoted(value)}; want an integer from {least} to {_MOST}")
    return number
