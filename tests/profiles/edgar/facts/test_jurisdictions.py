"""EDGAR codes are not ISO codes, and every code of EDGAR's table lands where its country is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import PolicyBit
from carag.profiles.edgar.facts.jurisdictions import edgar_jurisdiction, iso_jurisdiction

if TYPE_CHECKING:
    from pathlib import Path

EEA = {
    "Austria", "Belgium", "Bulgaria", "Croatia", "Cyprus", "Czech Republic", "Denmark", "Estonia", "Finland",
    "France", "Germany", "Greece", "Hungary", "Ireland", "Italy", "Latvia", "Lithuania", "Luxembourg", "Malta",
    "Netherlands", "Poland", "Portugal", "Romania", "Slovakia", "Slovenia", "Spain", "Sweden", "Iceland",
    "Liechtenstein", "Norway",
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "edgar", "iso"),
    [
        ("DE", PolicyBit.J_US, PolicyBit.J_EU),  # Delaware, Germany
        ("CA", PolicyBit.J_US, PolicyBit.J_CA),  # California, Canada
        ("MT", PolicyBit.J_US, PolicyBit.J_EU),  # Montana, Malta
        ("GA", PolicyBit.J_US, PolicyBit.J_OTHER),  # Georgia, Gabon
        ("IL", PolicyBit.J_US, PolicyBit.J_OTHER),  # Illinois, Israel
    ],
)
def test_a_code_means_different_places_to_edgar_and_iso(code: str, edgar: PolicyBit, iso: PolicyBit) -> None:
    """The collisions of the two code lists."""
    assert edgar_jurisdiction(code) is edgar
    assert iso_jurisdiction(code) is iso


@pytest.mark.parametrize(
    ("code", "bit"),
    [
        ("2M", PolicyBit.J_EU),
        ("L2", PolicyBit.J_EU),
        ("X0", PolicyBit.J_UK),
        ("Z4", PolicyBit.J_CA),
        ("A6", PolicyBit.J_CA),
        ("B0", PolicyBit.J_CA),
        ("PR", PolicyBit.J_US),
        ("X1", PolicyBit.J_US),
        ("V8", PolicyBit.J_OTHER),  # Switzerland is in neither EU nor EEA
        ("Y9", PolicyBit.J_OTHER),  # Jersey is not the United Kingdom
        ("P8", PolicyBit.J_OTHER),
        ("W0", PolicyBit.J_OTHER),
        ("", PolicyBit.J_OTHER),
        (" l2 ", PolicyBit.J_EU),
    ],
)
def test_codes_that_public_tables_get_wrong(code: str, bit: PolicyBit) -> None:
    """Spot checks against EDGAR's own list."""
    assert edgar_jurisdiction(code) is bit


@given(st.text(max_size=4))
def test_no_code_is_refused_and_none_is_guessed(code: str) -> None:
    """Any text has a jurisdiction; an unknown one is elsewhere."""
    assert edgar_jurisdiction(code).number in range(5)
    assert iso_jurisdiction(code).number in range(5)
    if len(code.strip()) > 2:
        assert edgar_jurisdiction(code) is PolicyBit.J_OTHER


def test_every_code_of_edgars_table(shared_data: Path) -> None:
    """Each country's name decides its jurisdiction, and the states are the United States."""
    table = json.loads((shared_data / "edgar" / "edgar_state_country_codes.json").read_text())

    def expected(name: str) -> PolicyBit:
        if name in EEA:
            return PolicyBit.J_EU
        if "Canada" in name:
            return PolicyBit.J_CA
        return {"United Kingdom": PolicyBit.J_UK, "United States": PolicyBit.J_US}.get(
            name, PolicyBit.J_OTHER
        )

    assert {code: expected(name) for code, name in table["codes"].items()} == {
        code: edgar_jurisdiction(code) for code in table["codes"]
    }
    assert {edgar_jurisdiction(code) for code in table["us"]} == {PolicyBit.J_US}
