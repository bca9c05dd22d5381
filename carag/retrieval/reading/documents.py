"""The metadata of documents as columns, from which the order of many is computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, overload

import numpy as np

from carag.errors import InvalidArgument
from carag.retrieval.reading.periods import ReportKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray


_Kind = TypeVar("_Kind", bound=np.integer[Any])
_REPORTS: Final = tuple(ReportKind)


class Described(NamedTuple):
    """The metadata of a document; what is unknown is empty or None."""

    number: int
    """Its number in the store and the index of words."""
    id: str
    kind: str = ""
    entities: tuple[int, ...] = ()
    """CIKs of its filers."""
    company: str = ""
    title: str = ""
    period: date | None = None
    """The last day of the period that it reports for."""
    dated: date | None = None
    """The day on which it was published."""
    report: ReportKind = ReportKind.OTHER
    fiscal_year_end: str | None = None
    """Month and day, such as ``0930``, if a public table states it."""
    numbers: tuple[str, ...] = ()
    """Numbers that a question may name it by; kept by :class:`carag.retrieval.reading.Numbers`, not as a column."""


@dataclass(eq=False)
class _Columns:
    """Columns of every document, by position."""

    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    ids: list[str] = field(default_factory=list)
    companies: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()
    """Names of kinds, each once."""
    kinds: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Positions in `names`."""
    reports: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """Positions in ``ReportKind``."""
    periods: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Ordinals of days; 0 if unknown."""
    dated: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    ends: NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))
    """100 times the month, plus the day; 0 if unknown."""
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    """Where the owners of each document begin, and where the last end."""
    owners: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def joined(self, records: Sequence[Described]) -> _Columns:
        """Return the columns with more documents at the end."""
        code = {name: number for number, name in enumerate(self.names)}
        kinds = [code.setdefault(one.kind, len(code)) for one in records]
        owned = np.array([len(one.entities) for one in records], np.int64)
        ends = [int(one.fiscal_year_end or 0) for one in records]
        return _Columns(
            numbers=_with(self.numbers, [one.number for one in records]),
            ids=[*self.ids, *(one.id for one in records)],
            companies=[*self.companies, *(one.company for one in records)],
            titles=[*self.titles, *(one.title for one in records)],
            names=tuple(code),
            kinds=_with(self.kinds, kinds),
            reports=_with(self.reports, [_REPORTS.index(one.report) for one in records]),
            periods=_with(self.periods, [_ordinal(one.period) for one in records]),
            dated=_with(self.dated, [_ordinal(one.dated) for one in records]),
            ends=_with(self.ends, ends),
            starts=np.concatenate([self.starts, self.starts[-1] + np.cumsum(owned, dtype=np.int64)]),
            owners=_with(self.owners, [cik for one in records for cik in one.entities]),
        )


class Documents(Sequence[Described]):
    """Documents in an order: a subset of a larger table that costs nothing until it is read."""

    def __init__(self, records: Iterable[Described] = ()) -> None:
        given, self._columns = tuple(records), _Columns()
        if given:
            self._columns = self._columns.joined(given)
        self._at: NDArray[np.int64] = np.arange(len(self._columns.numbers))

    def joined(self, records: Sequence[Described]) -> Documents:
        """Return all documents of the table with more at the end; this object does not change."""
        return self._made(self._columns.joined(records), None)

    def of(self, numbers: ArrayLike) -> Documents:
        """Return the documents with these numbers, in this order; the table's numbers must ascend.

        Raises InvalidArgument if no document has one of the numbers.
        """
        wanted = np.asarray(numbers, np.int64).ravel()
        at = np.searchsorted(self._columns.numbers, wanted)
        known = at < len(self._columns.numbers)
        known[known] = self._columns.numbers[at[known]] == wanted[known]
        if not known.all():
            raise InvalidArgument(
                f"the catalogue has no document with number {wanted[~known][0]}; refresh it if the store has changed, "
                "or restore a backup"
            )
        return self._made(self._columns, at)

    @classmethod
    def _made(cls, columns: _Columns, at: NDArray[np.int64] | None) -> Documents:
        made = cls()
        made._columns = columns
        made._at = np.arange(len(columns.numbers)) if at is None else at
        return made

    # --- as a sequence ---

    def __len__(self) -> int:
        return len(self._at)

    @overload
    def __getitem__(self, which: int) -> Described: ...
    @overload
    def __getitem__(self, which: slice) -> Documents: ...
    def __getitem__(self, which: int | slice) -> Described | Documents:
        if isinstance(which, slice):
            return self._made(self._columns, self._at[which])
        at, columns = int(self._at[which]), self._columns
        end = int(columns.ends[at])
        return Described(
            number=int(columns.numbers[at]),
            id=columns.ids[at],
            kind=columns.names[columns.kinds[at]],
            entities=tuple(columns.owners[columns.starts[at] : columns.starts[at + 1]].tolist()),
            company=columns.companies[at],
            title=columns.titles[at],
            period=_day(columns.periods[at]),
            dated=_day(columns.dated[at]),
            report=_REPORTS[columns.reports[at]],
            fiscal_year_end=f"{end:04d}" if end else None,
        )

    # --- as columns, in the order of the sequence ---

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return [self._columns.ids[at] for at in self._at]

    @property
    def titles(self) -> list[str]:
        """Their titles; empty if unknown."""
        return [self._columns.titles[at] for at in self._at]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Their numbers."""
        return self._columns.numbers[self._at]

    @cached_property
    def periods(self) -> NDArray[np.int32]:
        """Ordinals of the last days of the periods that they report for; 0 if unknown."""
        return self._columns.periods[self._at]

    @cached_property
    def dated(self) -> NDArray[np.int32]:
        """Ordinals of the days on which they were published; 0 if unknown."""
        return self._columns.dated[self._at]

    @cached_property
    def reports(self) -> NDArray[np.int8]:
        """The kinds of period that they report for, as positions in ``ReportKind``."""
        return self._columns.reports[self._at]

    @cached_property
    def ends(self) -> NDArray[np.int16]:
        """Ends of fiscal years, 100 times the month plus the day; 0 if unknown."""
        return self._columns.ends[self._at]

    @cached_property
    def owned(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of a position in the sequence and an entity, by position and then as stated."""
        starts = self._columns.starts
        counts = starts[self._at + 1] - starts[self._at]
        before = np.cumsum(counts) - counts
        which = np.repeat(starts[self._at] - before, counts) + np.arange(counts.sum())
        return np.repeat(np.arange(len(self._at)), counts), self._columns.owners[which]

    def of_entities(self, keys: Iterable[int]) -> NDArray[np.bool_]:
        """Tell which documents belong to one of these entities."""
        columns = self._columns
        hit = np.zeros(len(columns.owners), np.bool_)
        for key in keys:
            hit |= columns.owners == key
        found = np.zeros(len(columns.numbers), np.bool_)
        found[np.searchsorted(columns.starts, np.flatnonzero(hit), side="right") - 1] = True
        return found[self._at]

    def of_kinds(self, kinds: Iterable[str]) -> NDArray[np.bool_]:
        """Tell which documents have one of these kinds, in upper or lower case."""
        wanted = {one.casefold() for one in kinds}
        is_wanted = np.array([name.casefold() in wanted for name in self._columns.names], np.bool_)
        codes = self._columns.kinds[self._at]
        return is_wanted[codes] if len(is_wanted) else np.zeros(len(codes), np.bool_)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Their kinds, each once, ascending."""
        codes = np.unique(self._columns.kinds[self._at])
        return tuple(sorted({self._columns.names[code] for code in codes} - {""}))

    @property
    def positions(self) -> NDArray[np.int64]:
        """Their positions in the whole table."""
        return self._at


def _with(column: NDArray[_Kind], values: Sequence[int]) -> NDArray[_Kind]:
    return np.concatenate([column, np.array(values, column.dtype)])


def _ordinal(day: date | None) -> int:
    return 0 if day is None else day.toordinal()


def _day(ordinal: int) -> date | None:
    return date.fromordinal(int(ordinal)) if ordinal else None
