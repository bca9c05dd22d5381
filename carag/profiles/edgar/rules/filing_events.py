"""Compute the state bits (18-23) of filings from later filings that amend, supersede or delist them, over time.

This is a pure function of a set of facts, in any order. A filing's history is a sequence of spans, from the minute it
became public; each span has bits and, for every bit, the accession number of the filing that sets it (the earliest, if
there are several). Times are intervals: a filing whose hour is unknown became public in ``[since, public_at]``. All
doubt is resolved in favour of hiding: in the order of two filings, in the minute from which an event hides (its
earliest), and in the minute from which a restatement makes admissible again (its latest).

Every rule is about filings that share a CIK, so a new filing can change only their histories. If only the metadata of a
filing is known (:mod:`carag.profiles.edgar.rules.metadata_only`), a fact that its text would show is a doubt like any
other: an amendment may carry statements, and a Form 25 may remove the common equity.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import date, datetime, timedelta
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from carag.labelling.lifecycle import Effect, StateBits, StateSpan, spans_of
from carag.policy import EASTERN, NEVER, PolicyBit, as_of_minutes
from carag.profiles.edgar.facts.forms import FormFamily, form_families, periodic_family
from carag.profiles.edgar.rules.filing_facts import YEARS, FilingFacts
from carag.profiles.edgar.rules.report_periods import (
    Period,
    family_of,
    periods_as_one,
    reported_family,
    unmatched_amendments,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


_NON_RELIANCE_DAYS: Final = 3 * 366
"""Days after a period's end in which an 8-K item 4.02 may refer to it."""
_TAKEN_EFFECT: Final = 90 * 24 * 60
"""Minutes from a form of removal until registration under section 12(b) or 12(g) has ended."""


def state_bits(facts: Iterable[FilingFacts]) -> dict[str, StateBits]:
    """Return the state bits of every filing after the last event, sorted by accession number."""
    return {
        accession: StateBits(spans[-1].bits, spans[-1].causes)
        for accession, spans in state_history(facts).items()
    }


def state_history(facts: Iterable[FilingFacts]) -> dict[str, tuple[StateSpan, ...]]:
    """Return the spans of state bits of every filing, sorted by accession number.

    Facts may come in any order; an accession number that occurs more than once has several readings, each with its
    effects. Spans are ascending; the first begins at the minute the filing is public.
    """
    filings = sorted(facts, key=lambda one: (one.public_at, one.accession_number))
    state = _State(filings)
    state.amended()
    state.non_reliance()
    state.not_latest()
    state.late()
    state.delisted()
    return {
        one.accession_number: spans_of(one.public_at, state.found[one.accession_number])
        for one in sorted(filings, key=lambda one: one.accession_number)
    }


_Registration = tuple[int, str, str]
_Reports = dict[tuple[int, str], dict[date, "FilingFacts"]]
"""For each filer and family, the earliest report for each period."""
_Periods = tuple[list[date], list["FilingFacts"]]
"""Ascending periods, each with the earliest report for that period or a later one."""


