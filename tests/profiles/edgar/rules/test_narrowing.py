"""Words belong to passages: a mixed 8-K by item and exhibit, a proxy by section, and never more than the filing."""

from __future__ import annotations

import time
from datetime import date
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.labelling.chunking import chunk
from carag.policy import PolicyBit, bit_names, bits_of
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.form_8k_sections import exhibit_items, item_spans, items_between
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.personal_sections import is_impersonal

if TYPE_CHECKING:
    from pathlib import Path

COVER = "FORM 8-K\nCURRENT REPORT\n(Exact name of registrant as specified in its charter)\n\n"
RESULTS = (
    "Item 2.02 Results of Operations and Financial Condition.\nA release is furnished as Exhibit 99.1.\n\n"
)
OFFICER = "Item 5.02 Departure of Directors or Certain Officers.\nMs. Doe has resigned; see Exhibit 10.1.\n\n"
FAIR = "Item 7.01 Regulation FD Disclosure.\nSlides are attached as Exhibit 99.2.\n\n"
DEAL = "Item 1.01 Entry into a Material Definitive Agreement.\nA loan was made.\n\n"
OTHER = "Item 8.01 Other Events.\nA dividend was declared.\n\n"
LIST = "Item 9.01 Financial Statements and Exhibits.\n99.1 Release\n\n"
SIGNED = "SIGNATURES\nPursuant to the requirements of the Securities Exchange Act of 1934 ... Jane Doe\n"
ITEM_BITS = bits_of(["FURNISHED", "FS_UNAUDITED", "PD_COMP", "MATERIAL"])


def report(
    *parts: str,
    items: tuple[str, ...],
    form: str = "8-K",
    exhibits: tuple[str, ...] = (),
    filed: date | None = None,
) -> Filing:
    """An 8-K of our own making, its passages the parts given."""
    documents = [
        FilingDocument(form, "".join(parts)),
        *(FilingDocument(kind, f"Text of {kind}") for kind in exhibits),
    ]
    return Filing(
        accession_number="a",
        form=form,
        filed=filed or date(2024, 5, 9),
        business_codes=("NY",),
        items=items,
        documents=tuple(documents),
    )


def kept(filing: Filing, text: str) -> set[str]:
    """The item bits of the passage of the report that reads so, or of an exhibit of that type."""
    said = label(filing)
    for document in filing.documents[1:]:
        if document.type == text:
            return set(bit_names(chunk_word(said, filing, document, document.text, 0) & ITEM_BITS))
    document = filing.documents[0]
    start = document.text.index(text)
    return set(bit_names(chunk_word(said, filing, document, text, start) & ITEM_BITS))


def test_a_note_before_the_first_item_may_tell_any_of_them() -> None:
    """An 8-K/A explains itself before it begins: that note keeps every bit, the cover above it none."""
    note = "Explanatory Note\nWe dismissed our auditor, as reported before.\n\n"
    filing = report(COVER, note, DEAL, OTHER, SIGNED, items=("1.01", "8.01"), form="8-K/A")
    assert kept(filing, note) == {"MATERIAL"}
    assert kept(filing, COVER) == set()


def test_t8_a_mixed_report_is_labelled_by_item() -> None:
    """Results and slides are furnished, the officer is personal, the loan is material; neighbours do not matter."""
    parts = (COVER, DEAL, RESULTS, OFFICER, FAIR, OTHER, LIST, SIGNED)
    filing = report(*parts, items=("1.01", "2.02", "5.02", "7.01", "8.01", "9.01"))
    assert set(bit_names(label(filing).word & ITEM_BITS)) == {
        "FURNISHED",
        "FS_UNAUDITED",
        "PD_COMP",
        "MATERIAL",
    }
    assert [kept(filing, part) for part in parts] == [
        set(),
        {"MATERIAL"},
        {"FS_UNAUDITED", "FURNISHED", "MATERIAL"},
        {"PD_COMP"},
        {"FURNISHED"},
        set(),
        set(),
        set(),
    ]


