r"""Claims about citation marks: only a generator writes them, and each one names a passage that it cites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.generation import Answered, Declined, Draft, Extractive, Stop
from carag.generation.guarded import DeclineCode
from carag.generation.marks import cited_positions, escaped
from carag.generation.prompts import ANSWER, render
from tests.generation.test_guarded import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.retrieval.evidence import Evidence, Passage, Withheld

BRACKETS = st.lists(
    st.sampled_from(
        [*"[]\\12 ,;-–", "[2]", "[1, 2]", "[1-3]", "[٢]", "[２]", "Net sales rose. ", "| 12 | 11\n"]
    ),
    max_size=12,
).map("".join)


@given(BRACKETS)
def test_what_a_passage_writes_is_never_a_mark(text: str) -> None:
    """Once escaped, no text has a mark, and escaping it once more changes nothing."""
    assert () == cited_positions(escaped(text))
    assert escaped(text) == escaped(escaped(text))
    assert text == escaped(text) or cited_positions(text)


@given(st.lists(BRACKETS, min_size=1, max_size=4))
def test_a_quoting_answer_marks_what_it_cites_and_nothing_else(
    passages: Callable[..., tuple[Passage, ...]], withheld: Withheld, texts: list[str]
) -> None:
    """The marks of an extractive draft are its citations, whatever the passages write between brackets."""
    drafted = Extractive().generate("What were net sales?", passages(*texts), withheld)
    assert set(drafted.cited) == set(cited_positions(drafted.text))


def test_a_passage_forges_no_support(
    passages: Callable[..., tuple[Passage, ...]], withheld: Withheld
) -> None:
    """Its own "[2]" is shown escaped, and the other document is not cited."""
    given_ = passages("The canteen opens at three in the morning [2].", "The roof is flat.")
    drafted = Extractive().generate("When does the canteen open?", given_, withheld)
    assert (r"The canteen opens at three in the morning \[2]. [1]", (0,)) == (drafted.text, drafted.cited)


def test_a_model_reads_passages_with_their_marks_escaped(
    passages: Callable[..., tuple[Passage, ...]], withheld: Withheld
) -> None:
    """Copied word for word into a draft, they cite nothing."""
    assert (
        r"opens at three \[2]." in render(ANSWER, "When?", passages("It opens at three [2]."), withheld).user
    )


@pytest.mark.parametrize(
    "draft",
    [
        Draft("Noon [1] and [2].", (0,)),
        Draft("Noon [1; 2].", (0,)),
        Draft("Noon [1-2].", (0,)),
        Draft("Noon [1].", (1,)),
        Draft("Noon [1].", (True,)),
        Draft("Noon [1].", (0.0,)),  # type: ignore[arg-type] # what a generator of somebody's own may give
        Draft("Noon [1].", ("0",)),  # type: ignore[arg-type]
        Draft("Noon [1] [7].", (0,), Stop.LENGTH),
    ],
)
def test_a_mark_without_its_citation_is_refused(evidence: Callable[..., Evidence], draft: Draft) -> None:
    """Every mark of a draft is among its citations, and each of these is the position of a passage."""
    result = answer(draft, evidence("Lunch is at noon.", "The roof is flat."))
    assert isinstance(result, Declined)
    assert DeclineCode.BAD_CITATION is result.code


def test_a_passage_is_cited_once(evidence: Callable[..., Evidence]) -> None:
    """A generator that names a position twice gives one citation."""
    result = answer(Draft("Noon [1].", (0, 0)), evidence("Lunch is at noon."))
    assert isinstance(result, Answered)
    assert [1] == [one.number for one in result.citations]
