"""Define an answer about the documents themselves, and its codes in records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from carag.generation.guarded import Citation
    from carag.retrieval.evidence import Evidence


class ToldCode(StrEnum):
    """What was answered about the documents themselves; stable codes, for records."""

    LISTED = "LISTED"
    """Documents were listed: all that meet the question, the latest, or those that replaced another."""
    COUNTED = "COUNTED"
    """The documents that meet the question were counted."""
    NONE_LISTED = "NONE_LISTED"
    """No document that the session may use meets the question."""
    SHOWN = "SHOWN"
    """A section or a table was shown as it stands."""
    OUTLINED = "OUTLINED"
    """The headings of a document or section were shown, each with its first sentence."""
    COMPARED = "COMPARED"
    """The same question was asked about several names, and at least one was answered."""


UNGATED: Final = frozenset(ToldCode) - {ToldCode.COMPARED}
"""Codes of answers whose passages were not compared with the question: their similarity is 0, and says nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer about the documents themselves, with the passages that show it."""

    code: ToldCode
    text: str
    evidence: Evidence
    citations: tuple[Citation, ...]
    complete: bool = True
    """False if something was cut off, as the text says."""
