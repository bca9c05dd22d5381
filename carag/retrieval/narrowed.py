"""Search only documents that state what is asked for, without a column of the index for it.

What documents state is read for those that a search admits, and for no other, so neither the result nor its time
depends on what is hidden. This reads the fields of every document that the session may use; the rows of those that meet
the conditions are then all compared with the question. The weights of words are those of all that it may use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.backends import Checked, CheckedResult, CheckedStats
from carag.errors import BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.policy import STATED_FIELDS, Search, in_one_form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from carag.backends import AnyIndex, IndexState
    from carag.index import TextIndex
    from carag.index.text_results import AdmissibleChunks, TermCounts, TextResult
    from carag.policy import Policy, Value, Where
    from carag.store.documents import StoredDocuments


_NONE: Final = np.empty(0, np.int64)


class Within:
    """The documents that meet conditions, each tested once."""

    def __init__(self, documents: StoredDocuments, where: Where) -> None:
        self._documents = documents
        self._where = where
        self._tested = self._met = _NONE

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of some documents that meet the conditions, in their order."""
        new = np.setdiff1d(numbers, self._tested)
        if new.size:
            stated = self._documents.fields(new.tolist())
            met = [number for number, fields in stated if self._where.admits(self._plain(fields))]
            self._met = np.union1d(self._met, np.array(met, np.int64))
            self._tested = np.union1d(self._tested, new)
        return numbers[np.isin(numbers, self._met)]

    def _plain(self, fields: Mapping[str, Any]) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for name in self._where.fields:
            try:
                value = in_one_form(name, fields.get(name), STATED_FIELDS[name])
            except InvalidArgument:  # such as a date in words, which meets no condition on dates
                continue
            if value is not None:
                found[name] = value
        return found


class NarrowedWords:
    """The words of the documents within; it answers as a :class:`carag.TextIndex` does."""

    def __init__(self, words: TextIndex, within: Within) -> None:
        self._words = words
        self._within = within

    def documents(self, searches: Sequence[Search]) -> NDArray[np.int64]:
        """List the documents within that have an admissible passage, ascending."""
        return self._within.of(self._words.documents(searches))

    def admissible(self, searches: Sequence[Search], documents: NDArray[np.int64]) -> AdmissibleChunks:
        """List every admissible passage of some documents within."""
        return self._words.admissible(searches, np.intersect1d(documents, self.documents(searches)))

    def count(self, terms: Sequence[str], searches: Sequence[Search]) -> TermCounts:
        """Count terms in all that the searches admit."""
        return self._words.count(terms, searches)

    def search(
        self,
        terms: Sequence[str],
        k: int | None,
        policy: Sequence[Search],
        *,
        k1: float,
        b: float,
        floor: float = 0.0,
        documents: NDArray[np.int64] | None = None,
        others: bool = False,
    ) -> TextResult:
        """Find the best passages of documents within; arguments as for :meth:`carag.TextIndex.search`."""
        own = self.documents(policy)
        among = own if documents is None or others else np.intersect1d(own, documents)
        found = self._words.search(terms, None, policy, k1=k1, b=b, floor=floor, documents=among)
        named = np.isin(found.documents, documents) if documents is not None and others else None
        rest = np.ones(len(found), np.bool_) if named is None else ~named
        kept = rest & (np.cumsum(rest) <= (len(found) if k is None else k))
        kept = kept if named is None else kept | named
        return replace(
            found,
            keys=found.keys[kept],
            chunks=found.chunks[kept],
            documents=found.documents[kept],
            scores=found.scores[kept],
        )


class NarrowedIndex:
    """The rows of the documents within; it answers as an index does, by comparing all of them."""

    def __init__(self, index: AnyIndex, words: NarrowedWords) -> None:
        self._index = index
        self._words = words
        self.dim = index.dim
        self.similarities = index.similarities
        self.vectors = index.vectors

    def __len__(self) -> int:
        return len(self._index)

    def search(
        self,
        query: NDArray[np.float32],
        k: int,
        policy: Policy,
        *,
        as_of: int,
        alive_at: int | None,
        also_hidden: int = 0,
        hidden_among: Search | None = None,
        **_: object,  # a plan and its limit: all rows are compared in any case
    ) -> CheckedResult:
        """Find the ``k`` nearest rows that the policy admits; arguments as for :meth:`carag.Index.search`."""
        found = self._nearest(query, k, Search(policy, as_of, alive_at))
        if not also_hidden or hidden_among is None:
            return found
        return replace(found, beside=self._nearest(query, also_hidden, hidden_among))

    def _nearest(self, query: NDArray[np.float32], k: int, search: Search) -> CheckedResult:
        before = self._state()
        keys = self._words.admissible([search], self._words.documents([search])).keys
        similarities = self._index.similarities(query, keys) if keys.size else np.empty(0, np.float32)
        if before != self._state():
            raise BackendUnavailable("the backend changed during a search; ask again")
        best = np.lexsort((keys, -similarities))[:k]
        stats = CheckedStats((Plan.CERTIFIED,), keys.size, len(self._index), before)
        return CheckedResult(keys[best][None], similarities[best][None], np.array([best.size]), stats)

    def _state(self) -> IndexState | None:
        return self._index.state() if isinstance(self._index, Checked) else None
