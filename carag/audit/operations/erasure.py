"""Erase the private values of records or of a person (GDPR Art. 17); records and proofs stay.

First it is checked that the erasure is allowed (holds, retention, two people), then an ``erasure`` record is written
durably, then the openings and every key that could read them are destroyed. An erasure interrupted by a crash is
completed the next time the log is opened.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from carag.audit.operations.persons import two_persons
from carag.audit.records import _fields
from carag.audit.records.access import with_reading
from carag.audit.records.custody import Basis, Erasure, write_targets
from carag.audit.records.kinds import RecordKind
from carag.audit.records.retention import retain_until, retention_class
from carag.errors import InvalidArgument, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from carag.audit.log.log import AuditLog
    from carag.audit.receipts.receipt import Receipt
    from carag.audit.records.custody import Target


MAX_NAMED_RECORDS: Final = 1000
"""Most records that an erasure record names; beyond that it holds only their number."""
KINDS_NEVER_ERASED: Final = {
    RecordKind.ERASURE,
    RecordKind.DOCUMENTS,
    RecordKind.HOLD,
    RecordKind.DISCLOSURE,
}
"""Records whose values are never erased: it must stay known who erased, held or opened values (GDPR Art. 5(2))."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def erase(
    log: AuditLog,
    *,
    actor: str,
    approver: str,
    basis: Basis | str,
    records: Sequence[int] = (),
    subject: str | None = None,
    fields: Collection[str] = (),
) -> Receipt:
    """Destroy the private values of some records, or of one person.

    Every proof and every earlier receipt still verifies; receipts that others hold still show their values.

    Parameters
    ----------
    actor, approver : str
        Two people; recorded as commitments, not in clear.
    records : sequence of int
        The records; or give ``subject``.
    subject : str
        The person whose values recorded so far are erased.
    fields : collection of str
        Fields to erase, such as ``{"subject", "query"}``; by default all. Erasing a question also erases its reading.

    Returns
    -------
    Receipt
        The receipt of the erasure record.

    Raises
    ------
    Refused
        ``LEGAL_HOLD`` or ``RETENTION``; nothing was changed.
    InvalidArgument
        If there is nothing to erase, or the request is malformed; nothing was changed.
    AuditUnavailable
        If the erasure may be incomplete. Opening the log again finishes a recorded erasure.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, Ingest
    >>> event = Ingest(started=1, ended=2, documents=0, chunks=0, quarantined=0, rows=0, snapshot=bytes(32),
    ...                table=bytes(32), embed=None, why="DRILL")
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     old = log.append(event, secrets={"subject": "ana@bank.example"})
    ...     new = erase(log, subject="ana@bank.example", basis=Basis.UNLAWFUL, actor="dpo", approver="cco")
    ...     log.record(new.seq).event.count, log.private.erased_by(old.seq)
    (1, {'subject': 1})
    """
    two_persons(actor, approver)
    reason = _fields.member(Basis, basis)
    if (subject is None) == (not records):
        raise InvalidArgument("name the values to erase: either records or a subject")
    with log.settling():
        targets = _targets(log, records, subject, fields)
        _check_holds(log, targets)
        if reason.waits:
            _check_retention(log, targets)
        return destroy(log, targets, reason, actor=actor, approver=approver, named=subject is None)


def destroy(
    log: AuditLog, targets: Sequence[Target], basis: Basis, *, actor: str, approver: str, named: bool
) -> Receipt:
    """Record an erasure that was checked, then carry it out; call it within ``log.settling()``.

    ``approver`` is empty where one person may erase. Unless ``named``, or if there are more than
    :data:`MAX_NAMED_RECORDS`, the record holds only the number of the records.
    """
    numbers = sorted({target.seq for target in targets})
    event = Erasure(
        basis=basis,
        count=len(numbers),
        fields=tuple(sorted({target.field for target in targets})),
        records=tuple(numbers) if named and len(numbers) <= MAX_NAMED_RECORDS else (),
    )
    secrets = {"actor": actor, "approver": approver or None, "targets": write_targets(targets)}
    receipt = log.append(event, secrets=secrets)
    log.private.erase(targets, receipt.seq)
    return receipt


def kept_by(log: AuditLog, targets: Sequence[Target], basis: Basis) -> str:
    """Return which hold or duty protects any of some values from an erasure on this basis; empty if none does."""
    try:
        _check_holds(log, targets)
        if basis.waits:
            _check_retention(log, targets)
    except Refused as refused:
        return str(refused)
    return ""


def _targets(
    log: AuditLog, records: Iterable[int], subject: str | None, fields: Collection[str]
) -> list[Target]:
    if subject is not None:
        kept = log.private.of_subject(subject)
        found = [target for target in kept if not fields or target.field in with_reading(fields)]
        if not found:
            raise InvalidArgument("no values of that subject are kept in these fields")
        return found
    numbers = sorted(set(records))
    if len(numbers) > MAX_NAMED_RECORDS:
        raise InvalidArgument(
            f"an erasure names at most {MAX_NAMED_RECORDS} records, got {len(numbers)}; split it"
        )
    return [target for seq in numbers for target in _targets_of(log, seq, fields)]


def _targets_of(log: AuditLog, seq: int, fields: Collection[str]) -> list[Target]:
    record = log.record(seq)
    if record.kind in KINDS_NEVER_ERASED:
        raise InvalidArgument(
            f"record {seq} is a {record.kind} record: the persons in it stay known (GDPR Art. 5(2))"
        )
    kept, gone = log.private.of_record(seq), log.private.erased_by(seq)
    wanted = set(fields) or {target.field for target in kept}
    if again := wanted & set(gone):
        name = min(again)
        raise InvalidArgument(f"the {name} of record {seq} was erased by record {gone[name]}")
    found = [target for target in kept if target.field in with_reading(wanted)]
    if missing := wanted - {target.field for target in found}:
        raise InvalidArgument(f"record {seq} has no {min(missing)} to erase")
    if not found:
        by = f"; erased by record {max(gone.values())}" if gone else ""
        raise InvalidArgument(f"no values of record {seq} are kept{by}")
    return found


def _check_holds(log: AuditLog, targets: Sequence[Target]) -> None:
    holds = log.private.holds_on(targets)
    if holds:
        placed = ", ".join(str(hold.placed) for hold in holds)
        raise Refused(
            "LEGAL_HOLD",
            f"a legal hold covers this (placed by record {placed}); two people must release it first",
        )


def _check_retention(log: AuditLog, targets: Sequence[Target]) -> None:
    now = _EPOCH + timedelta(microseconds=log.now())
    for seq in sorted({target.seq for target in targets}):
        record = log.record(seq)
        duty = retention_class(record.retain)
        until = retain_until(record.committed, record.retain)
        if duty.binds_values and now < until:
            raise Refused(
                "RETENTION",
                f"record {seq} has retention class {duty.code}, which keeps its values until {until:%Y-%m-%d} "
                f"({duty.law}); a request waits for that (GDPR Art. 17(3)(b)), an order by law does not "
                f"(basis {Basis.LEGAL_OBLIGATION} or {Basis.UNLAWFUL})",
            )
