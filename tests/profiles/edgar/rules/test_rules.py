"""The rules of the policy word: stated once, the same for one filing and a million, and all documented."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.labelling.rule import Level
from carag.policy import PolicyBit, PolicyTable
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS
from carag.profiles.edgar.facts.publication import PublicAtSource
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.bits_page import bits_page
from carag.profiles.edgar.rules.fields import Fields, columns_of, fields_of, item_mask
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.rules import QUARANTINES, RULES, QuarantineCode, words
from tests.profiles.edgar.drawn import FILINGS

if TYPE_CHECKING:
    from pathlib import Path

    from carag.profiles.edgar.facts.filing import Filing

HERE = files("carag.profiles.edgar")
TABLE = PolicyTable.shipped()
STATE = {bit for bit in PolicyBit if PolicyBit.AMENDED <= bit <= PolicyBit.DELISTED}


@given(st.lists(FILINGS, max_size=8))
def test_columns_and_filings_have_the_same_words(filings: list[Filing]) -> None:
    """One statement of each rule, read two ways, cannot disagree; nor can the two ways of gathering fields."""
    columns = columns_of(filings)
    assert words(columns).tolist() == [label(filing).word for filing in filings]
    assert [Fields(*row) for row in zip(*(column.tolist() for column in columns), strict=True)] == [
        fields_of(filing) for filing in filings
    ]


def test_columns_and_real_filings_have_the_same_words(shared_data: Path) -> None:
    """On every real filing."""
    filings = [one.filing for one in read_filings(shared_data / "edgar") if one.filing is not None]
    assert len(filings) > 4000
    assert words(columns_of(filings)).tolist() == [label(filing).word for filing in filings]


@given(FILINGS)
def test_a_filing_without_a_time_is_quarantined_and_no_other_for_time(filing: Filing) -> None:
    """What the rules call timeless is exactly what the derivation of the time calls unknown."""
    said = label(filing)
    untimed = {
        QuarantineCode.NO_TIME, QuarantineCode.PRIVATE_RELEASE_UNKNOWN, QuarantineCode.LETTER_RELEASE_UNKNOWN
    }  # fmt: skip
    formless = {QuarantineCode.NO_FORM, QuarantineCode.UNKNOWN_FORM}
    code = said.quarantine.code if said.quarantine else None
    if code not in formless:
        assert (code in untimed) is (said.public_at_source is PublicAtSource.UNKNOWN)


@given(FILINGS)
def test_facts_alone_differ_only_in_the_missing_text(filing: Filing) -> None:
    """A header is labelled like its filing, and not quarantined for lack of text."""
    whole, facts = label(filing), label(filing, metadata_only=True)
    assert facts.causes == whole.causes
    if whole.quarantine is None or whole.quarantine.code is not QuarantineCode.NO_TEXT:
        assert facts == whole
    else:
        assert facts.quarantine is None


@pytest.mark.parametrize("number", sorted(ITEM_NUMBERS))
def test_each_item_is_one_bit(number: str) -> None:
    """Item sets lose nothing and hold nothing else."""
    assert item_mask(number).bit_count() == 1
    assert item_mask(number) & item_mask(*(ITEM_NUMBERS - {number})) == 0


# --- the page ---------------------------------------------------------------------------------------------


def test_every_bit_has_one_rule_or_is_state() -> None:
    """In the order of the bits, none twice."""
    ruled = [rule.bit for rule in RULES]
    assert ruled == sorted(set(PolicyBit) - STATE)
    assert {rule.level for rule in RULES} == {Level.FILING, Level.PASSAGE}
    assert len({rule.code for rule in QUARANTINES}) == len(QUARANTINES) == len(QuarantineCode) - 1


def test_the_page_is_what_the_rules_say() -> None:
    """Stale? Run ``carag policy bits --out carag/profiles/edgar/BITS.md``."""
    assert (HERE / "BITS.md").read_text(encoding="utf-8") == bits_page(TABLE)
