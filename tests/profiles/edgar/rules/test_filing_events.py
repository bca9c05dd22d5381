"""The state bits that later filings set on earlier ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import NEVER, as_of_minutes, bit_names, bits_of
from carag.profiles.edgar.facts.forms import FormFamily, form_families
from carag.profiles.edgar.rules.filing_events import state_bits, state_history
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from tests.profiles.edgar.rules.pairwise import oracle

DAY = 24 * 60


def facts(accession: str, form: str, public: date | int, **changes: Any) -> FilingFacts:
    """One filing of CIK 1 whose hour is known."""
    minutes = public if isinstance(public, int) else as_of_minutes(public)
    base = form.removesuffix("/A")
    values: dict[str, Any] = {
        "accession_number": accession,
        "form": base,
        "is_amendment": form.endswith("/A"),
        "ciks": (1,),
        "period": date(2023, 12, 31),
        "since": minutes,
        "public_at": minutes,
        "statements": bool(form_families(base) & {FormFamily.ANNUAL, FormFamily.INTERIM}),
    }
    return FilingFacts(**values | changes)


def causes(*filings: FilingFacts) -> dict[str, dict[str, str]]:
    """Per accession, each state bit with the accession that sets it."""
    states = state_bits(filings)
    assert all(state.bits == bits_of(cause.bit for cause in state.causes) for state in states.values())
    return {
        accession: {cause.bit: cause.document_id for cause in state.causes}
        for accession, state in states.items()
    }


ANNUAL = facts("a", "10-K", date(2024, 2, 1))


def test_an_amendment_with_certificate_supersedes() -> None:
    """The earliest amendment amends; the earliest with EX-32 supersedes, also the one before it."""
    part_iii = facts("b", "10-K/A", date(2024, 4, 1), statements=False)
    restated = facts("c", "10-K/A", date(2024, 5, 1), certified=True)
    assert causes(restated, part_iii, ANNUAL) == {
        "a": {"AMENDED": "b", "SUPERSEDED": "c"},
        "b": {"AMENDED": "c", "SUPERSEDED": "c"},
        "c": {},
    }


def test_an_amendment_concerns_its_own_period_form_and_filer() -> None:
    """Another period, form or CIK is another filing; a 405 variant is the same form."""
    restated = facts("b", "10-K/A", date(2024, 4, 1), certified=True)
    same = facts("g", "10-K405", date(2024, 2, 1))
    others = [
        facts("c", "10-K", date(2023, 2, 1), period=date(2022, 12, 31)),
        facts("d", "10-Q", date(2024, 1, 1)),
        facts("e", "10-K", date(2024, 2, 1), ciks=(2,)),
        facts("f", "10-K", date(2024, 2, 1), period=None),
        facts("h", "8-K", date(2024, 2, 1), period=date(2023, 12, 30)),
    ]
    found = causes(restated, same, *others)
    assert found.pop("g")["SUPERSEDED"] == "b"
    assert {bit for state in found.values() for bit in state} == {"NOT_LATEST"}


@pytest.mark.parametrize(
    "period",
    [date(2023, 12, 30), date(2024, 1, 8), None, date(2024, 8, 1), date(2022, 12, 31)],
    ids=["a day earlier", "a week later", "none", "the day of filing", "of another year"],
)
def test_whatever_period_an_amendment_states_its_report_is_amended(period: date | None) -> None:
    """In doubt the nearest report before it is hidden: an amendment never leaves all reports of its filer open."""
    older = facts("0", "10-K", date(2023, 2, 1), period=date(2022, 12, 31))
    restated = facts("b", "10-K/A", date(2024, 8, 1), period=period, certified=True)
    found = causes(older, ANNUAL, restated)
    concerned = "0" if period == older.period else "a"
    assert {found[concerned][bit] for bit in ("AMENDED", "SUPERSEDED")} == {"b"}
    if period in (date(2023, 12, 30), date(2024, 1, 8)):
        assert not {"NOT_LATEST"} & {*found["a"], *found["b"]}


def test_an_amendment_without_a_period_amends_the_nearest_report_within_a_year() -> None:
    """If several may be the nearest, each of them; but none later, and none more than 380 days earlier."""
    restated = facts("b", "10-K/A", date(2024, 8, 1), period=None, certified=True)
    old = facts("0", "10-K", date(2023, 7, 1), period=date(2022, 12, 31))
    later = facts("c", "10-K", date(2025, 2, 1), period=date(2024, 12, 31))
    doubtful = facts("d", "10-K", date(2024, 12, 31), period=None, since=as_of_minutes(date(2024, 1, 1)))
    found = causes(restated, old, ANNUAL, later, doubtful)
    assert {one for one, state in found.items() if "SUPERSEDED" in state} == {"a", "d"}
    assert causes(restated, replace(old, period=None))["0"] == {}


def test_a_report_without_a_period_is_not_the_latest_after_one_that_ends_later() -> None:
    """Its period ended before it was public, so one that ends after that day is later."""
    undated = facts("a", "10-K", date(2024, 2, 1), period=None)
    assert causes(undated, facts("b", "10-K", date(2025, 2, 1)))["a"] == {}
    later = facts("b", "10-K", date(2025, 2, 1), period=date(2024, 12, 31))
    assert causes(undated, later)["a"] == {"NOT_LATEST": "b"}


def test_an_original_is_amended_even_if_its_own_time_is_uncertain() -> None:
    """An /A is later by nature: an original known only by its year does not escape."""
    uncertain = facts("a", "10-K", date(2024, 12, 31), since=as_of_minutes(date(2024, 1, 1)))
    restated = facts("b", "10-K/A", date(2024, 4, 1), certified=True)
    assert causes(uncertain, restated)["a"] == {"AMENDED": "b", "SUPERSEDED": "b"}


WARNING = facts("w", "8-K", date(2024, 8, 1), items=("4.02", "9.01"), period=date(2024, 7, 30))


def test_non_reliance_hits_the_statements_of_three_years() -> None:
    """Statements before the warning and not older than three years, of that filer alone."""
    assert causes(ANNUAL, WARNING)["a"] == {"NON_RELIANCE": "w"}
    assert causes(facts("o", "10-K", date(2020, 2, 1), period=date(2019, 12, 31)), WARNING)["o"] == {}
    assert causes(facts("o", "10-K", date(2022, 2, 1), period=date(2021, 12, 31)), WARNING)["o"] != {}
    assert causes(facts("n", "10-K", date(2024, 9, 1)), WARNING)["n"] == {}
    assert causes(facts("x", "10-K", date(2024, 2, 1), ciks=(2,)), WARNING)["x"] == {}
    assert causes(facts("p", "DEF 14A", date(2024, 2, 1)), WARNING)["p"] == {}
    assert causes(WARNING)["w"] == {}


def test_a_registration_statement_is_amended_by_its_file_number() -> None:
    """It has no period; another registration or form of the same filer has another number."""
    first = facts("a", "F-3", date(2024, 3, 1), period=None, file_numbers=("333-900001",))
    later = facts("b", "F-3/A", date(2024, 3, 13), period=None, file_numbers=("333-900001",))
    found = causes(
        first,
        later,
        facts("c", "F-3", date(2023, 3, 1), period=None, file_numbers=("333-900002",)),
        facts("d", "F-4", date(2023, 3, 1), period=None, file_numbers=("333-900001",)),
        facts("e", "F-3", date(2023, 3, 1), period=None),
        facts("f", "F-3", date(2023, 3, 1), period=None, ciks=(2,), file_numbers=("333-900001",)),
    )
    assert found == {"a": {"AMENDED": "b"}, "b": {}, "c": {}, "d": {}, "e": {}, "f": {}}
    again = facts("g", "F-3/A", date(2024, 4, 1), period=None, file_numbers=("333-900001",))
    assert causes(again, later, first) == {"a": {"AMENDED": "b"}, "b": {"AMENDED": "g"}, "g": {}}


def test_reports_share_one_file_number_and_amend_none_by_it() -> None:
    """An 8-K/A or 10-K/A without a period has the registrant's number, like every other report."""
    found = causes(
        facts("a", "8-K", date(2024, 3, 1), period=None, file_numbers=("001-09999",)),
        facts("b", "8-K/A", date(2024, 5, 1), period=None, file_numbers=("001-09999",)),
    )
    assert found == {"a": {}, "b": {}}


