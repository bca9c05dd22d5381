"""Laws and special cases of splitting documents into passages."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.labelling.chunking import Boundary, Chunk, boundaries, chunk

if TYPE_CHECKING:
    from pathlib import Path

FRAGMENTS = [
    "Item 7. Management’s Discussion\n",
    "PART II\n\n",
    "Liquidity and Capital Resources\n",
    "NOTES TO THE ACCOUNTS\n",
    "The Company paid $4.5 million to Smith & Co. in the U.S. ",
    "Sales rose. ",
    "(a) the lender; and\n(b) the borrower.\n",
    "Net sales | 1,204 | 998\n",
    "\n\n",
    "\r\n",
    "\t",
    " ",
    "\u00a0",
    "\u2028",
    "page 12\n",
    "4.\n\n",
    "• ",
    "漢字が続く。",
    "👩\u200d👩\u200d👧",
    "e\u0301",
    "\0",
    "\ud83d",
    "\ude00",
    "7" * 40,
    "x" * 97,
]
DOCUMENTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=30), max_size=60).map("".join)


def solid(text: str) -> str:
    return "".join(text.split())


def joined(chunks: list[Chunk]) -> str:
    return "".join(solid(c.text) for c in chunks)


def starts(text: str, *, target: int, limit: int) -> list[str]:
    return [c.text.split("\n")[0] for c in chunk(text, target=target, limit=limit)]


# --- laws ---


@given(DOCUMENTS, st.integers(1, 120), st.integers(0, 80))
def test_chunks_partition_the_document(text: str, target: int, slack: int) -> None:
    """Offsets are exact, in order, disjoint, trimmed and within the limit; no character is lost or repeated."""
    chunks = chunk(text, target=target, limit=target + slack)
    assert [c.text for c in chunks] == [text[c.start : c.end] for c in chunks]
    assert all(0 < len(c.text) <= target + slack and c.text == c.text.strip() for c in chunks)
    assert all(left.end <= right.start for left, right in pairwise(chunks))
    assert solid(text) == joined(chunks)


@given(DOCUMENTS, st.integers(2, 120), st.integers(0, 80))
def test_no_better_boundary_is_passed_over(text: str, target: int, slack: int) -> None:
    """Within reach of every split there is no stronger boundary, nor one of its kind nearer to the target."""
    chunks = chunk(text, target=target, limit=target + slack)
    marks = list(boundaries(text))
    end = len(text.rstrip())
    for piece, following in pairwise(chunks):
        low = piece.start + target // 2
        high = min(piece.start + target + slack, end - target // 2)
        reach = [(kind, abs(at - piece.start - target)) for at, kind in marks if low <= at <= high]
        if reach:
            kinds = [kind for at, kind in marks if at == following.start]
            assert min(reach) in [(kind, abs(following.start - piece.start - target)) for kind in kinds]


@given(DOCUMENTS)
def test_boundaries_come_in_order_and_start_something(text: str) -> None:
    """Boundaries ascend, and each is the start of a non-whitespace character with text before it."""
    at = [position for position, _ in boundaries(text)]
    assert at == sorted(at)
    assert all(text[:position].strip() and not text[position].isspace() for position in at)


@given(st.lists(st.sampled_from(["alpha", "beta.", "Gamma"]), min_size=1, max_size=400))
def test_lengths_stay_near_the_target(words: list[str]) -> None:
    """Where every space is a boundary, no chunk of a long document is shorter than half the target."""
    chunks = chunk(" ".join(words), target=100, limit=150)
    if len(chunks) > 1:
        assert min(len(c.text) for c in chunks) >= 49


# --- where cuts fall ---


def test_an_item_outranks_a_nearer_paragraph() -> None:
    """Section headings win over blank lines, wherever they lie in reach."""
    text = "Rates fell last year. " * 3 + "\nItem 2. Properties\nWe own a mill.\n\n" + "It is old. " * 9
    assert starts(text, target=100, limit=150)[1] == "Item 2. Properties"


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("It ended.", "Item 1A. Risk Factors\nWe", Boundary.SECTION),
        ("It ended.", "NOTE 15-STOCK PLANS\nWe", Boundary.SECTION),
        ("It ended.", "Critical Accounting Estimates\nWe", Boundary.TITLE),
        ("It ended.\n", "We began.", Boundary.PARAGRAPH),
        ("The parties are:", "(iv) the lender", Boundary.CLAUSE),
        ("It ended.", "2. We note your answer", Boundary.CLAUSE),
        ("It ended.", "We began to sell.", Boundary.SENTENCE),
        ("Net sales  1,204", "Net loss  (98)", Boundary.ROW),
        ("Item 2. Properties", "We own a mill.", Boundary.DETACHED),
        ("7.", "We note your answer.", Boundary.DETACHED),
        ("as the report said, and as we describe in", "Item 7 of the report.", Boundary.ROW),
        ("and for the year that ended on December", "31. We began to sell.", Boundary.ROW),
        ("It ended.", "There\nare no others.", Boundary.SENTENCE),
    ],
)
def test_kind_of_a_line_end(before: str, after: str, kind: Boundary) -> None:
    """A line end is as strong as the parts it separates; references and broken lines are not headings."""
    text = f"{before}\n{after}"
    assert dict(reversed(list(boundaries(text))))[text.index(after)] == kind


@pytest.mark.parametrize(
    "text",
    [
        "see No. 5 of",
        "by J. Smith and",
        "e.g. Ohio is",
        "with Mr. Hale",
        "Acme Corp. Sold",
        "up 4.5 percent",
        "at 12 p.m. Eastern",
        "Item 7A. Risk",
        "on Sept. 3 we",
        "Smith v. Jones",
    ],
)
def test_abbreviations_do_not_end_a_sentence(text: str) -> None:
    """The full stop of an abbreviation, an initial or a number does not end a sentence."""
    assert list(boundaries(f"We paid, {text} again")) == []


def test_a_sentence_ends_before_its_quotes_do() -> None:
    """Closing quotes and brackets stay with their sentence."""
    text = "It said “Never.” (It did.) Then it paid."
    assert [text[at:] for at, _ in boundaries(text)] == ["(It did.) Then it paid.", "Then it paid."]


def test_a_page_break_does_not_end_a_sentence() -> None:
    """Page numbers and running heads are skipped."""
    text = "The facilities are\n\n20\n\nTable of Contents\n\nnot sufficient."
    assert {Boundary.ROW} == {kind for _, kind in boundaries(text)}


def test_a_heading_stays_with_its_text() -> None:
    """A heading just short of the target begins the next chunk rather than ending this one."""
    text = "Sales rose again. " * 5 + "\n\nLiquidity and Capital Resources\n\n" + "Cash fell again. " * 8
    first, second, *_ = chunk(text, target=100, limit=150)
    assert first.text.endswith("again.")
    assert second.text.startswith("Liquidity and Capital Resources\n\nCash")


def test_a_clause_marker_stays_with_its_clause() -> None:
    """``3.`` alone on a line, as extracted from PDF, heads the paragraph below."""
    text = "\n\n".join(f"{n}.\n\nPlease revise your disclosure on page {n}." for n in range(1, 9))
    assert all(c.text[0].isdigit() for c in chunk(text, target=60, limit=90))


def test_a_table_is_cut_between_rows() -> None:
    """No row of figures is split."""
    rows = [f"Segment {n} | 1,20{n} | (9{n})" for n in range(60)]
    assert rows == [row for c in chunk("\n".join(rows), target=200, limit=300) for row in c.text.split("\n")]


# --- odd text ---


@pytest.mark.parametrize(
    "text",
    [
        "7" * 20_000,
        "word " * 9_000,
        "漢" * 20_000,
        "\0" * 20_000,
        "👩\u200d" * 9_000,
        "e" + "\u0301" * 20_000,
        ".'" * 9_000,
        "\ud83d\ude00" * 9_000,
        "a" + " \n" * 20_000 + "b",
        "Item 1\n" * 5_000,
        "; (" * 9_000,
        "A b\n\n" * 5_000,
    ],
)
def test_text_without_structure_is_still_cut_whole(text: str) -> None:
    """Long runs of anything are split within the limit, and nothing is lost."""
    chunks = chunk(text)
    assert solid(text) == joined(chunks)
    assert max(len(c.text) for c in chunks) <= 1500


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\u00a0\u2028", "\r\n" * 3000])
def test_whitespace_has_no_chunks(text: str) -> None:
    """There is nothing to store."""
    assert chunk(text) == []


@pytest.mark.parametrize("unit", ["e\u0301", "\ud83d\ude00", "👍\U0001f3fd", "👩\u200d👧\u200d👦"])
def test_a_hard_cut_leaves_characters_whole(unit: str) -> None:
    """Accents, surrogate pairs, skin tones and joined emoji are not split."""
    assert all(len(c.text) % len(unit) == 0 for c in chunk(unit * 300, target=101, limit=150))


@pytest.mark.parametrize(("target", "limit"), [(0, 10), (-5, 10), (11, 10)])
def test_impossible_sizes_are_refused(target: int, limit: int) -> None:
    """A limit below the target, or a target below one, is an error."""
    with pytest.raises(InvalidArgument, match="1 <= target <= limit"):
        chunk("text", target=target, limit=limit)


# --- real filings ---


def test_real_filings_are_cut_near_the_target(shared_data: Path) -> None:
    """Over real filings the mean length is within 5 % of the target, and spaces are the last resort."""
    sizes: list[int] = []
    weak = 0
    with gzip.open(shared_data / "edgar" / "filings-04.jsonl.gz", "rt", encoding="utf-8") as lines:
        for text in (json.loads(line)["text"] for line in lines):
            chunks = chunk(text)
            assert solid(text) == joined(chunks)
            known = {at for at, _ in boundaries(text)}
            weak += sum(c.start not in known for c in chunks[1:])
            sizes += [len(c.text) for c in chunks] if len(chunks) > 2 else []
    assert abs(sum(sizes) / len(sizes) - 1000) < 50
    assert weak < len(sizes) / 200
