"""What is reported to have reached a model is what did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from carag.evaluation.models import RecordingGenerator
from carag.generation import Draft, Extractive
from carag.policy import Reason, Rule
from carag.retrieval import Passage, Withheld
from carag.retrieval.evidence import Head
from tests.generation.conftest import build_passage

if TYPE_CHECKING:
    from carag.generation import Generator


def passage(at: int) -> Passage:
    return replace(build_passage(ordinal=at), chunk_id=f"1:{at}")


class Few(Extractive):
    """A generator that shows its model some of the passages, and says how many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most_passages = most

    def generate(self, question: str, passages: object, withheld: Withheld) -> Draft:
        return Draft("Yes. [1]", (0,))


@pytest.mark.parametrize(("generator", "shown"), [(Few(1), 1), (Few(2), 2), (Few(9), 3), (Extractive(), 3)])
def test_only_passages_that_the_model_was_shown_are_noted(generator: Generator, shown: int) -> None:
    recorded = RecordingGenerator(generator)
    recorded.generate("Did net sales rise?", [passage(at) for at in range(3)], Withheld(()))
    assert recorded.shown == tuple(f"1:{at}" for at in range(shown))


@pytest.mark.parametrize(("most", "shown"), [(1, "09"), (2, "019"), (9, "01298")])
def test_what_lends_head_rows_to_a_passage_that_was_shown_was_shown_too(most: int, shown: str) -> None:
    """Once, and after the passages; that of a passage that the model was not shown was not."""
    heads = [Head(f"1:{at}", 0, 4, "2022") for at in (9, 0, 8)]
    passages = [replace(passage(at), head=head) for at, head in enumerate(heads)]
    recorded = RecordingGenerator(Few(most))
    recorded.generate("Did net sales rise?", passages, Withheld(()))
    assert recorded.shown == tuple(f"1:{at}" for at in shown)


class Counting(Few):
    """A generator that counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(9)
        self.asked = 0

    def generate(self, question: str, passages: object, withheld: Withheld) -> Draft:
        self.asked += 1
        return super().generate(question, passages, withheld)


@pytest.mark.parametrize(("once", "asked"), [(True, 5), (False, 7)])
def test_a_slow_model_is_asked_the_same_thing_once(once: bool, asked: int) -> None:
    """Another question, passage, head or withheld kind makes a new call; the time is that of the first call."""
    counting = Counting()
    recorded = RecordingGenerator(counting, once=once)
    kinds = Withheld((Reason(Rule.FORBIDDEN, (), "drafts"),))
    things = [
        ("Did net sales rise?", [passage(0)], Withheld(())),
        ("Did net sales fall?", [passage(0)], Withheld(())),
        ("Did net sales rise?", [passage(0), passage(1)], Withheld(())),
        ("Did net sales rise?", [passage(0)], kinds),
        ("Did net sales rise?", [replace(passage(0), head=Head("1:9", 0, 4, "2022"))], Withheld(())),
    ]
    said, took = [], []
    for thing in [*things, things[0], things[3]]:
        recorded.forget()
        said.append(recorded.generate(*thing))
        took.append((recorded.milliseconds, recorded.saved))
    assert asked == counting.asked
    assert said[0] == said[5]
    assert [saved for _, saved in took[:5]] == [0] * 5
    assert (took[5] == (took[0][0], took[0][0])) == once