def test_a_second_warning_concerns_the_restatement_too() -> None:
    """The fix itself is relied upon only until the next warning."""
    fix = facts("f", "10-K/A", date(2024, 10, 1), certified=True)
    again = facts("y", "8-K/A", date(2025, 1, 1), items=("4.02",))
    found = causes(ANNUAL, WARNING, fix, again)
    assert found["a"]["NON_RELIANCE"] == found["f"]["NON_RELIANCE"] == "y"


def test_doubt_about_the_order_is_closed() -> None:
    """Statements known only by their year may be older than the warning, a fix may be older too."""
    uncertain = facts("a", "10-K", date(2024, 12, 31), since=as_of_minutes(date(2024, 1, 1)))
    assert causes(uncertain, WARNING)["a"] == {"NON_RELIANCE": "w"}
    fix = facts("f", "10-K/A", date(2024, 12, 31), since=as_of_minutes(date(2024, 1, 1)), certified=True)
    assert causes(ANNUAL, WARNING, fix)["a"]["NON_RELIANCE"] == "w"


def test_an_old_item_four_is_no_warning() -> None:
    """Change of accountant, whatever its old number looks like."""
    assert causes(ANNUAL, facts("w", "8-K", date(2024, 8, 1), items=("4.01", "4")))["a"] == {}