class _State:
    """Collects effects, with one pass per bit over the filings sorted by publication."""

    def __init__(self, filings: list[FilingFacts]) -> None:
        self.found: dict[str, list[Effect]] = {one.accession_number: [] for one in filings}
        self._filings = filings
        self._by_period: dict[Period, list[FilingFacts]] = defaultdict(list)
        self._by_registration: dict[_Registration, list[FilingFacts]] = defaultdict(list)
        self._as_one = periods_as_one(key for one in filings for key in _periods(one))
        seen: set[tuple[Period | _Registration, str, bool]] = set()
        for one in filings:
            for key in self._counted(one):
                if _new(seen, key, one):
                    self._by_period[key].append(one)
            for registration in _registrations(one):
                if _new(seen, registration, one):
                    self._by_registration[registration].append(one)

    def _counted(self, one: FilingFacts) -> list[Period]:
        return list(dict.fromkeys(self._as_one[key] for key in _periods(one)))

    def _set(self, bit: PolicyBit, filing: FilingFacts, cause: FilingFacts, until: int = NEVER) -> None:
        """Add an effect; a filing has no effect on itself."""
        if filing.accession_number != cause.accession_number:
            self.found[filing.accession_number].append(
                Effect(cause.since, until, bit, cause.accession_number)
            )

    def amended(self) -> None:
        """Set AMENDED by a later /A of the same CIK, form and period (Rule 12b-15); SUPERSEDED if it has statements.

        An amendment that matches no report's period, or states no period, amends the nearest report before it.
        Registration statements have no period. A registration statement and its amendments share a file number of their
        own (Rule 470), while all of a registrant's reports share one.

        An amendment is by nature later than the filing it amends; only the times of two amendments are compared. Most
        10-K/As carry only Part III, so an amendment without statements supersedes nothing (PCAOB AS 2905). An amendment
        known only by its metadata may carry statements, so it supersedes a report that has statements.
        """
        for group in (*self._amended_groups(), *self._by_registration.values()):
            amendments = [one for one in group if one.is_amendment]
            certified = [one for one in amendments if one.certified]
            doubtful = [one for one in amendments if one.may_be_certified]
            for bit, causes, concerned in (
                (PolicyBit.AMENDED, amendments, group),
                (PolicyBit.SUPERSEDED, certified, group),
                (PolicyBit.SUPERSEDED, doubtful, [one for one in group if one.statements]),
            ):
                if not causes:
                    continue
                place = {id(one): number for number, one in enumerate(causes)}
                keys = [(one.public_at, one.accession_number) for one in causes]
                first = list(accumulate(reversed(causes), _earlier))[::-1]  # of each cause and its successors
                for one in concerned:
                    after = place.get(id(one), -1) + 1
                    if one.is_amendment and id(one) not in place:
                        after = bisect_right(keys, (one.public_at, one.accession_number))
                    if after < len(causes):
                        self._set(bit, one, first[after])

    def _amended_groups(self) -> Iterable[list[FilingFacts]]:
        """Return the filings of each period, joined by unmatched amendments that may amend them."""
        keys: dict[str, set[Period]] = defaultdict(set)
        for one in self._filings:
            keys[one.accession_number].update(self._counted(one))
        groups: dict[tuple[object, ...], list[FilingFacts]] = {}
        groups.update(self._by_period.items())
        for amendment, cik, report in unmatched_amendments(self._filings, keys):
            dated: list[tuple[object, ...]] = [key for key in keys[report.accession_number] if key[0] == cik]
            for key in dated or [(cik, family_of(report.form), report.accession_number)]:
                groups[key] = [*groups.get(key, [report]), amendment]
        return (
            sorted(dict.fromkeys(group), key=lambda one: (one.public_at, one.accession_number))
            for group in groups.values()
        )

    def non_reliance(self) -> None:
        """Set NON_RELIANCE by a later 8-K item 4.02 of the CIK, within three years of the period (SOX 304).

        The item names periods only in its text, so every statement of those years gets the bit, until a later amendment
        of the same period carries statements.
        """
        warnings: dict[int, list[FilingFacts]] = defaultdict(list)
        for one in self._filings:
            if FormFamily.CURRENT in form_families(one.form) and "4.02" in one.items:
                for cik in dict.fromkeys(one.ciks):
                    warnings[cik].append(one)
        times = {cik: [one.public_at for one in found] for cik, found in warnings.items()}
        for one in self._filings:
            for cik in set(one.ciks) & warnings.keys() if one.statements else ():
                group = [fix for key in self._counted(one) if key[0] == cik for fix in self._by_period[key]]
                fixes = [fix for fix in group if fix.is_amendment and fix.certified]
                for warning in warnings[cik][bisect_right(times[cik], one.since) :]:
                    if _within_years(one, warning):
                        fixed = [fix.public_at for fix in fixes if fix.since >= warning.public_at]
                        self._set(PolicyBit.NON_RELIANCE, one, warning, min(fixed, default=NEVER))

    def not_latest(self) -> None:
        """Set NOT_LATEST by a report of the same CIK on the same form for a later period (FINRA 2210(d)).

        A report without a period counts as a report for a period before the day when it became public.
        """
        counted: _Reports = defaultdict(dict)
        stated: _Reports = defaultdict(dict)
        for (cik, family, period), group in self._by_period.items():
            if periodic_family(family):
                counted[cik, family][period] = reduce(_earlier, group)
                for one in group:
                    day = one.period or period
                    stated[cik, family][day] = _earlier(one, stated[cik, family].get(day, one))
        after_counted, after_stated = _after(counted), _after(stated)
        for (cik, family, period), group in self._by_period.items():
            for one in group:
                self._set_not_latest(one, period, after_counted.get((cik, family)))
        for one in self._filings:
            if one.period is None and one.public_at < NEVER:
                last = datetime.fromtimestamp(one.public_at * 60, EASTERN).date()
                for cik in dict.fromkeys(one.ciks):
                    self._set_not_latest(one, last, after_stated.get((cik, family_of(one.form))))

    def _set_not_latest(self, one: FilingFacts, day: date, reports: _Periods | None) -> None:
        if reports and (later := bisect_right(reports[0], day)) < len(reports[0]):
            self._set(PolicyBit.NOT_LATEST, one, reports[1][later])

    def late(self) -> None:
        """Set LATE by an NT 10-K or NT 10-Q of the same CIK and period (Rule 12b-25)."""
        for (cik, family, period), group in self._by_period.items():
            if FormFamily.LATE_NOTICE in form_families(family):
                for one in self._by_period.get((cik, reported_family(family), period), ()):
                    self._set(PolicyBit.LATE, one, reduce(_earlier, group))

    def delisted(self) -> None:
        """Set DELISTED by a Form 25 or 15, or a revocation, of the CIK (Exchange Act s. 12(d), 12(g), 12(j)).

        Every document of the filer gets the bit, including the form itself and later filings: a company that still
        reports may trade nowhere. A form that says that it removes a class other than common equity has no effect.

        Only the form's text states the class. In EDGAR's index of 152 companies 97 have such forms, 581 in all, and 91
        of the 97 reported in 2025 or later. So a form known only by its metadata counts, until a periodic report proves
        the contrary: its cover lists common equity on an exchange under section 12(b), 90 days or more after the form,
        when removal and the end of registration have taken effect (Rules 12d2-2(d), 12g-4(a)).
        """
        gone: dict[int, list[FilingFacts]] = defaultdict(list)
        listed: dict[int, list[FilingFacts]] = defaultdict(list)
        for one in self._filings:
            removes = FormFamily.DELISTING in form_families(one.form) and not one.leaves_common
            for cik in one.ciks if removes or one.lists_common else ():
                (gone if removes else listed)[cik].append(one)
        effects = {cik: _absences(forms, listed.get(cik, [])) for cik, forms in gone.items()}
        for one in self._filings:
            found = {effect for cik in one.ciks for effect in effects.get(cik, ())}
            self.found[one.accession_number].extend(found)


