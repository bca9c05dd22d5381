"""The rules of the policy word: one statement each, the same of one filing and of a million, and all of it told."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.labelling.rule import Level
from carag.policy import PolicyBit, PolicyTable
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS
from carag.profiles.edgar.facts.publication import PublicAtSource
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.bits_page import bits_page
from carag.profiles.edgar.rules.fields import Fields, columns_of, fields_of, item_mask
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.rules import QUARANTINES, RULES, QuarantineCode, words

if TYPE_CHECKING:
    from pathlib import Path

HERE = files("carag.profiles.edgar")
TABLE = PolicyTable.shipped()
STATE = {bit for bit in PolicyBit if PolicyBit.AMENDED <= bit <= PolicyBit.DELISTED}

FORMS = ["10-K", "10-K/A", "10-K405/A", "20-F/A", "40-F", "10-Q", "8-K", "8-K/A", "6-K", "ARS", "DEF 14A", "SC 13D",
         "SCHEDULE 13G", "4", "S-1", "F-1", "DRS", "UPLOAD", "CT ORDER", "NT 10-K", "25", "ZZ", "", None]  # fmt: skip
EDGES = ["1969-12-31", "1970-01-01", "1994-03-01", "2001-12-31", "2002-01-01", "2022-08-07", "2022-08-08",
         "2024-12-11", "2024-12-12", "8999-12-31", "9000-01-01"]  # fmt: skip
DATES = st.none() | st.dates() | st.sampled_from([np.datetime64(day).astype(object) for day in EDGES])
FILINGS = st.builds(
    Filing,
    accession_number=st.just("a"),
    form=st.sampled_from(FORMS),
    filed=DATES,
    period=DATES,
    accepted=st.none() | st.datetimes(),
    accession_year=st.none() | st.sampled_from([1969, 1994, 2001, 2002, 2021, 2022, 2024, 2025, 9000]),
    private_to_public=st.booleans(),
    released=DATES,
    items=st.lists(st.sampled_from([*sorted(ITEM_NUMBERS), "99.1", "9.0"]), max_size=4, unique=True).map(
        tuple
    ),
    business_codes=st.lists(st.sampled_from(["NY", "L2", "X0", "A6", "E9", "", "??"]), max_size=3).map(tuple),
    incorporation_codes=st.lists(st.sampled_from(["DE", "L2", "E9"]), max_size=2).map(tuple),
    address_countries=st.lists(st.sampled_from(["DE", "Ireland", "CA"]), max_size=2).map(tuple),
    sics=st.lists(st.sampled_from(["6770", "3674"]), max_size=2).map(tuple),
    party_roles=st.lists(st.sampled_from(["FILER", "REPORTING-OWNER"]), max_size=2).map(tuple),
    reporting_person_types=st.lists(st.sampled_from(["IN", "HC"]), max_size=2).map(tuple),
    exchanges=st.lists(st.sampled_from(["NASDAQ", "NYSE"]), max_size=2).map(tuple),
    filer_category=st.sampled_from(["", "Emerging growth company"]),
    emerging_growth=st.none() | st.booleans(),
    shell_company=st.none() | st.booleans(),
    documents=st.lists(
        st.builds(
            FilingDocument,
            st.sampled_from(["10-K", "EX-13", "EX-13.1", "EX-32.(1)", "ex-32", "EX-27", "EX-270", "EX-99.1"]),
            st.sampled_from(
                ["", " \n", "text", "For the year ended May 1, 2020", "8-K Date of Report: May 9, 1969"]
            ),
        ),
        max_size=3,
    ).map(tuple),
)


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
    """A header is labelled as its filing is, and not set aside for having no text."""
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
