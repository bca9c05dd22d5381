"""Claims about what the quoting generator shows: whole sentences that answer, with the context that they need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from carag.generation.asked_kind import not_said
from carag.generation.extractive import Extractive

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.retrieval.evidence import Passage, Withheld

    Build = Callable[..., tuple[Passage, ...]]

TITLE = "Storage of nails in public halls"
NOTICE = (
    f"{TITLE}\n"
    "Please refer to our circular on the storage of nails in public halls.\n\n"
    "2. The hall must be dry. Anyone who stores nails there pays a deposit of Rs. 500.\n"
)
LISTED = (
    "3. A hall is dry enough for nails if:\n"
    "(i) its roof has been inspected within two years;\n"
    "(ii) its floor is of stone, which is:\n"
    "(a) granite; or\n"
    "(b) slate;\n"
    "(iii) its doors close.\n"
    "4. The keeper of the hall is paid monthly.\n"
)
FAQ = (
    "Q. May nails be stored in a cellar?\n"
    "They may be, if the cellar has a window that opens.\n"
    "Q. Who inspects a cellar?\n"
    "The District Office inspects it.\n"
)


@pytest.fixture
def answered(passages: Build, withheld: Withheld) -> Callable[..., list[str]]:
    """Ask a question of passages, and return the lines without their marks."""

    def ask(question: str, *texts: str, source: str = "") -> list[str]:
        given = tuple(replace(one, source=source) for one in passages(*texts))
        draft = Extractive().generate(question, given, withheld)
        return [line.rpartition(" [")[0] or line for line in draft.text.splitlines()]

    return ask


def test_neither_title_nor_reference_is_quoted(answered: Callable[..., list[str]]) -> None:
    """However much of the question they hold; the sentence after them that answers is."""
    said = answered("What deposit is due for storage of nails in public halls?", NOTICE)
    assert said[0] == "Anyone who stores nails there pays a deposit of Rs. 500."
    assert not any("Please refer" in line or TITLE in line for line in said)


@pytest.mark.parametrize("closing", ["", "."])
def test_a_title_is_known_by_the_name_of_its_document(
    answered: Callable[..., list[str]], closing: str
) -> None:
    """A full stop after it does not make it a sentence."""
    text = f"{TITLE}{closing}\n\nA deposit of Rs. 500 is due."
    said = answered("What deposit is due for storage of nails?", text, source=f"Circular 7, {TITLE}, 2024")
    assert said == ["A deposit of Rs. 500 is due."]


def test_one_passage_gives_several_sentences(answered: Callable[..., list[str]]) -> None:
    """Where two of its sentences answer, both are quoted."""
    text = "Nails rust in a damp hall. Tools are sold in May. Nails in a hall are turned every week."
    said = answered("What becomes of nails in a hall?", text)
    assert ["Nails in a hall are turned every week.", "Nails rust in a damp hall."] == sorted(said)


@pytest.mark.parametrize(
    "qualifies",
    [
        "Provided that a school pays none.",
        "However, a school pays none.",
        "Except where a school stores them, it is not paid back.",
        "Explanation: a school is a public hall.",
    ],
)
@pytest.mark.parametrize("between", [" ", "\n", "\n\n"])
def test_a_rule_keeps_its_proviso(answered: Callable[..., list[str]], qualifies: str, between: str) -> None:
    """In the same paragraph or the next."""
    rule = "A deposit of Rs. 500 is due for nails."
    said = answered("What deposit is due for nails?", f"{rule}{between}{qualifies}\n\nThe hall is dry.")
    assert [rule, qualifies] == [
        line for line in "\n".join(said).replace(f"{rule} ", f"{rule}\n").split("\n") if line
    ]


@pytest.mark.parametrize(
    ("question", "item"),
    [
        (
            "Within how many years must the roof be inspected?",
            "(i) its roof has been inspected within two years;",
        ),
        ("Must doors close?", "(iii) its doors close."),
    ],
)
def test_an_item_comes_with_its_lead_in(answered: Callable[..., list[str]], question: str, item: str) -> None:
    """An item that follows a nested list comes with the outer list's lead-in."""
    said = answered(question, LISTED)
    assert said[:2] == ["3. A hall is dry enough for nails if:", item]


