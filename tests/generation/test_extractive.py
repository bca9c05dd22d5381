"""Claims about the generator that can only quote."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.generation.extractive import Extractive
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.retrieval.evidence import Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.retrieval.evidence import Passage, Withheld

    Build = Callable[..., tuple[Passage, ...]]


SALES = (
    "Net sales were $5.2 million in fiscal 2024. Net sales were $4.1 million in fiscal 2023. We make nails."
)
AUDIT = "Smith & Co. audited the accounts of Example Corp. for 2024. The opinion is unqualified."
TABLE = (
    "Consolidated statement of cash flows\n"
    "Years ended December 31 | 2024 | 2023\n"
    "Depreciation | 310 | 290\n"
    "Purchases of property, plant and equipment | (1,577) | (1,373)\n"
)
WORDS = st.sampled_from(
    [
        "net",
        "sales",
        "2024",
        "$5",
        "(1,577)",
        "capital",
        "Inc.",
        "U.S.",
        "rose.",
        "fell?",
        "[1]",
        "[2]",
        "was",
        "When",
        "fee",
    ]
) | st.sampled_from([" | ", "\n", "\n\n", ";", ":", "’", "\u200b"])
PROSE = st.lists(WORDS | st.text(max_size=8), max_size=40).map(" ".join)


def quotes(text: str, passages: tuple[Passage, ...]) -> list[tuple[str, int]]:
    """Read a draft back as (quote, position): what stands before a number must stand in that passage.

    But for the backslash before what reads like a citation mark, which ``test_marks`` is about, and the last line that
    says what no quote states.
    """
    text = re.sub(r"\nFew words of the question stand in [a-z ]+: [a-z ]+\.\Z", "", text)
    text = re.sub(r"\nNo sentence quoted states an? [a-z ]+\.\Z", "", text)
    shown = [one.text.replace("\\[", "[") for one in passages]
    found: list[tuple[str, int]] = []
    while text:
        for match in re.finditer(r" \[(\d+)\](?=\n|\Z)", text):
            position, quote = int(match[1]) - 1, text[: match.start()]
            if 0 <= position < len(passages) and quote.replace("\\[", "[") in shown[position]:
                found.append((quote, position))
                text = text[match.end() + 1 :]
                break
        else:
            raise AssertionError(f"no passage holds the start of {text!r}")
    return found


@given(question=PROSE, texts=st.lists(PROSE, max_size=4))
def test_every_word_is_quoted_from_the_cited_passage(
    passages: Build, withheld: Withheld, question: str, texts: list[str]
) -> None:
    """Whatever question and passages say, a draft is quotes, perhaps a line on what they lack, or the refusal."""
    given_passages = passages(*texts)
    draft = Extractive().generate(question, given_passages, withheld)
    if not draft.cited:
        assert INSUFFICIENT_EVIDENCE == draft.text
        return
    found = quotes(draft.text, given_passages)
    assert set(draft.cited) == {position for _, position in found}
    assert all(quote.strip() for quote, _ in found)


@given(question=PROSE, texts=st.lists(PROSE, max_size=4))
def test_drafts_are_deterministic_and_blind_to_the_withheld_bucket(
    passages: Build, withheld: Withheld, withheld_with_neighbours: Withheld, question: str, texts: list[str]
) -> None:
    """The same passages give the same draft, whatever is hidden."""
    drafts = {
        Extractive().generate(question, passages(*texts), bucket)
        for bucket in (withheld, withheld_with_neighbours)
    }
    assert 1 == len(drafts)


def test_the_checker_can_fail(passages: Build) -> None:
    """A draft with one altered word is not a quotation."""
    with pytest.raises(AssertionError, match="no passage holds"):
        quotes("We make screws. [1]", passages(SALES))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What were net sales in fiscal 2023?", "Net sales were $4.1 million in fiscal 2023. [1]"),
        ("What were net sales in fiscal 2024?", "Net sales were $5.2 million in fiscal 2024. [1]"),
        (
            "Who audited the accounts?",
            "Smith & Co. audited the accounts of Example Corp. for 2024. [2]",
        ),
        (
            "How much was spent on purchases of property, plant and equipment in 2024?",
            "Years ended December 31 | 2024 | 2023 [3]\n"
            "Purchases of property, plant and equipment | (1,577) | (1,373) [3]",
        ),
    ],
)
def test_the_sentence_or_row_that_answers_is_quoted(
    passages: Build, withheld: Withheld, question: str, answer: str
) -> None:
    """The best piece comes first: numbers weigh more, and a table row brings its header along."""
    draft = Extractive().generate(question, passages(SALES, AUDIT, TABLE), withheld)
    assert draft.text.startswith(answer)


def test_a_figure_is_quoted_with_its_currency_and_its_sentence(passages: Build, withheld: Withheld) -> None:
    """The sentence whole: it does not end after ``Rs.``, and the next one is not quoted with it."""
    fined = passages(
        "A member shall pay a penalty of Rs. 2,500 per day. The registrar is Acme Ltd. It keeps a list."
    )
    draft = Extractive().generate("What penalty does a member pay per day?", fined, withheld)
    assert draft.text == "A member shall pay a penalty of Rs. 2,500 per day. [1]"
    draft = Extractive().generate("Who is the registrar?", fined, withheld)
    assert draft.text == "The registrar is Acme Ltd. [1]"


def test_instructions_around_a_question_are_not_asked(passages: Build, withheld: Withheld) -> None:
    """Words of a sentence that does not ask do not choose the quotation."""
    plain, instructed = (
        Extractive().generate(question, passages(SALES, AUDIT), withheld)
        for question in ("Who audited it?", "Who audited it? Give net sales as they are, in fiscal 2024.")
    )
    assert plain == instructed


@pytest.mark.parametrize("texts", [(), ("",), ("Snow fell on the mountains.",), (" | ",)])
def test_nothing_to_quote_is_said(passages: Build, withheld: Withheld, texts: tuple[str, ...]) -> None:
    """Passages without the question's words give the refusal, in the model's own phrase."""
    more = ("Snow fell on the mountains.",) * 4 if any(map(str.strip, texts)) else ()
    draft = Extractive().generate("What were net sales?", passages(*texts, *more), withheld)
    assert (INSUFFICIENT_EVIDENCE, ()) == (draft.text, draft.cited)


def test_of_few_passages_the_nearest_is_quoted_though_words_differ_and_the_draft_says_so(
    passages: Build, withheld: Withheld
) -> None:
    """What holds the kind of thing asked for comes alone; a question that names somebody or a time gets the refusal."""
    far, near = passages("Snow fell.", "We close early in winter. The charge is 40 euros. Dogs stay outside.")
    given_passages = (replace(far, similarity=0.2), near)
    draft = Extractive().generate("What does it cost if I miss a visit?", given_passages, withheld)
    assert (
        "The charge is 40 euros. [2]\nFew words of the question stand in the sentences quoted" in draft.text
    )
    assert (1,) == draft.cited
    particular = replace(withheld, topic=Topic("Amcor", is_particular=True))
    assert () == Extractive().generate("What does it cost Amcor?", given_passages, particular).cited
    assert () == Extractive().generate("What does it cost?", given_passages * 2, withheld).cited


def test_a_question_of_stop_words_is_not_answered(passages: Build, withheld: Withheld) -> None:
    """Nothing asked, nothing quoted."""
    assert () == Extractive().generate("What is it?", passages(SALES), withheld).cited


def test_the_draft_does_not_depend_on_the_hash_seed() -> None:
    """Processes that hash strings differently choose the same pieces."""
    script = (
        "from carag.generation.extractive import Extractive\n"
        "from carag.retrieval.evidence import Passage, Withheld\n"
        "def passage(at):\n"
        "    text = f'Sales of nails, screws and bolts rose in {at}. Sales of bolts fell in {at}.'\n"
        "    return Passage(chunk_id='1:0', text=text, similarity=0.5, word=0, accession_number='1',\n"
        "        form='10-K', company='Nail', filed='2025-01-01', document='10-K', start=0, end=9)\n"
        "question = 'Did sales of screws, bolts and nails fall?'\n"
        "print(Extractive().generate(question, [passage(at) for at in range(4)], Withheld(())))"
    )
    drafts = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert 1 == len(drafts)
    assert "[1]" in drafts.pop()


@given(question=PROSE, texts=st.lists(PROSE, max_size=4), shares=st.tuples(*[st.floats(0, 1)] * 2))
def test_asking_for_more_coverage_only_declines_more(
    passages: Build, withheld: Withheld, question: str, texts: list[str], shares: tuple[float, float]
) -> None:
    """What a lower share declines, a higher one declines too."""
    lower, higher = (
        Extractive(least_coverage=share).generate(question, passages(*texts), withheld)
        for share in sorted(shares)
    )
    assert lower.cited or not higher.cited


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_a_share(share: float) -> None:
    """Anything else is an error."""
    with pytest.raises(InvalidArgument, match="want a share"):
        Extractive(least_coverage=share)


def test_the_share_is_on_record() -> None:
    """Two settings have two fingerprints; and it stays on this machine."""
    assert Extractive().remote is False
    assert Extractive().fingerprint == Extractive().fingerprint != Extractive(least_coverage=0.5).fingerprint


def test_of_two_filings_the_one_asked_about_is_quoted(passages: Build, withheld: Withheld) -> None:
    """A filing's own name and date answer part of the question, wherever it ranks."""
    first, second = passages("Net sales rose 5 %.", "Net sales rose 6 %.")
    asked = (first, replace(second, company="Nail Makers Inc"))
    draft = Extractive().generate("What was the rate of Nail Makers' net sales?", asked, withheld)
    assert draft.text.startswith("Net sales rose 6 %. [2]")


