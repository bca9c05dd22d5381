"""Find intents in a question by a profile's fixed phrases, never by a model; intents only tighten masks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from carag.policy.mask import Mask


class Intent(StrEnum):
    """The names of the restrictions that a question over EDGAR filings can ask for."""

    AUDITED = "AUDITED"
    LATEST = "LATEST"
    AS_AMENDED = "AS_AMENDED"
    CURRENT_HOLDINGS = "CURRENT_HOLDINGS"
    US_GAAP = "US_GAAP"
    PERSON_NAMED = "PERSON_NAMED"
    """Only for sessions without a right to personal data."""


@dataclass(frozen=True, slots=True)
class IntentRule:
    """A restriction, the bits that it adds to every mask, and the phrases that ask for it."""

    name: str
    mask: Mask
    phrases: tuple[re.Pattern[str], ...]
    unless: str | None = None
    """A right of a cell, such as ``personal_data``, under which the intent does not apply."""


class Intents:
    """A profile's intents; ``not_meant`` are phrases that only sound like an intent, removed from a question first."""

    def __init__(
        self, rules: tuple[IntentRule, ...] = (), not_meant: tuple[re.Pattern[str], ...] = ()
    ) -> None:
        self.rules = rules
        self.not_meant = not_meant

    def found(self, text: str) -> tuple[str, ...]:
        """Find the names of a question's intents, in the order of the profile."""
        meant = text
        for phrase in self.not_meant:
            meant = phrase.sub(" ", meant)
        return tuple(rule.name for rule in self.rules if any(phrase.search(meant) for phrase in rule.phrases))

    def named(self, names: Iterable[str]) -> tuple[IntentRule, ...]:
        """Return the rules with these names, each once, in the profile's order; KeyError with an unknown name."""
        wanted = set(names)
        if unknown := sorted(wanted - {rule.name for rule in self.rules}):
            raise KeyError(unknown[0])
        return tuple(rule for rule in self.rules if rule.name in wanted)
