"""Define the interface of generators: question and evidence in, a draft out that the guard then checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Withheld

__all__ = ["Draft", "Generator", "Stop"]


class Stop(StrEnum):
    """Why a generator stopped."""

    END = "END"
    """It said all it had to say."""
    LENGTH = "LENGTH"
    """It reached its token limit: the text is cut off."""
    FILTERED = "FILTERED"
    """A content filter or guardrail of the model's host stepped in; the text is not the model's answer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a generator wrote, unchecked."""

    text: str
    cited: tuple[int, ...]
    """Positions in the passages it was given, from 0; the text writes position 0 as ``[1]``. A model may cite
    positions that do not exist, and they are kept here for the guard to see."""
    stop: Stop = Stop.END


class Generator(Protocol):
    """A way to write an answer from admissible passages alone.

    It is given both buckets. Of the withheld one it may use ``kinds``, which follow from the policy, and
    never ``hidden``, which follows from what the corpus holds.
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
        """A hash of all that a draft depends on besides its input: model, prompt, settings."""
        ...

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer.

        Raises
        ------
        ModelUnavailable
            If the model fails, times out or is denied. There is no second choice behind it.
        """
        ...
