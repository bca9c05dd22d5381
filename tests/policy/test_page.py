"""The page of a profile states every bit, rule, field and cell of its files, and the committed page is current."""

from __future__ import annotations

from pathlib import Path

import pytest

import carag
from carag.cli import Exit
from carag.cli.app import run
from carag.policy import Profile
from carag.policy.page import profile_page

PROFILES = Path(carag.__file__).parent / "profiles"
DECLARED = ["generic", "clinical", "circulars"]
"""Profiles whose rules are data."""


@pytest.mark.parametrize("name", DECLARED)
def test_the_page_that_is_kept_is_what_the_profile_says(name: str) -> None:
    """Stale? Run ``carag policy bits --profile NAME --out carag/profiles/NAME/BITS.md``."""
    assert (PROFILES / name / "BITS.md").read_text("utf-8") == profile_page(Profile.open(name))


@pytest.mark.parametrize("name", DECLARED)
def test_nothing_that_decides_is_left_out(name: str) -> None:
    """Each bit has a section, each rule a line, each cell a row."""
    profile = Profile.open(name)
    page, said = profile_page(profile), profile.vocabulary
    assert page.count("\n## ") == len(said.flags) + 2 + bool(said.intents.rules)
    assert page.count("\n- set where ") == len(said.rules)
    assert page.count(" must be stated, as ") == len(said.required)
    assert page.count("- a search can be narrowed by ") == len(said.metadata)
    for cell in profile.table.cells:
        (row,) = [one for one in page.splitlines() if one.startswith(f"| {cell.role} | {cell.purpose} |")]
        assert row.endswith(f"| {cell.regulation} |")


def test_a_cell_that_hides_a_bit_is_named_with_it() -> None:
    """Only if all its masks hide it."""
    section = profile_page(Profile.open("generic")).partition("## 2 SECRET")[2].partition("\n## ")[0]
    assert "- forbidden by: public/read, employee/work\n" in section


def test_the_command_prints_the_page_of_any_profile(capsys: pytest.CaptureFixture[str]) -> None:
    """By name or by its folder."""
    assert run(["policy", "bits", "--profile", str(PROFILES / "generic")]) == Exit.OK
    assert capsys.readouterr().out.strip() == profile_page(Profile.open("generic")).strip()
