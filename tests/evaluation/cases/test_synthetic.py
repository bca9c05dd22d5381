"""Questions built from metadata fill the strata that real ones leave empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.evaluation.cases.synthetic import built_pairs

if TYPE_CHECKING:
    from tests.evaluation.conftest import Small


def test_built_questions_fill_the_strata_between(small: Small) -> None:
    found = built_pairs(small.truth, small.embedder, count=20, seed=0)
    assert {"tight", "medium"} <= {pair.stratum.share for pair in found}
    for pair in found:
        assert len({small.truth.filers[row] for row in pair.gold_rows}) == 4
        assert pair.kind == "built"
