"""Order documents by what a question names, and find names in it that no document is about.

Both depend only on the documents given, which the session may use: a hidden document changes neither, and an order
admits nothing. A tier is ::

    entity * (1 + 0.5 * period + 0.2 * kind) + 0.5 * latest

in [0, 2.2]. Together with what :mod:`carag.retrieval.ranking.fusion` adds to the score for a company named, it puts
every passage about that company before all others; among these, a close passage about another year may come before a
distant one about the year asked for.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.retrieval.reading.periods import Period, ReportKind, Span
from carag.visible import visible_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.retrieval.reading.documents import Documents
    from carag.retrieval.reading.names import Mention
    from carag.retrieval.reading.question import Reading


_PERIOD, _KIND, _LATEST = 0.5, 0.2, 0.5
"""Weights from the benchmark's development questions, where neighbouring values did equally well."""
_REPORTS: Final = tuple(ReportKind)
_ANNUAL: Final = _REPORTS.index(ReportKind.ANNUAL)
_OTHER: Final = _REPORTS.index(ReportKind.OTHER)
_RANK: Final = 1 << 22
"""Greater than the ordinal of every day: a report for a year or a quarter counts as newer than one with another period,
and that as newer than a document with only a date. Last week's 8-K does not have the figures of the latest quarter."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_AHEAD: Final = 200
"""A document published this number of days before a period may plan for or announce it."""
_AFTER: Final = 130
"""A document published this number of days after a period may report on it: a proxy statement is due 120 days after the
fiscal year (Form 10-K, General Instruction G(3))."""
_MATURES: Final = 5 * 366
"""Days that a table of maturities in a report looks ahead."""
_INTO_MONTH: Final = 14
"""Days: a fiscal year that ends on 2 January counts as December's, as in :mod:`carag.retrieval.reading.periods`."""


class Absent(NamedTuple):
    """What a question names but no given document is about: an entity, or a period, perhaps of an entity."""

    entity: Mention | None
    period: Period | None

    def described(self) -> str:
        """Return it in the question's own words."""
        named = "" if self.entity is None else visible_line(self.entity.text)
        when = "" if self.period is None else self.period.described()
        return " in ".join(filter(None, (named, when)))


def tiers(reading: Reading, documents: Documents) -> NDArray[np.float64]:
    """Return the tier of each document, 0 or more; 0 for all if the question names nothing.

    If no entity or title is named, periods and kinds alone decide. The latest is the newest document asked for, of each
    entity: by the end of the year or quarter that it reports for, so that an amendment is not newer than the report it
    amends; if there is no such report, by the period stated, and else by date. If the question names no entity, title,
    period or kind, *latest* is ignored.

    Examples
    --------
    >>> from carag.retrieval.reading import Described, Documents, Names, read_question
    >>> names = Names([("Example Corp", [], 7)])
    >>> documents = Documents([Described(1, "a", entities=(7,)), Described(2, "b", entities=(8,))])
    >>> tiers(read_question("What did Example Corp earn?", names=names), documents).tolist()
    [1.0, 0.0]
    """
    named = reading.is_about_somebody
    about = _about(reading, documents) if named else np.ones(len(documents), np.bool_)
    fits = _fits(reading.periods, documents, about)
    kind = documents.of_kinds(reading.kinds) & about if reading.kinds else np.zeros(len(documents), np.bool_)
    found: NDArray[np.float64] = named * about + _PERIOD * fits + _KIND * kind
    if reading.wants_latest and (named or reading.periods or reading.kinds):
        asked = about
        if reading.kinds:
            asked = asked & kind
        if reading.periods:
            asked = asked & (fits > 0)
        found += _LATEST * _newest(reading, documents, asked)
    return found


def absent(reading: Reading, documents: Documents) -> tuple[Absent, ...]:
    """Return what a question names but no given document is about, in the order of the question.

    A period counts as absent only if the documents state a period of report or a date. A document that reports for no
    year or quarter, such as an 8-K or a proxy statement, may also be about a period near its date, and any document
    about the day of its publication. If the question asks about the future, a report of up to five years before may be
    meant, whose tables of maturities cover five years (FASB ASC 470-10-50-1, 842-20-50-6).

    Examples
    --------
    >>> from carag.retrieval.reading import Described, Documents, Names, read_question
    >>> reading = read_question("What did Amcor earn in 2019?", names=Names([("Amcor plc", [], 7)]))
    >>> [one.described() for one in absent(reading, Documents())]
    ['Amcor']
    >>> of_2012 = Described(1, "a", entities=(7,), period=date(2012, 12, 31))
    >>> [one.described() for one in absent(reading, Documents([of_2012]))]
    ['Amcor in 2019']
    """
    found = []
    for mention in reading.entities:
        about = documents.of_entities(_numbers(mention))
        if not about.any():
            found.append(Absent(mention, None))
        else:
            found += [
                Absent(mention, one) for one in reading.periods if _none_is_of(one, documents, about, reading)
            ]
    found += [Absent(one, None) for one in reading.numbers if not one.keys]
    if not reading.is_about_somebody:
        every = np.ones(len(documents), np.bool_)
        found += [Absent(None, one) for one in reading.periods if _none_is_of(one, documents, every, reading)]
    return tuple(found)


def is_void(reading: Reading, missing: tuple[Absent, ...]) -> bool:
    """Tell whether no given document can be meant: each entity named is absent, altogether or in all periods asked for.

    If one of two companies or two years is present, that is enough to answer about it.
    """
    wanted = [
        Absent(entity, period)
        for entity in reading.entities or (() if reading.numbers else (None,))
        for period in reading.periods or (None,)
    ]
    wanted += [Absent(one, None) for one in reading.numbers]
    gone = [one for one in wanted if one in missing or Absent(one.entity, None) in missing]
    return bool(missing) and len(gone) == len(wanted)