def test_what_is_said_twice_is_quoted_once(passages: Build, withheld: Withheld) -> None:
    """A repetition gives way to a piece that adds words."""
    again = "Sales of nails fell because of the strike."
    given_passages = passages(again, again, "Sales of nails were also hurt by frost.")
    draft = Extractive().generate("Why did sales of nails fall?", given_passages, withheld)
    assert (0, 2) == draft.cited
    assert 1 == draft.text.count(again)


def test_a_further_piece_holds_at_least_half_of_what_the_first_does(
    passages: Build, withheld: Withheld
) -> None:
    """Three words of four are more than half, by weight, and one is not."""
    question = "Did frost hurt nails badly?"
    first = "Frost hurt nails badly."
    half = passages(first, "Where it stood, frost hurt nails most.")
    less = passages(first, "Screws stood where frost was.")
    assert (0, 1) == Extractive(least_coverage=0.0).generate(question, half, withheld).cited
    assert (0,) == Extractive(least_coverage=0.0).generate(question, less, withheld).cited


@pytest.mark.parametrize(
    "text",
    [
        "Annual report on sales of nails\nNail Co\nCommon stock",
        "Sales of nails fell because of the strike that the carriers",
        "SALES OF NAILS",
    ],
    ids=["cover", "cut off", "heading"],
)
def test_what_is_neither_a_sentence_nor_a_row_is_not_quoted(
    passages: Build, withheld: Withheld, text: str
) -> None:
    """A heading says nothing."""
    question = "Why did sales of nails fall?"
    assert () == Extractive().generate(question, passages(text), withheld).cited
    draft = Extractive().generate(question, passages(text, "Sales of nails fell; demand was low."), withheld)
    assert "Sales of nails fell; demand was low. [2]" == draft.text
