"""Place and release legal holds: while a hold is in force, nothing that it covers may be erased (GDPR Art. 17(3)(e)).

Placing a hold takes one person, so that it is not delayed; releasing a hold takes two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit.operations.persons import two_persons
from carag.audit.records.custody import NO_RECORDS, Hold, HoldAction, HoldScope
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.log.log import AuditLog
    from carag.audit.receipts.receipt import Receipt


def place_hold(
    log: AuditLog,
    matter: str,
    *,
    actor: str,
    subject: str | None = None,
    records: tuple[int, int] | None = None,
    documents: str | None = None,
) -> Receipt:
    """Place a hold on a subject (including future records), a range of records, documents or, by default, everything.

    A hold on everything covers every document of the store, too.

    Parameters
    ----------
    matter : str
        A code such as ``"MATTER-2026-17"``.
    actor : str
        The person who places the hold; recorded as a commitment, not in clear.
    records : (first, last), optional
        Both are included.
    documents : str, optional
        Which documents of the store; :meth:`carag.engine.erasing.holds.DocumentHolds.place` writes it.

    Returns
    -------
    Receipt
        Its ``seq`` is the argument of :func:`release_hold`.

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
    given = {HoldScope.SUBJECT: subject, HoldScope.RECORDS: records, HoldScope.DOCUMENTS: documents}
    scopes = [scope for scope, one in given.items() if one is not None] or [HoldScope.ALL]
    if len(scopes) > 1:
        raise InvalidArgument(f"a hold covers {' or '.join(scopes)}, not both; place two holds")
    scope, (first, last) = scopes[0], records or (None, None)
    event = Hold(action=HoldAction.PLACED, matter=matter, scope=scope, first=first, last=last)
    with log.settling():
        receipt = log.append(event, secrets={"actor": actor, "subject": subject, "targets": documents})
        if documents is not None:
            first, last = NO_RECORDS
        log.private.hold(receipt.seq, subject=subject, first=first, last=last)
    return receipt


def release_hold(log: AuditLog, placed: int, *, actor: str, approver: str) -> Receipt:
    """Release the hold that record ``placed`` placed; two people are needed.

    Raises
    ------
    InvalidArgument
        If that hold is not in force, or one person is named twice; nothing was changed.
    AuditUnavailable
        If it cannot be made durable; the hold then stays until the log is opened again.
    """
    two_persons(actor, approver)
    with log.settling():
        if placed not in {row.placed for row in log.private.held()}:
            raise InvalidArgument(f"record {placed} did not place a hold that is still in force")
        event = log.record(placed).event
        if not isinstance(event, Hold):
            raise InvalidArgument(f"record {placed} is not a hold")
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
