"""Hold what labelling says of a document: its policy word, why, since when, and why nobody may see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from enum import StrEnum

__all__ = ["Cause", "Label", "Quarantine"]


class Cause(NamedTuple):
    """Why a bit is set."""

    bit: str
    field: str
    """The field the rule read, as its source calls it."""
    rule: str


class Quarantine(NamedTuple):
    """Why nobody is shown a document: a stable code, and the same for a person."""

    code: StrEnum
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """What labelling says of a document."""

    word: int
    """Policy bits and schema version, with the quarantine bit where quarantined."""
    public_at: int
    """Minutes since 1970-01-01T00:00Z; ``NEVER`` where unknown."""
    public_at_source: StrEnum
    """The fact that the time rests on."""
    causes: tuple[Cause, ...]
    quarantine: Quarantine | None = None
