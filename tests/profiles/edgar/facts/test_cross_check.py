"""Comparing two sources: the same fact in two spellings, a difference without consequence, and a contradiction."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import EASTERN, PolicyBit
from carag.profiles.edgar.facts.cross_check import Place, StatedFacts, Verdict, compare
from carag.profiles.edgar.facts.jurisdictions import edgar_jurisdiction
from carag.profiles.edgar.facts.publication import acceptance_readings
from carag.profiles.edgar.facts.xbrl_cover import facts_of_cover
from carag.profiles.edgar.reading.header import parse_header
from carag.profiles.edgar.reading.submissions_json import (
    facts_copied_from_header,
    facts_of_row,
)
from tests.profiles.edgar.facts.second_opinions import facts_of_company, facts_of_submissions_row, find
from tests.profiles.edgar.reading.headers import header

if TYPE_CHECKING:
    from pathlib import Path

HEADER = header(
    "8-K",
    "20240501",
    items=("Results of Operations and Financial Condition", "Financial Statements and Exhibits"),
)
SUBMISSIONS_ROW = {
    "accessionNumber": "0009999999-24-000007",
    "cik": "9000001",
    "form": "8-K",
    "filingDate": "2024-05-02",
    "reportDate": "2024-05-01",
    "acceptanceDateTime": "2024-05-02T20:31:05.000Z",
    "fileNumber": "001-09999",
    "items": "2.02,9.01",
}
COVER = {
    "DocumentType": ["8-K"],
    "AmendmentFlag": ["false"],
    "DocumentPeriodEndDate": ["May\xa01, 2024"],
    "EntityCentralIndexKey": ["0009000001"],
    "EntityFileNumber": ["1-9999"],
    "EntityAddressCountry": ["IE"],
    "EntityIncorporationStateCountryCode": ["Ireland"],
}


def verdicts(first: StatedFacts, second: StatedFacts) -> dict[str, Verdict]:
    return {one.field: one.verdict for one in compare(first, second).fields}


def places(*codes: str) -> tuple[Place, ...]:
    return tuple(Place(code, edgar_jurisdiction(code)) for code in codes)


def test_a_header_and_its_submissions_row_agree() -> None:
    """Whatever both state, through descriptions and numbers, UTC and Eastern."""
    agreement = compare(parse_header(HEADER).facts, facts_of_submissions_row(SUBMISSIONS_ROW))
    agreed = {one.field for one in agreement.fields if one.verdict is Verdict.AGREE}
    assert agreed == {
        "accession_number", "form", "filed", "accepted", "period", "items", "ciks", "file_numbers",
    }  # fmt: skip
    assert agreement.disagreements == ()


def test_a_header_and_its_cover_agree() -> None:
    """EDGAR's L2 is ISO's IE, file number 1-9999 is 001-09999, and a date has many spellings."""
    agreement = compare(parse_header(HEADER).facts, facts_of_cover(COVER))
    agreed = {one.field for one in agreement.fields if one.verdict is Verdict.AGREE}
    assert agreed == {"form", "period", "ciks", "business", "incorporation", "file_numbers"}
    assert agreement.disagreements == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"accessionNumber": "0009999999-24-000008"}, "accession_number"),
        ({"form": "10-K"}, "form"),
        ({"form": "8-K/A"}, "form"),
        ({"form": "10-X"}, "form"),
        ({"filingDate": "2024-05-03"}, "filed"),
        ({"acceptanceDateTime": "2024-05-02T20:31:06.000Z"}, "accepted"),
        ({"acceptanceDateTime": "2024-05-02T16:31:05+00:00"}, "accepted"),
        ({"items": "9.01"}, "items"),
        ({"items": "2.02,4.02,9.01"}, "items"),
        ({"cik": "9000002"}, "ciks"),
    ],
)
def test_one_contradicting_field_is_one_disagreement(change: dict[str, str], field: str) -> None:
    """Each mutation of the row is found, alone, and shows both values."""
    agreement = compare(parse_header(HEADER).facts, facts_of_submissions_row(SUBMISSIONS_ROW | change))
    (found,) = agreement.disagreements
    assert found.field == field
    assert found.first in found.text
    assert found.second in found.text
    assert found.first != found.second


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"DocumentType": ["10-Q"]}, "form"),
        ({"AmendmentFlag": ["true"]}, "form"),
        ({"EntityCentralIndexKey": ["0009000002"]}, "ciks"),
        ({"EntityAddressCountry": ["DE"]}, None),  # Germany and Ireland: the same bit
        ({"EntityAddressCountry": ["GB"]}, "business"),
        ({"EntityAddressCountry": [], "EntityAddressStateOrProvince": ["DE"]}, "business"),  # Delaware
        ({"EntityIncorporationStateCountryCode": ["X0"]}, "incorporation"),
    ],
)
def test_a_cover_that_contradicts_its_header(change: dict[str, list[str]], field: str | None) -> None:
    """The same for the XBRL cover; codes are read by the list they come from."""
    found = compare(parse_header(HEADER).facts, facts_of_cover(COVER | change)).disagreements
    assert [one.field for one in found] == ([field] if field else [])


@pytest.mark.parametrize(
    ("name", "first", "second", "verdict"),
    [
        ("form", "SC 13D", "SCHEDULE 13D", Verdict.AGREE),
        ("form", "SC 13G/A", "SCHEDULE 13G/A", Verdict.AGREE),
        ("form", "SC 13D", "SCHEDULE 13D/A", Verdict.DISAGREE),
        ("form", "SC 13D", "SC 13G", Verdict.DIFFER),
        ("form", "8-K", "8-K12B", Verdict.DIFFER),
        ("form", "10-K", "10-Q", Verdict.DISAGREE),
        ("form", "10-X", "10-Y", Verdict.DISAGREE),  # two unknown forms share nothing
        ("items", ("2.02", "9.01"), ("9.01", "2.02"), Verdict.AGREE),
        ("items", ("8.01",), ("9.01",), Verdict.DIFFER),
        (
            "items",
            ("", "9.01"),
            ("2.02", "9.01"),
            Verdict.ONLY_SECOND,
        ),  # the header lists an item without a name
        ("items", ("2.02", "9.01"), ("99.1", "9.01"), Verdict.ONLY_FIRST),
        ("items", ("", "5.02"), ("2.02", "9.01"), Verdict.DISAGREE),
        ("ciks", (1, 2), (2,), Verdict.AGREE),  # a submissions row belongs to one co-registrant
        ("ciks", (1, 2), (2, 3), Verdict.DISAGREE),
        ("business", places("CA"), places("TX"), Verdict.DIFFER),
        ("business", places("CA", "L2"), places("L2"), Verdict.AGREE),
        ("business", places("CA"), places("L2"), Verdict.DISAGREE),
        ("business", places("DE"), (Place("DE", PolicyBit.J_EU, iso=True),), Verdict.DISAGREE),
        ("business", places("2M"), (Place("DE", PolicyBit.J_EU, iso=True),), Verdict.AGREE),
        ("incorporation", places("DE"), places("NV"), Verdict.DIFFER),
        ("incorporation", places("DE"), places("E9"), Verdict.DISAGREE),
        ("sics", ("3674",), ("3672",), Verdict.DIFFER),
        ("sics", ("6770",), ("3674",), Verdict.DISAGREE),
        ("private_to_public", True, False, Verdict.DISAGREE),
        ("private_to_public", False, False, Verdict.AGREE),
        ("party_roles", ("ISSUER", "REPORTING-OWNER"), ("REPORTING-OWNER",), Verdict.DIFFER),
        ("party_roles", ("FILER",), ("REPORTING-OWNER",), Verdict.DISAGREE),
        ("file_numbers", ("001-03526", "001-06468"), ("1-3526",), Verdict.AGREE),
        ("file_numbers", ("001-03526",), ("333-03526",), Verdict.DIFFER),
    ],
)
def test_what_counts_as_the_same(name: str, first: Any, second: Any, verdict: Verdict) -> None:
    """One rule per field, from either side."""
    a, b = (StatedFacts(source=source, **{name: value}) for source, value in (("a", first), ("b", second)))
    mirrored = {Verdict.ONLY_FIRST: Verdict.ONLY_SECOND, Verdict.ONLY_SECOND: Verdict.ONLY_FIRST}
    assert verdicts(a, b)[name] is verdict
    assert verdicts(b, a)[name] is mirrored.get(verdict, verdict)


def test_a_period_matters_where_events_match_by_it() -> None:
    """For a periodic report or a notice that it is late; an 8-K's event date sets no bit."""
    days = {"period": date(2024, 3, 31)}, {"period": date(2024, 6, 30)}
    for form in ("10-Q/A", "NT 10-K", "8-K", ""):
        a, b = (StatedFacts(source="x", form=form, **one) for one in days)
        assert verdicts(a, b)["period"] is (Verdict.DIFFER if form == "8-K" else Verdict.DISAGREE)


