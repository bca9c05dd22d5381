"""Find what a question tells the policy: its intents, and the day as of which it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from carag.retrieval.reading.instants import instants_of

if TYPE_CHECKING:
    from datetime import date

    from carag.policy import Intents
    from carag.retrieval.reading.declared import Declared


class Said(NamedTuple):
    """What a question tells the policy; nothing by default."""

    intents: tuple[str, ...] = ()
    days: tuple[date | None, ...] = ()
    """None for a day that cannot be read."""


class Listener:
    """Reads questions for the policy, by the intents and the reading that a profile declares."""

    def __init__(self, intents: Intents, declared: Declared) -> None:
        self._intents = intents
        self._with_day = declared.as_of
        self._known = {rule.name for rule in intents.rules}

    def said(self, question: str, read: str = "") -> Said:
        """Return what a question tells the policy.

        What a follow-up is read as can only tighten: its words count for intents, but never for the day.
        """
        found = self._intents.found(question)
        if read and read != question:
            found = tuple(dict.fromkeys((*found, *self._intents.found(read))))
        days = tuple(one.day for one in instants_of(question)) if self._with_day else ()
        if days and self._with_day in self._known:
            found = tuple(dict.fromkeys((*found, self._with_day)))
        return Said(found, days)
