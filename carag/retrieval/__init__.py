"""Find evidence for a question: embedders, retriever, rerankers and confidence gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.retrieval.adopted import AdoptedEmbedder as AdoptedEmbedder
    from carag.retrieval.catalogue import Catalogue as Catalogue
    from carag.retrieval.confidence.calibration import Drift as Drift
    from carag.retrieval.confidence.calibration import conformal_threshold as conformal_threshold
    from carag.retrieval.confidence.calibration import questions_wanted as questions_wanted
    from carag.retrieval.confidence.calibration import selective_threshold as selective_threshold
    from carag.retrieval.confidence.gate import BASELINE as BASELINE
    from carag.retrieval.confidence.gate import ConfidenceGate as ConfidenceGate
    from carag.retrieval.confidence.gate import top_similarity as top_similarity
    from carag.retrieval.confidence.shipped import calibrations_of as calibrations_of
    from carag.retrieval.confidence.shipped import gate_for as gate_for
    from carag.retrieval.confidence.shipped import threshold_for as threshold_for
    from carag.retrieval.cross_encoder import CrossEncoder as CrossEncoder
    from carag.retrieval.embedder import Embedder as Embedder
    from carag.retrieval.embedder import headed as headed
    from carag.retrieval.evidence import Evidence as Evidence
    from carag.retrieval.evidence import Hidden as Hidden
    from carag.retrieval.evidence import Passage as Passage
    from carag.retrieval.evidence import Topic as Topic
    from carag.retrieval.evidence import Withheld as Withheld
    from carag.retrieval.jina import JinaReranker as JinaReranker
    from carag.retrieval.openai import OpenAiEmbedder as OpenAiEmbedder
    from carag.retrieval.own import own_embedder as own_embedder
    from carag.retrieval.past_index import PastIndex as PastIndex
    from carag.retrieval.past_index import add_labels as add_labels
    from carag.retrieval.ranking import FUSED as FUSED
    from carag.retrieval.ranking import RANKERS as RANKERS
    from carag.retrieval.ranking import diversity_of as diversity_of
    from carag.retrieval.ranking import ranker_by_name as ranker_by_name
    from carag.retrieval.ranking import share_of as share_of
    from carag.retrieval.ranking import terms_of as terms_of
    from carag.retrieval.ranking import topic_of as topic_of
    from carag.retrieval.registry import DEFAULT_EMBEDDER as DEFAULT_EMBEDDER
    from carag.retrieval.registry import EMBEDDERS as EMBEDDERS
    from carag.retrieval.registry import RERANKERS as RERANKERS
    from carag.retrieval.registry import any_reranker as any_reranker
    from carag.retrieval.registry import embedder_by_name as embedder_by_name
    from carag.retrieval.registry import is_embedder as is_embedder
    from carag.retrieval.registry import made as made
    from carag.retrieval.registry import reranker_by_name as reranker_by_name
    from carag.retrieval.reranker import Reranker as Reranker
    from carag.retrieval.reranker import own_reranker as own_reranker
    from carag.retrieval.retriever import EXACT_LIMIT as EXACT_LIMIT
    from carag.retrieval.retriever import Retriever as Retriever
    from carag.retrieval.retriever import passage_of as passage_of
    from carag.retrieval.words import KeptWords as KeptWords
    from carag.retrieval.words import add_words as add_words
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "adopted": "AdoptedEmbedder",
            "catalogue": "Catalogue",
            "confidence.calibration": "Drift conformal_threshold questions_wanted selective_threshold",
            "confidence.gate": "BASELINE ConfidenceGate top_similarity",
            "confidence.shipped": "calibrations_of gate_for threshold_for",
            "cross_encoder": "CrossEncoder",
            "embedder": "Embedder headed",
            "evidence": "Evidence Hidden Passage Topic Withheld",
            "jina": "JinaReranker",
            "openai": "OpenAiEmbedder",
            "own": "own_embedder",
            "past_index": "PastIndex add_labels",
            "ranking": "FUSED RANKERS diversity_of ranker_by_name share_of terms_of topic_of",
            "registry": "DEFAULT_EMBEDDER EMBEDDERS RERANKERS any_reranker embedder_by_name is_embedder "
            "made reranker_by_name",
            "reranker": "Reranker own_reranker",
            "retriever": "EXACT_LIMIT Retriever passage_of",
            "words": "KeptWords add_words",
        },
    )
