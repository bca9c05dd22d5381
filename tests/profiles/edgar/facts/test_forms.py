"""Forms and 8-K items: closed lists, with both names of renamed ones."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS, item_number
from carag.profiles.edgar.facts.forms import FormFamily, form_families, periodic_family


@pytest.mark.parametrize(
    ("form", "family"),
    [
        ("SC 13D", FormFamily.OWNERSHIP),
        ("SCHEDULE 13D", FormFamily.OWNERSHIP),  # the XML form, mandatory since 18 December 2024
        ("SCHEDULE 13G", FormFamily.OWNERSHIP),
        ("13F-HR", FormFamily.OWNERSHIP),
        ("10-K405", FormFamily.ANNUAL),
        ("10KSB", FormFamily.ANNUAL),
        ("424B5", FormFamily.OFFERING),
        ("S-3ASR", FormFamily.OFFERING),
        ("POS AM", FormFamily.OFFERING),
        ("DRS", FormFamily.OFFERING),
        ("F-1", FormFamily.FOREIGN),
        ("20FR12B", FormFamily.FOREIGN),
        ("DEFM14A", FormFamily.PROXY),
        ("DEF 14C", FormFamily.TENDER),
        ("SC TO-T", FormFamily.TENDER),
        ("SC 14D9", FormFamily.TENDER),
        ("144", FormFamily.INSIDER),
        ("NT 10-K", FormFamily.LATE_NOTICE),
        ("25-NSE", FormFamily.DELISTING),
        ("15F-12B", FormFamily.DELISTING),
        ("DRSLTR", FormFamily.LETTER),
        ("SEC STAFF LETTER", FormFamily.LETTER),
        ("SEC STAFF ACTION", FormFamily.OTHER),  # an order, public as it is entered
        ("N-CEN", FormFamily.OTHER),
    ],
)
def test_forms_and_their_families(form: str, family: FormFamily) -> None:
    """One form of each kind, and both names where EDGAR renamed it."""
    assert family in form_families(form)


@pytest.mark.parametrize("form", ["", "10-X", "10-K ", "F-X2", "8K", "Earnings", "4 "])
def test_a_form_in_no_family_is_unknown(form: str) -> None:
    """The list is closed: no prefix or near miss counts."""
    assert form_families(form) == frozenset()


def test_only_reports_with_a_period_are_periodic() -> None:
    """Variants of a report count as that report."""
    assert [periodic_family(form) for form in ("10-K", "10-K405", "10-KSB", "20-F", "10QSB", "S-1")] == [
        "10-K",
        "10-K",
        "10-K",
        "20-F",
        "10-Q",
        "",
    ]


@pytest.mark.parametrize(
    ("stated", "filed", "number"),
    [
        ("Results of Operations and Financial Condition", date(2023, 5, 4), "2.02"),
        ("Results of operations and financial condition", date(2003, 5, 8), "2.02"),
        ("12", date(2003, 5, 8), "2.02"),
        ("4", date(2000, 6, 27), "4.01"),  # change of accountant, never 4.02
        ("5", date(1996, 1, 5), "8.01"),
        ("6", date(1996, 1, 5), "5.02"),
        ("9", date(2003, 4, 22), "7.01"),
        ("9", date(1998, 4, 22), "3.02"),  # Regulation S sales, before Regulation FD
        ("4", date(2023, 5, 4), "4"),  # no numbering has it: unreadable
        ("9.0", date(2025, 5, 8), "9.0"),
        ("99.1", date(2025, 5, 9), "99.1"),
        ("Item 5.02", None, "5.02"),
        (
            "Non-Reliance on Previously Issued Financial Statements or a Related Audit Report or Completed "
            "Interim Review",
            None,
            "4.02",
        ),
        ("Changes in Registrant's Certifying Accountant", None, "4.01"),
        ("Resignations of registrant's directors", None, "5.02"),
        ("Departure of Directors or Principal Officers; Election of Directors", None, "5.02"),
        ("Cost Associated with Exit or Disposal Activities", None, "2.05"),
    ],
)
def test_items_by_number_old_number_and_description(stated: str, filed: date | None, number: str) -> None:
    """Headers print descriptions, data sets numbers, and before 2004 the numbers were others."""
    assert item_number(stated, filed) == number


@given(st.sampled_from(sorted(ITEM_NUMBERS)), st.dates())
def test_todays_numbers_are_themselves(number: str, filed: date) -> None:
    """Reading is idempotent, whatever the date."""
    assert item_number(number, filed) == number
