"""Filters are compared, and not heads: the compared systems get heads as CARAG does, from what their mask admits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from carag import Engine
from carag.evaluation.cases.ground_truth import GroundTruth
from tests.engine.test_heads import BUY_SIDE, QUESTION, report

if TYPE_CHECKING:
    from pathlib import Path


def test_the_ground_truth_gives_the_heads_that_the_engine_gives(tmp_path: Path) -> None:
    """To the passages that begin inside a table, from a chunk before them that a mask admits, and from no other."""
    (tmp_path / "report.txt").write_text(report())
    with Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        engine.ingest(tmp_path / "report.txt")
        ours = {one.chunk_id: one.head for one in engine.retrieve(QUESTION, BUY_SIDE).passages}
    truth = GroundTruth.open(tmp_path / "store", now=datetime.now(UTC))
    passages = truth.passages(range(len(truth)), [0.0] * len(truth))
    mask = np.ones(len(truth), np.bool_)
    assert {one.chunk_id: one.head for one in truth.with_heads(passages, mask)} == ours
    [head] = [one for one in ours.values() if one is not None]
    mask[truth.row_of[head.chunk_id]] = False
    assert [None] * len(truth) == [one.head for one in truth.with_heads(passages, mask)]
    truth.store.close()
