"""Refuse to erase documents that are held or must still be kept, on record, and find those that are due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import Denial
from carag.audit.records.custody import Basis
from carag.errors import Refused
from carag.limits import quoted
from carag.policy import from_minutes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from carag.audit import AuditLog
    from carag.engine.erasing.holds import DocumentHolds
    from carag.store.store import CorpusStore

_A_MINUTE: Final = 60_000_000
"""Microseconds."""


class Due(NamedTuple):
    """A document that is due to be erased."""

    document: str
    since: int
    """The minute that it states, since 1970."""
    held: tuple[int, ...]
    """Records that placed holds on it, so that it stays."""
    until: int
    """The minute until which an earlier version states that it must be kept; 0 if that is over."""

    @property
    def refusal(self) -> str:
        """Why it stays: ``LEGAL_HOLD`` or ``RETENTION``; empty if it can be erased."""
        return "LEGAL_HOLD" if self.held else "RETENTION" if self.until else ""


def minute_of(log: AuditLog) -> int:
    """Return the minute of now, by the log's clock."""
    return log.now() // _A_MINUTE


def retained(store: CorpusStore, ids: Sequence[str], minute: int) -> dict[str, int]:
    """Return, by the id of each document that must still be kept, until when: the latest that a version states."""
    until: dict[str, int] = {}
    for one, facts in store.documents.versions(ids):
        until[one] = max(until.get(one, 0), facts.get("retain_until", 0))
    return {one: last for one, last in until.items() if minute < last}


def due(store: CorpusStore, log: AuditLog, holds: DocumentHolds) -> list[Due]:
    """Return the documents whose ``erase_after`` has passed, in the order in which they were added."""
    minute = minute_of(log)
    since = store.documents.due(minute)
    held, until = holds.on([*since]), retained(store, [*since], minute)
    return [Due(one, at, held.get(one, ()), until.get(one, 0)) for one, at in since.items()]


def check_free(
    store: CorpusStore, log: AuditLog, held: Mapping[str, Sequence[int]], ids: Sequence[str], basis: Basis
) -> None:
    """Raise Refused if one of some documents is held, or must still be kept and the basis waits for that."""
    if held:
        first, placed = next(iter(held.items()))
        raise Refused(
            "LEGAL_HOLD",
            f"a legal hold covers document {quoted(first)}, as with {len(held)} of the {len(ids)} ids (placed by "
            f"record {', '.join(map(str, placed))}); two people must release it first; nothing was erased",
        )
    if basis.waits and (kept := retained(store, ids, minute_of(log))):
        first, until = next(iter(kept.items()))
        raise Refused(
            "RETENTION",
            f"document {quoted(first)} must be kept until {from_minutes(until):%Y-%m-%d %H:%M} UTC, as with "
            f"{len(kept)} of the {len(ids)} ids; a request waits for that (GDPR Art. 17(3)(b)), an order by law does "
            f"not (basis {Basis.LEGAL_OBLIGATION} or {Basis.UNLAWFUL}); nothing was erased",
        )


def refused(log: AuditLog, code: str) -> None:
    """Put a refusal on record."""
    now = log.now()
    log.append(Denial(first=now, last=now, count=1, why=code))
