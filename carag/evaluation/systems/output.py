"""Hold what one system returned for one question in one session, before it is scored."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Output"]


@dataclass(frozen=True, slots=True)
class Output:
    """What a system did with a pair.

    Attributes
    ----------
    retrieved : tuple of int
        Rows of the world, best first.
    shown : tuple of str
        Ids of the chunks whose text was in the prompt.
    text : str
        An answer's, a decline's or a refusal's; empty if there was none.
    cited : tuple of str
        Ids of the chunks that an answer names.
    """

    retrieved: tuple[int, ...]
    shown: tuple[str, ...]
    outcome: str
    text: str
    cited: tuple[str, ...]
    latency_ms: dict[str, float | None]