def test_t1_a_time_labelled_z_agrees_under_either_reading() -> None:
    """16:32:30Z is the header's 16:32:30 Eastern, or its 12:32:30; nothing else."""
    row = StatedFacts(source="row", accepted=acceptance_readings("2025-04-30T16:32:30.000Z"))
    for hour, verdict in ((16, Verdict.AGREE), (12, Verdict.AGREE), (20, Verdict.DISAGREE)):
        header = StatedFacts(source="header", accepted=(datetime(2025, 4, 30, hour, 32, 30, tzinfo=EASTERN),))
        assert verdicts(header, row)["accepted"] is verdict


def test_t7_todays_address_and_industry_are_no_evidence() -> None:
    """A company that has moved, reincorporated or ceased to be a shell is counted, never closed."""
    today = facts_of_company({"cik": 9000001, "business_state": "CA", "state_of_inc": "DE", "sic": "6770"})
    agreement = compare(parse_header(HEADER).facts, today)
    moved = {one.field: one.reason for one in agreement.fields if one.verdict is Verdict.DIFFER}
    assert moved.keys() == {"business", "incorporation", "sics"}
    assert all("as of the crawl" in reason for reason in moved.values())
    assert agreement.disagreements == ()


def test_a_cut_header_may_name_more_parties() -> None:
    """Its lists may be incomplete, so another's CIK is not a contradiction; with a complete header it is."""
    row = facts_of_submissions_row(SUBMISSIONS_ROW | {"cik": "9000002"})
    cut = parse_header(HEADER[: HEADER.index("\tFILING VALUES")]).facts
    assert verdicts(cut, row)["ciks"] is Verdict.DIFFER
    assert verdicts(parse_header(HEADER).facts, row)["ciks"] is Verdict.DISAGREE


