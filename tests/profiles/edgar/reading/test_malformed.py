"""Malformed input gives a clear error, a quarantine or no fact; never another exception, never an invented fact."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carag.errors import CorruptFile
from carag.profiles.edgar.facts.filing import Filing
from carag.profiles.edgar.facts.publication import PublicAtSource
from carag.profiles.edgar.facts.xbrl_cover import facts_of_cover
from carag.profiles.edgar.reading.dataset import filing_of_row
from carag.profiles.edgar.reading.header import parse_header
from carag.profiles.edgar.reading.readers import ReadKind, read_filings
from carag.profiles.edgar.reading.sidecar_headers import SidecarHeaders
from carag.profiles.edgar.reading.submission import parse_submission
from carag.profiles.edgar.reading.submissions_json import (
    facts_copied_from_header,
    facts_of_row,
)
from carag.profiles.edgar.rules.labeller import label
from tests.profiles.edgar.facts.second_opinions import facts_of_submissions_row
from tests.profiles.edgar.reading.headers import document, header

if TYPE_CHECKING:
    from pathlib import Path

LINES = header(
    "8-K",
    "20240501",
    items=("Results of Operations and Financial Condition", "Financial Statements and Exhibits"),
    extra="\n\tMAIL ADDRESS:\n\t\tSTATE:\t\t\tNY\n",
).splitlines()
HEADER = "\n".join(LINES) + "\n"
DOCUMENT = document("8-K", "<html><body><p>Item 2.02 Results</p></body></html>", "<SEQUENCE>1\n")
READ = (
    "accession_number", "form", "ciks", "filed", "period", "accepted", "items", "business_codes",
    "incorporation_codes", "sics", "party_roles", "file_numbers", "released",
)  # fmt: skip


def facts(text: str) -> dict[str, Any]:
    filing = parse_header(text).filing
    return {name: getattr(filing, name) for name in READ}


WHOLE = facts(HEADER)


def is_part_of(found: Any, whole: Any) -> bool:
    """Whether a fact is the whole header's, some of it, or not stated."""
    if isinstance(found, tuple):
        return set(found) <= {*whole, ""}
    return found in (whole, None, "")


@given(st.sets(st.integers(0, len(LINES) - 1), min_size=1, max_size=4))
def test_missing_lines_leave_facts_unstated_and_make_none_up(missing: set[int]) -> None:
    """Without its lines a header states less; what stood in the lost section is not taken for another's.

    The line between two addresses is the exception: where the business address has lost its state too, the
    mailing address is the only one left in the section.
    """
    text = "\n".join(line for number, line in enumerate(LINES) if number not in missing)
    lost = {LINES[number].strip() for number in missing}
    try:
        found = facts(text)
    except CorruptFile:
        assert len(missing) >= 3  # first line, ACCESSION NUMBER and the form are all gone
        return
    if {"MAIL ADDRESS:", "STATE:\t\t\tL2"} <= lost:
        assert is_part_of(found.pop("business_codes"), ("NY",))
    for name, value in found.items():
        assert is_part_of(value, WHOLE[name]), name


@given(st.permutations(LINES[1:8]))
def test_the_order_of_the_fields_is_not_their_meaning(head: list[str]) -> None:
    """Header fields state the same in any order, except for the order of the items."""
    found = facts("\n".join([LINES[0], *head, *LINES[8:]]))
    assert set(found.pop("items")) == set(WHOLE["items"])
    assert found == {name: value for name, value in WHOLE.items() if name != "items"}


NOISE = st.text(max_size=40) | st.sampled_from(
    [
        "<DOCUMENT>", "</DOCUMENT>", "<TEXT>", "</TEXT>", "<TYPE>10-K", "<SEQUENCE>²", "<SEC-HEADER>", "FILER:",
        "STATE:", "FILED AS OF DATE:\t20240230", "FILED AS OF DATE:\t99999999", "CENTRAL INDEX KEY:\t٣٣٣٣٣٣٣٣٣٣",
        "<ACCEPTANCE-DATETIME>00000000000000", "<PRIVATE-TO-PUBLIC>", "ITEM INFORMATION:", "<XML>",
        "<?xml version='1.0'?><a><b>1</b></a>", "<![CDATA[", "<!--", "<ix:nonNumeric name='dei:DocumentType'>10-K",
        "<table><tr><td>", "\x00", "\ud800", "&#xD800;", "&#99999999;",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, len(HEADER + DOCUMENT)), NOISE), max_size=6))
@example([(0, "<SEC-HEADER>"), (0, "<SEC-HEADER>")])
@example([(len(HEADER), "<DOCUMENT>")])
def test_any_damage_to_a_submission_is_read_or_refused(damage: list[tuple[int, str]]) -> None:
    """Noise anywhere: a filing that can be labelled, or CorruptFile with a reason."""
    text = HEADER + DOCUMENT
    for place, noise in damage:
        text = f"{text[:place]}{noise}{text[place:]}"
    try:
        filing = parse_submission(text)
    except CorruptFile:
        return
    said = label(filing)
    assert bool(said.quarantine) is bool(said.word >> 30 & 1)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"<SEC-HEADER>{text}".encode()))
