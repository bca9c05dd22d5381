"""Order admissible rows by one score: similarity, words, and what the question names."""

from __future__ import annotations

from carag.retrieval.ranking.diversity import Diverse, diversity_of
from carag.retrieval.ranking.fusion import NAMED, SIMILARITY, WORDS, Best, Bonuses, Nearest, best_of, bonuses
from carag.retrieval.ranking.named import RANKERS, ranker_by_name
from carag.retrieval.ranking.ranker import (
    DENSE,
    FUSED,
    K1,
    B,
    Dense,
    Fused,
    Question,
    Ranked,
    Ranker,
    Wider,
    share_of,
    terms_of,
    topic_of,
)

__all__ = [
    "DENSE",
    "FUSED",
    "K1",
    "NAMED",
    "RANKERS",
    "SIMILARITY",
    "WORDS",
    "B",
    "Best",
    "Bonuses",
    "Dense",
    "Diverse",
    "Fused",
    "Nearest",
    "Question",
    "Ranked",
    "Ranker",
    "Wider",
    "best_of",
    "bonuses",
    "diversity_of",
    "ranker_by_name",
    "share_of",
    "terms_of",
    "topic_of",
]
