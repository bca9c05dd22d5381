"""Hold what one system returned for one question in one session, before it is scored."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Output"]


@dataclass(frozen=True, slots=True)
class Output:
    """What a system returned for a pair.

    Attributes
    ----------
    retrieved : tuple of int
        Rows of the ground truth, best first.
    shown : tuple of str
        Ids of the chunks whose text was in the prompt.
    text : str
        Of an answer, a decline or a refusal; empty if none was returned.
    cited : tuple of str
        Ids of the chunks that an answer cites.
    latency_ms : dict
        By stage of `carag.evaluation.row.STAGES`; None where not measured.
    own_model : bool
        Whether another model than the oracle's decided the outcome and wrote the text.
    """

    retrieved: tuple[int, ...]
    shown: tuple[str, ...]
    outcome: str
    text: str
    cited: tuple[str, ...]
    latency_ms: dict[str, float | None]
    own_model: bool = False
