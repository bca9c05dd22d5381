"""Figures with their units and comparators, by table: which claims a rule allows, and which it does not.

Each pair is read in whole sentences that differ in nothing but the figure, as a claim and the rule that it is held
against: 100 pairs that agree and 100 that do not.
"""

# ruff: noqa: E501 - a table
from __future__ import annotations

import pytest

from carag.evaluation.regulatory.norms import Said, read
from carag.evaluation.regulatory.stance_head import StanceHead
from carag.labelling.quantities import agrees, quantities, without_quantities

RULES = [
    (
        "Logs are kept for {}.",
        "at least six months",
        "at least 6 months|at least six months|six months|half a year|not less than six months|180 days|one year|"
        "a minimum of 12 months|more than 6 months|at least 26.1 weeks",
        "at least 1 month|one month|6 weeks|at most 6 months|less than six months|up to half a year|three months|"
        "at least 100 days|a quarter|fewer than 6 months",
    ),
    (
        "The breach is notified {}.",
        "within 72 hours",
        "within 72 hours|within three days|within 3 calendar days|within 24 hours|no later than 72 hours|in 48 hours|"
        "within two days|not later than 3 days|in less than 72 hours|within 60 minutes",
        "within 73 hours|within four days|within a week|in 5 days|no later than 96 hours|after at least 72 hours|"
        "within a month|within 7,200 minutes|in a fortnight|within 1 week",
    ),
    (
        "The fee is {} of the price.",
        "up to 5 %",
        "up to 5 %|at most 5 per cent|5%|no more than five percent|3 %|less than 5 %|2.5 per cent|up to 500 basis points|"
        "between 1 and 5 %|not more than 4.99 %",
        "6 %|up to 15 %|at least 5 %|more than 5 %|152 per cent|over 5 percent|between 5 and 10 %|501 basis points|"
        "up to 50 %|at most 5.1 per cent",
    ),
    (
        "The fine is {}.",
        "at most EUR 35 000 000",
        "EUR 35 million|€35,000,000|at most 35 million euros|up to €35 million|EUR 7,500,000|not more than EUR 35 000 000|"
        "less than 35 million EUR|€ 15 million|up to EUR 0.035 billion|between €1 million and €35 million",
        "EUR 36 million|€350,000,000|up to 40 million euros|at least EUR 35 000 000|more than €35 million|"
        "EUR 35.1 million|€1 billion|over 35 million euros|up to €53 million|EUR 100 000 000",
    ),
    (
        "The penalty is {} a day.",
        "Rs. 2,500",
        "Rs. 2,500|₹2,500|Rs 2500|INR 2,500|2,500 rupees|Rs. 2.5 thousand|Rs. 2500.00|Rs 2,500|rupees 2,500|₹ 2500",
        "Rs. 25,001|₹250|Rs 2,501|INR 5,000|two thousand rupees|Rs. 2.5 lakh|more than Rs. 2,600|less than Rs. 2,400|"
        "between Rs. 3,000 and Rs. 4,000|at least Rs. 3,000",
    ),
    (
        "The board has {}.",
        "at least four members",
        "4 members|four members|at least 4 members|no fewer than four members|five members|a dozen members|"
        "not fewer than 4 members|6 members|between 4 and 9 members|twelve members",
        "3 members|three members|at least three members|at most 4 members|fewer than four members|up to 9 members|"
        "between 2 and 5 members|one member|at least 2 members|less than 4 members",
    ),
    (
        "Records are retained for {}.",
        "5 years",
        "five years|5 years|at least five years|60 months|not less than 5 years|a period of five years|half a decade|"
        "1,826 days|five (5) years|20 quarters",
        "four years|10 years|at least three years|50 months|at most four years|a period of 2 years|a decade|365 days|"
        "six (6) years|up to 4 years",
    ),
    (
        "The loan covers {} of the value.",
        "between 60 and 75 per cent",
        "60 %|75 per cent|between 60 and 75 %|from 65 to 70 percent|70%|between 61 and 74 per cent|60 to 75 %|"
        "72.5 %|from 60 to 75 %|66 per cent",
        "59 %|80 per cent|between 60 and 80 %|at least 50 %|up to 75 %|from 40 to 70 percent|90%|less than 60 %|"
        "more than 75 %|5 per cent",
    ),
    (
        "Complaints are answered {}.",
        "within 10 working days",
        "within 10 working days|within ten working days|within 10 business days|no later than 10 working days|"
        "within 5 working days|in less than 10 working days|within two working days|not later than nine working days|"
        "within 1 working day|at most 10 business days",
        "within 11 working days|within 20 working days|within 15 business days|no later than 12 working days|"
        "after at least 10 working days|in more than 10 working days|within 100 working days|"
        "not later than 30 working days|within 12 business days|at most 14 business days",
    ),
    (
        "Staff are trained for {} each year.",
        "more than 8 hours",
        "more than 8 hours|nine hours|over eight hours|at least 9 hours|10 hours|more than 480 minutes|a day|two days|"
        "more than 12 hours|at least 600 minutes",
        "8 hours|eight hours|at least 8 hours|less than 8 hours|at most 8 hours|an hour|30 minutes|up to 16 hours|"
        "more than 4 hours|within 8 hours",
    ),
]  # fmt: skip
PAIRS = [
    (sentence.format(claim), sentence.format(rule), is_allowed)
    for sentence, rule, allowed, others in RULES
    for claims, is_allowed in ((allowed, True), (others, False))
    for claim in claims.split("|")
]


