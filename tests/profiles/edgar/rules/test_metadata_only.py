"""Filings known by their facts alone: order, repetition and a later text change nothing; contradictions close."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import as_of_minutes
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.rules.filing_events import bears_on_others, state_history
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.metadata_only import (
    facts_of_metadata,
    facts_of_text,
    learn,
    quarantine_of,
    readings,
    states,
)

if TYPE_CHECKING:
    from carag.labelling.labelled import Facts

FILED = date(2024, 5, 2)


def filing(number: str, form: str, **facts: Any) -> Filing:
    return Filing(
        **{
            "accession_number": number,
            "form": form,
            "ciks": (1,),
            "parties": (1,),
            "filed": FILED,
            "period": date(2023, 12, 31),
            "business_codes": ("NY",),
            **facts,
        }
    )


def text(row: Filing, words: str = "Item 1. Business") -> Filing:
    return replace(row, documents=(FilingDocument(row.form or "", words),))


def known_of(*filings: Filing) -> dict[str, Facts]:
    known: dict[str, Facts] = {}
    for one in filings:
        learn(known, one, metadata_only=not one.documents)
    return known


def causes(known: dict[str, Facts], number: str) -> dict[str, str]:
    return {cause.bit: cause.document_id for cause in states(known.values())[number].causes}


REPORT = text(filing("a", "10-K", filed=date(2024, 2, 1)))


@st.composite
def drawn_filings(draw: st.DrawFn) -> Filing:
    form, year = draw(st.sampled_from(FORMS)), draw(st.integers(2021, 2023))
    cik = (draw(st.integers(1, 2)),)
    one = filing(
        draw(st.sampled_from("abcde")),
        form,
        ciks=cik,
        parties=cik,
        period=date(year, 12, 31),
        filed=date(2024, 1, draw(st.integers(1, 28))),
        items=("4.02",) if form.startswith("8-K") else (),
        file_numbers=(f"333-{year}",) if form.startswith("S-1") else (),
    )
    return text(one) if draw(st.booleans()) else one


FORMS = ["10-K", "10-K/A", "8-K", "8-K/A", "NT 10-K", "25-NSE", "S-1", "S-1/A", "CORRESP"]
FILINGS = drawn_filings()


@given(
    st.lists(
        FILINGS,
        min_size=1,
        max_size=8,
        unique_by=lambda one: one.accession_number if one.documents else repr(one),
    ),
    st.randoms(),
)
def test_the_order_of_arrival_does_not_matter(filings: list[Filing], random: Any) -> None:
    """Rows and texts of one accession number, in agreement or not, end in the same states and quarantines."""
    one, other = known_of(*filings), known_of(*random.sample(filings, len(filings)))
    assert states(one.values()) == states(other.values())
    assert one == other


@given(st.lists(FILINGS, min_size=1, max_size=8, unique_by=lambda one: one.accession_number))
def test_a_row_and_then_the_text_is_the_text(filings: list[Filing]) -> None:
    """A row that repeats the text leaves no trace, and a row that comes twice counts once."""
    texts = [text(one) for one in filings]
    rows = [replace(one, documents=()) for one in filings]
    both, alone, twice = known_of(*rows, *texts), known_of(*texts), known_of(*texts, *rows, *rows)
    assert states(both.values()) == states(alone.values()) == states(twice.values())
    assert [quarantine_of(both[number]) for number in alone] == [quarantine_of(one) for one in alone.values()]


@given(st.lists(FILINGS, min_size=1, max_size=8, unique_by=lambda one: one.accession_number))
def test_what_bears_on_nothing_can_be_left_out(filings: list[Filing]) -> None:
    facts = [FilingFacts.of(one, label(one)) for one in filings]
    whole, bearing = state_history(facts), {one.accession_number for one in facts if bears_on_others(one)}
    for one in facts:
        kept = [other for other in facts if other is one or other.accession_number in bearing]
        assert state_history(kept)[one.accession_number] == whole[one.accession_number]


@pytest.mark.parametrize(
    ("row", "bits"),
    [
        (filing("b", "10-K", period=date(2024, 12, 31)), {"NOT_LATEST": "b"}),
        (filing("b", "NT 10-K"), {"LATE": "b"}),
        (filing("b", "8-K", items=("4.02", "9.01")), {"NON_RELIANCE": "b"}),
        (filing("b", "25-NSE", period=None), {"DELISTED": "b"}),
        (filing("b", "15-12G", period=None), {"DELISTED": "b"}),
        (filing("b", "10-K/A", carries_xbrl=True), {"AMENDED": "b", "SUPERSEDED": "b"}),
        (filing("b", "10-K/A", carries_xbrl=False), {"AMENDED": "b"}),
        (filing("b", "8-K", items=("8.01",)), {}),
        (filing("b", "25-NSE", ciks=(2,)), {}),
    ],
)
def test_a_row_is_an_event(row: Filing, bits: dict[str, str]) -> None:
    assert causes(known_of(REPORT, row), "a") == bits


def test_statements_without_interactive_data_are_a_doubt_before_it_was_required() -> None:
    """Regulation S-T 405 binds all filers from periods after 15 June 2011."""
    old = {"period": date(2009, 12, 31), "filed": date(2010, 2, 1)}
    amendment = filing("b", "10-K/A", carries_xbrl=False, **old | {"filed": date(2010, 4, 1)})
    assert "SUPERSEDED" in causes(known_of(replace(REPORT, **old), amendment), "a")


def test_the_text_clears_the_doubt() -> None:
    """Part III replaces no statements; a Form 25 that strikes notes leaves the filer listed."""
    row = filing("b", "10-K/A")
    assert "SUPERSEDED" in causes(known_of(REPORT, row), "a")
    assert "SUPERSEDED" not in causes(known_of(REPORT, row, text(row, "Item 10. Directors")), "a")
    notes = filing("c", "25-NSE", period=None)
    assert "DELISTED" in causes(known_of(REPORT, notes), "a")
    struck = text(notes, "4.5% Senior Notes due 2024\n(Description of class of securities)")
    assert "DELISTED" not in causes(known_of(REPORT, notes, struck), "a")


def test_a_row_never_reopens_what_may_not_be_relied_upon() -> None:
    """Only statements that were read can replace statements; an amendment without text reopens nothing."""
    warning = filing("b", "8-K", items=("4.02",), period=None)
    mended = filing("c", "10-K/A", filed=date(2024, 8, 1))
    assert causes(known_of(REPORT, warning, mended), "a")["NON_RELIANCE"] == "b"


def test_a_report_proves_that_its_filer_is_listed() -> None:
    """90 days or more after the form, on an exchange, for common equity; an earlier cover may predate the removal."""
    cover = "registered pursuant to Section 12(b) of the Act:\n{} | NYSE\nSection 12(g) of the Act: None"
    form = filing("b", "25-NSE", period=None)
    common, notes = cover.format("Common Stock"), cover.format("4% Notes")
    for filed, words, hidden in (
        (date(2024, 9, 2), common, False),
        (date(2024, 7, 2), common, True),
        (date(2024, 9, 2), notes, True),
    ):
        proof = text(filing("d", "10-Q", filed=filed, period=date(2024, 6, 30)), words)
        assert ("DELISTED" in causes(known_of(REPORT, form, proof), "a")) is hidden


def test_sources_that_contradict_each_other_close() -> None:
    """The quarantine names both values, and each reading acts on other filings."""
    row = filing("b", "10-K", period=date(2024, 12, 31))
    other = replace(row, period=date(2025, 12, 31))
    between = text(filing("c", "10-K", period=date(2025, 3, 31)))
    known = known_of(REPORT, between, row, other)
    code, said = quarantine_of(known["b"]) or ("", "")
    assert code == "FACTS_DISAGREE"
    assert "2024-12-31" in said
    assert "2025-12-31" in said
    assert causes(known, "c") == {"NOT_LATEST": "b"}
    assert (quarantine_of(known_of(text(row), other)["b"]) or ("",))[0] == "FACTS_DISAGREE"


def test_rows_of_two_registrants_name_one_filing() -> None:
    """A submissions row names the registrant whose row it is; the filing concerns both."""
    rows = [filing("b", "25-NSE", period=None, ciks=(cik,)) for cik in (1, 2)]
    known = known_of(*rows, REPORT, text(filing("d", "10-K", ciks=(2,), parties=(2,))))
    assert quarantine_of(known["b"]) is None
    assert causes(known, "a")["DELISTED"] == causes(known, "d")["DELISTED"] == "b"


def test_what_one_row_leaves_out_another_says() -> None:
    """Items that only one registrant's row lists are the filing's, and concern the other too."""
    rows = [
        filing("b", "8-K", ciks=(1,), parties=(1,)),
        filing("b", "8-K", items=("4.02",), ciks=(2,), parties=(2,)),
    ]
    assert causes(known_of(REPORT, *rows), "a") == {"NON_RELIANCE": "b"}


def test_a_time_labelled_z_hides_from_its_earliest_reading() -> None:
    """16:32 Z may be 12:32 Eastern: from then on an event hides, and not from 16:32."""
    late, early = datetime(2024, 5, 2, 20, 32, tzinfo=UTC), datetime(2024, 5, 2, 16, 32, tzinfo=UTC)
    row = filing("b", "8-K", accepted=late, accepted_earliest=early, items=("4.02",))
    said = readings(facts_of_metadata(row, label(row, metadata_only=True)))
    assert [one.since for one in said] == [as_of_minutes(early)]


def test_a_text_without_a_period_keeps_the_one_its_row_states() -> None:
    """Otherwise the text would reopen what the row had hidden."""
    row = filing("b", "10-K", period=date(2024, 12, 31))
    assert causes(known_of(REPORT, row, replace(text(row), period=None)), "a") == {"NOT_LATEST": "b"}


def test_a_filing_of_its_own_kept_quarantine() -> None:
    letter = text(filing("b", "CORRESP"))
    facts = facts_of_text(letter, label(letter))
    assert (quarantine_of(facts) or ("",))[0] == "LETTER_RELEASE_UNKNOWN"
