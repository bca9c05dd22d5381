"""Decide whether evidence is good enough for a generator to be called, by a threshold with a stated error."""

from __future__ import annotations

from carag.retrieval.confidence.calibration import (
    Drift,
    conformal_threshold,
    questions_wanted,
    selective_threshold,
)
from carag.retrieval.confidence.gate import BASELINE, ConfidenceGate, top_similarity
from carag.retrieval.confidence.shipped import Calibration, calibrations_of, gate_for, threshold_for

__all__ = [
    "BASELINE",
    "Calibration",
    "ConfidenceGate",
    "Drift",
    "calibrations_of",
    "conformal_threshold",
    "gate_for",
    "questions_wanted",
    "selective_threshold",
    "threshold_for",
    "top_similarity",
]