def test_an_item_of_a_list_in_a_list_comes_with_both_lead_ins(answered: Callable[..., list[str]]) -> None:
    """The outer one first."""
    lines = ["3. A hall is dry enough for nails if:", "(ii) its floor is of stone, which is:", "(b) slate;"]
    said = answered("Is slate enough?", LISTED)
    assert lines == [line for line in said if line in lines]


def test_a_paragraph_after_a_list_is_not_one_of_its_items(answered: Callable[..., list[str]]) -> None:
    """Its number goes on from the lead-in's."""
    assert answered("How often is the keeper of the hall paid?", LISTED)[0] == (
        "4. The keeper of the hall is paid monthly."
    )


def test_a_lead_in_is_not_quoted_without_an_item(answered: Callable[..., list[str]]) -> None:
    """Where the text has lost the items, there is nothing to quote."""
    said = answered(
        "When is a hall dry enough for nails?", "3. A hall is dry enough for nails if:\n4. It rains."
    )
    assert not any("dry enough" in line for line in said)


def test_an_answer_comes_with_its_question_and_no_question_comes_alone(
    answered: Callable[..., list[str]],
) -> None:
    """Of a list of questions and answers, the one that was asked."""
    assert answered("May nails be stored in a cellar?", FAQ)[:2] == [
        "Q. May nails be stored in a cellar?",
        "They may be, if the cellar has a window that opens.",
    ]
    assert "May nails be stored in a cellar?" not in answered("May nails be stored in a cellar?", FAQ[:36])


@pytest.mark.parametrize(
    "change",
    [
        "It is now revised to Rs. 700.",
        "The deposit for nails stands enhanced to Rs. 700.",
        "In that rule, the words “Rs. 500” shall be substituted by “Rs. 700”.",
    ],
)
def test_a_figure_is_shown_with_its_change(answered: Callable[..., list[str]], change: str) -> None:
    """A sentence that recalls the old figure is never quoted without the one that changes it."""
    recalls = "The deposit for nails was Rs. 500."
    said = "\n".join(answered("What is the deposit for nails?", f"{recalls} {change} The hall is dry."))
    assert recalls in said
    assert change in said


def test_a_figure_is_not_quoted_where_only_a_lead_in_changes_it(answered: Callable[..., list[str]]) -> None:
    """The new figure stood in a table below the lead-in, and the text has lost it."""
    lost = "The deposit for nails was Rs. 500. It is now increased as under:\n\nTable content"
    assert answered("What is the deposit for nails?", lost, "Nails are dear.") == ["Nails are dear."]


def test_items_of_a_reference_are_not_quoted(answered: Callable[..., list[str]]) -> None:
    """They name documents; the rule comes after them."""
    text = (
        "Attention of keepers is invited to the following rules for nails:\n"
        "(a) Rules for Nails in Halls;\n(b) Rules for Nails in Cellars.\n"
        "2. Nails are kept dry.\n"
    )
    assert answered("What are the rules for nails?", text) == ["2. Nails are kept dry."]


def test_what_changes_a_figure_goes_before_what_recalls_it(answered: Callable[..., list[str]]) -> None:
    """In whatever order the passages come."""
    old, new = "The deposit for nails is Rs. 500.", "The deposit for nails is now increased to Rs. 700."
    for texts in ((old, new), (new, old)):
        assert answered("What is the deposit for nails?", *texts) == [new, old]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("From when must nails be stored in a hall?", "This is in force from 1 May 2024."),
        ("How much must be paid for nails stored in a hall?", "A sum of Rs. 500 is paid."),
        ("What share of nails stored in a hall may rust?", "Rust is allowed on 5 per cent."),
        ("How often are nails stored in a hall turned?", "Someone turns them every week."),
        ("Who looks after nails stored in a hall?", "The keeper is Acme Trust."),
        ("May nails be stored in a hall?", "The rule is that they shall not."),
    ],
)
def test_a_sentence_that_holds_what_is_asked_for_is_quoted(
    answered: Callable[..., list[str]], question: str, answer: str
) -> None:
    """It follows the one that holds the question's words, and itself holds few of them or none."""
    told = "The nails are stored in a hall, where someone looks after them, turns them and pays for rust."
    assert answer in answered(question, f"{told} {answer}")


