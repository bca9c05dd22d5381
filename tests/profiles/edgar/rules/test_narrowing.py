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
    """A fictional 8-K, with the parts as its passages."""
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
    """The item bits of a passage of the report, or of an exhibit by its type."""
    said = label(filing)
    for document in filing.documents[1:]:
        if document.type == text:
            return set(bit_names(chunk_word(said, filing, document, document.text, 0) & ITEM_BITS))
    document = filing.documents[0]
    start = document.text.index(text)
    return set(bit_names(chunk_word(said, filing, document, text, start) & ITEM_BITS))


RESULT = {"FS_UNAUDITED", "FURNISHED", "MATERIAL"}
WHOLE = {*RESULT, "PD_COMP"}
NOTE = "Explanatory Note\nWe dismissed our auditor, as reported before.\n\n"
PLAN = "Item 8.01 Other Events.\nThe plan is in Exhibit 99.1 to the Registration Statement on Form S-8.\n\n"
NEWS = "Item 7.01 Regulation FD Disclosure.\nThe registrant has news.\n\n"
NAMED = "Item 8.01 Other Events.\nSee the letter, filed as Exhibit 99.1.\n\n"
VAGUE = "Item 7.01 Regulation FD Disclosure.\nA press release is attached.\n\n"
CLEAR = VAGUE.replace("A press release is attached", "Slides are attached as Exhibit 99.2")
TAKING = "Item 1.01 Entry into a Material Definitive Agreement.\nItem 5.02 is incorporated by reference.\n\n"
BOTH = "Items 2.02 and 7.01. Results; Regulation FD.\nThe release is Exhibit 99.1.\n\n"
NOT_FILED = OTHER.strip() + " This shall not be deemed “filed” under Section 18.\n\n"
ALL_FURNISHED = " The information in this Current Report is being furnished.\n\n"
WRAPPED = (
    "Item 2.02 Results of Operations.\nThe loss was caused by the resignation that is told of under\n"
    "Item 5.02 of this report, and it was large.\n\n"
)
RELEASE = "Exhibit 99.1\nFiction Corp. welcomes a new colleague.\n"
LISTED = LIST + "10.1 Severance agreement with Ms. Doe\n\n"
SIGNER = SIGNED + "Ms. Doe, who was appointed President\n"
CONTENTS = "TABLE OF CONTENTS\nItem 1.01 A Loan\nItem 7.01 Regulation FD\nItem 9.01 Exhibits\nSIGNATURE\n\n"
STACKED = "Item 1.01 A Loan\nItem 7.01 Regulation FD\nA loan was made, and is told of.\n\n"
INDEX = "EXHIBIT INDEX\nExhibit No. | Description\n" + "".join(
    f"10.{number} | {'A long agreement with a long title, ' * 4}\n" for number in range(1, 9)
)
BEHIND = "The parties agree to everything.\n" * 30
OLD = ("Item 12. Results of Operations\nSales were up.\n\n", "Item 5. Other Events\nA dividend was paid.\n\n")
ONE = ("EX-99.1",)
REPORTS: dict[str, tuple[Filing, dict[str, set[str]]]] = {
    "T8: a mixed report is labelled by item": (
        report(
            COVER, DEAL, RESULTS, OFFICER, FAIR, OTHER, LIST, SIGNED,
            items=("1.01", "2.02", "5.02", "7.01", "8.01", "9.01"),
        ),
        {
            COVER: set(), DEAL: {"MATERIAL"}, RESULTS: RESULT, OFFICER: {"PD_COMP"}, FAIR: {"FURNISHED"}, OTHER: set(),
            LIST: set(), SIGNED: set(),
        },
    ),
    "T8: an exhibit belongs to the items that name it": (
        report(
            COVER, RESULTS, OFFICER, FAIR, LIST, SIGNED,
            items=("2.02", "5.02", "7.01", "9.01"), exhibits=("EX-99.1", "EX-99.2", "EX-10.1"),
        ),
        {"EX-99.1": RESULT, "EX-99.2": {"FURNISHED"}, "EX-10.1": {"PD_COMP"}},
    ),
    "a note before the first item of an 8-K/A may concern any of them, the cover none": (
        report(COVER, NOTE, DEAL, OTHER, SIGNED, items=("1.01", "8.01"), form="8-K/A"),
        {NOTE: {"MATERIAL"}, COVER: set()},
    ),
    "an exhibit that no item names keeps everything": (
        report(COVER, RESULTS, OFFICER, LIST, items=("2.02", "5.02", "9.01"), exhibits=("EX-99.7",)),
        {"EX-99.7": WHOLE},
    ),
    "an exhibit incorporated from another filing is not this report's exhibit of that number": (
        report(COVER, NEWS, PLAN, LIST, items=("7.01", "8.01", "9.01"), exhibits=ONE), {"EX-99.1": {"FURNISHED"}}
    ),
    "an attachment without a number may be any exhibit": (
        report(COVER, VAGUE, NAMED, items=("7.01", "8.01"), exhibits=ONE), {"EX-99.1": {"FURNISHED"}}
    ),
    "an attachment with a number is that exhibit only": (
        report(COVER, CLEAR, NAMED, items=("7.01", "8.01"), exhibits=ONE), {"EX-99.1": set()}
    ),
    "text that an item incorporates belongs to it": (
        report(COVER, TAKING, OFFICER, LIST, items=("1.01", "5.02", "9.01")), {OFFICER: {"PD_COMP", "MATERIAL"}}
    ),
    "a heading without text shares the next one's": (
        report(
            COVER, "Item 2.02 Results of Operations and Financial Condition.\n", FAIR, LIST,
            items=("2.02", "7.01", "9.01"),
        ),
        {FAIR: RESULT},
    ),
    "a heading of two items": (report(COVER, BOTH, LIST, items=("2.02", "7.01")), {BOTH: RESULT}),
    "a section that says it is not filed is furnished": (
        report(COVER, FAIR, NOT_FILED, items=("7.01", "8.01")), {NOT_FILED: {"FURNISHED"}}
    ),
    "a report that says so of itself is furnished": (
        report(COVER, FAIR.strip() + ALL_FURNISHED, OTHER, items=("7.01", "8.01")), {OTHER: {"FURNISHED"}}
    ),
    "a report cannot furnish what must be filed (General Instruction B.2)": (
        report(COVER, RESULTS.strip() + ALL_FURNISHED, OFFICER, OTHER, LIST, items=("2.02", "5.02", "8.01", "9.01")),
        {OFFICER: {"PD_COMP"}, OTHER: {"FURNISHED"}},
    ),
    "an item that sets a bit has no heading": (
        report(COVER, RESULTS.replace("Item 2.02", "Results:"), OFFICER, LIST, items=("2.02", "5.02", "9.01")),
        {OFFICER: WHOLE},
    ),
    "an item that sets a bit is only referred to": (
        report(
            COVER, RESULTS.replace("Item 2.02 Results", "as told under\nItem 2.02 of this report, results"), OFFICER,
            LIST, items=("2.02", "5.02", "9.01"),
        ),
        {OFFICER: WHOLE},
    ),
    "a sentence that wraps before an item is not a heading": (
        report(COVER, WRAPPED, OFFICER, items=("2.02", "5.02")), {"and it was large.": RESULT}
    ),
    "an unreadable item may be any": (report(COVER, RESULTS, OTHER, items=("2.02", "8.01", "99.1")), {OTHER: WHOLE}),
    "an exhibit in the same text keeps everything, however near to the signature": (
        report(COVER, RESULTS, OTHER, SIGNED, RELEASE, items=("2.02", "8.01")), {"Fiction Corp.": RESULT, SIGNED: set()}
    ),
    "neither a list of exhibits nor signatures tell of an officer": (
        report(COVER, OFFICER, LISTED, SIGNER, items=("5.02", "9.01")), {LISTED: set(), SIGNER: set()}
    ),
    "a table of contents is not a list of items": (
        report(COVER, CONTENTS, DEAL, FAIR, LIST, SIGNED, items=("1.01", "7.01", "9.01")),
        {DEAL: {"MATERIAL"}, FAIR: {"FURNISHED"}, CONTENTS: set()},
    ),
    "stacked headings are not a table of contents": (
        report(COVER, STACKED, items=("1.01", "7.01")), {STACKED: {"MATERIAL", "FURNISHED"}}
    ),
    "an exhibit index after the signature reports nothing, what follows it may": (
        report(COVER, DEAL, OTHER, SIGNED, INDEX, BEHIND, items=("1.01", "8.01")),
        {INDEX[:200]: set(), INDEX[-150:]: set(), BEHIND: {"MATERIAL"}},
    ),
    "items of the numbering before August 2004": (
        report(COVER, *OLD, items=("2.02", "8.01"), filed=date(2004, 3, 1)), {OLD[0]: RESULT, OLD[1]: set()}
    ),
    "a passage across two items has the bits of both": (
        report(COVER, RESULTS, OFFICER, items=("2.02", "5.02")), {RESULTS + OFFICER: WHOLE}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("filing", "wanted"), REPORTS.values(), ids=REPORTS)
def test_a_passage_keeps_the_bits_of_its_items(filing: Filing, wanted: dict[str, set[str]]) -> None:
    """Of its item or exhibit where the report shows it, of the whole report where it does not."""
    assert {text: kept(filing, text) for text in wanted} == wanted


def test_text_behind_the_signature_page_keeps_everything() -> None:
    """A copy that holds its exhibits in one text: the release after the signatures is still furnished."""
    release = "Revenue rose by a tenth in the quarter.\n" * 200
    filing = report(COVER, RESULTS, OTHER, SIGNED, release, items=("2.02", "8.01"))
    text = filing.documents[0].text
    at = len(text) - 400
    word = chunk_word(label(filing), filing, filing.documents[0], text[at : at + 300], at)
    assert set(bit_names(word & ITEM_BITS)) == RESULT
    assert (
        chunk_word(label(filing), filing, filing.documents[0], SIGNED) == label(filing).word
    )  # its place is unknown


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
    """Adversarial repetition is read in linear time: 40 kB within seconds."""
    text = COVER + RESULTS + unit * (40_000 // len(unit))
    began = time.process_time()
    item_spans(text, ("2.02", "5.02"), None)
    exhibit_items(text, ("2.02",), None, "EX-99.1")
    is_impersonal(text, 30_000, 30_100, by_item=False)
    is_impersonal(text, 30_000, 30_100, by_item=True)
    assert time.process_time() - began < 20  # a regular expression that backtracks takes hours


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
    """A passage has no bit that its filing lacks, and loses only bits that belong to passages."""
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
    """Of passages of real reports with an item's bit, at least one in four loses a bit of its neighbours."""
    concerned = [(whole, word) for _, _, whole, _, word in real_words if whole & ITEM_BITS]
    assert sum(whole != word for whole, word in concerned) > len(concerned) / 4
