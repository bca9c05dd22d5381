"""Laws and special cases of splitting rules at their clauses."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.labelling.chunking import chunk
from carag.labelling.clause_path import Path, between
from carag.labelling.clauses import ClauseChunk, chunk_by_clauses
from tests.labelling.linear import assert_linear
from tests.sizes import SIZE

LINE = 2_000 if SIZE == "quick" else 10_000  # characters

FRAGMENTS = [
    "CHAPTER III\n",
    "Annex II\n\n",
    "ANNEX\n",
    "Part A – Scope\n",
    "Article 5\n",
    "Applicability\n",
    "1. A bank shall keep records.\n",
    "2. It shall keep them for eight years.\n",
    "2.1 They shall be complete.\n",
    "2.2 They shall be true:\n",
    "B.5.2. Deferred payment\n",
    "4A. Inserted.\n",
    "(a) the lender; and\n",
    "(b) the borrower.\n",
    "(h) eight;\n(i) nine;\n(j) ten.\n",
    "(i) first;\n(ii) second.\n",
    "i.\n\n",
    "A. General\n",
    "• a bullet\n",
    "Provided that the bank reports it.\n",
    "Explanation: A record is a document.\n",
    "Item | Limit\n",
    "Gold | 5\n",
    "as required by paragraph\n",
    "The amount shall be at least Rs.\n",
    "2.5 crore for any\n",
    "\n\n",
    "\f",
    "3\n",
    " ",
    "\t",
    "\u2028",
    "漢字が続く。",
    "e\u0301",
    "\0",
    "\ud83d",
    "x" * 97,
    "(a)",
    "1.",
]
DOCUMENTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=30), max_size=60).map("".join)


def parts(text: str, target: int = 1, limit: int = 60) -> list[str]:
    return [one.part for one in chunk_by_clauses(text, target=target, limit=limit)]


def whole(text: str, *, target: int, limit: int, most: int | None = None) -> list[str]:
    return [one.text for one in chunk_by_clauses(text, target=target, limit=limit, whole=most)]


# --- laws ---


@given(DOCUMENTS, st.integers(1, 120), st.integers(0, 80), st.integers(0, 100), st.integers(0, 119))
def test_chunks_are_verbatim_in_order_within_the_limit_and_lose_no_character(
    text: str, target: int, slack: int, more: int, overlap: int
) -> None:
    overlap, most = min(overlap, target - 1), target + slack + more

    def cut() -> list[ClauseChunk]:
        return chunk_by_clauses(text, target=target, limit=target + slack, whole=most, overlap=overlap)

    chunks = cut()
    assert [one.text for one in chunks] == [text[one.start : one.end] for one in chunks]
    assert all(0 < len(one.text) <= most and one.text == one.text.strip() for one in chunks)
    assert all(left.start < right.start and left.end < right.end for left, right in pairwise(chunks))
    assert all(left.end - right.start <= overlap for left, right in pairwise(chunks))
    held = {at for one in chunks for at in range(one.start, one.end)}
    assert {at for at, character in enumerate(text) if not character.isspace()} <= held
    assert chunks == cut()


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=30),
    st.integers(1, 150),
    st.integers(0, 80),
    st.integers(0, 100),
)
def test_a_clause_is_whole_if_and_only_if_it_fits_its_own_limit(
    lengths: list[int], target: int, slack: int, more: int
) -> None:
    clauses = [f"{number}. {'Word ' * (length // 5)}Ends." for number, length in enumerate(lengths, start=1)]
    limit, most = target + slack, target + slack + more
    chunks = chunk_by_clauses("\n".join(clauses), target=target, limit=limit, whole=most)
    for clause in clauses:
        assert any(clause in one.text for one in chunks) == (len(clause) <= most)
    longer = [one for one in chunks if len(one.text) > limit]
    assert all(one.part.startswith("clause ") for one in longer)  # each is a single clause


@given(st.integers(0, 150), st.integers(0, 150), st.integers(150, 400))
def test_a_proviso_is_never_apart_from_its_clause_where_both_fit(
    clause: int, proviso: int, limit: int
) -> None:
    ruled = f"2. {'Rule ' * (clause // 5)}holds.\n\nProvided further that {'it ' * (proviso // 3)}reports."
    text = f"1. First.\n\n{ruled}\n\n3. {'Third ' * 60}ends."
    if len(ruled) <= limit:
        assert any(ruled in one for one in whole(text, target=50, limit=limit))


@pytest.mark.parametrize(
    "hostile",
    ["(a)", "(a)\n", "(h)\n(i)\n", "1. ", "1.1.1\n", "• \n", "A. B\n", "|\n", "Annex I\n", ":\n\n", "¶"],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    assert_linear(chunk_by_clauses, lambda size: hostile * (size // len(hostile)), LINE)


@pytest.mark.release
@pytest.mark.parametrize("before", ["", "Annex", "Article 5", "1.", "(a)", "a", "page 3", "x|", "Provided"])
@pytest.mark.parametrize("run", [" ", "\t", ".", "-", "1", "a\t", ". 1", "–", "“"])
def test_one_long_line_takes_linear_time(before: str, run: str) -> None:
    assert_linear(
        chunk_by_clauses, lambda size: f"1. One.\n{before}{run * (size // len(run))}ab cd\n2. Two.", LINE
    )


@pytest.mark.full
def test_a_million_letters_are_cut() -> None:
    assert 0 < len(chunk_by_clauses("(a)" * 10**6)) < 10**4
    assert 0 < len(chunk_by_clauses("(a)\n" * 10**6)) < 10**5


@pytest.mark.parametrize(
    "sizes", [(0, 5, 5, 0), (6, 5, 9, 0), (5, 5, 5, 5), (5, 5, 5, -1), (3, 5, 4, 0), (3, 5, 0, 0)]
)
def test_impossible_sizes_are_refused(sizes: tuple[int, int, int, int]) -> None:
    target, limit, most, overlap = sizes
    with pytest.raises(InvalidArgument, match="want"):
        chunk_by_clauses("text", target=target, limit=limit, whole=most, overlap=overlap)


# --- what a number is ---

RULEBOOK = """\
MASTER DIRECTION ON GIFTS
The firm makes these rules under its charter.
CHAPTER I
Preliminary
1. These rules may be called the Gift Rules.
2. They come into force on 1 May 2025.
CHAPTER II
A. What may be taken
3. An employee may take:
(a) a calendar;
(b) a meal, where
(i) the host is present; and
(ii) it costs less than 50 euros;
(c) flowers.
Provided that no gift is taken from a bidder.
4. The limit in paragraph
3 (b) above is reviewed each year. In
2024. the limit was lower, and the sum was Rs.
2.5 crore.
4A. No gift is given in cash.
B. What must be reported
5. Reports
5.1 Each gift is reported within
14 days.
5.2 The report states:
i. the giver;
ii. the worth.
5.2.1 The worth is that of the market.
Annex II
1. The form has two fields:
a) giver;
b) worth.
2. It is signed.
"""
PATHS = [
    ("MASTER DIRECTION", ""),
    ("CHAPTER I\n", "Chapter I"),
    ("1. These", "Chapter I, clause 1"),
    ("2. They", "Chapter I, clause 2"),
    ("CHAPTER II", "Chapter II"),
    ("A. What", "Chapter II, A"),
    ("3. An", "Chapter II, A, clause 3"),
    ("(a) a", "Chapter II, A, clause 3(a)"),
    ("(b) a", "Chapter II, A, clause 3(b)"),
    ("(i) the", "Chapter II, A, clause 3(b)(i)"),
    ("(ii) it", "Chapter II, A, clause 3(b)(ii)"),
    ("(c) fl", "Chapter II, A, clause 3(c)"),
    ("4. The", "Chapter II, A, clause 4"),
    ("4A. No", "Chapter II, A, clause 4A"),
    ("B. What", "Chapter II, B"),
    ("5. Rep", "Chapter II, B, clause 5"),
    ("5.1 Ea", "Chapter II, B, clause 5.1"),
    ("5.2 The", "Chapter II, B, clause 5.2"),
    ("i. the", "Chapter II, B, clause 5.2(i)"),
    ("ii. the", "Chapter II, B, clause 5.2(ii)"),
    ("5.2.1 T", "Chapter II, B, clause 5.2.1"),
    ("Annex II", "Annex II"),
    ("1. The f", "Annex II, clause 1"),
    ("a) giv", "Annex II, clause 1(a)"),
    ("b) wor", "Annex II, clause 1(b)"),
    ("2. It", "Annex II, clause 2"),
]


def pieces(text: str) -> list[tuple[int, str]]:
    """Return where every clause begins, and its name."""
    from carag.labelling.clauses import _pieces
    from carag.labelling.furniture import furniture

    return [(one.start, str(one.path)) for one in _pieces(text, furniture(text))]


def test_every_clause_of_a_rulebook_has_its_path() -> None:
    found = pieces(RULEBOOK)
    assert [path for _, path in found] == [path for _, path in PATHS]
    for (at, _), (words, _) in zip(found, PATHS, strict=True):
        assert RULEBOOK[at:].startswith(words)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("(g) x;\n(h) y;\n(i) z;\n(j) w.", []),  # begins nowhere
        ("1. L:\n" + "\n".join(f"({one}) x;" for one in "abcdefghij"), ["1(h)", "1(i)", "1(j)"]),
        (
            "1. L:\n" + "\n".join(f"({one}) x;" for one in "abcdefgh") + "\n(i) p;\n(ii) q.",
            ["1(h)(i)", "1(h)(ii)"],
        ),
        ("1. L:\n(v) y.", []),
        ("1. L:\n(iv) x;\n(v) y;\n(vi) z.", ["1(v)", "1(vi)"]),  # goes on from what seemed to be text
        ("1. One.\n\n9. Nine.\n\n10. Ten.\n\n11. Eleven.", ["1", "10", "11"]),
        ("4.1 One.\n\n4.7 Seven.\n\n4.8 Eight.\n\n4.9 Nine.", ["4.1", "4.8", "4.9"]),
        ("1. L:\n(i) x;\n(ii) y;\n(iii) z;\n(iv) w;\n(v) v.", ["1(iv)", "1(v)"]),
        ("1. One.\n2. Two:\n(a) x;\n(A) y.\n(B) z.\n3. Three.", ["2(a)(A)", "2(a)(B)", "3"]),
        ("1. One.\n4. (a) x;\n(b) y.", ["4", "4(a)", "4(b)"]),
        ("1. One.\n\n7\n\n2. Two.", ["1", "2"]),
        ("1. One.\n3.\n\nThree after a gap.", ["1", "3"]),
    ],
)
def test_numbers_are_read_by_what_came_before(text: str, paths: list[str]) -> None:
    named = [path.removeprefix("clause ") for _, path in pieces(text)]
    assert (
        named[-len(paths) :] == paths if paths else all("(g" not in one and "(v" not in one for one in named)
    )


@pytest.mark.parametrize(
    "line",
    [
        "2024. The year ends.",
        "2. 5 crore is the sum.",
        "2.5 crore is the sum.",
        "35A of the Act applies.",
        "12.5 per cent is due.",
        "31.03.2024 is the date.",
        "9. Ten is far from one.",
    ],
)
@pytest.mark.parametrize(
    "above",
    [
        "The bank shall obey what is said of the matter in paragraph",
        "The bank shall keep these sums in its books for the whole time",
        "The bank shall keep these sums in its books for the whole time.",
    ],
)
def test_a_number_in_a_sentence_does_not_begin_a_clause(above: str, line: str) -> None:
    text = f"1. One shall pay.\n{above}\n{line}"
    assert [path for _, path in pieces(text)] == ["clause 1"]


@pytest.mark.parametrize(
    "line", ["2. of that direction", "2 (a) above", "Section 35A of the Act", "Chapter IV of it"]
)
def test_a_reference_broken_by_a_line_end_does_not_begin_a_clause(line: str) -> None:
    wrapped = "The bank shall obey what the Reserve Bank has said of this matter under\n"
    assert [path for _, path in pieces(f"1. One.\n{wrapped}{line}, as it stands.")] == ["clause 1"]


def test_torn_lines_page_numbers_and_running_heads_do_not_end_a_clause() -> None:
    head = "Rules on Gifts and Meals 2025"
    page = "\n\n{}\n\f" + head + "\n\n"
    clause = (
        "2. A gift that an employee takes shall be reported to the head of the"
        + page.format(2)
        + "department, who shall\nkeep a list of all that were reported."
    )
    text = f"{head}\n1. One.{page.format(1)}{clause}{page.format(3)}3. Three."
    assert any(clause in one for one in whole(text, target=60, limit=len(clause) + 2 * len(page)))
    assert [path for _, path in pieces(text)] == ["", "clause 1", "clause 2", "clause 3"]


# --- what stays together ---


def test_nested_lists_stay_whole_where_they_fit_and_part_between_items_where_not() -> None:
    text = "1. Banks shall:\n(a) keep\n(i) books;\n(ii) lists;\n(b) report.\n2. End."
    assert parts(text, 1, 60) == ["clause 1", "clause 2"]
    assert parts(text, 1, 50) == ["clause 1(a)", "clause 1(b)", "clause 2"]
    assert whole(text, target=1, limit=50)[0] == "1. Banks shall:\n(a) keep\n(i) books;\n(ii) lists;"


def test_small_neighbours_of_one_parent_share_a_chunk_under_a_range() -> None:
    text = (
        "1. Banks shall:\n" + "\n".join(f"({one}) keep the books of {one};" for one in "abcdef") + "\n2. End."
    )
    assert parts(text, 95, 100) == ["clauses 1(a)-(c)", "clauses 1(d)-(f)", "clause 2"]


def test_a_table_stays_whole_with_its_caption() -> None:
    rows = "Table 1: Limits\nItem | Limit\nGold | 5\nSilver | 7"
    text = f"1. {'Long words stand here. ' * 4}\n\n{rows}\n\n{'More words stand here. ' * 4}\n2. End."
    assert any(rows in one for one in whole(text, target=60, limit=110))


def test_a_heading_goes_with_the_clause_below() -> None:
    text = f"1. {'One ' * 20}ends.\n\nExemptions\n2. {'Two ' * 20}ends."
    assert whole(text, target=60, limit=120)[1].startswith("Exemptions\n2. Two")


def test_a_longer_clause_stays_whole_and_longer_text_and_clauses_under_a_heading_do_not() -> None:
    sentence = "This sentence has forty characters. Yes. "
    for numbered in (f"1. {sentence * 4}", f"1. It may:\n(a) {sentence * 2}\n(b) {sentence * 2}"):
        assert whole(numbered.strip(), target=60, limit=100, most=200) == [numbered.strip()]
    for apart in (
        (sentence * 4).strip(),
        f"Chapter I\nTitle\n{sentence * 4}".strip(),
        f"1. Title\n1.1 {sentence * 2}\n1.2 {sentence * 2}".strip(),
    ):
        assert max(map(len, whole(apart, target=60, limit=100, most=200))) <= 100


def test_notes_behind_a_clause_that_is_too_long_with_them_are_left_out_and_the_clause_is_whole() -> None:
    clause = f"1. A firm may:\n(a) {'lend ' * 10};\n(b) {'hold ' * 10}.\n\nIt shall keep lists."
    notes = f"Note:\n(i) {'One ' * 12}ends.\n(ii) {'Two ' * 12}ends."
    text = f"{clause}\n{notes}\n2. Two."
    assert whole(text, target=150, limit=150)[0] == clause
    assert whole(text, target=150, limit=150, most=300)[0] == f"{clause}\n{notes}"


def test_titles_and_lead_ins_go_with_what_follows_over_letters_of_a_watermark_and_page_numbers() -> None:
    page = "Text stands here.\n\nCO\n\nPY\n\n7\n\f"
    first = f"1. {'One ' * 20}ends.\n"
    assert any(
        "shall:\n\nCO\n\nPY\n\n8\n\f\n(a) One" in one
        for one in whole(
            page * 4 + f"{first}2. A firm shall:\n\nCO\n\nPY\n\n8\n\f\n(a) {'One ' * 9}\n(b) {'Two ' * 30}",
            target=100,
            limit=120,
        )
    )
    text = f"{first}2.\n\nDuties\n\nCHAPTER II\nDUTIES\n3. {'Three ' * 10}ends."
    assert whole(text, target=100, limit=120)[1].startswith("2.\n\nDuties\n\nCHAPTER II\nDUTIES\n3. Three")


def test_a_sentence_that_a_footnote_interrupts_goes_on_in_its_clause() -> None:
    clause = "2. A gift is reported to the\n\n1\nInserted on 2 May 2023.\n\n7\n\f\nhead of the firm.\n\nIt is listed."
    assert [path for _, path in pieces(f"1. One.\n{clause}\n3. Three.")][:2] == ["clause 1", "clause 2"]
    assert any(
        "head of the firm." in one and "2. A gift" in one for one in whole(clause, target=60, limit=85)
    )


def test_a_clause_over_the_limit_is_cut_with_an_overlap_and_others_are_not() -> None:
    text = "1. Short one.\n2. " + "This sentence has forty characters too. " * 20 + "\n3. Short one."
    chunks = chunk_by_clauses(text, target=200, limit=250, overlap=50)
    again = [left.end - right.start for left, right in pairwise(chunks)]
    assert [one.part for one in chunks] == ["clause 1", *["clause 2"] * (len(chunks) - 2), "clause 3"]
    assert all(0 < one <= 50 for one in again[1:-1])
    assert max(again[0], again[-1]) < 0
    assert len(again) > 4


@pytest.mark.parametrize(
    "text",
    [
        "Die Bank führt Bücher. Sie bewahrt sie auf.\n\nSie meldet Geschenke. Niemand nimmt Geld.",
        "銀行は帳簿をつける。\n\n銀行は報告する。",
        "No numbering at all. Not here.\n\nNor there. And that is the end.",
    ],
)
def test_text_without_numbers_is_cut_at_its_paragraphs_and_has_no_path(text: str) -> None:
    first, second = text.split("\n\n")
    size = max(len(first), len(second))
    assert [(one.text, one.part) for one in chunk_by_clauses(text, target=1, limit=size)] == [
        (first, ""),
        (second, ""),
    ]


def test_one_long_paragraph_is_cut_as_passages_are() -> None:
    text = "One sentence of some words stands here. " * 50
    cuts = [(one.start, one.end) for one in chunk(text, target=100, limit=150)]
    assert [(one.start, one.end) for one in chunk_by_clauses(text, target=100, limit=150)] == cuts


@pytest.mark.parametrize(
    ("first", "last", "named"),
    [
        (("4", "(b)"), ("4", "(b)"), "clause 4(b)"),
        (("4", "(a)"), ("4", "(c)"), "clauses 4(a)-(c)"),
        (("4",), ("6",), "clauses 4-6"),
        (("4", "(f)"), ("5",), "clauses 4(f)-5"),
        ((), ("2",), "up to clause 2"),
    ],
)
def test_ranges_are_named(first: tuple[str, ...], last: tuple[str, ...], named: str) -> None:
    assert between(Path((), first), Path((), last)) == named
    assert between(Path(("Annex",), first), Path(("Annex",), last)) == f"Annex, {named}"
