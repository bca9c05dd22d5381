"""What is said to have reached a model is what did."""

from __future__ import annotations

import pytest

from carag.evaluation.models import Recorded
from carag.generation import Draft, Extractive
from carag.retrieval import Passage, Withheld


def passage(at: int) -> Passage:
    return Passage(
        chunk_id=f"1:{at}",
        text="Net sales rose.",
        similarity=0.5,
        word=0,
        accession_number="1",
        form="10-K",
        company="Nail",
        filed="2025-01-01",
        document="10-K",
        start=0,
        end=15,
    )


class Few(Extractive):
    """A generator that shows its model some of the passages, and says how many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most_passages = most

    def generate(self, question: str, passages: object, withheld: Withheld) -> Draft:
        return Draft("Yes. [1]", (0,))


@pytest.mark.parametrize(("most", "shown"), [(1, 1), (2, 2), (9, 3)])
def test_only_passages_that_the_model_was_shown_are_noted(most: int, shown: int) -> None:
    recorded = Recorded(Few(most))
    recorded.generate("Did net sales rise?", [passage(at) for at in range(3)], Withheld(()))
    assert recorded.shown == tuple(f"1:{at}" for at in range(shown))


def test_of_a_generator_that_shows_all_all_are_noted() -> None:
    recorded = Recorded(Extractive())
    recorded.generate("Did net sales rise?", [passage(at) for at in range(3)], Withheld(()))
    assert recorded.shown == ("1:0", "1:1", "1:2")
