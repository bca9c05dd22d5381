"""What a question names is read from its words alone: periods, sections, kinds, the latest; and it never widens."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.cases.pairs import split_of
from carag.evaluation.cases.questions import json_lines, real_questions
from carag.limits import MAX_QUESTION
from carag.retrieval.reading import Lexicon, Names, Period, Reading, ReportKind, asking, read_question

if TYPE_CHECKING:
    from carag.retrieval.reading import Key

KINDS = Lexicon.read(Path(__file__).parents[2] / "carag/profiles/edgar/kinds.tsv")
NAMES = Names([("Apple Inc.", ["AAPL"], 1), ("Amcor plc", ["AMCR"], 2), ("Johnson & Johnson", ["JNJ"], 3)])
YEARS, QUARTER, DAYS = Period.years, Period.quarter, Period.days


def periods(question: str) -> tuple[Period, ...]:
    return read_question(question).periods


END = date(2099, 12, 31)
"""Of what begins and does not end."""


def sections(question: str) -> list[str]:
    return [one.described() for one in read_question(question).sections]


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("What was revenue in FY2018?", [YEARS(2018)]),
        ("Margins of FY22", [YEARS(2022)]),
        ("ＦＹ２０１８", [YEARS(2018)]),
        ("FY'18 and FY 19", [YEARS(2018), YEARS(2019)]),
        ("FY98 against FY68", [YEARS(1998), YEARS(2068)]),
        ("fiscal year 2018, fiscal 2019, year end 2020", [YEARS(2018), YEARS(2019), YEARS(2020)]),
        ("the average of FY2015 - FY2017", [YEARS(2015, 2017)]),
        ("From FY21 to FY22, what changed?", [YEARS(2021, 2022)]),
        ("between 2019 and 2021", [YEARS(2019, 2021)]),
        ("in 2015-17, and 2019/20", [YEARS(2015, 2017), YEARS(2019, 2020)]),
        ("2021, 2022 and 2023", [YEARS(2021), YEARS(2022), YEARS(2023)]),
        ("FY 2022 - 2020", [YEARS(2022)]),
        ("Q2 2023", [QUARTER(2023, 2)]),
        ("2022 Q2", [QUARTER(2022, 2)]),
        ("2022 Q2, 2023 Q2", [QUARTER(2022, 2), QUARTER(2023, 2)]),
        ("Q2 of FY2023 close, or 3Q23, or Q4'22", [QUARTER(2023, 2), QUARTER(2023, 3), QUARTER(2022, 4)]),
        ("in Q22023", [QUARTER(2023, 2)]),
        ("the second fiscal quarter of 2023", [QUARTER(2023, 2)]),
        ("the last quarter of fiscal 2023", [QUARTER(2023, 4)]),
        ("first and second quarters of fiscal 2022", [QUARTER(2022, 1), QUARTER(2022, 2)]),
        ("Q1-Q3 2023", [QUARTER(2023, 1), QUARTER(2023, 2), QUARTER(2023, 3)]),
        ("from Q4 2022 to Q2 2023", [QUARTER(2022, 4), QUARTER(2023, 1), QUARTER(2023, 2)]),
        ("as of June 30, 2022", [DAYS(date(2022, 6, 30))]),
        ("the 3rd of Sept. 2022", [DAYS(date(2022, 9, 3))]),
        ("2022-06-30, 30.6.2022, 30/06/2022, 6/30/2022", [DAYS(date(2022, 6, 30))]),
        ("June 2022", [DAYS(date(2022, 6, 1), date(2022, 6, 30))]),
        ("from 1 January 2022 to 31 March 2022", [DAYS(date(2022, 1, 1), date(2022, 3, 31))]),
        ("Which changed since March 2024?", [DAYS(date(2024, 3, 1), END)]),
        ("since 1 May 2023, and since 2020", [DAYS(date(2023, 5, 1), END), YEARS(2020, 2099)]),
        ("since the March 2024 review", [DAYS(date(2024, 3, 1), date(2024, 3, 31))]),
        ("from Q2 2023 onwards", [DAYS(date(2023, 4, 1), END)]),
        ("in 2019 and later?", [YEARS(2019, 2099)]),
        ("In 2019 and after the merger", [YEARS(2019)]),
        ("in 2019 and later in 2020", [YEARS(2019), YEARS(2020)]),
        ("in 2019 wards", [YEARS(2019)]),
        ("since 2019 to 2021", [YEARS(2019, 2021)]),
        ("since 1 April 2024 until 1 May 2024", [DAYS(date(2024, 4, 1), date(2024, 5, 1))]),
        ("between January 2020 and March 2021", [DAYS(date(2020, 1, 1), date(2021, 3, 31))]),
    ],
)
def test_a_period_is_read_in_every_form(question: str, read: list[Period]) -> None:
    assert tuple(read) == periods(question)
    assert tuple(read) == periods(question.upper()) == periods(question.replace(" ", "\n  "))


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("in 03/04/2022", [YEARS(2022)]),  # a day in March, or in April
        ("on 31 June 2022", [YEARS(2022)]),  # no such day
        ("the fourth-largest customer of 2018", [YEARS(2018)]),
        ("in 2022, and in Q2", [YEARS(2022)]),  # whose second quarter is not said
        ("$2022, 2,022, 2022%, 12022 or 2022.5", []),
        ("item 2022 of section 12(2019)", []),
        ("the second time this year", []),
    ],
)
def test_what_can_be_read_in_two_ways_is_left_out(question: str, read: list[Period]) -> None:
    assert tuple(read) == periods(question)


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("What does section 12(3) say?", ["section 12(3)"]),
        ("Article 5, Art. 6(1)(b)", ["article 5", "article 6(1)(b)"]),
        ("under clause 4.2 and § 12 (3)", ["clause 4.2", "section 12(3)"]),
        ("Item 7A", ["item 7a"]),
        ("Items 7, 7A and 8; item 1.01", ["item 7", "item 7a", "item 8", "item 1.01"]),
        ("Rule 10b5-1, rule 10b-5", ["rule 10b5-1", "rule 10b-5"]),
        ("Annex III, Article IV, Appendix B", ["annex iii", "article iv", "appendix b"]),
        ("Regulation 2016/679", ["regulation 2016/679"]),
        ("Note 7 and 2022 revenue", ["note 7"]),
        ("Schedule 13D", []),  # a form
        ("which part I play, and an item a day", ["part i"]),  # a Roman number, as far as can be told
        ("a section of 5 pages; the 7th item", []),
    ],
)
def test_numbered_parts_of_documents_are_read(question: str, read: list[str]) -> None:
    assert read == sections(question)


@pytest.mark.parametrize(
    ("question", "latest"),
    [
        ("the latest 10-Q", True),
        ("the most recent report", True),
        ("Newest policy?", True),
        ("by Friday at the latest", False),
        ("of late", False),
    ],
)
def test_the_latest_is_wanted_where_it_is_said(question: str, latest: bool) -> None:
    assert latest == read_question(question).wants_latest


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("in its 10-K", ("10-K",)),
        ("these 10Qs", ("10-Q",)),
        ("the annual report", ("10-K", "20-F", "40-F")),
        ("the proxy statement", ("DEF 14A",)),
        ("Form 8-K", ("8-K",)),
        ("Schedule 13D", ("SC 13D",)),
        ("a salary of $10k", ()),
        ("110-K", ()),
    ],
)
def test_forms_are_read_as_kinds(question: str, kinds: tuple[str, ...]) -> None:
    assert kinds == read_question(question, kinds=KINDS).kinds


# --- how well a document fits -----------------------------------------------------------------------------


class Fit(NamedTuple):
    asked: Period
    ended: date
    fiscal_year_end: str | None
    kind: str
    fits: float


FITS = [
    Fit(YEARS(2018), date(2018, 12, 31), "1231", "annual", 1.0),
    Fit(YEARS(2018), date(2019, 1, 1), "0101", "annual", 1.0),  # 52 or 53 weeks
    Fit(YEARS(2018), date(2019, 2, 2), "0202", "annual", 0.8),  # a retailer's fiscal 2018
    Fit(YEARS(2018), date(2019, 6, 30), "0630", "annual", 0.8),
    Fit(YEARS(2018), date(2019, 9, 30), "0930", "annual", 0.5),
    Fit(YEARS(2018), date(2020, 12, 31), "1231", "annual", 0.5),
    Fit(YEARS(2018), date(2022, 12, 31), "1231", "annual", 0.3),
    Fit(YEARS(2018), date(2023, 12, 31), "1231", "annual", 0.0),
    Fit(YEARS(2018), date(2017, 12, 31), "1231", "annual", 0.0),
    Fit(YEARS(2015, 2017), date(2016, 12, 31), None, "annual", 1.0),
    Fit(YEARS(2015, 2017), date(2014, 12, 31), None, "annual", 0.0),
    Fit(YEARS(2018), date(2018, 3, 31), "1231", "interim", 0.5),
    Fit(YEARS(2023), date(2022, 12, 31), "0630", "interim", 0.5),  # in fiscal 2023
    Fit(YEARS(2018), date(2018, 5, 2), None, "other", 0.5),
    Fit(QUARTER(2023, 2), date(2023, 6, 30), "1231", "interim", 1.0),
    Fit(QUARTER(2023, 1), date(2023, 4, 1), "1230", "interim", 1.0),  # 52 or 53 weeks
    Fit(QUARTER(2023, 2), date(2022, 12, 31), "0630", "interim", 1.0),  # fiscal
    Fit(QUARTER(2022, 4), date(2022, 12, 31), "0630", "interim", 1.0),  # the same report by the calendar
    Fit(QUARTER(2022, 3), date(2022, 10, 30), "0131", "interim", 0.8),  # of a year called by its beginning
    Fit(QUARTER(2023, 2), date(2023, 9, 30), "1231", "interim", 0.0),
    Fit(QUARTER(2023, 2), date(2022, 6, 30), "1231", "interim", 0.0),
    Fit(
        QUARTER(2022, 2), date(2022, 12, 31), "1231", "annual", 0.5
    ),  # the year's report tells of its quarters
    Fit(QUARTER(2022, 4), date(2022, 12, 31), "1231", "annual", 1.0),  # no other report does of the last
    Fit(QUARTER(2022, 2), date(2022, 6, 30), "0630", "annual", 1.0),
    Fit(QUARTER(2022, 2), date(2021, 12, 31), "1231", "annual", 0.0),
    Fit(
        QUARTER(2021, 4), date(2022, 9, 30), "0930", "annual", 0.5
    ),  # the calendar's fourth is in the fiscal year
    Fit(QUARTER(2022, 2), date(2022, 4, 30), "0131", "interim", 1.0),  # ended in the calendar's quarter
    Fit(QUARTER(2022, 2), date(2022, 5, 2), None, "other", 0.5),
    Fit(DAYS(date(2022, 6, 30)), date(2022, 6, 25), None, "interim", 1.0),
    Fit(DAYS(date(2022, 5, 15)), date(2022, 6, 30), None, "interim", 0.5),
    Fit(DAYS(date(2022, 5, 15)), date(2022, 9, 30), None, "interim", 0.0),
    Fit(DAYS(date(2022, 5, 15)), date(2022, 12, 31), None, "annual", 0.5),
    Fit(DAYS(date(2022, 5, 15)), date(2024, 12, 31), None, "annual", 0.3),
    Fit(DAYS(date(2022, 5, 15)), date(2021, 12, 31), None, "annual", 0.0),
    Fit(DAYS(date(2022, 5, 15)), date(2022, 5, 15), None, "other", 1.0),
    Fit(DAYS(date(2022, 5, 15)), date(2022, 5, 16), None, "other", 0.0),
]


@pytest.mark.parametrize("one", FITS, ids=lambda one: f"{one.asked.described()}, {one.kind} {one.ended}")
def test_a_document_fits_a_period_as_well_as_it_reports_for_it(one: Fit) -> None:
    assert one.fits == one.asked.fits(one.ended, one.fiscal_year_end, one.kind)


def test_an_unknown_period_of_report_fits_nothing() -> None:
    assert YEARS(2018).fits(None, None, "annual") == 0
    assert YEARS(1900).fits(date(1, 1, 1), None, "annual") == 0
    assert YEARS(2099).fits(date.max, "1231", "annual") == 0


def test_a_reading_fits_as_its_best_period_does() -> None:
    reading = read_question("FY2018 or Q2 2023?")
    assert reading.fits(date(2023, 6, 30), "1231", ReportKind.INTERIM) == 1.0
    assert reading.fits(date(2018, 12, 31), "1231", ReportKind.ANNUAL) == 1.0
    assert Reading().fits(date(2023, 6, 30), "1231", ReportKind.INTERIM) == 0.0


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: YEARS(2018, 2017), "want an end that is not before the beginning"),
        (lambda: YEARS(1899), "1900 to 2099"),
        (lambda: QUARTER(2018, 5), "want 1, 2, 3 or 4"),
        (lambda: YEARS(0), "is not a day"),
        (lambda: YEARS(2018).fits(date(2018, 12, 31), "1231", "10-K"), "want one of annual, interim, other"),
        (lambda: YEARS(2018).fits(date(2018, 12, 31), "1331", "annual"), "month and day, such as '0930'"),
        (lambda: YEARS(2018).fits(datetime(2018, 12, 31), None, "annual"), "without a time"),  # noqa: DTZ001
        (lambda: read_question(" "), "question is empty"),
        (lambda: read_question("a\0b"), "holds a NUL"),
        (lambda: read_question("x" * (MAX_QUESTION + 1)), "want 8192 at most"),
    ],
)
def test_bad_input_is_refused_with_what_was_wanted(made: object, message: str) -> None:
    assert callable(made)
    with pytest.raises(InvalidArgument, match=message):
        made()


# --- laws -------------------------------------------------------------------------------------------------

DATES = st.dates(date(1900, 1, 1), date(2100, 12, 31))
ENDS = st.none() | st.dates(date(2000, 1, 1), date(2000, 12, 31)).map(lambda day: f"{day:%m%d}")
PERIODS = (
    st.builds(YEARS, st.integers(1900, 2099))
    | st.builds(QUARTER, st.integers(1900, 2099), st.integers(1, 4))
    | st.tuples(
        st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.dates(date(1900, 1, 1), date(2099, 12, 31))
    ).map(lambda pair: DAYS(min(pair), max(pair)))
)
PIECES = st.sampled_from(
    [
        *(
            "Apple",
            "amcor",
            "JnJ",
            "FY2018",
            "Q2 2023",
            "2022",
            "-",
            " to ",
            "and",
            "first",
            "quarter",
            "of",
            "Item 7A",
        ),
        *(
            "between",
            "section 1(a)",
            "June",
            "30",
            ", ",
            "?",
            "the latest",
            "10-K",
            "'s",
            "$",
            "II",
            "é",
            "漢",
        ),
    ]
)
QUESTIONS = st.lists(PIECES | st.text(max_size=8), min_size=1, max_size=25).map(" ".join)


def readable(question: str) -> bool:
    return bool(question.strip()) and "\0" not in question and question.isprintable()


@given(PERIODS, DATES | st.none(), ENDS, st.sampled_from(ReportKind))
def test_a_fit_is_between_0_and_1(
    asked: Period, ended: date | None, end: str | None, kind: ReportKind
) -> None:
    assert 0.0 <= asked.fits(ended, end, kind) <= 1.0


@given(st.integers(1900, 2099), st.integers(1, 4), ENDS)
def test_the_report_of_a_quarter_fits_it_whatever_the_fiscal_year(
    year: int, number: int, end: str | None
) -> None:
    asked = QUARTER(year, number)
    assert asked.fits(asked.last, end, "interim") == 1.0
    assert asked.fits(asked.last, end, "annual") == 1.0


@given(st.integers(1900, 2090), st.integers(1, 4))
def test_the_annual_report_of_a_year_always_satisfies_its_quarters(year: int, number: int) -> None:
    """FY2022's second quarter may be in the annual report alone: declining for lack of a 10-Q would be wrong."""
    assert QUARTER(year, number).fits(date(year, 12, 31), "1231", "annual") > 0


