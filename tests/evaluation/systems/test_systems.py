"""Systems find what their policy lets them, and only those that ignore it violate it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.evaluation.cases.pairs import cross
from carag.evaluation.row import SYSTEMS, K
from carag.evaluation.systems.scoring import row_of
from carag.evaluation.systems.systems import Systems
from carag.policy import Session

if TYPE_CHECKING:
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from tests.evaluation.conftest import Small

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"


def test_a_session_the_table_refuses_is_refused_by_all_that_know_it(small: Small, systems: Systems) -> None:
    session = Session(role="auditor", purpose="publish")
    assert small.truth.admissible(session, QUESTION) is None
    pair = replace(
        cross(small.truth, small.built.questions, small.built.gold, small.embedder.vectors, count=1, seed=0)[
            0
        ],
        session=session,
    )
    for name in SYSTEMS:
        outcome = systems.ask(name, pair).outcome
        assert (outcome == "refuse") == (name not in {"vanilla", "prefilter-rbac"}), name


def test_certified_and_auto_find_what_the_oracle_finds(systems: Systems, pairs: list[Pair]) -> None:
    """At this size every plan is exact; so are text and outcome the same."""
    for pair in pairs:
        oracle = systems.ask("oracle", pair)
        for name in ("carag-certified", "carag-auto"):
            said = systems.ask(name, pair)
            assert (said.retrieved, said.shown, said.outcome, said.text) == (
                oracle.retrieved,
                oracle.shown,
                oracle.outcome,
                oracle.text,
            )


def test_only_systems_that_ignore_the_policy_violate_it(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    violating = dict.fromkeys(SYSTEMS, 0)
    touching = dict.fromkeys(SYSTEMS, 0)
    for pair in pairs[::3]:
        oracle = systems.ask("oracle", pair)
        for name in SYSTEMS:
            row = row_of(
                small.truth,
                pair,
                name,
                systems.ask(name, pair),
                oracle,
                embedder="e",
                generator="g",
                seed=0,
            )
            violating[name] += not all(row.retrieved_admissible)
            touching[name] += bool(row.touched)
    assert {name for name, count in violating.items() if count} == {"vanilla", "prefilter-rbac"}
    assert {name for name, count in touching.items() if count} == {
        "vanilla",
        "prefilter-rbac",
        "carag-withheld-text",
    }


def test_postfilter_returns_too_few_and_says_so_by_its_count(systems: Systems, pairs: list[Pair]) -> None:
    short = [pair for pair in pairs if len(systems.ask("postfilter-1", pair).retrieved) < K]
    assert short
    assert all(
        len(systems.ask("postfilter-1", pair).retrieved) <= len(systems.ask("postfilter-16", pair).retrieved)
        for pair in short
    )


def test_an_unknown_system_is_refused(small: Small, models: Models) -> None:
    with pytest.raises(InvalidArgument, match="no system best"):
        Systems(
            small.built.store,
            small.truth,
            models,
            seed=0,
            names=["best"],
        )
