"""Define the rules that set policy bits, each written once for one document and for arrays of many."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from carag.policy import QUARANTINE, VERSION_WORD, PolicyBit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Test: TypeAlias = Callable[[Any], Any]


class Level(StrEnum):
    """What a bit describes: a document, a passage or a document's state."""

    FILING = "filing"
    """Every passage of the document carries it."""
    PASSAGE = "passage"
    """A fact of the document sets it, and only the passages it concerns keep it."""
    STATE = "state"
    """Later documents set it, and may clear it again."""


class Rule(NamedTuple):
    """A rule that sets one bit of the word."""

    bit: PolicyBit
    field: str
    """The field that the rule reads first, by its name in the source."""
    text: str
    """When the bit is set."""
    test: Test
    also: str = ""
    """Other fields that the rule reads."""
    passages: str = ""
    """Which passages keep the bit; empty means all."""
    limits: str = ""
    """What the rule is known to miss, or needlessly makes inadmissible."""

    @property
    def level(self) -> Level:
        """Filing or passage; state bits have a different kind of rule."""
        return Level.PASSAGE if self.passages else Level.FILING


class QuarantineRule(NamedTuple):
    """A rule that quarantines a document."""

    code: StrEnum
    text: str
    test: Test


def label_words(
    columns: tuple[Any, ...], rules: Iterable[Rule], quarantines: Iterable[QuarantineRule]
) -> NDArray[np.uint32]:
    """Label n documents at once, given their fields as a named tuple of arrays, as the rules read them."""
    found = np.full(np.shape(columns[0]), VERSION_WORD, dtype=np.uint32)
    for rule in rules:
        found |= np.where(rule.test(columns), np.uint32(rule.bit), np.uint32(0))
    for quarantine in quarantines:
        found |= np.where(quarantine.test(columns), np.uint32(QUARANTINE), np.uint32(0))
    return found