def test_t8_an_exhibit_belongs_to_the_items_that_name_it() -> None:
    """The release to 2.02, the slides to 7.01, the severance agreement to 5.02."""
    filing = report(
        COVER, RESULTS, OFFICER, FAIR, LIST, SIGNED,
        items=("2.02", "5.02", "7.01", "9.01"), exhibits=("EX-99.1", "EX-99.2", "EX-10.1"),
    )  # fmt: skip
    assert kept(filing, "EX-99.1") == {"FS_UNAUDITED", "FURNISHED", "MATERIAL"}
    assert kept(filing, "EX-99.2") == {"FURNISHED"}
    assert kept(filing, "EX-10.1") == {"PD_COMP"}


def test_an_exhibit_no_item_names_keeps_everything() -> None:
    """No tie is no proof."""
    filing = report(COVER, RESULTS, OFFICER, LIST, items=("2.02", "5.02", "9.01"), exhibits=("EX-99.7",))
    assert kept(filing, "EX-99.7") == {"FS_UNAUDITED", "FURNISHED", "MATERIAL", "PD_COMP"}


def test_an_exhibit_of_another_filing_ties_nothing() -> None:
    """A plan incorporated from a registration statement is not this report's exhibit of that number."""
    plan = (
        "Item 8.01 Other Events.\nThe plan is in Exhibit 99.1 to the Registration Statement on Form S-8.\n\n"
    )
    release = "Item 7.01 Regulation FD Disclosure.\nThe registrant has news.\n\n"
    filing = report(COVER, release, plan, LIST, items=("7.01", "8.01", "9.01"), exhibits=("EX-99.1",))
    assert kept(filing, "EX-99.1") == {"FURNISHED"}


def test_an_attachment_without_a_number_may_be_any() -> None:
    """7.01 attaches "a press release": the exhibit that 8.01 names may be it."""
    named = "Item 8.01 Other Events.\nSee the letter, filed as Exhibit 99.1.\n\n"
    vague = "Item 7.01 Regulation FD Disclosure.\nA press release is attached.\n\n"
    assert kept(report(COVER, vague, named, items=("7.01", "8.01"), exhibits=("EX-99.1",)), "EX-99.1") == {
        "FURNISHED"
    }
    clear = vague.replace("A press release is attached", "Slides are attached as Exhibit 99.2")
    assert (
        kept(report(COVER, clear, named, items=("7.01", "8.01"), exhibits=("EX-99.1",)), "EX-99.1") == set()
    )


def test_what_an_item_incorporates_is_its_own() -> None:
    """The officer's section is material where 1.01 takes it in."""
    taking = (
        "Item 1.01 Entry into a Material Definitive Agreement.\nItem 5.02 is incorporated by reference.\n\n"
    )
    filing = report(COVER, taking, OFFICER, LIST, items=("1.01", "5.02", "9.01"))
    assert kept(filing, OFFICER) == {"PD_COMP", "MATERIAL"}


def test_a_heading_with_nothing_under_it_shares_the_next() -> None:
    """2.02 and 7.01 stacked over one text."""
    stacked = "Item 2.02 Results of Operations and Financial Condition.\n"
    filing = report(COVER, stacked, FAIR, LIST, items=("2.02", "7.01", "9.01"))
    assert kept(filing, FAIR) == {"FS_UNAUDITED", "FURNISHED", "MATERIAL"}
    both = "Items 2.02 and 7.01. Results; Regulation FD.\nThe release is Exhibit 99.1.\n\n"
    assert kept(report(COVER, both, LIST, items=("2.02", "7.01")), both) == {
        "FS_UNAUDITED",
        "FURNISHED",
        "MATERIAL",
    }


def test_a_section_that_says_it_is_not_filed_is_furnished() -> None:
    """8.01 beside 7.01, furnished by its own words; and a report that says so of all of itself."""
    says = OTHER.strip() + " This shall not be deemed “filed” under Section 18.\n\n"
    assert kept(report(COVER, FAIR, says, items=("7.01", "8.01")), says) == {"FURNISHED"}
    whole = FAIR.strip() + " The information in this Current Report is being furnished.\n\n"
    assert kept(report(COVER, whole, OTHER, items=("7.01", "8.01")), OTHER) == {"FURNISHED"}


