"""A system's output is scored by the ground truth, whatever the system says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from carag.evaluation.systems.scoring import row_of

if TYPE_CHECKING:
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.systems.systems import Systems
    from tests.evaluation.conftest import Small


def test_the_judge_does_not_believe_a_system(small: Small, systems: Systems, pairs: list[Pair]) -> None:
    """A search that lets one hidden chunk through is seen, whatever it says of itself."""
    pair = next(one for one in pairs if one.stratum.share == "void" and one.gold_rows)
    oracle = systems.ask("oracle", pair)
    hidden = pair.gold_rows[0]
    leaking = replace(
        oracle,
        retrieved=(hidden,),
        shown=(small.truth.ids[hidden],),
        text=small.truth.text(hidden),
        outcome="answer",
    )
    row = row_of(small.truth, pair, "carag-auto", leaking, oracle, embedder="e", generator="g", seed=0)
    assert row.retrieved_admissible == (False,)
    assert row.touched == (small.truth.ids[hidden],)
    assert row.ngram_overlap > 0.5
    assert row.existence_disclosed