def test_only_periodic_reports_have_a_latest() -> None:
    """A later period of the same report; an 8-K has none, and an amendment has a period of its own."""
    later = facts("b", "10-K", date(2025, 2, 1), period=date(2024, 12, 31))
    latest = facts("c", "10-K", date(2026, 2, 1), period=date(2025, 12, 31))
    assert causes(ANNUAL, later, latest) == {"a": {"NOT_LATEST": "b"}, "b": {"NOT_LATEST": "c"}, "c": {}}
    eights = [
        facts("x", "8-K", date(2024, 1, 1)),
        facts("y", "8-K", date(2025, 1, 1), period=date(2024, 12, 31)),
    ]
    assert causes(*eights) == {"x": {}, "y": {}}


def test_late_reports_are_known_by_their_notice() -> None:
    """NT 10-K with the same period; other forms and periods are not late."""
    notice = facts("n", "NT 10-K", date(2024, 3, 1))
    quarter = facts("q", "10-Q", date(2024, 3, 1))
    assert causes(ANNUAL, notice, quarter) == {"a": {"LATE": "n"}, "n": {}, "q": {}}
    assert causes(quarter, facts("n", "NT 10-Q", date(2024, 3, 1)))["q"] == {"LATE": "n"}
    assert causes(ANNUAL, facts("n", "NTN 10K", date(2024, 3, 1)))["a"] == {"LATE": "n"}


def test_delisting_marks_all_of_the_filer() -> None:
    """Every document of the CIK, before and after, with the first form that says so."""
    gone = facts("d", "25-NSE", date(2024, 6, 1), period=None)
    closed = facts("e", "15-12G", date(2024, 7, 1), period=None)
    after = facts("z", "10-K", date(2025, 2, 1))
    other = facts("o", "10-K", date(2024, 2, 1), ciks=(2,))
    found = causes(ANNUAL, gone, closed, after, other)
    assert found == {
        "a": {"DELISTED": "d"},
        "d": {"DELISTED": "d"},
        "e": {"DELISTED": "d"},
        "z": {"DELISTED": "d"},
        "o": {},
    }


FORMS = ["10-K", "10-K/A", "10-Q", "10-Q/A", "8-K", "NT 10-K", "25", "DEF 14A", "10-K405"]
START = as_of_minutes(date(2020, 1, 1))