@pytest.mark.parametrize(
    "broken",
    [
        RESULTS.replace("Item 2.02", "Results:"),  # no heading
        RESULTS.replace(
            "Item 2.02 Results", "as told under\nItem 2.02 of this report, results"
        ),  # a reference
    ],
)
def test_a_report_whose_telling_item_has_no_heading_is_left_whole(broken: str) -> None:
    """Where the furnished part is cannot be told, so all of it may be."""
    filing = report(COVER, broken, OFFICER, LIST, items=("2.02", "5.02", "9.01"))
    assert kept(filing, OFFICER) == {"FS_UNAUDITED", "FURNISHED", "MATERIAL", "PD_COMP"}


def test_a_sentence_that_wraps_before_an_item_is_no_heading() -> None:
    """The rest of 2.02 stays furnished."""
    wrapped = (
        "Item 2.02 Results of Operations.\nThe loss was caused by the resignation that is told of under\n"
        "Item 5.02 Departure of this report, and it was large.\n\n"
    )
    filing = report(COVER, wrapped.replace("Departure of", "of"), OFFICER, items=("2.02", "5.02"))
    assert kept(filing, "and it was large.") == {"FS_UNAUDITED", "FURNISHED", "MATERIAL"}


def test_unreadable_items_leave_a_report_whole() -> None:
    """An item that Form 8-K does not have may be any."""
    filing = report(COVER, RESULTS, OTHER, items=("2.02", "8.01", "99.1"))
    assert kept(filing, OTHER) == {"FS_UNAUDITED", "FURNISHED", "MATERIAL", "PD_COMP"}


def test_text_behind_the_signature_page_keeps_everything() -> None:
    """A copy that holds its exhibits in one text: the release behind the signatures is still furnished."""
    release = "Revenue rose by a tenth in the quarter.\n" * 200
    filing = report(COVER, RESULTS, OTHER, SIGNED, release, items=("2.02", "8.01"))
    at = len(filing.documents[0].text) - 400
    said = label(filing)
    word = chunk_word(said, filing, filing.documents[0], filing.documents[0].text[at : at + 300], at)
    assert set(bit_names(word & ITEM_BITS)) == {"FS_UNAUDITED", "FURNISHED", "MATERIAL"}


def test_an_exhibit_in_the_same_text_as_the_report_keeps_everything() -> None:
    """However near to the signature it begins."""
    release = "Exhibit 99.1\nFiction Corp. welcomes a new colleague.\n"
    filing = report(COVER, RESULTS, OTHER, SIGNED, release, items=("2.02", "8.01"))
    assert kept(filing, "Fiction Corp.") == {"FS_UNAUDITED", "FURNISHED", "MATERIAL"}
    assert kept(filing, SIGNED) == set()


@pytest.mark.parametrize(
    ("told", "personal"),
    [
        ("A release announcing Mr. Roe's appointment is attached.", True),
        ("Jane Roe resigned as President.", True),
        ("The election to its Board of Directors of Jane Roe was announced.", True),
        ("The stockholders ratified the appointment of the accounting firm.", False),
        ("A dividend was declared.", False),
    ],
)
def test_what_tells_of_an_officer_stays_personal_under_any_item(told: str, personal: bool) -> None:
    """5.02 reports a change, and 8.01 or 7.01 attaches its announcement."""
    other = f"Item 8.01 Other Events.\n{told}\n\n"
    filing = report(COVER, OFFICER, other, LIST, items=("5.02", "8.01", "9.01"))
    assert ("PD_COMP" in kept(filing, other)) is personal


def test_a_list_of_exhibits_tells_of_nobody() -> None:
    """Nor do the signatures, though officers sign."""
    listed = LIST + "10.1 Severance agreement with Ms. Doe\n\n"
    signed = SIGNED + "Ms. Doe, who was appointed President\n"
    filing = report(COVER, OFFICER, listed, signed, items=("5.02", "9.01"))
    assert kept(filing, listed) == kept(filing, signed) == set()