def test_any_bytes_in_a_file_have_an_outcome(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """One outcome, and a reason where there is no filing."""
    file = tmp_path_factory.mktemp("any") / "a.txt"
    file.write_bytes(content)
    (outcome,) = read_filings(file)
    assert (outcome.filing is not None) is (outcome.kind is ReadKind.FILING)
    assert outcome.filing is not None or outcome.reason


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["2024-02-30", "2024-05-02", "8-K", "2024-05-02T20:31:05.000Z", "L2", "0009000001", "²"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "id", "accession", "accession_year", "form", "text", "cik", "company", "filed", "period", "accepted",
    "released", "private_to_public", "items", "items_in_text", "business_state", "business_country",
    "state_of_inc", "sic", "roles", "file_number", "exchanges", "filer_category", "dei", "documents",
    "text_chars_full", "text_truncated", "meta_src",
)  # fmt: skip
ROW = {"id": "a", "form": "8-K", "text": "Item 2.02"}
ROWS = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6).map(lambda changes: ROW | changes)


@given(ROWS)
def test_any_row_is_read_or_refused(row: dict[str, Any]) -> None:
    """A row of the right keys with any values: a filing that can be labelled, or CorruptFile."""
    try:
        filing = filing_of_row(row)
    except CorruptFile:
        return
    filing = SidecarHeaders().compare_and_unite(filing, row)
    label(filing)


@given(ROWS)
def test_the_second_readers_read_anything(row: dict[str, Any]) -> None:
    """They do not state what they cannot read; they never fail, and never state what was not there."""
    for read in (facts_of_row, facts_copied_from_header, facts_of_submissions_row):
        found = read(row)
        assert found.form in ("", " ".join(str(row.get("form", "")).upper().split()))
        if found.filed is not None:
            assert found.filed.isoformat() == str(row["filed"]).strip()


ELEMENTS = (
    "DocumentType", "AmendmentFlag", "DocumentPeriodEndDate", "EntityCentralIndexKey", "EntityAddressCountry",
    "EntityAddressStateOrProvince", "EntityIncorporationStateCountryCode", "EntityFileNumber",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(ELEMENTS), st.lists(st.text(max_size=12), max_size=3)))
def test_any_cover_is_read(dei: dict[str, list[str]]) -> None:
    """Any text under any element."""
    assert facts_of_cover(dei).source == "XBRL cover"


@pytest.mark.parametrize(
    ("line", "other", "field"),
    [
        ("CONFORMED SUBMISSION TYPE:\t8-K", "8-K/A", "form"),
        ("ACCESSION NUMBER:\t\t0009999999-24-000007", "0009999999-24-000008", "accession_number"),
        ("FILED AS OF DATE:\t\t20240502", "20240506", "filed"),
        ("CONFORMED PERIOD OF REPORT:\t20240501", "20240401", "period"),
        ("<ACCEPTANCE-DATETIME>20240502163105", "20240502123105", "accepted"),
    ],
)
def test_a_header_that_contradicts_itself_is_quarantined(line: str, other: str, field: str) -> None:
    """A field with two different values; the same value twice counts once."""
    label_of, value = re.fullmatch(r"(.*[:>]\s*)(\S+)", line).groups()  # type: ignore[union-attr]
    for second, wanted in [(value, []), (other, [field])]:
        text = HEADER.replace(line, f"{line}\n{label_of}{second}") + DOCUMENT
        filing = parse_submission(text)
        assert [one.field for one in filing.disagreements] == wanted
        said = label(filing).quarantine
        assert (said is not None) is bool(wanted)
        assert said is None or (value in said.text and other in said.text)


@pytest.mark.parametrize(
    "day", ["20240230", "00000000", "99991332", "2024050", "MAY 2 24", "18500101", "99990101"]
)
def test_an_impossible_date_is_no_date(day: str) -> None:
    """The next weaker fact gives the time: the end of the accession number's year."""
    text = HEADER.replace("FILED AS OF DATE:\t\t20240502", f"FILED AS OF DATE:\t\t{day}")
    text = text.replace("<ACCEPTANCE-DATETIME>20240502163105\n", "")
    said = label(parse_submission(text + DOCUMENT))
    assert said.public_at_source is PublicAtSource.ACCESSION_YEAR


def test_one_accession_number_with_two_contents_is_read_twice(tmp_path: Path) -> None:
    """The reader yields both, each with its place; its caller decides and reports."""
    rows = [ROW | {"accession": "0009999999-24-000007", "text": text} for text in ("one", "two")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcomes = list(read_filings(tmp_path))
    assert [one.where for one in outcomes] == ["a.jsonl:1", "a.jsonl:2"]
    texts = [one.filing.documents[0].text for one in outcomes if isinstance(one.filing, Filing)]
    assert texts == ["one", "two"]
