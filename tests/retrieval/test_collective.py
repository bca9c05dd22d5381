"""Questions about the documents themselves are read only if nothing of them is left over."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import Profile
from carag.retrieval.reading import Declared, Described, Documents, Names, read_question
from carag.retrieval.reading.collective import Choice, choose, title_words
from carag.retrieval.reading.forms import read_compared, read_part

GENERIC, EDGAR = (Declared.of(Profile.open(name)) for name in ("generic", "edgar"))
VOCABULARY = Profile.open("generic").vocabulary
MEMOS = Documents(
    [
        Described(1, "a", title="Gold loans", dated=date(2024, 4, 20)),
        Described(2, "b", title="Travel", dated=date(2024, 3, 31)),
        Described(3, "c", title="Gold", dated=None),
    ]
)
FIELDS = {"kind": ["memo", "policy", "memo"], "department": ["risk", "risk", "human resources"]}
NAMES = Names([("Amcor plc", [], 7), ("Delta Air Lines Inc", [], 8)])
FILINGS = Documents(
    [
        Described(1, "a", kind="10-K", entities=(7,), period=date(2022, 12, 31), dated=date(2023, 2, 1)),
        Described(2, "b", kind="8-K", entities=(7,), period=date(2022, 5, 1), dated=date(2022, 5, 2)),
        Described(3, "c", kind="8-K", entities=(8,), dated=date(2022, 5, 2)),
    ]
)


def memos(question: str) -> Choice | None:
    reading = read_question(question)
    return choose(question, reading, MEMOS, GENERIC, VOCABULARY, (), lambda name: FIELDS.get(name, [""] * 3))


def filings(question: str) -> Choice | None:
    reading = read_question(question, names=NAMES, kinds=EDGAR.kinds)
    return choose(question, reading, FILINGS, EDGAR, Profile.open("edgar").vocabulary, (), lambda _: [""] * 3)


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("How many documents are there?", "abc"),
        ("Which policies did Human Resources issue?", ""),
        ("List all documents of the Risk department", "ab"),
        ("List documents on gold", "ac"),
        ('List documents with "loans" in the title issued since 1 April 2024', "a"),
        ("Which documents were issued by 31 March 2024?", "b"),
        ("Which documents were issued after March 2024?", "a"),
        ("Which documents are dated April 2024 or later?", None),
        ("Which documents are about gold and what do they say?", None),
        ("List documents on silver", None),
        ("Which memos mention gold?", None),
        ("List documents of 2023-24", None),
        ("List documents of fiscal 2024", None),
        ("What does memo 7 say?", None),
        ("Memos on gold", None),
        ("What is a policy?", None),
        ("What is our policy on gold?", None),
        ("What is the latest memo?", "ac"),
        ("What was in the latest memo?", None),
        ("Which memos were issued on 3/4/2024?", None),  # in March or in April
        ("Which memos were issued on 20/4/2024?", "a"),
    ],
)
def test_documents_are_chosen_by_what_a_question_says(question: str, ids: str | None) -> None:
    """Fields, title words and dates narrow; what is not understood makes the question one about what documents say."""
    choice = memos(question)
    found = (
        None
        if choice is None
        else "".join(one.id for one, is_in in zip(MEMOS, choice.found, strict=True) if is_in)
    )
    assert found == ids


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("List all 8-K filings of Amcor", "b"),
        ("How many 8-Ks were filed in May 2022?", "bc"),
        ("What is Amcor's 2022 annual report?", "a"),
        ("Which filings did Amcor and Delta Air Lines make in 2022?", "bc"),
        ("List the 10-K/A filings of Amcor", None),
        ("Which filings of Amcor were amended?", None),
        ("How many employees did Amcor have in 2022?", None),
        ("List the risk factors of Amcor's 2022 annual report", None),
    ],
)
def test_filings_are_chosen_by_company_form_and_date(question: str, ids: str | None) -> None:
    """An annual report is of the year that it reports for; what is filed has the date of its filing."""
    choice = filings(question)
    found = (
        None
        if choice is None
        else "".join(one.id for one, is_in in zip(FILINGS, choice.found, strict=True) if is_in)
    )
    assert found == ids


@given(
    st.sampled_from(["How many documents are there", "List documents on gold"]),
    st.from_regex(r"[b-df-hj-np-tv-z]{5,9}", fullmatch=True),
)
def test_one_word_more_is_not_read(question: str, word: str) -> None:
    """A question with a word that nothing explains asks something else."""
    assert memos(question) is not None
    assert memos(f"{question} {word}?") is None


def test_title_words_do_not_depend_on_order_case_or_number() -> None:
    """Nor on small words."""
    assert title_words("The Loans of GOLD") == title_words("gold loan") == {"gold", "loan"}


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Compare the tax rate of Amcor and Delta Air Lines", "What is the tax rate of Amcor?"),
        ("Compare Amcor with Delta Air Lines on revenue in 2022", "What is the revenue in 2022 of Amcor?"),
        (
            "How does Amcor's revenue compare with that of Delta Air Lines in 2022?",
            "What is the revenue of Amcor in 2022?",
        ),
        ("Compare the tax rate of Amcor", None),
        ("What do Amcor and Delta Air Lines have in common?", None),
    ],
)
def test_a_comparison_is_one_question_for_each_name(question: str, asked: str | None) -> None:
    """In the order of the question; a single name is not compared."""
    found = read_compared(question, read_question(question, names=NAMES))
    assert found.get("Amcor") == asked


@pytest.mark.parametrize(
    ("question", "way"),
    [
        ("Article 12 of the Rules", ("", "the Rules")),
        (
            "Summarise the risk factors of Amcor's 2022 annual report",
            ("the risk factors", "Amcor's 2022 annual report"),
        ),
        ("Give me an outline of Travel", ("", "Travel")),
        ("Show the income statement as a table", ("the income statement", "")),
        ("What does Article 12 of the Rules say about gold?", None),
        ("Articles 12 and 13 of the Rules", None),
    ],
)
def test_a_part_of_a_document_is_asked_for_by_name(question: str, way: tuple[str, str] | None) -> None:
    """What asks more, or for several parts, asks what documents say."""
    part = read_part(question)
    assert part is None if way is None else way in part.ways


def test_a_long_question_is_not_divided_everywhere() -> None:
    """Each way to divide it is read among all documents."""
    part = read_part(f"Summarise a{' of x' * 800}")
    assert part is not None
    assert len(part.ways) < 10