def test_a_list_of_contents_is_no_list_of_items() -> None:
    """Its headings have nothing under them and come again: 7.01 in the list furnishes nothing of 1.01 behind it."""
    listed = "TABLE OF CONTENTS\nItem 1.01 A Loan\nItem 7.01 Regulation FD\nItem 9.01 Exhibits\nSIGNATURE\n\n"
    filing = report(COVER, listed, DEAL, FAIR, LIST, SIGNED, items=("1.01", "7.01", "9.01"))
    assert kept(filing, DEAL) == {"MATERIAL"}
    assert kept(filing, FAIR) == {"FURNISHED"}
    assert kept(filing, listed) == set()
    stacked = "Item 1.01 A Loan\nItem 7.01 Regulation FD\nA loan was made, and is told of.\n\n"
    assert kept(report(COVER, stacked, items=("1.01", "7.01")), stacked) == {"MATERIAL", "FURNISHED"}


def test_a_report_cannot_furnish_what_must_be_filed() -> None:
    """General Instruction B.2 is of 2.02 and 7.01 alone, whatever the report says of itself."""
    whole = RESULTS.strip() + " The information in this report is being furnished.\n\n"
    filing = report(COVER, whole, OFFICER, OTHER, LIST, items=("2.02", "5.02", "8.01", "9.01"))
    assert kept(filing, OFFICER) == {"PD_COMP"}
    assert kept(filing, OTHER) == {"FURNISHED"}


INDEX = "EXHIBIT INDEX\nExhibit No. | Description\n" + "".join(
    f"10.{number} | {'A long agreement with a long title, ' * 4}\n" for number in range(1, 9)
)


def test_an_exhibit_index_behind_the_signature_tells_of_nothing() -> None:
    """However long it is; what comes behind it may be an exhibit."""
    filing = report(COVER, DEAL, OTHER, SIGNED, INDEX, items=("1.01", "8.01"))
    assert kept(filing, INDEX[:200]) == kept(filing, INDEX[-150:]) == set()
    behind = "The parties agree to everything.\n" * 30
    filing = report(COVER, DEAL, OTHER, SIGNED, INDEX, behind, items=("1.01", "8.01"))
    assert kept(filing, behind) == {"MATERIAL"}


def test_items_of_the_old_numbering() -> None:
    """Before August 2004: item 9 is Regulation FD, item 5 other events, item 12 results."""
    old = (
        "Item 12. Results of Operations\nSales were up.\n\n",
        "Item 5. Other Events\nA dividend was paid.\n\n",
    )
    filing = report(COVER, *old, items=("2.02", "8.01"), filed=date(2004, 3, 1))
    assert [kept(filing, part) for part in old] == [{"FS_UNAUDITED", "FURNISHED", "MATERIAL"}, set()]


def test_a_passage_across_two_items_has_the_bits_of_both() -> None:
    """Over-blocked by its own other half, never under-blocked."""
    filing = report(COVER, RESULTS, OFFICER, items=("2.02", "5.02"))
    assert kept(filing, RESULTS + OFFICER) == {"FS_UNAUDITED", "FURNISHED", "MATERIAL", "PD_COMP"}


# --- annual reports and proxies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "audited"),
    [
        ("EX-10.1", False),
        ("EX-21", False),
        ("EX-32.(1)", False),
        ("EX-13", True),
        ("EX-99.1", True),
        ("EX-27", True),
    ],
)
def test_a_contract_is_not_an_audited_statement(kind: str, audited: bool) -> None:
    """Of an annual report's exhibits, those that are or may carry statements keep FS_AUDITED."""
    filing = report("Item 8. Financial Statements", items=(), form="10-K", exhibits=(kind,))
    exhibit = filing.documents[1]
    assert bool(chunk_word(label(filing), filing, exhibit, exhibit.text, 0) & PolicyBit.FS_AUDITED) is audited
    assert chunk_word(label(filing), filing, filing.documents[0], "Item 8", 0) & PolicyBit.FS_AUDITED


