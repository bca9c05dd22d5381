"""Every table of codes has a closed default: an unknown code opens nothing that a missing one keeps shut."""

from __future__ import annotations

import string
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import PolicyTable
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS, item_number
from carag.profiles.edgar.facts.forms import form_families
from carag.profiles.edgar.facts.jurisdictions import ANYWHERE, edgar_places, iso_places
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import label

if TYPE_CHECKING:
    from collections.abc import Callable

CELLS: Final = PolicyTable.shipped().cells
TEXT: Final = (FilingDocument("10-K", "Item 1. Business"),)
BASE: Final = Filing(
    accession_number="a",
    form="10-K",
    filed=date(2023, 5, 2),
    period=date(2022, 12, 31),
    ciks=(1,),
    documents=TEXT,
)
PROXY: Final = replace(BASE, form="DEF 14A", business_codes=("NY",))

TABLES: Final[dict[str, tuple[Callable[[tuple[str, ...]], Filing], str, Callable[[str], bool]]]] = {
    "business address": (
        lambda codes: replace(BASE, business_codes=codes),
        "NY",
        lambda code: edgar_places(code) != ANYWHERE,
    ),
    "incorporation alone": (
        lambda codes: replace(BASE, incorporation_codes=codes),
        "L2",
        lambda code: edgar_places(code) != ANYWHERE,
    ),
    "incorporation": (
        lambda codes: replace(BASE, business_codes=("NY",), incorporation_codes=codes),
        "L2",
        lambda code: edgar_places(code) != ANYWHERE,
    ),
    "country": (
        lambda codes: replace(BASE, address_countries=codes),
        "IE",
        lambda code: iso_places(code) != ANYWHERE,
    ),
    "form": (
        lambda codes: replace(BASE, business_codes=("NY",), form=codes[0] if codes else None),
        "10-K",
        lambda code: bool(form_families(code)),
    ),
    "8-K item": (
        lambda codes: replace(BASE, form="8-K", business_codes=("NY",), items=tuple(map(item_number, codes))),
        "8.01",
        lambda code: item_number(code) in ITEM_NUMBERS,
    ),
    "exhibit": (
        lambda codes: replace(
            BASE,
            form="10-K/A",
            business_codes=("NY",),
            documents=(*TEXT, *(FilingDocument(code, "Certified.") for code in codes)),
        ),
        "EX-23",
        lambda code: code.startswith("EX"),
    ),
    "SIC": (
        lambda codes: replace(BASE, business_codes=("NY",), sics=codes),
        "3674",
        lambda code: code == "6770",
    ),
    "exchange": (
        lambda codes: replace(PROXY, exchanges=codes),
        "NYSE",
        lambda code: code.lower().startswith(
            ("nyse", "none", "otc", "box", "iex", "chx", "cboe", "bats", "amex")
        ),
    ),
    "filer category": (
        lambda codes: replace(BASE, business_codes=("NY",), filer_category=" ".join(codes)),
        "Accelerated filer",
        lambda code: False,
    ),
    "reporting person": (
        lambda codes: replace(BASE, form="SC 13D", business_codes=("NY",), reporting_person_types=codes),
        "CO",
        lambda code: code == "IN",
    ),
}
"""Of each table: a filing that states these codes, one that is known, and which are known."""


def opened(doubt: Filing, other: Filing) -> list[str]:
    """The cells that see the doubtful filing but not the other, apart from bits that they require."""
    said, kept = label(doubt), label(other)
    if said.quarantine:
        return []
    if kept.quarantine:
        return ["quarantine"]
    return [
        f"{cell.role}/{cell.purpose}"
        for cell in CELLS
        if cell.policy.admits(said.word) and not cell.policy.admits(kept.word | said.word)
    ]


@pytest.mark.parametrize("table", TABLES)
@given(code=st.text(string.ascii_uppercase + string.digits, min_size=1, max_size=6))
def test_a_code_that_is_not_known_opens_no_more_than_none(table: str, code: str) -> None:
    """Next to a known code, it opens no more than that code alone."""
    of, known, is_known = TABLES[table]
    if is_known(code):
        return
    assert opened(of((code,)), of(())) == []
    if table not in {"form", "filer category"}:
        assert opened(of((known, code)), of((known,))) == []


@pytest.mark.parametrize("table", TABLES)
def test_a_known_code_is_known(table: str) -> None:
    """Otherwise the law above would hold of tables that know nothing."""
    of, known, _ = TABLES[table]
    said = label(of((known,)))
    assert said.quarantine is None
    assert any(cell.policy.admits(said.word) for cell in CELLS)


@pytest.mark.parametrize(
    "kind", ["EX-32", "EX-32.1", "EX-32A", "EX-32-1", "EX-32(I)", "ex-32", "EX32", "EX-032"]
)
def test_a_certificate_is_known_by_its_number_whatever_follows(kind: str) -> None:
    """An amendment with statements supersedes its report."""
    amended = replace(BASE, form="10-K/A", documents=(*TEXT, FilingDocument(kind, "Certified.")))
    assert FilingFacts.of(amended, label(amended)).certified


@pytest.mark.parametrize("kind", ["EX-320", "EX-3.2", "EX-99.32", "EX-132"])
def test_another_exhibit_is_no_certificate(kind: str) -> None:
    amended = replace(BASE, form="10-K/A", documents=(*TEXT, FilingDocument(kind, "Certified.")))
    assert not FilingFacts.of(amended, label(amended)).certified