def breaks(claim: str, rule: str) -> bool:
    return read(claim, rule, lambda _word: 1.0).said is Said.BREAKS


@pytest.mark.parametrize(("claim", "rule", "is_allowed"), PAIRS)
def test_a_claim_agrees_with_a_rule_that_allows_all_that_it_allows(
    claim: str, rule: str, is_allowed: bool
) -> None:
    """And contradicts it otherwise."""
    assert is_allowed != breaks(claim, rule)


def test_the_judge_takes_figures_by_what_they_allow() -> None:
    """As support, or as contradiction, if the sentences are otherwise the same."""
    head = StanceHead(knows_requirements=False)
    columns = [int(head.judge(claim, [rule]).argmax()) for claim, rule, _ in PAIRS]
    assert columns == [0 if is_allowed else 1 for *_, is_allowed in PAIRS]


@pytest.mark.parametrize(
    "text",
    [
        *("Article 12 applies.", "See Annex III, point 5(b).", "The 2024 Act applies.", "It was adopted on 13 June 2024."),
        *("Regulation (EU) 2024/1689 applies.", "A provider keeps it.", "No. 7 of the list.", "Section 4.2 and paragraph 3."),
    ],
)  # fmt: skip
def test_what_names_something_is_no_quantity(text: str) -> None:
    """Numbers of provisions, dates and years."""
    assert [] == quantities(text)


def test_a_footnote_mark_is_not_part_of_a_figure() -> None:
    """PDF readers write it right after the figure."""
    said = [quantities(one) for one in ("at least 15[^2] per cent", "at least 15 per cent")]
    assert [(one.kind, one.low, one.high) for one in said[0]] == [
        (one.kind, one.low, one.high) for one in said[1]
    ]


def test_what_cannot_be_compared_is_not() -> None:
    """Working days are not days, euros are not rupees."""
    days, working, euros = quantities("10 days, 10 working days, EUR 10")
    assert [None] * 3 == [agrees(days, working), agrees(working, euros), agrees(euros, days)]
    assert not breaks("Answer within 10 days.", "Answer within 5 working days.")


def test_a_comparator_denies_nothing() -> None:
    """ "No less than" and "not more than" belong to the figure and are not negations."""
    assert "Logs are kept for ." == without_quantities("Logs are kept for no less than six months.")
    assert not breaks("Logs are kept for at least six months.", "Logs are kept for no less than six months.")