def bears_on_others(one: FilingFacts) -> bool:
    """Tell whether a filing can set or clear a state bit of another."""
    families = form_families(one.form)
    return (
        bool(periodic_family(one.form))
        or (one.is_amendment and bool(_periods(one) or _registrations(one)))
        or bool(one.period and FormFamily.LATE_NOTICE in families)
        or (FormFamily.CURRENT in families and "4.02" in one.items)
        or FormFamily.DELISTING in families
        or one.lists_common
    )


def _after(reports: _Reports) -> dict[tuple[int, str], _Periods]:
    found = {}
    for place, by_period in reports.items():
        periods = sorted(by_period)
        first = list(accumulate((by_period[day] for day in reversed(periods)), _earlier))[::-1]
        found[place] = (periods, first)
    return found


def _absences(forms: list[FilingFacts], reports: list[FilingFacts]) -> list[Effect]:
    """Return the effects of a filer's removal forms, each until a report proves that common equity is listed."""
    found: list[Effect] = []
    for form in sorted(forms, key=lambda one: (one.since, one.public_at, one.accession_number)):
        proofs = (one.public_at for one in reports if one.since >= form.public_at + _TAKEN_EFFECT)
        until = min(proofs, default=NEVER)
        if not found or until > max(one.until for one in found):
            found.append(Effect(form.since, until, PolicyBit.DELISTED, form.accession_number))
    return found


def _new(
    seen: set[tuple[Period | _Registration, str, bool]], key: Period | _Registration, one: FilingFacts
) -> bool:
    entry = (key, one.accession_number, one.is_amendment)
    return not (entry in seen or seen.add(entry))  # type: ignore[func-returns-value]


def _earlier(one: FilingFacts, other: FilingFacts) -> FilingFacts:
    return min(one, other, key=lambda filing: (filing.since, filing.public_at, filing.accession_number))


def _periods(filing: FilingFacts) -> list[Period]:
    if filing.period is None or not filing.form:
        return []
    return [(cik, family_of(filing.form), filing.period) for cik in dict.fromkeys(filing.ciks)]


def _registrations(filing: FilingFacts) -> list[_Registration]:
    if FormFamily.OFFERING not in form_families(filing.form):
        return []
    numbers = dict.fromkeys(number for number in filing.file_numbers if number)
    return [(cik, filing.form, number) for cik in dict.fromkeys(filing.ciks) for number in numbers]


def _within_years(filing: FilingFacts, warning: FilingFacts) -> bool:
    """Tell whether a warning came within three years of the period's end; an unknown period counts as within."""
    if filing.period is None or filing.period.year not in YEARS:
        return True
    period = filing.period + timedelta(days=_NON_RELIANCE_DAYS)
    return warning.since <= as_of_minutes(period)