@given(QUESTIONS.filter(readable))
def test_a_reading_is_a_function_of_question_and_tables(question: str) -> None:
    made = read_question(question, names=NAMES, kinds=KINDS)
    again = Names(
        [("Johnson & Johnson", ["JNJ"], 3), ("Amcor plc", ["AMCR"], 2), ("Apple Inc.", ["AAPL"], 1)]
    )
    assert made == read_question(question, names=again, kinds=KINDS)
    assert made.described() == made.described()
    assert made.described().isprintable()


@given(QUESTIONS.filter(readable))
def test_tables_change_nothing_but_what_they_are_of(question: str) -> None:
    full, bare = read_question(question, names=NAMES, kinds=KINDS), read_question(question)
    assert (bare.periods, bare.sections, bare.wants_latest) == (
        full.periods,
        full.sections,
        full.wants_latest,
    )
    assert ((), (), ()) == (bare.entities, bare.kinds, bare.titles)


@given(PERIODS.filter(lambda one: one.span != "days"))
def test_what_is_described_is_read_back(period: Period) -> None:
    assert (period,) == periods(period.described())


def test_what_was_understood_is_said_in_the_questions_words() -> None:
    reading = read_question(
        "What does Item 7A of JnJ's latest 10-Q say of FY2018 and 30 June 2022?", names=NAMES, kinds=KINDS
    )
    assert reading.described() == "JnJ; 2018; 2022-06-30; 10-Q; the latest; item 7a"
    assert Reading().described() == ""
    assert reading.keys == {3}


