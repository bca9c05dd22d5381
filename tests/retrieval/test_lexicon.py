"""A table of patterns adds terms to a query: each once, in order, and a bad line is refused by its number."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval.reading import Lexicon

EDGAR = Path(__file__).parents[2] / "carag" / "profiles" / "edgar"
FINANCE = Lexicon.read(EDGAR / "lexicon.tsv")


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("What was capex in FY2018?", "purchases of property plant and equipment"),
        ("CAPITAL EXPENDITURES of 3M", "purchases of property plant and equipment"),
        ("net PPNE", "property plant and equipment net"),
        ("What drove COGS?", "cost of goods sold"),
        ("the quick ratio", "total current liabilities"),
        ("its DPO", "accounts payable"),
        ("free cash flow", "net cash provided by operating activities"),
        ("cash from operations", "net cash provided by operating activities"),
        ("Did it pay dividends?", "dividends paid"),
        ("share repurchases", "treasury stock"),
        ("SG&A", "selling general and administrative expenses"),
        ("legal battles", "legal proceedings"),
        ("market risk", "quantitative and qualitative disclosures about market risk"),
        ("headcount", "full-time employees"),
        ("EPS", "diluted earnings per share"),
        ("effective tax rate", "effective tax rate"),
    ],
)
def test_what_people_call_a_figure_asks_for_its_caption(question: str, term: str) -> None:
    assert term in FINANCE.expand(question)


@pytest.mark.parametrize("question", ["Who is the chair?", "When does the canteen open?", "variety", "steps"])
def test_other_questions_ask_for_nothing_more(question: str) -> None:
    assert () == FINANCE.expand(question)


@pytest.mark.parametrize("file", ["lexicon.tsv", "kinds.tsv"])
def test_shipped_tables_say_where_they_come_from(file: str) -> None:
    head = [line for line in (EDGAR / file).read_text("utf-8").splitlines() if line.startswith("#")]
    assert "Written by the authors of this project" in "\n".join(head)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nno tab here", "line 2 .*want a pattern, a tab"),
        ("a\t , ,", "line 1"),
        ("\tterm", "line 1"),
        ("# said\n(a\tb", "line 2.*not a regular expression"),
        ("a*\tb", "matches every question"),
        ("a\tb\n\na\tc", "line 3 repeats the pattern of line 1"),
        ("#\n" * 10_001, "at most 10000"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Lexicon(text, "mine")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"none\.tsv cannot be read"):
        Lexicon.read(tmp_path / "none.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"caf\xe9\tcoffee")
    with pytest.raises(InvalidArgument, match=r"latin\.tsv cannot be read"):
        Lexicon.read(tmp_path / "latin.tsv")


def test_kinds_are_the_values_of_a_field() -> None:
    kinds = Lexicon.of_values(["memo", "contract", "C++ guide", "memo"])
    assert len(kinds) == 3
    assert kinds.expand("Which MEMOS and contracts, or C++ guides?") == ("C++ guide", "contract", "memo")
    assert kinds.expand("memorandum, subcontract") == ()
    with pytest.raises(InvalidArgument, match="a kind of document"):
        Lexicon.of_values([""])


@given(st.text(max_size=60), st.sampled_from(["capex", "dividends", "R&D", "net income"]))
def test_more_words_of_a_question_never_take_a_term_away(text: str, asked: str) -> None:
    found = FINANCE.expand(f"{asked} {text}")
    assert set() < set(FINANCE.expand(asked)) <= set(found)
    assert len(set(found)) == len(found)


def test_terms_come_once_and_in_the_order_of_the_table() -> None:
    table = Lexicon("two\tb, c\none\ta, b, a")
    assert table.expand("one two") == table.expand("two one") == ("b", "c", "a")


@given(st.text(alphabet="abc dé", max_size=40))
def test_case_is_irrelevant(text: str) -> None:
    assert FINANCE.expand(f"capex {text}") == FINANCE.expand(f"CAPEX {text}")
