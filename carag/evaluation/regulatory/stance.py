"""Judge one turn sentence by sentence: passages support a claim, contradict it, leave it open, or say nothing about it.

The paper takes low relevance for contradiction, so a passage about something else counts against a response. Here a
stance judge decides. A sentence that no passage is about does not count, and if that holds for every sentence, the turn
is irrelevant. A turn is compliant only if it would be compliant whatever the open sentences turn out to be.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.checker import chunk_of, interaction, verdict_of
from carag.evaluation.regulatory.ports import StanceJudge, checked_probabilities
from carag.evaluation.regulatory.schemas import Batch, Claim, RegulatoryInteraction, SessionVerdict, Verdict
from carag.labelling.sentences import sentences
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from carag.evaluation.regulatory.retriever import RetrievedChunk
    from carag.evaluation.regulatory.variants import Settings


_ORDER: Final = (Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.NEUTRAL)
"""The order of a judge's columns."""
_LEAST: Final = 3
"""Least words in a sentence that claims something; shorter ones are headings and courtesies."""
_LONG: Final = 16
"""Least letters in a single word that counts as a sentence, in a language written without spaces."""

_GOES_ON: Final = re.compile(r"[^.!?:;][^\S\n]*\n[^\S\n]*(?=[a-z])(?![a-z0-9]{1,4}[.)])")
"""A line end within a sentence: not after punctuation, and before a lower-case letter that is not a list label."""
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
        It may have ``thresholds``, the minimum probabilities for SUPPORTS and CONTRADICTS, both 1/2 by default. It may
        have ``conclude(claim, passages)``, which returns the three probabilities of all passages together, the
        passage that decides, the start and end of the deciding words in it, and the rows of ``judge``. Equal
        probabilities of SUPPORTS and CONTRADICTS, neither reaching its threshold, leave a claim undecided.
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
                f"the judge {judge.name!r} has the thresholds {quoted(stated)}; want two numbers from 0 to 1, the "
                "minimum probabilities for SUPPORTS and CONTRADICTS"
            )

    def check(self, turn: Batch, found: Sequence[RetrievedChunk]) -> RegulatoryInteraction:
        """Return the verdict on a turn; InvalidArgument if the judge returns anything but probabilities."""
        texts = [one.chunk.opening + one.chunk.text + one.chunk.closing for one in found]
        spans = claims_in(turn.assistant) if texts else []
        if not spans:
            return self._interaction(turn, [], (), insight=_NOTHING if texts else "")
        judged = [self._judged(turn.assistant, span, texts, found) for span in spans]
        rows = np.stack([of_claim for of_claim, _ in judged])
        said = [self._stance(rows[:, at]) for at in range(len(found))]
        return self._interaction(turn, list(zip(found, said, strict=True)), [claim for _, claim in judged])

    def _interaction(
        self,
        turn: Batch,
        judged: Sequence[tuple[RetrievedChunk, _Stance]],
        claims: Sequence[Claim],
        insight: str = "",
    ) -> RegulatoryInteraction:
        counted = Counter(one.verdict for one in claims)
        supported, contradicted = counted[Verdict.SUPPORTS], counted[Verdict.CONTRADICTS]
        spoken, limit = len(claims) - counted[Verdict.NEUTRAL], self._settings.compliance_threshold
        verdict = verdict_of(supported, contradicted, limit)
        # What is undecided never makes a response compliant, and never prevents NON_COMPLIANT.
        if spoken > supported + contradicted and verdict is not SessionVerdict.NON_COMPLIANT:
            is_sure = verdict_of(supported, spoken - supported, limit) is SessionVerdict.COMPLIANT
            verdict = SessionVerdict.COMPLIANT if is_sure else SessionVerdict.NO_VERDICT
        return interaction(
            turn,
            [chunk_of(one, said.score, said.verdict) for one, said in judged],
            score=supported / spoken if spoken else limit,
            verdict=verdict,
            claims=claims,
            insight=insight,
        )

    def _judged(
        self, response: str, span: tuple[int, int], texts: list[str], found: Sequence[RetrievedChunk]
    ) -> tuple[NDArray[np.float64], Claim]:
        """Return what each passage, and all together, say about a sentence; with the judge's ``conclude`` if any."""
        name, claim = self._judge.name, response[span[0] : span[1]]
        if hasattr(self._judge, "conclude"):
            chances, at, *place, rows = self._judge.conclude(claim, texts)
            rows = checked_probabilities(name, rows, len(texts))
            (shares,) = checked_probabilities(name, [chances], 1)
            verdict = (
                Verdict.UNDECIDED if shares[0] == shares[1] >= shares[2] / 2 else _ORDER[int(shares.argmax())]
            )
            said = _Stance(verdict, float(shares.max()), at)
        else:
            rows = checked_probabilities(name, self._judge.judge(claim, texts), len(texts))
            said = self._stance(rows)
            place = [0, len(texts[said.at])]
        return rows, self._claim(span, said, place, found)

    @staticmethod
    def _claim(
        span: tuple[int, int], said: _Stance, place: Sequence[int], found: Sequence[RetrievedChunk]
    ) -> Claim:
        if said.verdict is Verdict.NEUTRAL:
            return Claim(start=span[0], end=span[1], verdict=said.verdict, score=said.score)
        one = found[said.at].chunk
        first, last = (min(max(at - len(one.opening), 0), len(one.text)) for at in place)
        return Claim(
            start=span[0],
            end=span[1],
            verdict=said.verdict,
            score=said.score,
            source=one.source,
            chunk_index=one.chunk_index,
            evidence_start=one.place(first),
            evidence_end=one.place(max(last - 1, 0)) + 1,
        )

    def _stance(self, rows: NDArray[np.float64]) -> _Stance:
        """Reduce rows of probabilities to one verdict: what exceeds its threshold most; contradiction wins ties.

        The row that is most certain decides and is not outvoted: one provision is enough to make a response wrong.
        """
        above = rows[:, :2] - self._thresholds
        column = 1 if above[:, 1].max() >= above[:, 0].max() else 0
        at = int(above[:, column].argmax())
        if above[at, column] < 0:
            at = int(rows[:, 2].argmin())
            is_silent = rows[at, 2] >= rows[at, :2].max()
            return _Stance(Verdict.NEUTRAL if is_silent else Verdict.UNDECIDED, float(rows[at].max()), at)
        return _Stance(_ORDER[column], float(rows[at, column]), at)


def claims_in(text: str) -> list[tuple[int, int]]:
    """Return the positions of the sentences in a response that claim something, in characters.

    A line end within a sentence does not end it: an answer's lines may break anywhere.
    """
    joined: list[tuple[int, int]] = []
    for start, end in sentences(text):
        if joined and _GOES_ON.match(text, joined[-1][1] - 1):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return [span for span in joined if _claims(text[span[0] : span[1]].split())]


def _claims(words: Sequence[str]) -> bool:
    return len(words) >= _LEAST or (len(words) == 1 and sum(map(str.isalnum, words[0])) >= _LONG)
