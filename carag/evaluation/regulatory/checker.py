"""Judge one turn by the passages found for it, as the paper does: each supports or contradicts.

(Regulatory Compliance Metric, Contradiction Checking via Reranking, Interaction-Level Verdict and Compliance Score.) A
passage with a score below the threshold contradicts, so a passage about something else does too. That is the paper's
rule; :mod:`~carag.evaluation.regulatory.stance` differs in it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from carag.evaluation.regulatory.ports import Reranker, checked_scores
from carag.evaluation.regulatory.schemas import (
    Batch,
    Claim,
    RegulatoryChunk,
    RegulatoryInteraction,
    SessionVerdict,
    Verdict,
)
from carag.evaluation.regulatory.variants import PACKAGE_DECIMALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.evaluation.regulatory.retriever import RetrievedChunk
    from carag.evaluation.regulatory.variants import Settings


class Checker(Protocol):
    """Judges turns."""

    def check(self, turn: Batch, found: Sequence[RetrievedChunk]) -> RegulatoryInteraction:
        """Return the verdict on a turn."""
        ...


class ContradictionChecker:
    """Scores each passage with a reranker against the response, and compares the score with a threshold."""

    def __init__(self, reranker: Reranker, settings: Settings) -> None:
        self._reranker = reranker
        self._settings = settings

    def check(self, turn: Batch, found: Sequence[RetrievedChunk]) -> RegulatoryInteraction:
        """Return the verdict on a turn.

        Raises
        ------
        InvalidArgument
            If the reranker gives anything but one number in [0, 1] for each passage.
        """
        texts = [one.chunk.text for one in found]
        came = self._reranker.score(turn.assistant, texts) if texts else []
        scores = checked_scores(self._reranker.name, came, len(texts))
        limit = self._settings.contradiction_threshold
        # The published package compares the score itself, and shows it rounded.
        verdicts = [Verdict.SUPPORTS if score >= limit else Verdict.CONTRADICTS for score in scores]
        supporting, total = verdicts.count(Verdict.SUPPORTS), len(verdicts)
        score = supporting / total if total else self._settings.compliance_threshold
        if self._settings.variant.is_package:
            scores = [round(one, PACKAGE_DECIMALS) for one in scores]
            score = round(score, PACKAGE_DECIMALS) if total else score
        return interaction(
            turn,
            [chunk_of(*one) for one in zip(found, scores, verdicts, strict=True)],
            score=score,
            verdict=verdict_of(supporting, total - supporting, self._settings.compliance_threshold),
        )


def verdict_of(supporting: int, contradicting: int, threshold: float) -> SessionVerdict:
    """Return the verdict on a turn from the counts for and against it.

    The paper's first branch, in which all passages count against the turn, comes first: with a threshold of 0 the turn
    is not compliant either.
    """
    total = supporting + contradicting
    if not total:
        return SessionVerdict.IRRELEVANT
    is_compliant = supporting > 0 and supporting / total >= threshold
    return SessionVerdict.COMPLIANT if is_compliant else SessionVerdict.NON_COMPLIANT


def chunk_of(found: RetrievedChunk, score: float, verdict: Verdict) -> RegulatoryChunk:
    """Return a passage with its verdict."""
    one = found.chunk
    return RegulatoryChunk(
        text=one.text,
        source=one.source,
        chunk_index=one.chunk_index,
        start=one.start,
        end=one.end,
        similarity=found.similarity,
        reranker_score=score,
        verdict=verdict,
    )


def interaction(
    turn: Batch,
    chunks: list[RegulatoryChunk],
    *,
    score: float,
    verdict: SessionVerdict,
    claims: Sequence[Claim] = (),
    insight: str = "",
) -> RegulatoryInteraction:
    """Return the verdict on a turn with its evidence and counts; ``insight`` is written here unless it is given."""
    counts = {one: sum(1 for chunk in chunks if chunk.verdict is one) for one in Verdict}
    return RegulatoryInteraction(
        qa_id=turn.qa_id,
        query=turn.query,
        assistant=turn.assistant,
        compliance_score=score,
        verdict=verdict,
        supporting_chunks=counts[Verdict.SUPPORTS],
        contradicting_chunks=counts[Verdict.CONTRADICTS],
        neutral_chunks=counts[Verdict.NEUTRAL] + counts[Verdict.UNDECIDED],
        retrieved_chunks=chunks,
        claims=list(claims),
        insight=insight or _insight(verdict, counts, claims),
    )


def _insight(verdict: SessionVerdict, counts: dict[Verdict, int], claims: Sequence[Claim]) -> str:
    """State in one sentence what the verdict rests on."""
    if claims:
        said = Counter(one.verdict for one in claims)
        spoken = len(claims) - said[Verdict.NEUTRAL]
        if not spoken:
            return f"The corpus says nothing about the {len(claims)} sentences of this response."
        return (
            f"{verdict.value}: the corpus covers {spoken} of {len(claims)} sentences; it supports "
            f"{said[Verdict.SUPPORTS]}, contradicts {said[Verdict.CONTRADICTS]}, and leaves {said[Verdict.UNDECIDED]} "
            "undecided."
        )
    total = sum(counts.values())
    if not total:
        return "No passage of the corpus is similar to this query or response."
    if verdict is SessionVerdict.IRRELEVANT:
        return f"None of the {total} nearest passages is about this response."
    return (
        f"{verdict.value}: {counts[Verdict.SUPPORTS]} of {total} passages support the response, "
        f"{counts[Verdict.CONTRADICTS]} contradict it."
    )
