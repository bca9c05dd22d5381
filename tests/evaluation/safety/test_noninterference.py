"""Stores rebuilt without what is hidden give the same answers, and a difference of one bit is seen."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from carag.evaluation.safety.noninterference import compare_rebuilt_stores, session_view
from carag.policy import Session
from tests.sizes import SIZE

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.evaluation.systems.systems import Systems
    from tests.evaluation.conftest import Small

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"


def test_what_is_hidden_changes_nothing(
    small: Small, pairs: list[Pair], models: Models, tmp_path: Path
) -> None:
    """Through Engine.ask, against stores rebuilt without it."""
    # The engine of the other fixture holds the store: ask in a copy.
    store = tmp_path / "store"
    shutil.copytree(small.built.store, store, ignore=shutil.ignore_patterns("*.lock"))
    some = pairs[: 6 if SIZE == "quick" else 12]
    result = compare_rebuilt_stores(store, small.truth, some, tmp_path, models)
    assert result.asked == len(some)
    assert result.rows_deleted > (200 if SIZE == "quick" else 500)
    assert result.differing == ()


def test_the_comparison_sees_a_difference(small: Small, systems: Systems) -> None:
    """Its eyes are tested: one bit of one similarity, one passage more."""
    answer = systems.engine.ask(QUESTION, Session(role="buy_side", purpose="invest"))
    nearly = replace(answer.passages[0], similarity=float(np.nextafter(answer.passages[0].similarity, 2)))
    assert session_view(answer) == session_view(replace(answer, receipt=None))  # type: ignore[arg-type]
    assert session_view(answer) != session_view(replace(answer, passages=(nearly, *answer.passages[1:])))
    assert session_view(answer) != session_view(replace(answer, passages=answer.passages[:-1]))
    assert session_view(answer) != session_view(replace(answer, text=answer.text + " "))
