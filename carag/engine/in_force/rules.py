"""Hold what decides about a request: the policy in force, and how a question is heard by it.

It is replaced as a whole when the configuration of the store changes, here or in another process, and never altered: a
request is decided, answered and recorded by the one value that it began with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from carag.policy import Intents, infer
from carag.retrieval.reading import Listener, Said

if TYPE_CHECKING:
    from datetime import datetime

    from carag.policy import Decision, PolicyTable, Profile, Session
    from carag.retrieval.reading import Declared


class Rules(NamedTuple):
    """The policy in force at one change of the store's configuration."""

    change: str
    """The store's note of that change; see :meth:`carag.store.store.CorpusStore.standing`."""
    table: PolicyTable
    listener: Listener

    @classmethod
    def of(cls, change: str, profile: Profile, declared: Declared, *, intents: bool) -> Rules:
        """Return the rules of a profile; without ``intents`` no word of a question tightens them."""
        heard = profile.vocabulary.intents if intents else Intents()
        return cls(change, profile.table, Listener(heard, declared))

    def decide(self, question: str | None, session: Session, now: datetime) -> Decision:
        """Infer what a session may use for a question, or for none; Refused if the session alone decides."""
        said = Said() if question is None else self.listener.said(question)
        return infer(session, self.table, now=now, intents=said.intents, days=said.days)
