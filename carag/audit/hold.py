"""Legal holds: while one is in force, nothing it covers may be erased (GDPR Art. 17(3)(e)).

Placing a hold takes one person, so that it is never late; ending one takes two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit import _fields
from carag.audit.event import RecordKind
from carag.audit.persons import two_persons
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.canonical import Json
    from carag.audit.log import AuditLog
    from carag.audit.receipt import Receipt

__all__ = ["Hold", "HoldAction", "HoldScope", "place_hold", "release_hold"]


class HoldAction(StrEnum):
    """What happened to a hold."""

    PLACED = "placed"
    RELEASED = "released"


class HoldScope(StrEnum):
    """What a hold covers."""

    ALL = "all"
    RECORDS = "records"
    SUBJECT = "subject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A legal hold was placed or released.

    Parameters
    ----------
    action : HoldAction
    matter : str
        A code for the matter; no names.
    scope : HoldScope
        With SUBJECT, who it is is committed to beside the event.
    first, last : int or None
        The records, with RECORDS.
    placed : int or None
        The record that placed it, when it is released.
    """

    action: HoldAction
    matter: str
    scope: HoldScope
    first: int | None = None
    last: int | None = None
    placed: int | None = None

    kind: ClassVar = RecordKind.HOLD
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.HOLD,)
    COMMITS: ClassVar[tuple[str, ...]] = ("actor", "approver", "subject")

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", _fields.member(HoldAction, self.action))
        object.__setattr__(self, "scope", _fields.member(HoldScope, self.scope))
        _fields.code("matter", self.matter)
        ranged = self.scope is HoldScope.RECORDS
        for name in ("first", "last"):
            if ranged:
                _fields.integer(f"{name} record", getattr(self, name), 0)
            elif getattr(self, name) is not None:
                raise InvalidArgument(f"a hold on {self.scope} names no records")
        if ranged and (self.first or 0) > (self.last or 0):
            raise InvalidArgument(
                f"records {self.first} to {self.last} are none; want the lower number first"
            )
        if (self.action is HoldAction.RELEASED) != (self.placed is not None):
            raise InvalidArgument("a release names the record that placed the hold, a placement does not")
        if self.placed is not None:
            _fields.integer("placing record", self.placed, 0)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {
            "action": self.action.value,
            "first": self.first,
            "last": self.last,
            "matter": self.matter,
            "placed": self.placed,
            "scope": self.scope.value,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Hold:
        """Read what :meth:`to_json` returns."""
        names = ("action", "first", "last", "matter", "placed", "scope")
        return cls(**{name: fields[name] for name in names})


def place_hold(
    log: AuditLog,
    matter: str,
    *,
    actor: str,
    subject: str | None = None,
    records: tuple[int, int] | None = None,
) -> Receipt:
    """Place a hold on a subject, on a range of records, or, with neither, on everything.

    A hold on a subject covers what the log will yet record of that subject.

    Parameters
    ----------
    log : AuditLog
    matter : str
        A code such as ``"MATTER-2026-17"``.
    actor : str
        Who places it; committed to, not written.
    subject : str, optional
    records : (first, last), optional
        Both included.

    Returns
    -------
    Receipt
        Its ``seq`` is what :func:`release_hold` asks for.

    Raises
    ------
    InvalidArgument
        If the scope or the matter is malformed; nothing was changed.
    AuditUnavailable
        If it cannot be made durable.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     receipt = place_hold(log, "MATTER-7", actor="counsel", records=(0, 99))
    ...     log.record(receipt.seq).event.action
    <HoldAction.PLACED: 'placed'>
    """
    if subject is not None and records is not None:
        raise InvalidArgument("a hold is on a subject or on records; place two for both")
    first, last = (None, None) if records is None else records
    scope = HoldScope.ALL
    if records is not None:
        scope = HoldScope.RECORDS
    elif subject is not None:
        scope = HoldScope.SUBJECT
    event = Hold(action=HoldAction.PLACED, matter=matter, scope=scope, first=first, last=last)
    with log.private.settling():
        receipt = log.append(event, secrets={"actor": actor, "subject": subject})
        log.private.hold(receipt.seq, subject=subject, first=first, last=last)
    return receipt


def release_hold(log: AuditLog, placed: int, *, actor: str, approver: str) -> Receipt:
    """End the hold that record ``placed`` placed. Two people are needed.

    Raises
    ------
    InvalidArgument
        If that hold is not in force, or one person is named twice; nothing was changed.
    AuditUnavailable
        If it cannot be made durable; the hold then stays until the log is opened again.
    """
    two_persons(actor, approver)
    with log.private.settling():
        if placed not in {row.placed for row in log.private.held()}:
            raise InvalidArgument(f"record {placed} has placed no hold that is still in force")
        event = log.record(placed).event
        if not isinstance(event, Hold):
            raise InvalidArgument(f"record {placed} is no hold")
        release = Hold(
            action=HoldAction.RELEASED,
            matter=event.matter,
            scope=event.scope,
            first=event.first,
            last=event.last,
            placed=placed,
        )
        receipt = log.append(release, secrets={"actor": actor, "approver": approver})
        log.private.release(placed)
    return receipt
