"""Proxy statements and Part III by section: personal, unless a passage is in a section about something else."""

from __future__ import annotations

from datetime import date

import pytest

from carag.policy import PolicyBit, bit_names
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.personal_sections import is_impersonal


def filing_of(text: str, form: str) -> Filing:
    """A fictional statement."""
    return Filing(
        accession_number="a",
        form=form,
        filed=date(2024, 5, 9),
        business_codes=("NY",),
        documents=(FilingDocument(form, text),),
    )


PROXY = {
    "cover": "SCHEDULE 14A\nFiled by the Registrant\nPayment of Filing Fee:\nNo fee required.\n\n",
    "letter": "Dear Holder\nThe year was good, and the chair deserves thanks.\n\n",
    "notice": "NOTICE OF ANNUAL MEETING\nTo be held in May, to elect directors.\n\n",
    "leaver": "NOTICE OF A SPECIAL MEETING\nJane Doe has resigned.\n\n",
    "contents": "CONTENTS\n"
    + "".join(f"Part {page} of the statement | {page}\n" for page in range(1, 11))
    + "\n",
    "ages": "AGES\n" + "".join(f"Person {n} | {60 - n % 3}\n" for n in range(10)) + "\n",
    "split": "REVERSE STOCK SPLIT\nTwo shares become one.\n\n",
    "taxes": "Material U.S. Federal Income Tax Consequences of the Split\nNothing is due.\n\n",
    "risk": "Board’s Role in Risk Oversight\nThe board reviews risks.\n\n",
    "rewards": "Risk and Executive Compensation\nBonuses reward no risk.\n\n",
    "advice": "How does the Board recommend that I vote?\nFor each proposal.\n\n",
    "vote": "How do I vote my shares?\nYou may vote by telephone until noon.\n\n",
    "nominee": "ELECTION OF DIRECTORS\nJane Doe, an engineer, joined in 2010.\n\n",
    "fees": "AUDIT FEES\nThe firm billed $2 million for the year.\n\n",
    "unknown": "CERTAIN ARRANGEMENTS\nThe chair uses the aircraft.\n\n",
    "pay": "SUMMARY COMPENSATION TABLE\nJane Doe | 2023 | $1\n\n",
    "chat": "OTHER BUSINESS\nMr. Roe, who is 61, presides.\n\n",
}


@pytest.mark.parametrize("name", PROXY)
def test_a_proxy_is_labelled_by_section(name: str) -> None:
    """PD_COMP leaves cover, contents, voting and audit fees; an unknown heading, and a person anywhere, keep it."""
    text = "".join(PROXY.values())
    filing = filing_of(text, form="DEF 14A")
    start = text.index(PROXY[name])
    word = chunk_word(label(filing), filing, filing.documents[0], PROXY[name].strip(), start)
    impersonal = {"cover", "notice", "contents", "split", "taxes", "risk", "advice", "vote", "fees"}
    assert bool(word & PolicyBit.PD_COMP) is (name not in impersonal)
    assert word & PolicyBit.PROXY_TENDER


def test_a_proxy_passage_of_unknown_place_keeps_the_filings_bits() -> None:
    """Without its offset a passage has no section."""
    filing = filing_of("".join(PROXY.values()), form="DEF 14A")
    word = chunk_word(label(filing), filing, filing.documents[0], PROXY["fees"])
    assert word & PolicyBit.PD_COMP


@pytest.mark.parametrize(
    ("pages", "head", "impersonal"),
    [
        (6, "{} FICTION COMPANY", True),
        (6, "2024 PROXY STATEMENT", True),
        (6, "JANE DOE", False),  # a heading that comes again is a heading
        (2, "{} FICTION COMPANY", False),
    ],
)
def test_what_a_page_prints_at_its_head_is_no_heading(pages: int, head: str, impersonal: bool) -> None:
    """A section continues over the page; only lines that recur with many page numbers are running heads."""
    text = "HOW TO ATTEND\n" + "".join(
        f"Bring a ticket.\n\n{head.format(page)}\n\nTickets are blue.\n" for page in range(1, pages + 1)
    )
    at = text.rindex("Tickets")
    assert is_impersonal(text, at, len(text), by_item=False) is impersonal


COVER_10K = "FORM 10-K/A\nFiction Corp.\n(Exact name of registrant)\n\n"


@pytest.mark.parametrize(
    ("text", "impersonal"),
    [
        (COVER_10K + "Item 5. Market\nShares trade.\n", True),
        (COVER_10K + "Item 5. Market\nShares trade.\nItem 11. Executive Compensation\nPay.\n", False),
        (COVER_10K, False),  # no item at all
        (COVER_10K.replace("(Exact name of registrant)", "Directors") + "Item 15. Exhibits\n", False),
        (COVER_10K + "The board met.\n" * 500 + "Item 15. Exhibits\n", False),  # no cover is so long
    ],
)
def test_an_amendment_is_about_the_items_it_sets_forth(text: str, impersonal: bool) -> None:
    """Rule 12b-15: if none of them is in Part III, the cover is not personal; an exhibit's first page may be."""
    end = len(COVER_10K) - 2
    assert is_impersonal(text, 0, end, by_item=True) is impersonal
    assert not is_impersonal(text, 0, end, by_item=True, is_exhibit=True)


def test_t6_a_part_iii_amendment_is_personal_by_item() -> None:
    """A 10-K/A without a certificate: items 10 to 13 keep PD_COMP, accountants' fees and exhibits do not."""
    parts = {
        10: "Item 10. Directors, Executive Officers and Corporate Governance\nJane Doe is an engineer.\n\n",
        11: "Item 11. Executive Compensation\nThe table follows.\n\n",
        14: "Item 14. Principal Accountant Fees and Services\nThe firm billed $1.\n\n",
        15: "Item 15. Exhibits\n31.1 Certification\n\n",
    }
    text = "AMENDMENT NO. 1\nThis adds Part III.\n\nPART III\n" + "".join(parts.values())
    filing = filing_of(text, form="10-K/A")
    said = label(filing)
    assert bit_names(said.word) == ("J_US", "PD_COMP", "PD_SPECIAL")
    found = {
        number: bool(
            chunk_word(said, filing, filing.documents[0], part, text.index(part)) & PolicyBit.PD_COMP
        )
        for number, part in parts.items()
    }
    assert found == {10: True, 11: True, 14: False, 15: False}
    assert chunk_word(said, filing, filing.documents[0], text[:30], 0) & PolicyBit.PD_COMP


@pytest.mark.parametrize(
    "line",
    ["Part II of this report", "Item 14 of this report,", "Item 405 of Regulation S-K", "Item 1.01, which"],
)
def test_a_reference_inside_part_iii_ends_nothing(line: str) -> None:
    """A sentence that wraps before "Item 14" or "Part II" leaves what follows personal; so does "part iii"."""
    text = f"Item 11. Executive Compensation\nas told in\n{line}\nthe chair was granted shares."
    at = text.index("the chair")
    assert not is_impersonal(text, at, len(text), by_item=True)
    text = "Item 9. Changes\npart iii\nthe chair was granted shares."
    assert not is_impersonal(text, text.index("the chair"), len(text), by_item=True)
