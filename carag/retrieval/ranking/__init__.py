"""Order admissible rows by one score: similarity, words, and what the question names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.retrieval.ranking.diversity import Diverse as Diverse
    from carag.retrieval.ranking.diversity import diversity_of as diversity_of
    from carag.retrieval.ranking.fusion import NAMED as NAMED
    from carag.retrieval.ranking.fusion import SIMILARITY as SIMILARITY
    from carag.retrieval.ranking.fusion import WORDS as WORDS
    from carag.retrieval.ranking.fusion import Best as Best
    from carag.retrieval.ranking.fusion import Bonuses as Bonuses
    from carag.retrieval.ranking.fusion import Nearest as Nearest
    from carag.retrieval.ranking.fusion import best_of as best_of
    from carag.retrieval.ranking.fusion import bonuses as bonuses
    from carag.retrieval.ranking.named import RANKERS as RANKERS
    from carag.retrieval.ranking.named import ranker_by_name as ranker_by_name
    from carag.retrieval.ranking.ranker import DENSE as DENSE
    from carag.retrieval.ranking.ranker import FUSED as FUSED
    from carag.retrieval.ranking.ranker import K1 as K1
    from carag.retrieval.ranking.ranker import B as B
    from carag.retrieval.ranking.ranker import Dense as Dense
    from carag.retrieval.ranking.ranker import Fused as Fused
    from carag.retrieval.ranking.ranker import Question as Question
    from carag.retrieval.ranking.ranker import Ranked as Ranked
    from carag.retrieval.ranking.ranker import Ranker as Ranker
    from carag.retrieval.ranking.ranker import Wider as Wider
    from carag.retrieval.ranking.ranker import share_of as share_of
    from carag.retrieval.ranking.ranker import terms_of as terms_of
    from carag.retrieval.ranking.ranker import topic_of as topic_of
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "diversity": "Diverse diversity_of",
            "fusion": "Best Bonuses NAMED Nearest SIMILARITY WORDS best_of bonuses",
            "named": "RANKERS ranker_by_name",
            "ranker": "B DENSE Dense FUSED Fused K1 Question Ranked Ranker Wider share_of terms_of topic_of",
        },
    )