def test_the_party_that_files_may_own_the_row() -> None:
    """The exchange's own submissions list its Form 25; it is in the header, though not delisted (T2)."""
    by = HEADER[HEADER.index("FILER:") :].replace("FILER:", "FILED BY:").replace("0009000001", "0009000009")
    header = parse_header(HEADER.replace("FILER:", "SUBJECT COMPANY:").replace("</SEC-HEADER>", by)).facts
    assert header.ciks == (9000001, 9000009)
    row = facts_of_submissions_row(SUBMISSIONS_ROW | {"cik": "9000009"})
    assert verdicts(header, row)["ciks"] is Verdict.AGREE


def test_what_a_row_copied_from_the_header_is_no_second_opinion() -> None:
    """``meta_src`` splits a row in two; the header of another filing is not this one's."""
    row = {
        "accession": "0009999999-24-000007",
        "form": "8-K",
        "filed": "2024-05-02",
        "cik": 9000001,
        "sic": "3674",
        "state_of_inc": "L2",
        "meta_src": {
            "sgml_header(truncated 1000 B)": ["form", "sic"],
            "submissions_json": ["filed"],
            "sgml_header_of_another_filing_same_cik": ["state_of_inc"],
        },
    }
    own, copied = facts_of_row(row), facts_copied_from_header(row)
    assert (own.form, own.sics, copied.form, copied.sics) == ("", (), "8-K", ("3674",))
    assert (own.filed, own.ciks, copied.filed) == (date(2024, 5, 2), (9000001,), None)
    assert own.incorporation == places("L2")
    assert "incorporation" in own.current_state


@pytest.mark.parametrize(
    "dei",
    [
        {"DocumentType": ["EX-FILING FEES"], "AmendmentFlag": ["false"]},
        {"DocumentType": ["8-K"], "AmendmentFlag": ["☒"]},
        {"DocumentType": ["8-K", "10-K"], "AmendmentFlag": ["false"]},
        {"DocumentPeriodEndDate": ["3/4/2024"]},  # of March or of April
        {"DocumentPeriodEndDate": ["December 31"]},
        {"DocumentPeriodEndDate": ["February 30, 2024"]},
        {"EntityIncorporationStateCountryCode": ["Georgia"]},  # the state or the country
        {"EntityIncorporationStateCountryCode": ["England and Wales, as amended"]},
        {"EntityAddressStateOrProvince": ["Bavaria"]},
        {"EntityCentralIndexKey": ["CIK 1"]},
    ],
)
def test_an_ambiguous_cover_fact_states_nothing(dei: dict[str, list[str]]) -> None:
    """A reading that is a guess would quarantine a sound filing."""
    assert facts_of_cover(dei) == facts_of_cover({})


