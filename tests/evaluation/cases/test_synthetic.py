"""Questions built from metadata fill the strata that real ones leave empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.evaluation.cases.synthetic import built_pairs, company_pairs

if TYPE_CHECKING:
    from tests.evaluation.conftest import Small


def test_built_questions_fill_the_strata_between(small: Small) -> None:
    found = built_pairs(small.truth, small.embedder, count=20, seed=0)
    assert {"tight", "medium"} <= {pair.stratum.share for pair in found}
    for pair in found:
        assert len({small.truth.filers[row] for row in pair.gold_rows}) == 4
        assert pair.kind == "built"


def test_one_pair_is_built_for_each_company_that_is_not_left_out(small: Small) -> None:
    every = company_pairs(small.truth, small.embedder, seed=0)
    filers = [pair.filer for pair in every]
    assert filers == sorted(set(filers))
    assert len(filers) > 10
    assert every == company_pairs(small.truth, small.embedder, seed=0)
    assert every != company_pairs(small.truth, small.embedder, seed=1)
    for pair in every:
        assert {small.truth.filers[row] for row in pair.gold_rows} == {pair.filer}
        assert small.truth.filing(pair.gold_rows[0]).company in pair.question.text
    some = company_pairs(small.truth, small.embedder, left_out=filers[::2], seed=0)
    assert [pair.filer for pair in some] == filers[1::2]