@st.composite
def drawn_facts(draw: st.DrawFn) -> list[FilingFacts]:
    """Reports whose quarters are 91 days apart, each public on a day or somewhere in 300 days."""
    filings = []
    for number in range(draw(st.integers(0, 12))):
        form, since = draw(st.sampled_from(FORMS)), START + draw(st.integers(0, 1600)) * DAY
        quarter, shift = draw(st.none() | st.integers(0, 7)), draw(st.sampled_from([0, 0, 3]))
        days = None if quarter is None else timedelta(days=91 * quarter + shift)
        filings.append(
            facts(
                f"{number:02}",
                form,
                since + draw(st.sampled_from([0, 0, 300])) * DAY,
                ciks=draw(st.sampled_from([(1,), (2,), (1, 2)])),
                period=None if days is None else date(2019, 12, 31) + days,
                since=since,
                items=draw(st.sampled_from([(), ("4.02",)])),
                certified=form.endswith("/A") and draw(st.booleans()),
            )
        )
    return filings


FILINGS = drawn_facts()


@given(FILINGS)
def test_states_equal_the_pairwise_rules(filings: list[FilingFacts]) -> None:
    """The grouped passes give what comparing every pair gives."""
    assert {one.accession_number: oracle(filings, one) for one in filings} == {
        accession: set(found) for accession, found in causes(*filings).items()
    }


@given(FILINGS, st.randoms(use_true_random=False))
def test_order_does_not_matter(filings: list[FilingFacts], random: Any) -> None:
    """The same facts in any order give the same states and the same causes."""
    shuffled = filings.copy()
    random.shuffle(shuffled)
    assert state_bits(shuffled) == state_bits(filings)


@given(FILINGS)
def test_only_state_bits_are_set_and_nothing_causes_itself(filings: list[FilingFacts]) -> None:
    """Bits 18-23, each with another filing as its cause; only a delisting is its own filer's."""
    for accession, state in state_bits(filings).items():
        assert state.bits & ~sum(1 << n for n in range(18, 24)) == 0
        assert {cause.bit for cause in state.causes if cause.document_id == accession} <= {"DELISTED"}


# --- from when on ---


def history(accession: str, *filings: FilingFacts) -> list[tuple[int, set[str], list[str]]]:
    """Minute, bits and causes of each span."""
    return [
        (span.since, set(bit_names(span.bits)), [cause.document_id for cause in span.causes])
        for span in state_history(filings)[accession]
    ]


@given(FILINGS)
def test_every_minute_has_the_bits_of_its_day(filings: list[FilingFacts]) -> None:
    """Spans follow the rules applied pair by pair at each minute at which anything may have happened."""
    edges = {minute + step for one in filings for minute in (one.since, one.public_at) for step in (-1, 0, 1)}
    for one in filings:
        spans = state_history(filings)[one.accession_number]
        for minute in sorted({one.public_at, NEVER - 1} | {edge for edge in edges if edge >= one.public_at}):
            now = [span for span in spans if span.since <= minute][-1]
            assert oracle(filings, one, minute) == set(bit_names(now.bits))


@given(FILINGS)
def test_spans_cover_all_time_once_and_end_as_state_bits_say(filings: list[FilingFacts]) -> None:
    """They begin when the filing is public, ascend, and differ from one to the next; bits have their causes."""
    states = state_bits(filings)
    for one in filings:
        spans = state_history(filings)[one.accession_number]
        minutes = [span.since for span in spans]
        assert minutes[0] == one.public_at
        assert minutes == sorted(set(minutes))
        assert all(before[1:] != after[1:] for before, after in pairwise(spans))
        assert all(span.bits == bits_of(cause.bit for cause in span.causes) for span in spans)
        assert spans[-1][1:] == states[one.accession_number]


@given(FILINGS, st.integers(0, 11))
def test_a_filing_concerns_only_those_that_share_a_cik(filings: list[FilingFacts], place: int) -> None:
    """Without it the history of every other filing is the same, so relabelling is local."""
    if place < len(filings):
        rest = [*filings[:place], *filings[place + 1 :]]
        with_it, without = state_history(filings), state_history(rest)
        for one in rest:
            if not set(one.ciks) & set(filings[place].ciks):
                assert with_it[one.accession_number] == without[one.accession_number]


APRIL, MAY = as_of_minutes(date(2024, 4, 1)), as_of_minutes(date(2024, 5, 1))
PUBLIC = ANNUAL.public_at


