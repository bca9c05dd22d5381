"""Ask a second place the same as the first, and count the differences, before a store is moved there.

The first one answers; no caller sees the second one's answers. Only numbers of differences are kept or logged: no key,
text or question. A question takes as long as both together.

Only what must be equal is compared: the number of admissible rows always, rows and similarities if both ran a plan that
finds the nearest with certainty, and the words of the rows found. While the second place is not at the same instant as
the first, it is not asked.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from carag.backends.checked import Checked
from carag.errors import CaragError
from carag.index import Index, Plan, SearchResult
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from carag.backends.results import CheckedResult
    from carag.policy import Mask, Policy

    Result: TypeAlias = SearchResult | CheckedResult

__all__ = ["AnyIndex", "ShadowReport", "Shadowed"]

_logger = logger(__name__)

_CERTAIN: Final = frozenset({Plan.EXACT, Plan.CERTIFIED})
_DIFFERENCES: Final = ("keys", "counts", "words")


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """How a shadow has differed from the first place since it was opened, in numbers."""

    is_level: bool
    """Whether it now holds the rows of the same instant."""
    missing: int
    """How many live rows fewer it holds than the first place; negative if more."""
    changes_failed: int
    """Changes that it did not follow; the next change, or opening, catches up."""
    asked: int
    """Searches that it answered and that were compared."""
    unasked: int
    """Searches that it was not asked because it was not level."""
    failed: int
    """Searches that it did not answer, or answered impossibly."""
    approximate: int
    """Of those asked: only the number of admissible rows was compared."""
    keys: int
    """Of those asked: rows or similarities differed."""
    counts: int
    """Of those asked: the number of admissible rows differed."""
    words: int
    """Rows found that have another word there, or are missing there."""

    @property
    def differs(self) -> bool:
        """Whether anything differs from the first place."""
        wrong = (self.missing, self.changes_failed, self.failed, self.keys, self.counts, self.words)
        return not self.is_level or any(wrong)

    def gauges(self) -> dict[str, float]:
        """Return the numbers by the names of a service's metrics."""
        return {f"shadow_{name}": float(value) for name, value in asdict(self).items()}


class Shadowed:
    """A place that is searched, and a second one that is asked the same.

    Parameters
    ----------
    first : Index or Checked
        Answers.
    second : Checked
    is_level : callable
        Returns whether both hold the rows of one instant, and will until the current search has ended.

    Examples
    --------
    >>> from carag.backends import Checked, NativeBackend, rows_of
    >>> from carag.policy import Mask, policy_word
    >>> class Labels(dict):
    ...     words_of = lambda self, keys: {key: self[key] for key in keys}
    >>> labels = Labels({7: policy_word(1), 8: policy_word(1)})
    >>> places = [Checked(NativeBackend(2), labels, 2) for _ in range(2)]
    >>> rows = rows_of([[1, 0], [0, 1]], list(labels.values()), list(labels))
    >>> states = [place.add(rows, batch="first") for place in places]
    >>> shadowed = Shadowed(*places, is_level=lambda: True)
    >>> state = places[1].delete([8], batch="lost")
    >>> shadowed.search([1, 1], 5, Mask(1), plan="exact").counts.tolist()
    [2]
    >>> report = shadowed.report()
    >>> report.asked, report.keys, report.counts, report.words, report.missing
    (1, 1, 1, 1, 1)
    """

    def __init__(self, first: Index | Checked, second: Checked, *, is_level: Callable[[], bool]) -> None:
        self._first, self._second, self._is_level = first, second, is_level
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._first.dim

    def __len__(self) -> int:
        """Count the live rows of the first place."""
        return len(self._first)

    def __repr__(self) -> str:
        return f"<Shadowed {self._first!r} by {self._second!r}>"

    def report(self) -> ShadowReport:
        """Return the differences so far."""
        with self._lock:
            known = dict(self._counts)
        fields = ("changes_failed", "asked", "unasked", "failed", "approximate", "keys", "counts", "words")
        return ShadowReport(
            is_level=self._is_level(),
            missing=len(self._first) - len(self._second),
            **{name: known.get(name, 0) for name in fields},
        )

    def fell_behind(self, error: CaragError) -> None:
        """Count a change that the second place did not follow, and log the type of the error."""
        self._count(changes_failed=1)
        _logger.warning(
            "the shadow failed to follow a change (%s), and is not asked until it has caught up",
            type(error).__name__,
        )

    # ------------------------------------------------------------ what is searched

    def search(self, queries: ArrayLike, k: int, policy: Policy | Mask, **how: Any) -> Result:
        """Search the first place, and ask the second; parameters as of :meth:`carag.Index.search`."""
        found = self._first.search(queries, k, policy, **how)
        if not self._is_level():
            self._count(unasked=1)
            return found
        try:
            told = self._second.search(queries, k, policy, **how)
            differences = self._compared(found, told)
            if how.get("also_hidden"):
                differences += self._compared(found.wider, told.wider)
        except CaragError as error:
            if self._count(failed=1) == 1:
                _logger.warning("the shadow did not answer a search: %s", type(error).__name__)
            return found
        # A search with two lists counts once, whichever of them differs.
        once = {name: min(1, number) for name, number in differences.items() if name != "words"}
        self._count(asked=1, **once, words=differences["words"])
        return found

    def similarities(self, query: ArrayLike, keys: ArrayLike) -> NDArray[np.float32]:
        """Compute how similar some rows of the first place are to a query."""
        return self._first.similarities(query, keys)

    def vectors(self, keys: ArrayLike) -> NDArray[np.float32]:
        """Read the vectors of some rows of the first place."""
        return self._first.vectors(keys)

    # ------------------------------------------------------------ what differs

    def _compared(self, found: Result, told: Result) -> Counter[str]:
        is_certain = {*found.stats.plans, *told.stats.plans} <= _CERTAIN
        is_same = np.array_equal(found.keys, told.keys) and np.array_equal(
            found.similarities, told.similarities
        )
        return Counter(
            approximate=int(not is_certain),
            keys=int(is_certain and not is_same),
            counts=int(found.stats.admissible != told.stats.admissible),
            words=self._other_words(found),
        )

    def _other_words(self, found: Result) -> int:
        keys = np.unique(found.keys[found.keys >= 0])
        theirs = self._second.words(keys.tolist())
        if isinstance(self._first, Checked):
            ours = self._first.words(keys.tolist())
        else:
            ours = dict(zip(keys.tolist(), self._first.words(keys).tolist(), strict=True))
        return sum(theirs.get(key) != word for key, word in ours.items())

    def _count(self, **numbers: int) -> int:
        """Add to the counters, and log the first difference; return how many searches failed."""
        with self._lock:
            had = sum(self._counts[name] for name in _DIFFERENCES)
            self._counts.update(numbers)
            has, failed = sum(self._counts[name] for name in _DIFFERENCES), self._counts["failed"]
        if has and not had:
            _logger.warning("the shadow differs from what was answered; its report counts the differences")
        return failed


AnyIndex: TypeAlias = Index | Checked | Shadowed
"""What passages are searched in."""
