"""Take over what other processes put in force in a store, at the start of each public operation, on record."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from carag.engine.in_force.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.engine.collection import Collection
    from carag.engine.configuration import ConfigurationLog
    from carag.engine.results import GateReport


class InForce:
    """What is in force in a store. Every part of an engine calls :meth:`keep_up` at the start of a public operation.

    - ``now``: returns the time in microseconds since 1970.
    - ``accept``: what the opening accepts; see :meth:`carag.Engine.open`.
    """

    take_gate: Callable[[GateReport | None], None]
    """Takes over the gate that the store keeps after a change; an engine states it when it has its parts."""

    def __init__(
        self,
        collection: Collection,
        configuration: ConfigurationLog,
        now: Callable[[], int],
        *,
        intents: bool,
        accept: frozenset[str],
    ) -> None:
        self._collection = collection
        self._configuration = configuration
        self._now = now
        self._intents = intents
        self._switching = threading.Lock()
        at = now()
        with configuration.changing(at):
            if "policy" in accept:
                configuration.put_in_force(collection.profile, at=at)
            self.rules = self._followed()
            is_expected = "policy" in accept or collection.profile.is_shipped
            configuration.policy(bytes.fromhex(self.rules.table.sha256), at=at, accept=is_expected)
            self.kept = configuration.gate(accept="gate" in accept)
            """How the gate that the store kept at the opening was calibrated; None if it kept none."""

    def keep_up(self) -> Rules:
        """Take over what other processes brought and put in force; return what decides from now on."""
        if self._collection.keep_up() in (None, self.rules.change):
            return self.rules
        with self._switching:
            if self._collection.store.standing()[1] != self.rules.change:
                at = self._now()
                with self._configuration.changing(at):
                    rules = self._followed()
                    self._configuration.policy(bytes.fromhex(rules.table.sha256), at=at, accept=False)
                    kept = self._configuration.gate()
                self.take_gate(kept)
                self.rules = rules
            return self.rules

    def _followed(self) -> Rules:
        change, collection = self._collection.follow_profile(), self._collection
        return Rules.of(change, collection.profile, collection.catalogue.declared, intents=self._intents)
