"""Find evidence for questions: embedders, the retriever and the confidence gate."""

from __future__ import annotations

from carag.retrieval.calibration import conformal_threshold, questions_wanted
from carag.retrieval.embedder import Embedder, headed
from carag.retrieval.evidence import Evidence, Hidden, Passage, Withheld
from carag.retrieval.gate import ConfidenceGate, gate_for, threshold_for, top_similarity
from carag.retrieval.own import own_embedder
from carag.retrieval.past_index import PastIndex, add_labels
from carag.retrieval.registry import DEFAULT_EMBEDDER, EMBEDDERS, embedder_by_name
from carag.retrieval.retriever import EXACT_LIMIT, Retriever

__all__ = [
    "DEFAULT_EMBEDDER",
    "EMBEDDERS",
    "EXACT_LIMIT",
    "ConfidenceGate",
    "Embedder",
    "Evidence",
    "Hidden",
    "Passage",
    "PastIndex",
    "Retriever",
    "Withheld",
    "add_labels",
    "conformal_threshold",
    "embedder_by_name",
    "gate_for",
    "headed",
    "own_embedder",
    "questions_wanted",
    "threshold_for",
    "top_similarity",
]
