"""Rows of a data set, times marked Z that are not UTC, and the cover page where metadata is silent."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile
from carag.policy import EASTERN
from carag.profiles.edgar.facts.cover_page import items_in_text, latest_date, reporting_person_types
from carag.profiles.edgar.reading.dataset import filing_of_row, load_row, why_no_filing


def row(**changes: Any) -> dict[str, Any]:
    """A fictional row with the data set's keys."""
    return {
        "id": "0009999999-25-000001",
        "accession": "0009999999-25-000001",
        "cik": 9000001,
        "company": "Example Corp",
        "form": "8-K",
        "items": ["2.02", "Financial Statements and Exhibits"],
        "filed": "2025-04-30",
        "period": "2025-04-30",
        "accepted": "2025-04-30T16:32:30.000Z",
        "sic": "7372",
        "state_of_inc": "DE",
        "business_state": "PA",
        "exchanges": ["Nasdaq", "Nasdaq"],
        "meta_src": {"submissions_json": ["accepted", "filed"], "csv_record": ["items"]},
        "text": "Item 2.02 Results",
        "a key of tomorrow": [1],
    } | changes


def test_a_row_becomes_a_filing() -> None:
    """Fields keep their meaning, and each its source."""
    filing = filing_of_row(row())
    assert filing.accession_number == filing.source_id == "0009999999-25-000001"
    assert (filing.form, filing.items, filing.ciks) == ("8-K", ("2.02", "9.01"), (9000001,))
    assert (filing.filed, filing.accession_year) == (date(2025, 4, 30), 2025)
    assert (filing.business_codes, filing.incorporation_codes) == (("PA",), ("DE",))
    assert filing.exchanges == ("Nasdaq",)
    assert filing.provenance == {
        "accepted": "submissions_json",
        "filed": "submissions_json",
        "items": "csv_record",
    }
    assert [(one.type, one.text) for one in filing.documents] == [("8-K", "Item 2.02 Results")]


@pytest.mark.parametrize(
    ("stated", "accepted"),
    [
        # 16:32 Eastern after the close, labelled Z: read as UTC it would fall into the session
        ("2025-04-30T16:32:30.000Z", datetime(2025, 4, 30, 16, 32, 30, tzinfo=EASTERN)),
        ("20050623102512", datetime(2005, 6, 23, 10, 25, 12, tzinfo=EASTERN)),
        ("2025-04-30T16:32:30+00:00", datetime(2025, 4, 30, 12, 32, 30, tzinfo=EASTERN)),
        # midnight is a date without a time
        ("1994-03-11T05:00:00.000Z", None),
        ("1995-04-27T04:00:00.000Z", None),
        ("2001-01-02T00:00:00.000Z", None),
        ("", None),
        ("soon", None),
        ("2025-04-31T16:32:30+00:00", None),
        ("0001-01-01T10:00:00.000Z", None),
        ("9999-12-31T10:00:00.000Z", None),
    ],
)
def test_acceptance_is_read_as_eastern(stated: str, accepted: datetime | None) -> None:
    """A Z is not believed: the later of the two readings stands."""
    assert filing_of_row(row(accepted=stated)).accepted == accepted


@given(st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)))
def test_a_z_is_never_read_earlier_than_utc(moment: datetime) -> None:
    """Whichever of the two the source meant, the filing is not public before it."""
    accepted = filing_of_row(row(accepted=moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"))).accepted
    if accepted is not None:
        assert accepted >= moment


def test_without_items_the_headings_count() -> None:
    """First as the source read them, then as they are read here."""
    assert filing_of_row(row(items=None, items_in_text=["5.02"])).items == ("5.02",)
    assert filing_of_row(row(items=None)).items == ("2.02",)
    assert filing_of_row(row(items=None, text="For immediate release")).items == ()


def test_a_lone_box_is_no_truth() -> None:
    """A ticked box in the copy of a cover page may be the No box."""
    assert filing_of_row(row(dei={"EntityShellCompany": "☒"})).shell_company is None
    assert filing_of_row(row(dei={"EntityShellCompany": "true"})).shell_company is True


def test_a_country_counts_where_no_code_is_stated() -> None:
    """A country's name is never taken for a code."""
    assert filing_of_row(row(business_country="United States")).address_countries == ()
    filing = filing_of_row(row(business_state=None, business_country="Ireland"))
    assert (filing.business_codes, filing.address_countries) == ((), ("Ireland",))


def test_exhibits_get_their_text_back() -> None:
    """If the marks in the text match the list; otherwise the text stays whole."""
    listed = [
        {"type": "8-K"},
        {"type": "EX-10"},
        {"type": "EX-99.1", "sequence": 3, "description": "RELEASE"},
    ]
    text = "Item 2.02\n\n=== EX-99.1 RELEASE ===\n\nSales rose"
    split = filing_of_row(row(documents=listed, text=text)).documents
    assert [(one.type, one.sequence, one.text.strip()) for one in split] == [
        ("8-K", 1, "Item 2.02"),
        ("EX-10", 2, ""),
        ("EX-99.1", 3, "Sales rose"),
    ]
    whole = filing_of_row(row(documents=listed[:2], text=text)).documents
    assert [one.text for one in whole] == [text, ""]


def test_a_cut_text_is_said_to_be_cut() -> None:
    """The omitted length is known."""
    filing = filing_of_row(row(text_truncated=True, text_chars_full=99))
    assert filing.provenance["text"] == "cut by the source at 17 of 99 characters"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        *(
            ({name: day}, name)
            for name in ("filed", "period", "released")
            for day in ("30 April", "2024-02-30", "")
        ),
        ({"cik": "none"}, "cik"),
        ({"items": "2.02"}, "items"),
        ({"text": None}, "text"),
        ({"documents": [{"sequence": 1}]}, "documents.0.type"),
        ({"id": None, "accession": None}, "accession and id"),
    ],
)
def test_a_broken_row_names_its_field(changes: dict[str, Any], field: str) -> None:
    """The message says which key is wrong."""
    with pytest.raises(CorruptFile, match=field):
        filing_of_row(row(**changes))


