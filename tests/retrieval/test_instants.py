"""Claims about the day as of which a question asks."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.retrieval.reading import instants_of, read_question

DAY = date(2024, 3, 1)
ENOUGH = 1200
"""Repetitions of a word in a long question, of at most 8,192 characters."""


def days(question: str) -> list[date | None]:
    return [one.day for one in instants_of(question)]


@pytest.mark.parametrize(
    "question",
    [
        "What was the rule on 1 March 2024?",
        "What was the rule on the 1st of March 2024?",
        "What was the rule on Friday, 1 March 2024?",
        "On March 1, 2024, what was the limit?",
        "What is the limit as on 1.3.2024?",
        "What is the limit as at 2024-03-01?",
        "What is the limit as of March 1st, 2024?",
        "What was in force on 1 March 2024?",
        "Which limits applied on 1 March 2024?",
        "What were banks required to keep on 1 March 2024?",
        "Under the circular dated 5 January 2022, what was the limit on 1 March 2024?",
        "What was the rule\n on\t1  March 2024?",
    ],
)
def test_a_day_on_which_something_was_so_is_read(question: str) -> None:
    assert days(question) == [DAY]


@pytest.mark.parametrize(
    "question",
    [
        "What does the circular issued on 1 March 2024 say?",
        "What does the circular issued by the authority to all banks on 1 March 2024 say?",
        "What does the circular dated 1 March 2024 say?",
        "What does the circular of 1 March 2024 say?",
        "Which circular came into force on 1 March 2024?",
        "What holds for an account opened on 1 March 2024?",
        "What holds for loans restructured on 1 March 2024?",
        "What had to be done by 1 March 2024?",
        "What holds on or after 1 March 2024?",
        "What has changed since 1 March 2024?",
        "What was the rule in March 2024?",
        "What was the rule as of March 2024?",
        "What was the rule as on 2024?",
        "What is said upon 1 March 2024?",
        "What is the horizon 1 March 2024?",
    ],
)
def test_another_day_a_month_or_a_year_is_none_as_of_which_it_asks(question: str) -> None:
    assert days(question) == []


@pytest.mark.parametrize("said", ["31.02.2024", "1/2/2024", "01-02-2024", "31 April 2024", "2024-13-01"])
def test_what_is_no_day_or_two_is_named_and_not_guessed(said: str) -> None:
    assert days(f"What was the limit as on {said}?") == [None]


@pytest.mark.parametrize(("said", "day"), [("31/3/2024", 31), ("3/31/2024", 31), ("31-03-2024", 31)])
def test_figures_that_can_be_one_day_only_are_read(said: str, day: int) -> None:
    assert days(f"What was the limit as on {said}?") == [date(2024, 3, day)]


@pytest.mark.parametrize(
    "second", ["and on 1 April 2024", "and 1 April 2024", "or as on 1.4.2024", "to 1 April 2024"]
)
def test_a_second_day_beside_the_first_is_read_too(second: str) -> None:
    assert days(f"What was the rule on 1 March 2024 {second}?") == [DAY, date(2024, 4, 1)]


@given(
    st.dates(date(1970, 1, 2), date(2099, 12, 31)),
    st.sampled_from(["%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%Y-%m-%d"]),
)
def test_every_day_of_the_calendar_is_read_as_it_is_written(day: date, form: str) -> None:
    assert days(f"What was the rule as on {day.strftime(form)}?") == [day]


@given(st.text(max_size=200))
def test_no_text_is_too_strange(text: str) -> None:
    for one in instants_of(text):
        assert one.start < one.end


def test_the_day_is_no_period_where_days_are_read() -> None:
    question = "What was the rule on 1 March 2024, and what was it in 2019?"
    assert [one.described() for one in read_question(question).periods] == ["2024-03-01", "2019"]
    read = read_question(question, instants=True)
    assert [one.described() for one in read.periods] == ["2019"]
    assert (read.days, read.described()) == ((DAY,), "on 2024-03-01; 2019")


def test_a_long_question_takes_no_long_time() -> None:
    assert days("on " * ENOUGH + "1 March 2024") == [DAY]
    many = "on 1 March 2024 and " * (ENOUGH // 4)
    assert set(days(many)) == {DAY}
    assert DAY + timedelta(days=1) not in days(many)
