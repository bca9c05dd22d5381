"""Statements are recognised by the words that accounting rules prescribe, and by nothing else."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import PolicyBit, bit_names, bits_of
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.financial_statements import has_interim_statements, has_opinion
from carag.profiles.edgar.rules.filing_events import state_bits
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import carries_certified_statements, chunk_word, label

OPINION = (
    "REPORT OF INDEPENDENT ACCOUNTANTS\nIn our opinion, the accompanying balance sheet and the\nrelated statements of "
    "income present fairly, in all material respects,\nthe financial position of Fiction Corp.\n"
)
OF_A_PLAN = OPINION.replace(
    "the financial position of Fiction Corp.",
    "the net assets available for benefits of the Fiction Corp. Thrift Plan",
)
PART_III = "Item 10. Directors and Executive Officers\nJane Doe is an engineer.\n"
STATEMENTS = bits_of(["FS_AUDITED", "PD_COMP"])


def amendment(*documents: tuple[str, str], form: str = "10-K/A", filed: date = date(1996, 1, 5)) -> Filing:
    """A fictional amended report."""
    return Filing(
        accession_number="b",
        form=form,
        ciks=(1,),
        filed=filed,
        period=date(1994, 12, 31),
        business_codes=("NY",),
        documents=tuple(FilingDocument(kind, text) for kind, text in documents),
    )


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([("10-K/A", OPINION)], {"FS_AUDITED"}),
        ([("10-K/A", "See Exhibit 13."), ("EX-13", OPINION)], {"FS_AUDITED"}),
        ([("10-K/A", PART_III)], {"PD_COMP"}),
        # a schedule is filed with statements, and sometimes after them
        ([("10-K/A", "This adds Exhibit 27."), ("EX-27", "")], {"PD_COMP"}),
        # a list of statements, an opinion of another kind, a consent that quotes one
        ([("10-K/A", "Item 14. Exhibits\nReport of Independent Accountants | F-1\n")], {"PD_COMP"}),
        ([("10-K/A", "In our opinion, the price is fair to holders.")], {"PD_COMP"}),
        ([("10-K/A", "This adds a consent."), ("EX-23", OPINION)], {"PD_COMP"}),
        # an employee plan's report, filed as an amendment of its sponsor's (Rule 15d-21)
        ([("10-K/A", "This adds Exhibit 99."), ("EX-99", OF_A_PLAN)], {"PD_COMP"}),
        ([("10-K/A", OPINION), ("EX-99", OF_A_PLAN)], {"FS_AUDITED"}),
    ],
)
@pytest.mark.parametrize("filed", [date(1996, 1, 5), date(2022, 3, 1)])
def test_an_amendment_carries_statements_where_an_opinion_stands(
    documents: list[tuple[str, str]], expected: set[str], filed: date
) -> None:
    """Of any year: a source without a list of exhibits shows no certificate."""
    filing = amendment(*documents, filed=filed)
    assert set(bit_names(label(filing).word & STATEMENTS)) == expected
    assert carries_certified_statements(filing) is ("FS_AUDITED" in expected)


TITLES = ("CONDENSED BALANCE SHEETS", "Statements of Operations (Unaudited)", "Statement of Cash Flows")


@given(st.permutations(TITLES), st.sets(st.integers(0, 2)))
def test_interim_statements_are_three(titles: list[str], kept: set[int]) -> None:
    """In any order, all of them, each on a line of its own (Regulation S-X 10-01(c))."""
    text = "".join(f"{title}\n1 | 2\n" for place, title in enumerate(titles) if place in kept)
    assert has_interim_statements(text) is (len(kept) == len(TITLES))
    assert not has_interim_statements(text.replace("\n1", ", page 1"))


@pytest.mark.parametrize(
    ("text", "superseded"), [("\n".join(TITLES), True), ("This adds Exhibit 10.", False)]
)
def test_an_amended_quarter_supersedes_by_its_statements(text: str, superseded: bool) -> None:
    """Before section 906 there was no certificate."""
    first = FilingFacts(
        accession_number="a",
        form="10-Q",
        is_amendment=False,
        ciks=(1,),
        period=date(1994, 12, 31),
        since=5,
        public_at=5,
    )
    later = amendment(("10-Q/A", text), form="10-Q/A")
    found = state_bits([first, FilingFacts.of(later, label(later))])["a"].bits
    assert bool(found & PolicyBit.SUPERSEDED) is superseded
    assert found & PolicyBit.AMENDED


def test_a_plans_statements_are_about_no_officer() -> None:
    """The exhibit is impersonal, unless it speaks of a person; the amendment it came with stays closed."""
    filing = amendment(
        ("10-K/A", "This adds Exhibit 99."), ("EX-99", OF_A_PLAN + "Ms. Doe, age 61, was paid.\n")
    )
    said = label(filing)
    main, exhibit = filing.documents
    words = [
        chunk_word(said, filing, exhibit, OPINION[:33], 0),
        chunk_word(said, filing, exhibit, "Ms. Doe, age 61, was paid.", exhibit.text.index("Ms. Doe")),
        chunk_word(said, filing, main, main.text, 0),
    ]
    assert [bool(word & PolicyBit.PD_COMP) for word in words] == [False, True, True]


def test_an_opinion_may_be_wrapped_and_of_either_wording() -> None:
    """Lines break anywhere; a foreign auditor may add that the view is true and fair."""
    assert has_opinion("in our\nopinion, the statements present\nfairly the position")
    assert has_opinion("In our opinion the accounts give a true and fair view of the state of affairs")
    assert not has_opinion("In our opinion" + " and so on" * 100 + " the statements present fairly")
