"""Hold what one system returned for one question in one session, before it is scored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """What a system returned for a pair."""

    retrieved: tuple[int, ...]  # rows of the ground truth, best first
    shown: tuple[str, ...]  # ids of the chunks whose text was in the prompt
    outcome: str
    text: str  # of an answer, a decline or a refusal; empty if none was returned
    cited: tuple[str, ...]  # ids of the chunks that an answer cites
    latency_ms: dict[str, float | None]  # by stage of `carag.evaluation.row.STAGES`; None if not measured
    own_model: bool = False  # whether a model other than the oracle's decided the outcome and wrote the text
