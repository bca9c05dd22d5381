"""Systems find what their policy lets them, and only those that ignore it violate it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.evaluation.row import SYSTEMS, K
from carag.evaluation.systems.scoring import row_of
from carag.evaluation.systems.systems import Systems
from carag.policy import Session

if TYPE_CHECKING:
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.evaluation.systems.output import Output
    from tests.evaluation.conftest import Small

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"


def test_a_session_the_table_refuses_is_refused_by_all_that_know_it(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    session = Session(role="auditor", purpose="publish")
    assert small.truth.admissible(session, QUESTION) is None
    pair = replace(pairs[0], session=session)
    for name in SYSTEMS:
        outcome = systems.ask(name, pair).outcome
        assert (outcome == "refuse") == (name not in {"vanilla", "prefilter-rbac"}), name


@pytest.fixture(scope="module")
def asked(systems: Systems, pairs: list[Pair]) -> list[tuple[Pair, dict[str, Output]]]:
    """What every system says to every third pair."""
    return [(pair, {name: systems.ask(name, pair) for name in SYSTEMS}) for pair in pairs[::3]]


def test_certified_and_auto_find_what_the_oracle_finds(asked: list[tuple[Pair, dict[str, Output]]]) -> None:
    """At this size every plan is exact, so text and outcome are the same too."""
    for _, said in asked:
        of = {name: (one.retrieved, one.shown, one.outcome, one.text) for name, one in said.items()}
        assert of["carag-certified"] == of["carag-auto"] == of["oracle"]


def test_only_systems_that_ignore_the_policy_violate_it(
    small: Small, asked: list[tuple[Pair, dict[str, Output]]]
) -> None:
    rows = [
        row_of(small.truth, pair, name, one, said["oracle"], embedder="e", generator="g", seed=0)
        for pair, said in asked
        for name, one in said.items()
    ]
    violating = {"vanilla", "prefilter-rbac"}
    assert {row.system for row in rows if not all(row.retrieved_admissible)} == violating
    assert {row.system for row in rows if row.touched} == violating | {"carag-withheld-text"}


def test_postfilter_returns_too_few_and_shows_it_by_its_count(
    asked: list[tuple[Pair, dict[str, Output]]],
) -> None:
    counts = [[len(said[f"postfilter-{times}"].retrieved) for times in (1, 16)] for _, said in asked]
    assert any(few < K for few, _ in counts)
    assert all(few <= many for few, many in counts)


def test_an_unknown_system_is_refused(small: Small, models: Models) -> None:
    with pytest.raises(InvalidArgument, match="no system best"):
        Systems(small.built.store, small.truth, models, seed=0, names=["best"])
