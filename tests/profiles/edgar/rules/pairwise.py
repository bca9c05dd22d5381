"""The rules of state bits once more, pair by pair and without groups, to be compared with the shipped passes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from carag.policy import EASTERN, NEVER, as_of_minutes
from carag.profiles.edgar.facts.forms import periodic_family

if TYPE_CHECKING:
    from carag.profiles.edgar.rules.filing_facts import FilingFacts

DAY = 24 * 60


def family(of: FilingFacts) -> str:
    return periodic_family(of.form) or of.form


def of_one_period(one: FilingFacts, other: FilingFacts) -> bool:
    """Drawn quarters are 91 days apart, so that no chain of ten days joins two."""
    if one.period is None or other.period is None:
        return False
    return abs((one.period - other.period).days) <= (
        10 if periodic_family(family(one).removeprefix("NT ")) else 0
    )


def may_amend(filings: list[FilingFacts], of: FilingFacts, cik: int) -> list[FilingFacts]:
    """The reports of a CIK that an amendment may amend although none has its period."""
    reports = [
        one
        for one in filings
        if periodic_family(of.form) and family(one) == family(of) and cik in one.ciks and not one.is_amendment
    ]
    day = datetime.fromtimestamp(of.since * 60, EASTERN).date()
    repeats = of.period is not None and of.period >= day and of.public_at == of.since
    if not of.is_amendment or (not repeats and any(of_one_period(of, one) for one in reports)):
        return []
    near = [one for one in reports if one.since <= of.public_at and of.since - one.public_at <= 380 * DAY]
    return [
        one
        for one in near
        if not any(last.public_at <= of.since and one.public_at < last.since for last in near)
    ]


def in_group(filings: list[FilingFacts], one: FilingFacts, report: FilingFacts, cik: int) -> bool:
    """Whether a filing is a report, has its period, or may amend a filing of its period."""
    return cik in one.ciks and (
        one is report
        or (family(one) == family(report) and of_one_period(one, report))
        or any(other is report or of_one_period(other, report) for other in may_amend(filings, one, cik))
    )


def amends(filings: list[FilingFacts], of: FilingFacts, one: FilingFacts) -> bool:
    if not of.is_amendment or family(of) != family(one):
        return False
    return of_one_period(of, one) or any(
        in_group(filings, one, report, cik) and in_group(filings, of, report, cik)
        for cik in of.ciks
        for report in filings
        if cik in report.ciks and not report.is_amendment and family(report) == family(of)
    )


def oracle(filings: list[FilingFacts], one: FilingFacts, at: int = NEVER - 1) -> set[str]:
    """The rules pair by pair, as of a minute: what may have happened hides, and only what surely has reopens."""
    others = [of for of in filings if of is not one and set(of.ciks) & set(one.ciks)]
    happened = [of for of in others if of.since <= at]
    same = [of for of in happened if of_one_period(of, one) and family(of) == family(one)]
    order = (one.public_at, one.accession_number)
    later = [
        of
        for of in happened
        if amends(filings, of, one) and (not one.is_amendment or (of.public_at, of.accession_number) > order)
    ]
    bits = set()
    if later:
        bits.add("AMENDED")
    if any(of.certified for of in later):
        bits.add("SUPERSEDED")
    if any(
        periodic_family(one.form)
        and of.period
        and family(of) == family(one)
        and of.period > (one.period or datetime.fromtimestamp(one.public_at * 60, EASTERN).date())
        and not of_one_period(of, one)
        for of in happened
    ):
        bits.add("NOT_LATEST")
    if any(of.form == "NT 10-K" and family(one) == "10-K" and of_one_period(of, one) for of in happened):
        bits.add("LATE")
    if any(of.form == "25" for of in [*happened, one] if of.since <= at):
        bits.add("DELISTED")
    for warning in happened:
        if (
            not one.statements
            or warning.form != "8-K"
            or "4.02" not in warning.items
            or warning.public_at <= one.since
        ):
            continue
        if one.period and warning.since > as_of_minutes(one.period + timedelta(days=3 * 366)):
            continue
        shared = set(one.ciks) & set(warning.ciks)
        fixes = [
            of
            for of in [*same, one]
            if of.is_amendment
            and of.certified
            and of.since >= warning.public_at
            and of.public_at <= at
            and one.period
        ]
        if any(not any(cik in of.ciks for of in fixes) for cik in shared):
            bits.add("NON_RELIANCE")
    return bits