def test_how_many_bear_a_name_is_not_said() -> None:
    one, two = Names([("Apple Inc", [], 1)]), Names([("Apple Inc", [], 1), ("APPLE CORP", [], 2)])
    said = [read_question("What did Apple sell?", names=names).described() for names in (one, two)]
    assert said == ["Apple", "Apple"]


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "first, ",
            "Q1-",
            "Q1 and ",
            "2022 - ",
            "section 1(a) and ",
            "1.",
            "first fiscal ",
            "New York ",
            "A.B.",
        ),
        *("Jan 1 2022 to ", "between 2019 and ", "FY22 to ", "Q1 2022 to ", "item 1a1", "a&b", "' "),
    ],
)
def test_no_question_takes_long_to_read(piece: str) -> None:
    """Each took seconds or years where lists and spaces were unbounded; a test that hangs fails."""
    question = (piece * MAX_QUESTION)[:MAX_QUESTION]
    assert read_question(question, names=NAMES, kinds=KINDS) == read_question(
        question, names=NAMES, kinds=KINDS
    )


# --- real questions ---------------------------------------------------------------------------------------


def test_every_company_that_a_development_question_names_is_resolved_to_the_right_filer(
    shared_data: Path,
) -> None:
    """Of 70 with a known filer 66 name one, over 7,917 companies; the others say "the company", or not even that."""
    companies = [
        (row["name"], row.get("tickers") or [], int(row["cik"]))
        for row in json_lines(shared_data / "edgar" / "companies.jsonl.gz")
    ]
    filers: dict[str, int] = {}
    for path in sorted((shared_data / "edgar").glob("filings-*.jsonl.gz")):
        for row in json_lines(path):
            if row.get("cik") is not None:
                filers |= {name: int(row["cik"]) for name in (row.get("accession"), row["id"]) if name}
    names = Names(companies)
    found: list[tuple[frozenset[Key], set[int]]] = []
    for question in real_questions(shared_data):
        if split_of(question.id) != "dev":
            continue
        gold = {filers[one] for piece in question.evidence for one, _ in piece.alternatives if one in filers}
        if gold:
            found.append((read_question(question.text, names=names).keys, gold))
    assert len(found) == 70
    named = [(keys, gold) for keys, gold in found if keys]
    assert len(named) == 66
    assert all(gold <= keys and len(keys) <= 2 for keys, gold in named)


@given(
    st.builds(YEARS, st.integers(1990, 2010))
    | st.builds(QUARTER, st.integers(1990, 2010), st.integers(1, 4))
    | st.builds(DAYS, st.dates(date(1990, 1, 1), date(2010, 1, 1))),
    st.sampled_from(ReportKind),
    st.integers(-800, 2400),
    st.none() | st.sampled_from([f"{month:02}28" for month in range(1, 13)]),
)
def test_what_is_out_of_a_periods_reach_fits_it_in_no_way(
    period: Period, kind: ReportKind, days: int, end: str | None
) -> None:
    """So only what is within has to be looked at."""
    first, last = period.reach(kind)
    day = period.first + timedelta(days=days)
    assert first <= day <= last or period.fits(day, end, kind) == 0


def test_an_abbreviation_does_not_cut_a_question_in_two() -> None:
    """All of it asks, the part before the full stop included."""
    assert asking("I lend. What may Acme Inc. lend?\nAnswer in Rs. only.") == "What may Acme Inc. lend?"
