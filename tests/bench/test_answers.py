"""Stated answers about the AI Act: what the variant stance decides of them, and what is said of its worth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.metric.answers import HERE, measured, pairs
from bench.metric.corpora import ActCorpus, act
from carag.evaluation.regulatory import Regulatory, Settings, StanceHead, Variant
from carag.evaluation.regulatory.agreement import AGREEMENT

if TYPE_CHECKING:
    from pathlib import Path

MODELS = {Variant.PAPER: "maxsim", Variant.REFERENCE: "maxsim", Variant.STANCE: "stance-head"}


@pytest.mark.parametrize(("name", "count"), [("stated", 40), ("blind", 20)])
def test_half_of_the_answers_are_violations(name: str, count: int) -> None:
    rows = pairs(name)
    assert len(rows) == len({row["id"] for row in rows}) == count
    assert sum(row["verdict"] == "NON_COMPLIANT" for row in rows) == count // 2
    assert {row["verdict"] for row in rows} == {"COMPLIANT", "NON_COMPLIANT"}


@pytest.mark.release
def test_what_is_decided_of_the_stated_answers_is_right(shared_data: Path) -> None:
    """At least 24 of 40 are decided, 85 % of these right, and at most two violations called compliant."""
    from carag.retrieval import embedder_by_name

    rows = pairs("stated")
    articles = {
        name: text for name, text in act(shared_data).items() if name in {row["article"] for row in rows}
    }
    settings = Settings(variant=Variant.STANCE)
    metric = Regulatory(ActCorpus(articles), embedder_by_name("minilm"), StanceHead(), settings)
    found = measured(metric, rows)
    assert found["decided"][0] >= 24
    assert found["right of decided"][0] >= 0.85 * found["decided"][0]
    assert found["violations called COMPLIANT"][0] <= 2


@pytest.mark.parametrize("variant", Variant)
def test_the_agreement_shown_is_the_one_measured(variant: Variant) -> None:
    """Of the default models: what a terminal and a page say is what the benchmark's results hold."""
    kept = json.loads((HERE / "results.json").read_text("utf-8"))
    part = kept["stance"]["documentation"] if variant is Variant.STANCE else kept["joint"]["excerpts"]
    row = part["figures"][f"minilm × {MODELS[variant]}, {variant.value}"]
    shown, kappa = AGREEMENT[variant], row["kappa"]
    assert (shown.kappa, shown.low, shown.high) == tuple(
        round(kappa[one], 3) for one in ("value", "low", "high")
    )
    assert (shown.n, shown.decided) == (part["n"], row["said"]["COMPLIANT"] + row["said"]["NON_COMPLIANT"])
