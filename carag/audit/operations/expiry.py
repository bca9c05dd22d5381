"""Erase values whose retention time has ended, in one step (GDPR Art. 5(1)(e)).

A record's retention time is that of its retention class, counted from the record's commit time. Values under a legal
hold stay, and so do the names of those who erased, held or opened values (Art. 5(2)). Records are never removed: proofs
stay valid.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from carag.audit.operations.erasure import KINDS_NEVER_ERASED, destroy
from carag.audit.operations.persons import two_persons
from carag.audit.records.custody import Basis
from carag.audit.records.retention import RETENTION, retain_until
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.log.log import AuditLog
    from carag.audit.receipts.receipt import Receipt
    from carag.audit.records.custody import Target


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHORTEST: Final = min(RETENTION.values(), key=lambda each: each.months).code
"""Code of the class with the shortest retention time."""


def expired(log: AuditLog) -> list[Target]:
    """List the values whose retention time has ended and which no legal hold covers, in the order of the log."""
    now = _EPOCH + timedelta(microseconds=log.now())
    found: list[Target] = []
    for seq, targets in groupby(log.private.unheld(log.size), key=attrgetter("seq")):
        record = log.record(seq)
        if retain_until(record.committed, _SHORTEST) > now:  # records are in the order of their commit times
            break
        if record.kind not in KINDS_NEVER_ERASED and retain_until(record.committed, record.retain) <= now:
            found += targets
    return found


def erase_expired(log: AuditLog, *, actor: str, approver: str) -> Receipt:
    """Destroy every value that :func:`expired` lists, as one erasure with the basis ``GDPR_5_1_E``.

    The erasure's record names the affected records, or only their number if there are more than 1,000, and commits to
    the list. Every proof and every earlier receipt still verifies. The whole log is re-hashed first, because its
    records determine what may be erased.

    Parameters
    ----------
    actor, approver : str
        Two people; recorded as commitments, not in clear.

    Returns
    -------
    Receipt
        The receipt of the erasure record.

    Raises
    ------
    InvalidArgument
        If nothing is to be erased, or one person is named twice; nothing was changed.
    CorruptFile
        If the log is inconsistent; nothing was changed.
    AuditUnavailable
        If the erasure may be incomplete. Opening the log again finishes a recorded erasure.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, Ingest
    >>> event = Ingest(started=1, ended=2, documents=0, chunks=0, quarantined=0, rows=0, snapshot=bytes(32),
    ...                table=bytes(32), embed=None, why="DRILL")
    >>> year, now = 366 * 86_400_000_000, [0]
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory, clock=lambda: now[0]) as log:
    ...     seqs = [log.append(event, secrets={"subject": "ana"}, retain=code).seq for code in ("ai6m", "fin7y")]
    ...     now[0] = year
    ...     done = erase_expired(log, actor="dpo", approver="cco")
    ...     [log.private.erased_by(seq) for seq in seqs]
    [{'subject': 2}, {}]
    """
    two_persons(actor, approver)
    log.verify()  # an altered retention class or commit time must not cause an erasure
    with log.settling():
        targets = expired(log)
        if not targets:
            raise InvalidArgument(
                "there is nothing to erase: no value's retention time has ended, except under a legal hold"
            )
        return destroy(log, targets, Basis.STORAGE_LIMIT, actor=actor, approver=approver, named=True)