@pytest.mark.parametrize(
    "unit",
    [
        "Item 5.02 ",
        "Item 5.02\n",
        "incorporated ",
        "Exhibit 99.1, ",
        "item 1, ",
        "SIGNATURE\n",
        "Who votes?\n",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """Adversarial repetition is read in linear time: 100 kB within seconds."""
    text = COVER + RESULTS + unit * (100_000 // len(unit))
    began = time.process_time()
    item_spans(text, ("2.02", "5.02"), None)
    exhibit_items(text, ("2.02",), None, "EX-99.1")
    is_impersonal(text, 80_000, 80_100, by_item=False)
    is_impersonal(text, 80_000, 80_100, by_item=True)
    assert time.process_time() - began < 60  # a regular expression that backtracks takes hours


# --- laws -------------------------------------------------------------------------------------------------

LINES = st.sampled_from(
    [COVER, RESULTS, OFFICER, FAIR, DEAL, OTHER, LIST, SIGNED, "text\n", "\n", "Item 5.02 of\n"]
)
ITEMS = st.lists(
    st.sampled_from(["1.01", "2.02", "5.02", "7.01", "8.01", "9.01", "x"]), max_size=5, unique=True
)


@given(
    st.lists(LINES, max_size=8),
    ITEMS,
    st.sampled_from(["8-K", "DEF 14A", "10-K/A", "10-Q", "10-K"]),
    st.integers(0, 999),
    st.integers(1, 500),
)
def test_narrowing_never_adds(parts: list[str], items: list[str], form: str, start: int, length: int) -> None:
    """A passage has no bit its filing lacks, and loses none but those that belong to passages."""
    filing = report(*parts, items=tuple(items), form=form, exhibits=("EX-99.1", "EX-10"))
    said = label(filing)
    loosable = ITEM_BITS | bits_of(["PD_SPECIAL", "FS_AUDITED"])
    for document in filing.documents:
        word = chunk_word(said, filing, document, document.text[start : start + length], start)
        assert word & ~said.word == 0
        assert word | loosable == said.word | loosable


@given(
    st.lists(LINES, min_size=1, max_size=8),
    ITEMS,
    st.integers(0, 500),
    st.integers(1, 300),
    st.integers(1, 300),
)
def test_a_longer_passage_keeps_what_its_parts_keep(
    parts: list[str], items: list[str], start: int, length: int, more: int
) -> None:
    """Of an 8-K: growing a passage opens nothing."""
    spans = item_spans("".join(parts), tuple(items), None)
    small, large = (items_between(spans, start, start + size) for size in (length, length + more))
    assert large is None or (small is not None and small <= large)


def test_spans_begin_at_the_beginning() -> None:
    """Every character has a span, whatever the text."""
    for text in ("", "Item 2.02", COVER + RESULTS, "x" + RESULTS):
        spans = item_spans(text, ("2.02",), None)
        assert spans[0].start == 0
        assert sorted(spans, key=lambda span: span.start) == list(spans)
    assert exhibit_items("", ("2.02",), None, "EX-99") is None
    assert not is_impersonal("", 0, 1, by_item=True)


@pytest.fixture(scope="module")
def real_words(shared_data: Path) -> list[tuple[str, tuple[str, ...], int, str, int]]:
    """Form, items, word, passage and its word, of every real passage whose filing has an item's bit."""
    found = []
    for outcome in read_filings(shared_data / "edgar"):
        filing = outcome.filing
        if filing is None or filing.base_form != "8-K":
            continue
        said = label(filing)
        for document in filing.documents[:1]:
            for piece in chunk(document.text):
                word = chunk_word(said, filing, document, piece.text, piece.start)
                found.append((filing.base_form, filing.items, said.word, piece.text, word))
    return found


def test_real_results_stay_furnished(real_words: list[tuple[str, tuple[str, ...], int, str, int]]) -> None:
    """A passage that begins with the heading of 2.02 or 7.01 is furnished, of 5.02 personal: none is opened."""
    wanted = {"2.02": PolicyBit.FURNISHED, "7.01": PolicyBit.FURNISHED, "5.02": PolicyBit.PD_COMP}
    seen = 0
    for _, _, whole, text, word in real_words:
        for number, bit in wanted.items():
            if text.lower().startswith(f"item {number}") and whole & bit:
                seen += 1
                assert word & bit, text[:80]
    assert seen > 1000


def test_real_mixed_reports_are_narrowed(
    real_words: list[tuple[str, tuple[str, ...], int, str, int]],
) -> None:
    """At least one passage in four of reports with an item's bit loses one that is its neighbour's."""
    concerned = [(whole, word) for _, _, whole, _, word in real_words if whole & ITEM_BITS]
    assert sum(whole != word for whole, word in concerned) > len(concerned) / 4
