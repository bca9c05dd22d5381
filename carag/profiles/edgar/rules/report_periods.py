"""Match periodic reports by period, and unmatched amendments to the reports they may amend.

A filer whose fiscal year ends on a weekday (52 or 53 weeks) may state the month's last day in one header and the fiscal
year's last day in another, and an amendment may state no period. All doubt is resolved in favour of hiding.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from carag.policy import EASTERN
from carag.profiles.edgar.facts.forms import FormFamily, form_families, periodic_family

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from carag.profiles.edgar.rules.filing_facts import FilingFacts


Period = tuple[int, str, date]
"""CIK, form family, and end of the period."""

_AS_ONE: Final = timedelta(days=10)
"""Greatest distance between two stated ends of the same period: quarters are 91 days apart, a fiscal week has 7."""
_AMENDED_WITHIN: Final = 380 * 24 * 60
"""Minutes after a report in which an unmatched amendment may amend it: until next year's report is due."""
_KNOWN_DAY: Final = 7 * 24 * 60
"""Greatest uncertainty, in minutes, with which the day of a filing counts as known."""


def family_of(form: str) -> str:
    """Return the periodic report that a form is a variant of, or the form itself."""
    return periodic_family(form) or form


def reported_family(family: str) -> str:
    """Return the report whose periods a form states; a notice of lateness states the periods of the late report.

    Examples
    --------
    >>> reported_family("NT 10-K"), reported_family("10-Q"), reported_family("8-K")
    ('10-K', '10-Q', '')
    """
    if FormFamily.LATE_NOTICE not in form_families(family):
        return periodic_family(family)
    return periodic_family(family.replace("NTN ", "NT ").removeprefix("NT ").replace("10K", "10-K"))


def periods_as_one(stated: Iterable[Period]) -> dict[Period, Period]:
    """Map every period to the period that it counts as: for reports, the first of those within ten days."""
    by_report: dict[tuple[int, str], list[Period]] = defaultdict(list)
    found: dict[Period, Period] = {}
    for one in stated:
        found[one] = one
        if report := reported_family(one[1]):
            by_report[one[0], report].append(one)
    for several in by_report.values():
        first = last = date.min
        for cik, family, day in sorted(several, key=lambda one: one[2]):
            if first == date.min or day - last > _AS_ONE:
                first = day
            last = day
            found[cik, family, day] = (cik, family, first)
    return found


def unmatched_amendments(
    filings: Iterable[FilingFacts], keys: Mapping[str, set[Period]]
) -> list[tuple[FilingFacts, int, FilingFacts]]:
    """Find amendments whose period no report has, and the reports that these may amend.

    ``keys`` has the periods under which each accession number counts, in all its readings. Returns tuples of amendment,
    CIK, and the nearest report before it within 380 days; in doubt, each candidate.
    """
    reports: dict[tuple[int, str], list[FilingFacts]] = defaultdict(list)
    amendments: dict[tuple[int, str], list[FilingFacts]] = defaultdict(list)
    for one in filings:
        if family := periodic_family(one.form):
            for cik in dict.fromkeys(one.ciks):
                (amendments if one.is_amendment else reports)[cik, family].append(one)
    found = []
    for (cik, family), several in amendments.items():
        originals = reports.get((cik, family), [])
        matched = {key for one in originals for key in keys.get(one.accession_number, ()) if key[0] == cik}
        for amendment in several:
            if _repeats_its_day(amendment) or not matched & keys.get(amendment.accession_number, set()):
                found += [(amendment, cik, report) for report in _nearest(amendment, originals)]
    return found


def _repeats_its_day(report: FilingFacts) -> bool:
    """Tell whether a report states the day it was filed as its period, as headers do; such a report states none."""
    if report.period is None or report.public_at - report.since > _KNOWN_DAY:
        return False
    return report.period >= datetime.fromtimestamp(report.since * 60, EASTERN).date()


def _nearest(amendment: FilingFacts, reports: Iterable[FilingFacts]) -> list[FilingFacts]:
    """Return the reports that may be the last one before an amendment, several if times are uncertain."""
    near = [
        one
        for one in reports
        if one.accession_number != amendment.accession_number
        and one.since <= amendment.public_at
        and amendment.since - one.public_at <= _AMENDED_WITHIN
    ]
    surely = max((one.since for one in near if one.public_at <= amendment.since), default=0)
    return [one for one in near if one.public_at >= surely]