def test_a_heading_says_what_the_sentences_under_it_are_about(answered: Callable[..., list[str]]) -> None:
    """Where they state what is asked for, such as a duration, they are quoted though they repeat none of its words."""
    others = [f"Screw {number} is blue." for number in range(4)]
    said = answered("How long are iron nails stored?", "Iron nails\nThey are kept for ninety days.", *others)
    assert ["They are kept for ninety days."] == said


def test_the_sentence_before_a_question_without_content_words_tells_what_is_asked(
    answered: Callable[..., list[str]],
) -> None:
    others = [f"Screw {number} is blue." for number in range(4)]
    said = answered("My nails have rusted. What now?", "Rusted nails go back to the shop.", *others)
    assert ["Rusted nails go back to the shop."] == said


@pytest.mark.parametrize(
    ("question", "text", "kind"),
    [
        ("What is the fee for nails?", "The fee for nails is due at the door.", "an amount"),
        ("On which date is the fee for nails due?", "The fee for nails is due at the door.", "a date"),
        ("Who pays the fee for nails?", "The fee for nails is due at the door.", ""),
        ("What is the fee for nails?", "The fee for nails is Rs. 5.", ""),
        ("What is the fee for nails?", "The fee for nails is in paragraph 23.", "an amount"),
        ("What is the fee for nails?", "The fee for nails is 5 euros.", ""),
        ("How much do the nails weigh?", "The nails weigh 1.4 kg.", ""),
        ("How much oil do the nails need?", "The nails need 3 litres of oil.", ""),
        ("When do the nails arrive?", "The nails arrive on the following Tuesday.", ""),
        ("What net worth must a shop for nails have?", "A shop for nails has net worth.", "an amount"),
        ("What is done for nails when rain falls?", "For nails a roof is built when rain falls.", ""),
        ("Is a fee due for nails?", "The fee for nails is due at the door.", ""),
        ("Why is a fee due for nails?", "The fee for nails is due at the door.", ""),
    ],
)
def test_what_no_quote_states_is_said(
    answered: Callable[..., list[str]], question: str, text: str, kind: str
) -> None:
    """On a line of its own without a mark, where the question says what kind of thing it asks for."""
    assert answered(question, text) == [text, *([f"No sentence quoted states {kind}."] if kind else [])]


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("When are nails sorted?", "From October to March."),
        ("When does the hall open?", "At 8 o'clock."),
        ("When are nails fetched?", "On Fridays."),
        ("How often are nails turned?", "Once a year."),
        ("What is the notice period?", "A fortnight."),
        ("How soon must rust be told?", "On the same day."),
        ("How long is a nail?", "9 centimetres."),
        ("How much notice is due?", "Two months' notice."),
        ("What is the price of a nail?", "CHF 12."),
        ("What is the charge for a bag?", "Bags are free."),
        ("How large is the hall?", "60 square metres."),
        ("What share of nails rusts?", "A third."),
        ("Who sorts the nails?", "The keepers in turn."),
        ("How many nails are in a bag?", "A dozen."),
    ],
)
def test_what_a_quote_may_state_in_other_words_is_not_said_to_be_missing(question: str, quote: str) -> None:
    assert not not_said(question, [quote])


def test_a_line_break_does_not_cut_a_sentence_and_a_heading_is_not_a_part_of_it(
    answered: Callable[..., list[str]],
) -> None:
    """The lines of a page, with a blank line inside a sentence where a page ends."""
    page = (
        "7. Deposit For Nails\n"
        "The deposit for nails that are stored in a public hall is due on the\n"
        "day on which they are brought, and is\n\n"
        "Rs. 500 for each box.\n"
    )
    assert "\n".join(answered("What is the deposit for nails?", page)) == page.partition("\n")[2].strip()
