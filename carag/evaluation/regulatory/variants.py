"""Name the readings of the metric, and state in one place how they differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.chunks import ChunkerConfig
from carag.limits import quoted

PACKAGE_DECIMALS: Final = 4
"""Decimals to which the published package rounds similarities and scores."""


class Variant(StrEnum):
    r"""A reading of the metric.

    =================================  =======================  ======================  ==============================
    \                                  paper                    reference               stance
    =================================  =======================  ======================  ==============================
    follows                            the paper's text         gaussia 1.2.0, to the   ourselves
                                                                fourth decimal
    white space                        every run is a space     3 line ends become 2    a space, or a line end
    passages judged a turn             10 of both lookups       10 of each: up to 20    as ``paper``
    similarity                         cosine, our own index    inner product           as ``paper``
    verdicts of a passage              2                        2                       4: neutral, undecided besides
    score of a turn                    supporting / retrieved   the same, 4 decimals    supported / claims spoken of
    where nothing decides              non-compliant            non-compliant           no verdict
    a turn that nothing covers         left out of the mean     counts as threshold     left out of the mean
    weights that do not sum to 1       divided by their sum     replaced by equal ones  divided by their sum
    =================================  =======================  ======================  ==============================
    """

    PAPER = "paper"
    REFERENCE = "reference"
    STANCE = "stance"

    @classmethod
    def of(cls, name: str) -> Variant:
        """Return the variant with a name; InvalidArgument if it is unknown."""
        try:
            return cls(name)
        except ValueError:
            raise InvalidArgument(
                f"there is no variant {quoted(name)}; want one of {', '.join(cls)}"
            ) from None

    @property
    def is_package(self) -> bool:
        """Whether it follows the published package's arithmetic."""
        return self is Variant.REFERENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is made with; the defaults are the paper's.

    Parameters
    ----------
    variant : Variant
        The variant or its name.
    chunk_size, chunk_overlap : int
        Characters in a window, and characters that it shares with the next.
    top_k : int
        Passages judged per turn; for ``reference``, found by each of its two lookups.
    similarity_threshold : float
        Least cosine of a passage that is judged.
    contradiction_threshold : float
        A passage with a lower score contradicts. Not used by ``stance``, whose judge has its own thresholds.
    compliance_threshold : float
        Least score that is compliant.
    """

    variant: Variant = Variant.PAPER
    chunk_size: int = 1_000
    chunk_overlap: int = 100
    top_k: int = 10
    similarity_threshold: float = 0.3
    contradiction_threshold: float = 0.6
    compliance_threshold: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "variant", Variant.of(self.variant))
        _ = self.chunker  # which checks its numbers
        if type(self.top_k) is not int or not 1 <= self.top_k <= _MOST:
            raise InvalidArgument(f"top_k is {quoted(self.top_k)}; want 1 to {_MOST} passages")
        for name in ("similarity_threshold", "contradiction_threshold", "compliance_threshold"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise InvalidArgument(f"{name} is {quoted(value)}; want a number from 0 to 1")

    @property
    def chunker(self) -> ChunkerConfig:
        """Size and overlap of the windows."""
        return ChunkerConfig(self.chunk_size, self.chunk_overlap)


_MOST: Final = 1_000
"""Most passages judged per turn, each of which costs a model call."""