def _none_is_of(period: Period, documents: Documents, among: NDArray[np.bool_], reading: Reading) -> bool:
    dated = among & (documents.periods + documents.dated > 0)
    if not dated.any() or _fits((period,), documents, dated).any():
        return False
    first, last = period.first.toordinal(), period.last.toordinal()
    if period.span is Span.DAYS and (dated & (first <= documents.dated) & (documents.dated <= last)).any():
        return False
    ahead = (first - _MATURES <= documents.periods) & (documents.periods < first)
    if reading.looks_ahead and (dated & ahead & (documents.reports != _OTHER)).any():
        return False
    first, last = period.first.toordinal() - _AHEAD, period.last.toordinal() + _AFTER
    near = [(first <= days) & (days <= last) for days in (documents.periods, documents.dated)]
    return not (dated & (documents.reports == _OTHER) & (near[0] | near[1])).any()


def _about(reading: Reading, documents: Documents) -> NDArray[np.bool_]:
    about = documents.of_entities(key for one in reading.entities for key in _numbers(one))
    titled = [key for one in (*reading.titles, *reading.numbers) for key in _numbers(one)]
    return about | np.isin(documents.numbers, titled) if titled else about


def _numbers(mention: Mention) -> list[int]:
    return [key for key in mention.keys if isinstance(key, int)]


def _fits(periods: tuple[Period, ...], documents: Documents, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Tell how well each document fits the best of some periods; 0 for those not in ``among``."""
    found, days = np.zeros(len(documents), np.float64), documents.periods
    near = np.zeros(len(documents), np.bool_)
    for period in periods:
        first, last = (
            np.array([period.reach(report)[end].toordinal() for report in _REPORTS]) for end in (0, 1)
        )
        near |= (days >= first[documents.reports]) & (days <= last[documents.reports])
    asked = np.flatnonzero(among & near & (days > 0))
    if asked.size:
        # Most documents have the same day, fiscal year's end and kind of report as others.
        codes = days[asked].astype(np.int64) * len(_REPORTS) + documents.reports[asked]
        each, which = np.unique(codes * 10_000 + _ends(documents, asked), return_inverse=True)
        fits = [[_fit(period, code) for code in each.tolist()] for period in periods]
        found[asked] = np.array(fits, np.float64).max(axis=0)[which]
    return found


@lru_cache(maxsize=1 << 16)
def _fit(period: Period, code: int) -> float:
    rest, end = divmod(code, 10_000)
    day, report = divmod(rest, len(_REPORTS))
    return period.fits(date.fromordinal(day), f"{end:04d}" if end else None, _REPORTS[report])


def _ends(documents: Documents, asked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ends of fiscal years: from the public table, or else from the filer's newest annual report given."""
    ends = documents.ends[asked].astype(np.int64)
    if ends.all():
        return ends
    which, owners = documents.owned
    unknown = np.zeros(len(documents), np.bool_)
    unknown[asked[ends == 0]] = True
    filers = np.unique(owners[unknown[which]])
    which, owners = (column[np.isin(owners, filers)] for column in (which, owners))
    annual = (documents.reports[which] == _ANNUAL) & (documents.periods[which] > 0)
    which_annual, owners_annual = which[annual], owners[annual]
    order = np.lexsort((documents.periods[which_annual], owners_annual))
    owners_annual, days = owners_annual[order], documents.periods[which_annual[order]]
    last = np.flatnonzero(np.append(owners_annual[1:] != owners_annual[:-1], True)) if order.size else order
    owners_annual = owners_annual[last]
    months = (
        (days[last].astype(np.int64) - _INTO_MONTH - _EPOCH).astype("datetime64[D]").astype("datetime64[M]")
    )
    shown = (
        months.astype(np.int64) % 12 + 1
    ) * 100 + 28  # a day that every month has, because only the month counts
    at = np.searchsorted(owners_annual, owners)
    known = at < owners_annual.size
    known[known] = owners_annual[at[known]] == owners[known]
    by_document = np.zeros(len(documents), np.int64)
    # The first of several filers counts, so they are assigned in reverse.
    by_document[which[known][::-1]] = shown[at[known]][::-1]
    return np.where(ends > 0, ends, by_document[asked])


def _newest(reading: Reading, documents: Documents, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which of the documents asked for are the newest, for each entity or title separately."""
    rank = 1 + (documents.reports != _OTHER)
    value = np.where(documents.periods > 0, documents.periods + rank * _RANK, documents.dated)
    which, groups = documents.owned
    if reading.is_about_somebody:
        here = np.isin(groups, [key for one in reading.entities for key in _numbers(one)])
        which, groups = which[here], groups[here]
        for number, one in enumerate((*reading.titles, *reading.numbers), 1):  # below every CIK
            titled = np.flatnonzero(np.isin(documents.numbers, _numbers(one)))
            which = np.concatenate([which, titled])
            groups = np.concatenate([groups, np.full(titled.size, -number)])
    else:
        is_owned = np.zeros(len(documents), np.bool_)
        is_owned[which] = True
        unowned = np.flatnonzero(~is_owned)
        which = np.concatenate([which, unowned])
        groups = np.concatenate([groups, np.full(unowned.size, -1)])
    here = asked[which] & (value[which] > 0)
    which, groups = which[here], groups[here]
    each, group = np.unique(groups, return_inverse=True)
    best = np.zeros(len(each), np.int64)
    np.maximum.at(best, group, value[which])
    found = np.zeros(len(documents), np.bool_)
    found[which[value[which] == best[group]]] = True
    return found
