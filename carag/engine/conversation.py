"""Find the earlier questions of a conversation in the log, for the same caller in the same cell alone.

The log has them already, sealed under the caller's key: they survive a restart, hold for every service that writes to
the log, and are gone once they are erased. Nothing else is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import Access, Outcome, RecordKind, SessionSource
from carag.policy import known_at_microseconds

if TYPE_CHECKING:
    from datetime import datetime

    from carag.audit import AuditLog
    from carag.policy import Session


# How many earlier questions a follow-up can lean on.
TURNS: Final = 8
# A conversation ends when it was silent for longer, in microseconds.
_LASTS: Final = 2 * 3600 * 1_000_000
# Records of the caller, in all conversations, among which the questions are.
_LOOKED_AT: Final = 64
# Codes of records that follow up a question, and repeat its text.
_NOT_ASKED: Final = frozenset({"ANSWERED_ELSEWHERE", "SUCCESSORS"})


class Turn(NamedTuple):
    """An earlier question of a conversation, as asked."""

    record: int
    question: str
    outcome: Outcome


def turns_of(log: AuditLog, session: Session, now: datetime) -> tuple[Turn, ...]:
    """Return the questions that this caller asked in this conversation, role and purpose, oldest first.

    A session without a subject or a conversation has none, because it cannot be told whose they are. Requests that were
    refused or failed do not count.
    """
    if session.subject is None or session.conversation is None:
        return ()
    glass = None if session.glass is None else session.glass.record
    source = SessionSource(session.source.value)
    caller = session.role, session.purpose, source, session.issuer, session.audience, glass
    last, found = known_at_microseconds(now), list[Turn]()
    for seq, openings in log.private.newest_of(session.subject, ("conversation", "query"), _LOOKED_AT):
        event = log.record(seq).event
        if not isinstance(event, Access):
            continue
        if len(found) == TURNS or last - event.started > _LASTS:
            break
        said = {name: opening.value for name, opening in openings.items()}
        if (
            said.get("conversation") == session.conversation
            and "query" in said
            and (event.role, event.purpose, event.source, event.issuer, event.audience, event.glass) == caller
            and event.kind in (RecordKind.QUERY, RecordKind.RETRIEVE)
            and event.outcome in (Outcome.ANSWER, Outcome.DECLINE)
            and event.why not in _NOT_ASKED
        ):
            found.append(Turn(seq, said["query"], event.outcome))
            last = event.started
    return tuple(reversed(found))
