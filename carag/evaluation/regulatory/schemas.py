"""Define what the metric reads and returns: turns of conversations, and verdicts with the evidence for each.

Members that the paper names keep its names and bounds (Regulatory Compliance Metric, Data Representation). The added
members say where a passage is, and what neither supports nor contradicts.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Verdict(StrEnum):
    """What a passage says about a response."""

    SUPPORTS = "SUPPORTS"
    CONTRADICTS = "CONTRADICTS"
    NEUTRAL = "NEUTRAL"
    """The passage says nothing about the response. Only the variant ``stance`` has this verdict and the next."""
    UNDECIDED = "UNDECIDED"
    """The passage concerns the response, but whether it supports or contradicts could not be determined."""


class SessionVerdict(StrEnum):
    """What the corpus says about a turn, or about a session."""

    COMPLIANT = "COMPLIANT"
    NON_COMPLIANT = "NON_COMPLIANT"
    IRRELEVANT = "IRRELEVANT"
    """The corpus does not cover the turn."""
    NO_VERDICT = "NO_VERDICT"
    """The corpus covers the turn, but too little was decided to call it compliant. Only in the variant ``stance``."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Batch(_Strict):
    """One turn of a conversation: what the user asked, and what the assistant answered."""

    qa_id: str
    query: str
    assistant: str
    weight: float | None = Field(default=None, ge=0)
    """The turn's part in the session's score, as :func:`~carag.evaluation.regulatory.statistical.shares` reads it."""


class RegulatoryChunk(_Strict):
    """A passage that was compared with a response, and its verdict."""

    text: str
    source: str
    chunk_index: int = Field(ge=0)
    start: int = Field(ge=0)
    """Position in its document, in characters: from ``start`` up to ``end``."""
    end: int = Field(ge=0)
    similarity: float = Field(ge=0, le=1)
    """The greater cosine of the passage with the query and with the response."""
    reranker_score: float = Field(ge=0, le=1)
    """What the verdict rests on; for ``stance``, the probability of the verdict."""
    verdict: Verdict


class Claim(_Strict):
    """A sentence of a response, and what the passages say about it; only in the variant ``stance``."""

    start: int = Field(ge=0)
    """Position in the response, in characters: from ``start`` up to ``end``."""
    end: int = Field(ge=0)
    verdict: Verdict
    score: float = Field(ge=0, le=1)
    """Probability of the verdict."""
    source: str | None = None
    """The passage that decided, or the one that says most if none decides; None if no passage is about the claim."""
    chunk_index: int | None = None
    evidence_start: int | None = None
    """Position of the deciding words in their document, up to ``evidence_end``."""
    evidence_end: int | None = None


class RegulatoryInteraction(_Strict):
    """The verdict on one turn."""

    qa_id: str
    query: str
    assistant: str
    compliance_score: float = Field(ge=0, le=1)
    """For an irrelevant turn, the threshold, which says nothing either way. For ``stance``, the supported share of the
    sentences that the corpus covers, so undecided sentences lower it."""
    verdict: SessionVerdict
    supporting_chunks: int = Field(ge=0)
    contradicting_chunks: int = Field(ge=0)
    neutral_chunks: int = Field(default=0, ge=0)
    """The number of passages that neither support nor contradict, including undecided ones."""
    retrieved_chunks: list[RegulatoryChunk]
    claims: list[Claim] = Field(default_factory=list)
    insight: str


class RegulatoryMetric(_Strict):
    """The verdict on one session."""

    session_id: str
    assistant_id: str
    variant: str
    n_interactions: int = Field(ge=0)
    compliance_score: float = Field(ge=0, le=1)
    compliance_score_ci_low: float | None = Field(default=None, ge=0, le=1)
    """None unless the statistical mode gives an interval."""
    compliance_score_ci_high: float | None = Field(default=None, ge=0, le=1)
    coverage: float = Field(ge=0, le=1)
    """The share of the session's weight on turns that the corpus covers."""
    verdict: SessionVerdict
    total_supporting_chunks: int = Field(ge=0)
    total_contradicting_chunks: int = Field(ge=0)
    interactions: list[RegulatoryInteraction]
