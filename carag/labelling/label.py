"""Hold a document's label: its policy word, the cause of each bit, its publication time, and any quarantine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from enum import StrEnum


class Cause(NamedTuple):
    """Why a bit is set."""

    bit: str
    field: str
    """The field that the rule read, by its name in the source."""
    rule: str


class Quarantine(NamedTuple):
    """Why a document is quarantined, that is, inadmissible to every session: a stable code, and the reason in words."""

    code: StrEnum
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A document's label."""

    word: int
    """Policy bits and schema version, with the quarantine bit if quarantined."""
    public_at: int
    """Minutes since 1970-01-01T00:00Z; ``NEVER`` if unknown."""
    public_at_source: StrEnum
    """The fact from which the publication time was derived."""
    causes: tuple[Cause, ...]
    quarantine: Quarantine | None = None
