"""Documents are ordered by what a question names among those given, and by nothing of any other."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval.reading import (
    Described,
    Documents,
    Lexicon,
    Names,
    Reading,
    ReportKind,
    absent,
    is_void,
    read_question,
    tiers,
)

NAMES = Names([("Amcor plc", ["AMCR"], 1), ("Best Buy Co Inc", ["BBY"], 2), ("Pfizer Inc", ["PFE"], 3)])
TITLES = Names.of_titles([("Remote work policy", 4), ("Canteen menu", 5), ("Canteen menu", 6)])
KINDS = Lexicon(r"\b10-K\b" "\t10-K\n" r"\b10-Q\b" "\t10-Q\n" r"\bannual reports?\b" "\t10-K, 20-F")
QUESTIONS = (
    "What was Amcor's revenue?",
    "Amcor in FY2020, and Pfizer in Q2 2021?",
    "Best Buy's latest 10-K",
    "the latest annual report",
    "What is the newest of all?",
    "anything of 2021",
    "the most recent 10-Q of 2021",
    "What does the remote work policy say?",
    "the latest canteen menu",
    "Pfizer's latest results of 2020",
    "Nothing is named here",
)
DAYS = st.none() | st.dates(date(2018, 1, 1), date(2023, 12, 31))
REPORT = {"10-K": ReportKind.ANNUAL, "10-Q": ReportKind.INTERIM}


def read(question: str) -> Reading:
    return read_question(question, names=NAMES, titles=TITLES, kinds=KINDS)


@st.composite
def several(draw: st.DrawFn) -> list[Described]:
    """Draw documents of three companies and a few of none, in the order of their numbers."""
    found = []
    for number in range(1, draw(st.integers(0, 12)) + 1):
        kind = draw(st.sampled_from(["10-K", "10-Q", "8-K", ""]))
        found.append(
            Described(
                number,
                f"d{number}",
                kind,
                tuple(draw(st.lists(st.sampled_from([1, 2, 3, 9]), max_size=2, unique=True))),
                period=draw(DAYS),
                dated=draw(DAYS),
                report=REPORT.get(kind, ReportKind.OTHER),
                fiscal_year_end=draw(st.sampled_from([None, "0630", "1231"])),
            )
        )
    return found


# --- laws ---


@given(several(), st.sampled_from(QUESTIONS), st.data())
def test_documents_that_are_not_given_change_nothing(
    every: list[Described], question: str, data: st.DataObject
) -> None:
    """A slice of a table orders as a table of the slice alone; and so for what is absent."""
    kept = [one for one in every if data.draw(st.booleans())]
    reading = read(question)
    among, alone = Documents(every).of([one.number for one in kept]), Documents(kept)
    assert list(among) == list(alone) == kept
    assert np.array_equal(tiers(reading, among), tiers(reading, alone))
    assert absent(reading, among) == absent(reading, alone)


@given(several(), st.sampled_from(QUESTIONS), st.randoms())
def test_another_order_of_documents_is_the_same_order_of_tiers(
    every: list[Described], question: str, random: object
) -> None:
    """Each keeps its own."""
    at = list(range(len(every)))
    random.shuffle(at)  # type: ignore[attr-defined]
    table, reading = Documents(every), read(question)
    moved = table.of([every[one].number for one in at])
    assert np.array_equal(tiers(reading, moved), tiers(reading, table)[at])
    assert absent(reading, moved) == absent(reading, table)


@given(several(), st.sampled_from(QUESTIONS))
def test_a_tier_is_never_negative_and_of_another_entity_it_is_0(
    every: list[Described], question: str
) -> None:
    """Nor is it above 2.2; and the entity that is named comes before all others."""
    reading = read(question)
    found = tiers(reading, Documents(every))
    assert ((found >= 0) & (found <= 2.2)).all()
    if reading.entities or reading.titles:
        titled = {key for one in reading.titles for key in one.keys}
        for one, tier in zip(every, found, strict=True):
            is_named = one.number in titled or not reading.keys.isdisjoint(one.entities)
            assert (tier >= 1) == is_named, one
            assert is_named or tier == 0


@given(several(), st.sampled_from(QUESTIONS))
def test_columns_say_of_many_what_is_said_of_one(every: list[Described], question: str) -> None:
    """The sum is that of the definition, of each document by itself."""
    reading = read(question)
    ends = {}  # of the newest annual report of each filer
    for one in sorted(every, key=lambda one: one.period or date.min):
        if one.report is ReportKind.ANNUAL and one.period:
            ends |= dict.fromkeys(one.entities, one.period)
    named = bool(reading.entities or reading.titles)
    titled = {key for one in reading.titles for key in one.keys}
    found = tiers(reading, Documents(every))
    for one, tier in zip(every, found, strict=True):
        about = one.number in titled or not reading.keys.isdisjoint(one.entities)
        shown = next((ends[cik] for cik in one.entities if cik in ends), None)
        ended = None if shown is None else date.fromordinal(shown.toordinal() - 14)
        end = one.fiscal_year_end or (ended and f"{ended.month:02}28")
        wanted = 0.5 * reading.fits(one.period, end, one.report) + 0.2 * (one.kind in reading.kinds)
        wanted = about * (1 + wanted) if named else wanted
        assert tier - wanted == pytest.approx(0) or (
            reading.wants_latest and tier - wanted == pytest.approx(0.5)
        )


@given(several())
def test_what_is_the_latest_is_each_entitys_own(every: list[Described]) -> None:
    """The newest of Amcor and the newest of Pfizer: neither has a newer one."""
    reading = read("the latest of Amcor, and of Pfizer")
    found = tiers(reading, Documents(every)) >= 1.5
    for cik in (1, 3):
        own = [
            number for number, one in enumerate(every) if cik in one.entities and (one.period or one.dated)
        ]
        stated = [one for one in own if every[one].period]
        reports = [one for one in stated if every[one].report is not ReportKind.OTHER]
        days = {one: every[one].period if stated else every[one].dated for one in reports or stated or own}
        newest = {one for one, day in days.items() if day == max(days.values())}  # type: ignore[type-var]
        assert newest <= set(np.flatnonzero(found).tolist())
        assert all(
            not found[one] or {1, 3} <= set(every[one].entities) for one in own if one not in newest
        ), cik


# --- traps ---


def of(question: str, *records: Described) -> list[float]:
    return tiers(read(question), Documents(records)).round(3).tolist()


def report(number: int, cik: int, end: str, kind: str = "10-K", **more: object) -> Described:
    day = date.fromisoformat(end)
    return Described(number, f"d{number}", kind, (cik,), period=day, report=REPORT[kind], **more)  # type: ignore[arg-type]


def test_the_weights_are_those_that_were_measured() -> None:
    """One of each."""
    records = report(1, 1, "2020-06-30"), report(2, 1, "2019-06-30"), report(3, 2, "2020-06-30")
    assert of("What was Amcor's revenue?", *records) == [1, 1, 0]
    assert of("Amcor in FY2020", *records) == [1.5, 1, 0]
    assert of("Amcor's 10-K of FY2020", *records) == [1.7, 1.2, 0]
    assert of("Amcor's latest 10-K", *records) == [1.7, 1.2, 0]
    assert of("the 10-K for FY2020", *records) == [0.7, 0.2, 0.7]
    assert of("Is anything new?", *records) == [0, 0, 0]


def test_the_latest_of_a_year_is_of_that_year() -> None:
    """And not the newest of all."""
    records = report(1, 1, "2018-06-30"), report(2, 1, "2019-06-30", "10-Q"), report(3, 1, "2025-06-30")
    assert of("Amcor's latest figures of 2019", *records) == [1, 1.75, 1]


def test_latest_alone_is_a_word_like_others() -> None:
    """Without an entity, a kind or a period it would put one filing of anybody before all."""
    records = report(1, 1, "2020-06-30"), report(2, 2, "2021-01-31")
    assert of("What is the latest on lithium?", *records) == [0, 0]
    assert of("the latest 10-K", *records) == [0.7, 0.7]
    assert of("the latest of 2020", *records, report(3, 1, "2019-06-30")) == [1, 0.9, 0]


def test_an_amendment_is_no_newer_than_what_it_amends() -> None:
    """It may hold only a part, so what was filed last does not come before the report itself."""
    first = report(1, 1, "2020-06-30", dated=date(2020, 8, 20))
    amended = report(2, 1, "2020-06-30", dated=date(2020, 10, 1))
    assert of("Amcor's latest 10-K", first, amended) == [1.7, 1.7]


def test_an_event_of_last_week_is_not_the_latest_quarter() -> None:
    """Unless its kind is asked for."""
    event = Described(9, "event", "8-K", (1,), period=date(2020, 8, 1))
    assert of("Amcor's revenue in the most recent quarter", report(1, 1, "2020-06-30"), event) == [1.5, 1]
    only = Documents([event])
    assert tiers(read("the latest of Amcor"), only).tolist() == [1.5]


def test_of_documents_without_periods_the_newest_is_by_date() -> None:
    """And what reports for a period comes before what has only a date."""
    menus = [Described(number, f"m{number}", dated=date(2024, number, 1)) for number in (5, 6)]
    assert of("the latest canteen menu", *menus) == [1, 1.5]
    letter = Described(9, "letter", "8-K", (1,), dated=date(2024, 1, 1))
    assert of("the latest of Amcor", report(1, 1, "2020-06-30"), letter) == [1.5, 1]


def test_a_fiscal_year_ends_as_an_annual_report_given_shows() -> None:
    """Where no table states it: the quarter to December 2020 is the second of a year that ends in June."""
    quarter = report(2, 1, "2020-12-31", "10-Q")
    assert of("Amcor in Q2 2021", quarter) == [1]
    assert of("Amcor in Q2 2021", quarter, report(1, 1, "2020-07-02")) == [1.5, 1]
    assert of("Amcor in Q2 2021", quarter, report(1, 2, "2020-06-30")) == [1, 0]
    assert of("Amcor in Q2 2021", report(2, 1, "2020-12-31", "10-Q", fiscal_year_end="0630")) == [1.5]
    # A year of 52 weeks that ends on 2 July is June's: October is in its second quarter.
    assert of("Amcor in Q2 2021", report(2, 1, "2020-10-31", "10-Q"), report(1, 1, "2020-07-02")) == [1.5, 1]
    # Of two filers, the year of the first one counts.
    for filers, tier in (((1, 2), 1.5), ((2, 1), 1)):
        joint = report(3, 1, "2020-12-31", "10-Q")._replace(entities=filers)
        years = report(1, 1, "2020-06-30"), report(2, 2, "2020-09-30")
        assert of("Amcor in Q2 2021", *years, joint)[-1] == tier


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Amcor in FY2020, and Pfizer in FY2020", ["Pfizer"]),
        ("Amcor in FY2012", ["Amcor in 2012"]),
        ("Amcor's second quarter of FY2020 in the 10-K", []),
        ("Best Buy in 2020", []),
        ("anything of 2012", ["2012"]),
        ("anything of 2020", []),
        ("Nothing named", []),
    ],
)
def test_what_no_document_is_is_said_in_the_questions_words(question: str, wanted: list[str]) -> None:
    """An annual report answers for its quarters; a filing without a period counts by its date."""
    documents = Documents(
        [report(1, 1, "2020-06-30"), Described(2, "b", "8-K", (2,), dated=date(2020, 3, 1))]
    )
    assert [one.described() for one in absent(read(question), documents)] == wanted


@pytest.mark.parametrize(
    ("question", "is_absent"),
    [
        ("What did Amcor announce in August 2020?", False),
        ("What did Amcor announce in October 2030?", True),
        ("What did Amcor earn in 2022?", True),
        ("Which lease payments of Amcor are due in 2022?", False),
        ("Which notes of Amcor mature in 2025?", False),
        ("Which notes of Amcor mature in 2027?", True),
        ("Which notes of Amcor mature in 2015?", True),
        ("What has Amcor filed since March 2020?", False),
        ("What has Amcor filed since March 2022?", True),
    ],
)
def test_a_period_is_that_of_what_came_out_in_it_and_of_what_falls_due_in_it(
    question: str, *, is_absent: bool
) -> None:
    """A report for June that came out in August may speak of August, and its maturities of five years to come."""
    one = report(1, 1, "2020-06-30")._replace(dated=date(2020, 8, 20))
    assert is_absent == bool(absent(read(question), Documents([one])))


@pytest.mark.parametrize(
    ("question", "void"),
    [
        ("Amcor in FY2020, and Pfizer in FY2020", False),
        ("Amcor in FY2012 and FY2020", False),
        ("Amcor in FY2012 and FY2013", True),
        ("Pfizer", True),
        ("Pfizer and Amcor in FY2012", True),
        ("anything of 2012", True),
        ("Nothing named", False),
    ],
)
def test_only_where_nothing_named_is_there_can_nothing_be_meant(question: str, *, void: bool) -> None:
    """One company of two, or one year of two, may still be answered for."""
    reading, documents = read(question), Documents([report(1, 1, "2020-06-30")])
    assert is_void(reading, absent(reading, documents)) is void


def test_of_documents_without_any_day_no_period_is_absent() -> None:
    """Nothing says that they belong to another."""
    undated = Documents([Described(1, "a", entities=(1,))])
    assert not absent(read("Amcor in 2012"), undated)
    assert not absent(read("anything of 2012"), undated)
    assert [one.described() for one in absent(read("Amcor in 2012"), Documents())] == ["Amcor"]


def test_a_number_that_the_table_has_not_is_refused() -> None:
    """Below, between and above those it has."""
    table = Documents([Described(2, "a"), Described(4, "b")])
    for number in (1, 3, 5):
        with pytest.raises(InvalidArgument, match=f"the catalogue has no document with number {number}"):
            table.of([2, number])
    assert [one.id for one in table.of([4, 2])[::-1]] == ["a", "b"]
    assert len(Documents().of([])) == 0
