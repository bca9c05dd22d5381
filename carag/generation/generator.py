"""Define the interface of generators, which turn a question and evidence into a draft that the guard then checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Withheld


class Stop(StrEnum):
    """Why a generator stopped."""

    END = "END"
    """It finished its answer."""
    LENGTH = "LENGTH"
    """It reached its token limit, and the text is cut off."""
    FILTERED = "FILTERED"
    """A content filter or guardrail of the model's host replaced the answer with its own text."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a generator wrote, before any check."""

    text: str
    cited: tuple[int, ...]
    """Positions in the given passages, from 0; the text writes position 0 as ``[1]``. Positions that do not exist are
    kept, for the guard to reject."""
    stop: Stop = Stop.END
    worked: str = ""
    """A line of the text that CARAG itself worked out, from cells that other lines quote; no passage states it."""


class Generator(Protocol):
    """Writes an answer from admissible passages alone.

    From ``withheld`` it may use ``kinds``, which follow from the policy, and ``topic``, which follows from the question
    and admissible documents; it must not use ``hidden``, which depends on what else the corpus contains.
    """

    @property
    def name(self) -> str:
        """A stable name for records."""
        ...

    @property
    def remote(self) -> bool:
        """Whether question and passages leave this machine."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything that a draft depends on except its input: model, prompt, settings."""
        ...

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer.

        Raises
        ------
        ModelUnavailable
            If the model fails, times out or is denied. No other model takes its place.
        """
        ...
