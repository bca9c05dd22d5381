"""A follow-up takes over what it leans on; a question that stands alone, or is in doubt, takes over nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.limits import MAX_QUESTION
from carag.retrieval.reading import Names, read_question
from carag.retrieval.reading.follow_up import LONGEST_TURN, carried, leans
from carag.retrieval.reading.relative import shifted
from tests.sizes import examples

DIVIDENDS = "How much did Acme Corp pay in dividends in 2020?"
SALES = "What were Zenith Ltd's net sales in the third quarter of 2021?"
RURAL = "What is the loan-to-value limit for rural banks?"
CIRCULAR = "What does circular RBI/2024-25/93 say on gold loans?"
AGREEMENT = "What is the notice period in the Halden supply agreement?"

# --- laws ---

TEXTS = st.one_of(
    st.sampled_from([DIVIDENDS, SALES, RURAL, CIRCULAR, AGREEMENT, "And the year before?", "Who signed it?"]),
    st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60
    ).filter(lambda text: text.strip()),
)


@settings(max_examples=examples(500), deadline=None)
@given(earlier=st.lists(TEXTS, max_size=4), question=TEXTS)
def test_it_is_read_as_asked_or_by_the_askers_words_alone(earlier: list[str], question: str) -> None:
    found = carried(question, earlier)
    assert len(found.text) <= MAX_QUESTION
    if not found.taken:
        assert (found.text, found.described()) == (question, "")
        return
    assert leans(question)
    assert earlier
    assert carried(question, []).taken == ()


@settings(max_examples=examples(200), deadline=None)
@given(year=st.integers(1910, 2090), steps=st.integers(-9, 9).filter(bool), quarter=st.integers(1, 4))
def test_a_shift_and_the_shift_back_are_none(year: int, steps: int, quarter: int) -> None:
    for said, unit in (
        (f"fiscal {year}", "year"),
        (f"Q{quarter} {year}", "quarter"),
        (f"May {year}", "month"),
    ):
        there = shifted(said, steps, unit)
        assert there is not None
        assert there[0] != said
        back = shifted(there[0], -steps, unit)
        assert back is not None
        assert back[0] == said


# --- traps ---


@pytest.mark.parametrize(
    ("before", "question", "read"),
    [
        (DIVIDENDS, "And the year before?", "How much did Acme Corp pay in dividends in 2019?"),
        (DIVIDENDS, "three years earlier?", "How much did Acme Corp pay in dividends in 2017?"),
        (DIVIDENDS, "What about Apple?", "How much did Apple pay in dividends in 2020?"),
        (DIVIDENDS, "What about Apple in 2018?", "How much did Apple pay in dividends in 2018?"),
        (DIVIDENDS, "compare with 2021", "How much did Acme Corp pay in dividends in 2020 and 2021?"),
        (DIVIDENDS, "compare it with Apple", "How much did Acme Corp and Apple pay in dividends in 2020?"),
        (DIVIDENDS, "no, I meant fiscal 2018", "How much did Acme Corp pay in dividends in fiscal 2018?"),
        (DIVIDENDS, "Did it grow?", "Did Acme Corp grow (pay in dividends; 2020)?"),
        (DIVIDENDS, "What was its net income?", "What was Acme Corp's net income (2020)?"),
        (DIVIDENDS, "How many people does the company employ?", "How many people does Acme Corp employ (2020)?"),
        (DIVIDENDS, "And the net income?", "the net income (Acme Corp; 2020)?"),
        (DIVIDENDS, "Since when?", "Since when (Acme Corp; pay in dividends)?"),
        (DIVIDENDS, "And in Germany?", "How much did Acme Corp pay in dividends in 2020 in Germany?"),
        (DIVIDENDS, "the third quarter?", "How much did Acme Corp pay in dividends in the third quarter of 2020?"),
        (SALES, "the quarter after?", "What were Zenith Ltd's net sales in the fourth quarter of 2021?"),
        (SALES, "And a year earlier?", "What were Zenith Ltd's net sales in the third quarter of 2020?"),
        (RURAL, "and for urban banks?", "What is the loan-to-value limit for urban banks?"),
        (RURAL, "And urban banks?", "What is the loan-to-value limit for urban banks?"),
        (RURAL, "Who approves it?", "Who approves it (loan-to-value limit for rural banks)?"),
        (CIRCULAR, "Who signed it?", "Who signed RBI/2024-25/93?"),
        (CIRCULAR, "Does that circular cover pawnbrokers?", "Does RBI/2024-25/93 cover pawnbrokers?"),
        (AGREEMENT, "And the Orion agreement?", "What is the notice period in the Orion agreement?"),
        ("What is section 12 of the Companies Act?", "And section 13?", "What is section 13 of the Companies Act?"),
    ],
)  # fmt: skip
def test_a_follow_up_is_read_as_meant(before: str, question: str, read: str) -> None:
    assert carried(question, [before]).text == read


@pytest.mark.parametrize(
    ("before", "question"),
    [
        (DIVIDENDS, "What was Apple's revenue in 2019?"),
        (DIVIDENDS, "What is the penalty for late filing?"),
        (DIVIDENDS, "Thanks, that helps."),
        (DIVIDENDS, "Can a bank close its branch?"),
        (DIVIDENDS, "What must banks do before they lend?"),
        (DIVIDENDS, "Is it allowed to lend against gold?"),
        (DIVIDENDS, "Which rules that apply to gold loans changed?"),
        ("What is the penalty?", "And the year before?"),  # which names no period
        ("How much did Acme Corp pay Zenith Ltd in 2020?", "What about Apple?"),  # for which of the two?
        ("Thanks, that helps.", "And the year before?"),
        (f"{DIVIDENDS} {'x' * LONGEST_TURN}", "And the year before?"),
        ("\ufdfa" * 500, "And the year before?"),  # which is 9,000 characters in NFKC
        (DIVIDENDS, "\ufdfa" * 500),
        (DIVIDENDS, f"And the year before? {'x' * LONGEST_TURN}"),
    ],
)
def test_in_doubt_nothing_is_taken_over(before: str, question: str) -> None:
    assert carried(question, [before]) == (question, (), ())


def test_follow_ups_lean_on_follow_ups_and_thanks_change_nothing() -> None:
    turns = [DIVIDENDS, "What about Apple?", "Thanks, that helps.", "And the year before?"]
    assert carried("And the year before?", turns).text == "How much did Apple pay in dividends in 2018?"
    assert carried("And the year before?", ["And the year before?"]).taken == ()


def test_the_day_of_an_earlier_question_is_named_and_never_taken_over() -> None:
    found = carried(
        "And for urban banks?", ["What was the limit for rural banks on 1 March 2024?"], instants=True
    )
    assert (found.text, found.days) == ("What was the limit for urban banks?", ("2024-03-01",))
    assert "not taken over: on 2024-03-01" in found.described()


def test_the_result_reads_as_what_was_taken_over() -> None:
    """A table of names finds the name in the text, and so does the reader of periods."""
    names = Names([("Acme Widgets Corp", [], 7)])
    found = carried("what about acme widgets?", ["How much did Zenith Ltd pay in 2020?"], names=names)
    reading = read_question(found.text, names=names)
    assert [one.keys for one in reading.entities] == [(7,)]
    assert [one.described() for one in reading.periods] == ["2020"]
