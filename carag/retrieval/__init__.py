"""Find evidence for a question: embedders, retriever, rerankers and confidence gate."""

from __future__ import annotations

from carag.retrieval.catalogue import Catalogue
from carag.retrieval.confidence.calibration import (
    Drift,
    conformal_threshold,
    questions_wanted,
    selective_threshold,
)
from carag.retrieval.confidence.gate import BASELINE, ConfidenceGate, top_similarity
from carag.retrieval.confidence.shipped import calibrations_of, gate_for, threshold_for
from carag.retrieval.cross_encoder import CrossEncoder
from carag.retrieval.embedder import Embedder, headed
from carag.retrieval.evidence import Evidence, Hidden, Passage, Topic, Withheld
from carag.retrieval.jina import JinaReranker
from carag.retrieval.openai import OpenAiEmbedder
from carag.retrieval.own import own_embedder
from carag.retrieval.past_index import PastIndex, add_labels
from carag.retrieval.ranking import (
    FUSED,
    RANKERS,
    diversity_of,
    ranker_by_name,
    share_of,
    terms_of,
    topic_of,
)
from carag.retrieval.registry import (
    DEFAULT_EMBEDDER,
    EMBEDDERS,
    RERANKERS,
    any_reranker,
    embedder_by_name,
    is_embedder,
    made,
    reranker_by_name,
)
from carag.retrieval.reranker import Reranker, own_reranker
from carag.retrieval.retriever import EXACT_LIMIT, Retriever, passage_of
from carag.retrieval.words import KeptWords, add_words

__all__ = [
    "BASELINE",
    "DEFAULT_EMBEDDER",
    "EMBEDDERS",
    "EXACT_LIMIT",
    "FUSED",
    "RANKERS",
    "RERANKERS",
    "Catalogue",
    "ConfidenceGate",
    "CrossEncoder",
    "Drift",
    "Embedder",
    "Evidence",
    "Hidden",
    "JinaReranker",
    "KeptWords",
    "OpenAiEmbedder",
    "Passage",
    "PastIndex",
    "Reranker",
    "Retriever",
    "Topic",
    "Withheld",
    "add_labels",
    "add_words",
    "any_reranker",
    "calibrations_of",
    "conformal_threshold",
    "diversity_of",
    "embedder_by_name",
    "gate_for",
    "headed",
    "is_embedder",
    "made",
    "own_embedder",
    "own_reranker",
    "passage_of",
    "questions_wanted",
    "ranker_by_name",
    "reranker_by_name",
    "selective_threshold",
    "share_of",
    "terms_of",
    "threshold_for",
    "top_similarity",
    "topic_of",
]