def test_rows_that_are_no_filings() -> None:
    """By shape, whatever the file is called."""
    assert why_no_filing(row()) is None
    assert why_no_filing(row(question="What was revenue?", answer="5")) == "a question, not a document"
    assert why_no_filing({"accession": "x", "header": "y"}) == "a header without its filing"
    assert why_no_filing({"id": "x", "form": "10-K"}) == "metadata without text"
    assert why_no_filing({"context_id": "x", "text": "y"}) is not None


@pytest.mark.parametrize("line", ["", "{", "[1]", "null", '{"a": 1} x'])
def test_a_line_that_is_no_object_is_corrupt(line: str) -> None:
    """One JSON object per line."""
    with pytest.raises(CorruptFile, match="want one JSON object"):
        load_row(line)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Date of Report (Date of earliest event reported): April 26, 2022", date(2022, 4, 26)),
        ("January 28, 2022\nDate of Report (Date of earliest event reported)", date(2022, 1, 28)),
        ("for the quarterly period ended\nSept. 30, 2021", date(2021, 9, 30)),
        ("12 weeks ended 3/25/2023 and year ended December 31, 2022", date(2023, 3, 25)),
        ("PURCHASE, N.Y. - April 25, 2023 - Example, Inc. today reported", date(2023, 4, 25)),
        ("New Brunswick, N.J. (January 24, 2023) – Example today", date(2023, 1, 24)),
        ("LAS VEGAS, Feb. 8, 2023 /PRNewswire/ -- Example", date(2023, 2, 8)),
        ("BETHESDA, Md., April. 8, 2023 – Example", date(2023, 4, 8)),
        ("period ended September 31, 2021", None),
        ("senior notes due June 1, 2030", None),
        ("as of January 31, 2023, 5 shares", None),
        (" " * 5001 + "year ended May 1, 2020", date(2020, 5, 1)),  # blanks are no text
        ("x" * 5001 + " year ended May 1, 2020", None),
    ],
)
def test_a_cover_date_needs_its_phrase(text: str, day: date | None) -> None:
    """Report date, period end or dateline; any other date tells nothing of publication."""
    assert latest_date(text.lstrip(" ")) == day


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"roles": ["FILER"], "n_parties": 1}, ("CT",)),
        ({"roles": ["FILER"], "n_parties": 4}, ("CT", "")),
        ({"roles": ["ISSUER", "REPORTING-OWNER"], "n_parties": 3}, ("CT",)),
        ({"roles": ["FILED BY", "SUBJECT COMPANY"], "n_parties": 3}, ("CT",)),
        ({"roles": ["FILER"]}, ("CT",)),
        ({"n_parties": 4}, ("CT",)),  # of what roles is not said
    ],
)
def test_registrants_that_a_row_only_counts_may_be_of_any_place(
    changes: dict[str, Any], codes: tuple[str, ...]
) -> None:
    """A row has the place of one registrant; the header had more parties than roles."""
    row = {"id": "a", "form": "F-3", "text": "text", "business_state": "CT"} | changes
    assert filing_of_row(row).business_codes == codes


def test_item_headings_are_read_and_mentions_are_not() -> None:
    """A heading begins its line."""
    assert items_in_text("  Item 5.02. Departure\nsee Item 4.02\nITEM 12. Results\nItem 99.9 none") == (
        "5.02",
        "12",
    )


def test_reporting_persons_from_both_forms() -> None:
    """Row 12 of the paper cover, or the XML element."""
    assert reporting_person_types("12. TYPE OF REPORTING PERSON (See Instructions)\nIN") == ("IN",)
    assert reporting_person_types("typeOfReportingPerson: IN\ntypeOfReportingPerson: HC") == ("IN", "HC")
    assert reporting_person_types("an individual in Ohio") == ()