def test_provinces_are_coded_otherwise_than_states() -> None:
    """The cover's ON is EDGAR's A6; its CA in the country's place is Canada, in the state's California."""
    assert facts_of_cover({"EntityAddressStateOrProvince": ["ON"]}).business == places("A6")
    canada = facts_of_cover({"EntityAddressStateOrProvince": ["ON"], "EntityAddressCountry": ["CA"]})
    assert [place.jurisdiction for place in canada.business] == [PolicyBit.J_CA]
    assert facts_of_cover({"EntityAddressStateOrProvince": ["CA"]}).business == places("CA")


CODES = st.lists(st.sampled_from(["DE", "CA", "L2", "X0", "A6", "E9", "ZZ"]), max_size=3)
PLACES = CODES.map(lambda codes: places(*codes))
FACTS = st.builds(
    StatedFacts,
    source=st.just("x"),
    form=st.sampled_from(["", "10-K", "10-K/A", "8-K", "SC 13D", "SCHEDULE 13D", "nonsense"]),
    filed=st.none() | st.dates(),
    accepted=st.lists(st.datetimes(timezones=st.just(EASTERN)), max_size=2).map(tuple),
    period=st.none() | st.dates(),
    items=st.lists(st.sampled_from(["2.02", "9.01", "4.02", "", "x"]), max_size=3).map(tuple),
    ciks=st.lists(st.integers(1, 5), max_size=3).map(tuple),
    business=PLACES,
    incorporation=PLACES,
    sics=st.lists(st.sampled_from(["6770", "3674"]), max_size=2).map(tuple),
    private_to_public=st.none() | st.booleans(),
    party_roles=st.lists(st.sampled_from(["FILER", "REPORTING-OWNER"]), max_size=2).map(tuple),
    file_numbers=st.lists(st.sampled_from(["1-2", "001-02", "x"]), max_size=2).map(tuple),
    complete=st.booleans(),
    current_state=st.sets(st.sampled_from(["business", "sics"])).map(frozenset),
)


@given(FACTS)
def test_a_source_never_contradicts_itself(facts: StatedFacts) -> None:
    """Every field it states agrees."""
    assert set(verdicts(facts, facts).values()) <= {Verdict.AGREE, Verdict.NEITHER}


@given(FACTS, FACTS)
def test_the_order_of_the_sources_decides_nothing(first: StatedFacts, second: StatedFacts) -> None:
    """Swapped, the same fields contradict."""
    one = {found.field for found in compare(first, second).disagreements}
    assert one == {found.field for found in compare(second, first).disagreements}


@given(FACTS, FACTS)
def test_silence_and_the_crawl_contradict_nothing(first: StatedFacts, second: StatedFacts) -> None:
    """Only facts that both state as of the filing can contradict; and each field has its verdict."""
    found = compare(first, second)
    names = [field.name for field in fields(StatedFacts)]
    assert [one.field for one in found.fields] == names[1:-2]
    for one in found.disagreements:
        assert one.first
        assert one.second
        assert one.field not in first.current_state | second.current_state
    silent = StatedFacts(source="silent")
    assert compare(first, silent).disagreements == compare(silent, first).disagreements == ()


@given(FACTS)
def test_one_more_co_registrant_contradicts_nothing(facts: StatedFacts) -> None:
    """A longer list of parties agrees with the shorter."""
    more = replace(facts, ciks=(*facts.ciks, 6), business=(*facts.business, *places("L2")))
    assert {"ciks", "business"}.isdisjoint(one.field for one in compare(facts, more).disagreements)


def test_every_real_accession_with_two_derivations(shared_data: Path) -> None:
    """734 headers have a second source, and none contradicts them; today's address would contradict many."""
    findings = find(shared_data / "edgar")
    assert len(findings.second_opinions) == 734
    assert len(findings.accessions["header / submissions row"]) == 669
    contradicted = [key for key, n in findings.counts.items() if key[2] is Verdict.DISAGREE and n]
    assert contradicted == []
    assert findings.counts["header / submissions row", "accepted", Verdict.AGREE] == 661
    assert findings.counts["header / company today", "business", Verdict.DIFFER] == 93
    assert {kept for kept, _ in findings.misfiled} == {"0000320193-23-000106", "0001104659-26-015159"}
