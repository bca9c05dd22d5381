"""Judge one turn sentence by sentence, three ways: passages support a claim, contradict it, or say nothing of it.

The paper takes a low relevance for contradiction, so a passage about something else speaks against a response. Here a
judge of stance decides; a sentence that no passage speaks of does not count, and a turn of which that is true of every
sentence is irrelevant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.checker import chunk_of, interaction, verdict_of
from carag.evaluation.regulatory.ports import StanceJudge, checked_probabilities
from carag.evaluation.regulatory.schemas import Batch, Claim, RegulatoryInteraction, Verdict
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from carag.evaluation.regulatory.retriever import RetrievedChunk
    from carag.evaluation.regulatory.variants import Settings

__all__ = ["StanceChecker", "sentences"]

_ORDER: Final = (Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.NEUTRAL)
"""Of a judge's columns."""
_END: Final = re.compile(r"(?<=[.!?;])[\"')\]]*\s+(?=\S)|\n\s*\n|\n(?=\s*(?:[-*\u2022#|]|\d+[.)]))")
"""Where a sentence of a response ends: at its mark, at an empty line, before an entry of a list."""
_LEAST: Final = 3
"""Words of a sentence that claims something; shorter ones are headings and courtesies."""

_NOTHING: Final = f"No sentence of this response has {_LEAST} words, so it claims nothing."


class _Stance(NamedTuple):
    verdict: Verdict
    score: float
    at: int
    """Row of the passage, or of the claim, that decided."""


class StanceChecker:
    """Judges every sentence of a response by every passage found.

    Parameters
    ----------
    judge : StanceJudge
        It may have ``thresholds``, the least probabilities of SUPPORTS and CONTRADICTS; otherwise both are 1/2.
    settings : Settings
    """

    def __init__(self, judge: StanceJudge, settings: Settings) -> None:
        self._judge = judge
        self._settings = settings
        stated = getattr(judge, "thresholds", (0.5, 0.5))
        try:
            self._thresholds = np.array(stated, dtype=np.float64)
        except (TypeError, ValueError):
            self._thresholds = np.empty(0)
        if self._thresholds.shape != (2,) or not ((self._thresholds >= 0) & (self._thresholds <= 1)).all():
            raise InvalidArgument(
                f"the judge {judge.name!r} has the thresholds {quoted(stated)}; want the least probabilities of "
                "SUPPORTS and of CONTRADICTS, two numbers from 0 to 1"
            )

    def check(self, turn: Batch, found: Sequence[RetrievedChunk]) -> RegulatoryInteraction:
        """Return the verdict on a turn.

        Raises
        ------
        InvalidArgument
            If the judge gives anything but probabilities.
        """
        texts = [one.chunk.text for one in found]
        spans = list(sentences(turn.assistant)) if texts else []
        if not spans:
            return self._interaction(turn, [], (), insight=_NOTHING if texts else "")
        rows = np.stack([self._rows(turn.assistant[start:end], texts) for start, end in spans])
        claims = [self._claim(span, row, found) for span, row in zip(spans, rows, strict=True)]
        said = [self._stance(rows[:, at]) for at in range(len(found))]
        return self._interaction(turn, list(zip(found, said, strict=True)), claims)

    def _interaction(
        self,
        turn: Batch,
        judged: Sequence[tuple[RetrievedChunk, _Stance]],
        claims: Sequence[Claim],
        insight: str = "",
    ) -> RegulatoryInteraction:
        supported = sum(1 for one in claims if one.verdict is Verdict.SUPPORTS)
        contradicted = sum(1 for one in claims if one.verdict is Verdict.CONTRADICTS)
        decided, limit = supported + contradicted, self._settings.compliance_threshold
        return interaction(
            turn,
            [chunk_of(one, said.score, said.verdict) for one, said in judged],
            score=supported / decided if decided else limit,
            verdict=verdict_of(supported, contradicted, limit),
            claims=claims,
            insight=insight,
        )

    def _rows(self, claim: str, texts: list[str]) -> NDArray[np.float64]:
        return checked_probabilities(self._judge.name, self._judge.judge(claim, texts), len(texts))

    def _claim(
        self, span: tuple[int, int], rows: NDArray[np.float64], found: Sequence[RetrievedChunk]
    ) -> Claim:
        said = self._stance(rows)
        if said.verdict is Verdict.NEUTRAL:
            return Claim(start=span[0], end=span[1], verdict=said.verdict, score=said.score)
        one = found[said.at].chunk
        return Claim(
            start=span[0],
            end=span[1],
            verdict=said.verdict,
            score=said.score,
            source=one.source,
            chunk_index=one.chunk_index,
            evidence_start=one.start,
            evidence_end=one.end,
        )

    def _stance(self, rows: NDArray[np.float64]) -> _Stance:
        """Bring rows of probabilities to one verdict: what is furthest above its threshold, and of two contradiction.

        The one row that is most sure of something decides, and none is outvoted: one provision is enough to make a
        response wrong.
        """
        above = rows[:, :2] - self._thresholds
        column = 1 if above[:, 1].max() >= above[:, 0].max() else 0
        at = int(above[:, column].argmax())
        if above[at, column] < 0:
            at = int(rows[:, 2].argmin())
            return _Stance(Verdict.NEUTRAL, float(rows[at, 2]), at)
        return _Stance(_ORDER[column], float(rows[at, column]), at)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a response stand, in characters; those of fewer than three words are left out.

    Examples
    --------
    >>> text = "Certainly! Logs are kept for six months. They are never shared."
    >>> [text[start:end] for start, end in sentences(text)]
    ['Logs are kept for six months.', 'They are never shared.']
    """
    start = 0
    for match in [*_END.finditer(text), None]:
        end = len(text) if match is None else match.start()
        sentence = text[start:end]
        if len(sentence.split()) >= _LEAST:
            yield start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())
        start = end if match is None else match.end()