def test_each_bit_holds_from_the_minute_of_its_cause() -> None:
    """Constructed histories, one per bit: clear the minute before, set from the minute on."""
    part_iii = facts("b", "10-K/A", APRIL, statements=False)
    restated = facts("c", "10-K/A", MAY, certified=True)
    assert history("a", ANNUAL, part_iii, restated) == [
        (PUBLIC, set(), []),
        (APRIL, {"AMENDED"}, ["b"]),
        (MAY, {"AMENDED", "SUPERSEDED"}, ["b", "c"]),
    ]
    warning = facts("w", "8-K", APRIL, items=("4.02",), period=None)
    later = facts("l", "10-K", APRIL, period=date(2024, 3, 31))
    gone = facts("d", "15-12G", APRIL, period=None)
    for event, bit in ((warning, "NON_RELIANCE"), (later, "NOT_LATEST"), (gone, "DELISTED")):
        cause = event.accession_number
        assert history("a", ANNUAL, event) == [(PUBLIC, set(), []), (APRIL, {bit}, [cause])]
    notice = facts("n", "NT 10-K", PUBLIC - DAY)
    assert history("a", ANNUAL, notice) == [(PUBLIC, {"LATE"}, ["n"])]
    too_late = facts("n", "NT 10-K", APRIL)
    assert history("a", ANNUAL, too_late) == [(PUBLIC, set(), []), (APRIL, {"LATE"}, ["n"])]


def test_a_restatement_reopens_from_its_minute_on() -> None:
    """Between warning and fix nothing is relied upon; afterwards the fix is, and the original is superseded."""
    fix = facts("f", "10-K/A", MAY, certified=True)
    warning = facts("w", "8-K", APRIL, items=("4.02",), period=None)
    assert history("a", ANNUAL, warning, fix) == [
        (PUBLIC, set(), []),
        (APRIL, {"NON_RELIANCE"}, ["w"]),
        (MAY, {"AMENDED", "SUPERSEDED"}, ["f", "f"]),
    ]
    assert history("f", ANNUAL, warning, fix) == [(MAY, set(), [])]


def test_doubt_about_the_minute_is_closed() -> None:
    """An event hides from its earliest minute; a restatement reopens at its latest."""
    amendment = facts("b", "10-K/A", MAY, since=APRIL, statements=False)
    assert history("a", ANNUAL, amendment) == [(PUBLIC, set(), []), (APRIL, {"AMENDED"}, ["b"])]
    warning = facts("w", "8-K", PUBLIC + DAY, items=("4.02",), period=None)
    fix = facts("f", "10-K/A", MAY, since=APRIL, certified=True)
    assert history("a", ANNUAL, warning, fix) == [
        (PUBLIC, set(), []),
        (PUBLIC + DAY, {"NON_RELIANCE"}, ["w"]),
        (APRIL, {"AMENDED", "SUPERSEDED", "NON_RELIANCE"}, ["f", "f", "w"]),
        (MAY, {"AMENDED", "SUPERSEDED"}, ["f", "f"]),
    ]


def test_what_is_never_public_has_the_state_of_the_end() -> None:
    """One span, which no session reaches."""
    hidden = facts("a", "10-K", NEVER, since=PUBLIC)
    assert history("a", hidden, facts("d", "25", APRIL)) == [(NEVER, {"DELISTED"}, ["d"])]


def test_a_later_form_hides_again_what_a_report_had_cleared() -> None:
    """And the 90 days count from the latest minute the form can have become public."""
    day = 24 * 60
    report = facts("a", "10-K", 0)
    first, second = (
        facts(name, "25", at, since=at - day, period=None)
        for name, at in (("b", 100 * day), ("d", 300 * day))
    )
    early, proof = (
        facts(name, "10-Q", at, lists_common=True, period=None)
        for name, at in (("c", 190 * day - 1), ("e", 190 * day))
    )
    filings = [report, first, second, early, proof]
    spans = [(span.since // day, span.causes) for span in state_history(filings)["a"]]
    assert [(since, [cause.document_id for cause in found]) for since, found in spans] == [
        (0, []),
        (99, ["b"]),
        (190, []),
        (299, ["d"]),
    ]
