"""What a generator is: both buckets in, a draft out; :mod:`carag.generation.guarded` judges the draft."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Withheld

__all__ = ["GENERATORS", "Draft", "Generator", "Stop", "generator_by_name"]

GENERATORS: Final = ("extractive", "local", "local:PATH", "bedrock:MODEL_ID")
"""The names :func:`generator_by_name` knows."""


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


def generator_by_name(name: str) -> Generator:
    """Make a generator with its default settings.

    Parameters
    ----------
    name : str
        ``extractive``; ``local`` or ``local:`` with the path of a GGUF file; ``bedrock:`` with a model id, such
        as ``bedrock:amazon.nova-micro-v1:0``.

    Raises
    ------
    InvalidArgument
        If nothing goes by that name.
    MissingExtra
        If it needs an extra that is not installed.
    ModelUnavailable
        If its model files are missing.

    Examples
    --------
    >>> generator_by_name("extractive").remote
    False
    """
    kind, _, what = name.partition(":")
    if name == "extractive":
        from carag.generation.extractive import Extractive

        return Extractive()
    if name == "local" or (kind == "local" and what):
        from carag.generation.local import LocalLlama

        return LocalLlama(what or None)
    if kind == "bedrock" and what:
        from carag.generation.bedrock import NovaMicro

        return NovaMicro(what)
    raise InvalidArgument(f"there is no generator {name!r}; want one of {', '.join(GENERATORS)}")
