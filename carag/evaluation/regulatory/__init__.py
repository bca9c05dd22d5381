"""The Regulatory Compliance Metric: whether what an assistant said agrees with a corpus of regulation.

`corpus` loads documents, `chunks` cuts them, and `retriever` searches them under a policy. `checker` judges turns as
the paper does, `stance` in three ways or not at all; `regulatory` aggregates with `statistical`. `variants` lists the
readings of the metric.
"""

from carag.evaluation.regulatory.checker import ContradictionChecker
from carag.evaluation.regulatory.chunks import Chunk, ChunkerConfig
from carag.evaluation.regulatory.corpus import (
    CorpusConnector,
    LocalCorpusConnector,
    RegulatoryDocument,
    StoreCorpusConnector,
)
from carag.evaluation.regulatory.model_judge import ModelJudge
from carag.evaluation.regulatory.nli import NliJudge
from carag.evaluation.regulatory.ports import CosineReranker, Embedder, Reranker, StanceJudge
from carag.evaluation.regulatory.regulatory import Regulatory
from carag.evaluation.regulatory.retriever import DocumentRetriever, RetrievedChunk
from carag.evaluation.regulatory.schemas import (
    Batch,
    Claim,
    RegulatoryChunk,
    RegulatoryInteraction,
    RegulatoryMetric,
    SessionVerdict,
    Verdict,
)
from carag.evaluation.regulatory.sessions import MeasuredSession, read_sessions
from carag.evaluation.regulatory.stance_head import StanceHead
from carag.evaluation.regulatory.statistical import BayesianMode, Estimate, FrequentistMode, StatisticalMode
from carag.evaluation.regulatory.variants import Settings, Variant

__all__ = [
    "Batch",
    "BayesianMode",
    "Chunk",
    "ChunkerConfig",
    "Claim",
    "ContradictionChecker",
    "CorpusConnector",
    "CosineReranker",
    "DocumentRetriever",
    "Embedder",
    "Estimate",
    "FrequentistMode",
    "LocalCorpusConnector",
    "MeasuredSession",
    "ModelJudge",
    "NliJudge",
    "Regulatory",
    "RegulatoryChunk",
    "RegulatoryDocument",
    "RegulatoryInteraction",
    "RegulatoryMetric",
    "Reranker",
    "RetrievedChunk",
    "SessionVerdict",
    "Settings",
    "StanceHead",
    "StanceJudge",
    "StatisticalMode",
    "StoreCorpusConnector",
    "Variant",
    "Verdict",
    "read_sessions",
]
