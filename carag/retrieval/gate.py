"""Decide whether evidence is similar enough to the question for a generator to be called.

In a compliance setting a decline is better than a confident mistake, so similarity is checked before any generator
runs, on admissible passages alone. Cosines of different models cannot be compared: each embedder has its own
calibrated threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage

__all__ = ["CALIBRATIONS", "Calibration", "ConfidenceGate", "gate_for", "threshold_for", "top_similarity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A threshold, and how many questions it declined when it was measured (``python -m bench.embedders``)."""

    threshold: float
    in_scope: int
    """Questions that the pool of SEC filings answers."""
    in_scope_declined: int
    out_of_scope: int
    """Questions about other rules, which the same pool does not answer."""
    out_of_scope_declined: int


CALIBRATIONS: Final = {
    "minilm": Calibration(
        threshold=0.50, in_scope=150, in_scope_declined=7, out_of_scope=36, out_of_scope_declined=23
    ),
    "wordllama": Calibration(
        threshold=0.39, in_scope=150, in_scope_declined=5, out_of_scope=36, out_of_scope_declined=11
    ),
}
"""Calibrated thresholds by embedder name.

Each is the highest multiple of 0.01 that declines at most 5 % of the in-scope questions: a gate that declines what the
corpus answers would be switched off. How many out-of-scope questions it declines then is measured.
"""


def threshold_for(embedder_name: str) -> float:
    """Return the calibrated threshold of an embedder.

    Raises
    ------
    InvalidArgument
        If this embedder was not calibrated; another model's threshold would be meaningless.
    """
    if embedder_name not in CALIBRATIONS:
        raise InvalidArgument(
            f"no gate is calibrated for the embedder {embedder_name!r}; calibrate one on your own questions: "
            "carag gate calibrate"
        )
    return CALIBRATIONS[embedder_name].threshold


@dataclass(frozen=True, slots=True)
class ConfidenceGate:
    """Passes evidence whose best admissible passage is similar enough to the question.

    Parameters
    ----------
    threshold : float
        Least cosine similarity, ``-1 <= threshold <= 1``; ``-1`` passes every passage.
    calibrated : bool
        Whether the threshold was measured on questions about such documents; False where there was nothing to choose it
        by, or it was measured on others.

    Raises
    ------
    InvalidArgument
        If the threshold is no cosine.

    Examples
    --------
    >>> ConfidenceGate(0.5).passes(())
    False
    """

    threshold: float
    calibrated: bool = True

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise InvalidArgument(f"the gate's threshold is {self.threshold}; want a cosine, -1 to 1")

    def passes(self, passages: Sequence[Passage], nearest: float | None = None) -> bool:
        """Tell whether a generator may be called; never without an admissible passage.

        ``nearest`` is the similarity of the nearest admissible passage, on which thresholds were calibrated, where it
        need not be among these.
        """
        best = top_similarity(passages, nearest)
        return best is not None and best >= self.threshold

    def message(self, passages: Sequence[Passage], nearest: float | None = None) -> str:
        """Explain to a person why there is no answer; nothing in it depends on what is hidden.

        The number is the similarity of the best admissible passage.
        """
        best = top_similarity(passages, nearest)
        found = "none was found" if best is None else f"best similarity {best:.3f}"
        return (
            "CARAG defers on confidence: the passages this session may use are not close enough to the "
            f"question ({found}; needed {self.threshold:.3f}). Rephrase the question in the documents' own "
            "words, or name the document and the time that it is about."
        )


def gate_for(embedder_name: str, *, on_filings: bool = True) -> ConfidenceGate:
    """Return the gate of a calibrated embedder; for any other, one that passes every passage and says so.

    Parameters
    ----------
    embedder_name : str
    on_filings : bool
        Whether it stands before SEC filings, on which ``CALIBRATIONS`` were measured. Before other documents it is
        the same gate, and says that it was not calibrated on them.

    Examples
    --------
    >>> gate_for("mine")
    ConfidenceGate(threshold=-1.0, calibrated=False)
    >>> gate_for("minilm", on_filings=False)
    ConfidenceGate(threshold=0.5, calibrated=False)
    """
    if embedder_name in CALIBRATIONS:
        return ConfidenceGate(threshold_for(embedder_name), calibrated=on_filings)
    return ConfidenceGate(-1.0, calibrated=False)


def top_similarity(passages: Sequence[Passage], nearest: float | None = None) -> float | None:
    """Return the best similarity of the admissible passages, ``nearest`` among them; None where there are none."""
    best = max((passage.similarity for passage in passages), default=None)
    return best if best is None or nearest is None else max(best, nearest)
