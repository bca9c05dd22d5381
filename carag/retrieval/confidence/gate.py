"""Decide whether evidence is similar enough to the question to call a generator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage


BASELINE: Final = 0.65
"""The least similarity for an embedder that was never measured: not the best choice for any embedder, but high enough
that whatever passes is close."""
_EVERY: Final = 1
"""Passages in the smallest store."""
_CALIBRATE: Final = "calibrate it with carag gate calibrate"


@dataclass(frozen=True, slots=True)
class ConfidenceGate:
    """Passes evidence whose best admissible passage is similar enough to the question.

    - ``threshold``: least cosine similarity, -1 to 1; -1 passes every passage.
    - ``calibrated``: whether the threshold was measured on questions about such documents.
    - ``measured_on``: the other documents that the threshold was measured on, if any.
    - ``points``: the thresholds of a baseline by how many passages a session may use, ascending; the last one is
      ``threshold``. Whatever is asked, the nearest of many passages is nearer than the nearest of few.
    - ``promised``: the calibrated threshold that this one replaces because questions have drifted from those of the
      calibration.

    Raises InvalidArgument if the threshold is not a cosine.

    Examples
    --------
    >>> ConfidenceGate(0.5).passes(())
    False
    """

    threshold: float
    calibrated: bool = True
    measured_on: str = field(default="", compare=False)
    points: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    promised: float | None = None

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise InvalidArgument(f"the gate's threshold is {self.threshold}; want a cosine, -1 to 1")

    @property
    def standing(self) -> str:
        """What a person must know about the threshold; empty if it is calibrated."""
        if self.promised is not None:
            return (
                "the questions asked have drifted from those that the gate was calibrated on, so it stands at "
                f"{self.threshold:.3f} instead of {self.promised:.3f}: calibrate it again with carag gate calibrate"
            )
        if self.calibrated:
            return ""
        if self.points:
            return (
                f"the gate stands at a baseline of {self.points[0][1]:g} to {self.threshold:g}, depending on how many "
                f"passages a session may use, was measured on {self.measured_on}, and was not calibrated for these "
                f"documents: {_CALIBRATE}"
            )
        if self.measured_on:
            return (
                f"the gate stands at {self.threshold:g}, was measured on {self.measured_on}, and was not calibrated "
                f"for these documents: {_CALIBRATE}"
            )
        baseline = "its baseline of " if self.threshold == BASELINE else ""
        return f"the gate stands at {baseline}{self.threshold:g}: {_CALIBRATE}"

    def among(self, admissible: int) -> ConfidenceGate:
        """Return the gate for a session by its number of passages, interpolated between points by the logarithm."""
        count = max(admissible, _EVERY)
        for (fewer, low), (more, high) in pairwise(self.points):
            if count < more:
                part = max(log(count / fewer), 0) / log(more / fewer)
                return replace(self, threshold=round(low + (high - low) * part, 3))
        return self

    def passes(self, passages: Sequence[Passage], nearest: float | None = None) -> bool:
        """Tell whether a generator may be called; without an admissible passage it may not.

        ``nearest`` is the similarity of the nearest admissible passage, if that passage need not be in ``passages``.
        """
        best = top_similarity(passages, nearest)
        return best is not None and best >= self.threshold

    def is_shut_by_drift(self, passages: Sequence[Passage], nearest: float | None = None) -> bool:
        """Tell whether the gate declines what the calibrated threshold would have passed."""
        best = top_similarity(passages, nearest)
        return best is not None and self.promised is not None and self.promised <= best < self.threshold

    def message(self, passages: Sequence[Passage], nearest: float | None = None) -> str:
        """Explain to a person why there is no answer, without anything that depends on hidden passages."""
        best = top_similarity(passages, nearest)
        found = "none was found" if best is None else f"best similarity {best:.3f}"
        if self.is_shut_by_drift(passages, nearest):
            return (
                "CARAG defers on confidence: recent questions are unlike those that the gate was calibrated on, so it "
                f"passes only what is closer ({found}; needed {self.threshold:.3f}, before {self.promised:.3f}). "
                "Rephrase the question in the documents' own words; the store's administrator can calibrate the gate "
                "on current questions: carag gate calibrate."
            )
        return (
            "CARAG defers on confidence: the passages this session may use are not close enough to the "
            f"question ({found}; needed {self.threshold:.3f}). Rephrase the question in the documents' own "
            "words, or name the document and the time that it is about."
        )


def top_similarity(passages: Sequence[Passage], nearest: float | None = None) -> float | None:
    """Return the best similarity of the admissible passages, ``nearest`` included; None without passages."""
    best = max((passage.similarity for passage in passages), default=None)
    return best if best is None or nearest is None else max(best, nearest)
