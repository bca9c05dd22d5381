"""Erasure: values go, records and proofs stay.

The order is: may it be done (holds, retention, two people); an ``erasure`` record, durable; then the openings and
every key they could be read with are destroyed. A crash in between is finished at the next opening. The record
names the records or, where it is a person's, only how many there were: a list of them would tie a person's
records together for ever. The list is committed to beside it, so that an operator can show which they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from carag.audit import _fields, canonical
from carag.audit.event import RecordKind
from carag.audit.persons import two_persons
from carag.audit.private import Target
from carag.audit.retention import retain_until, retention_class
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from carag.audit.canonical import Json
    from carag.audit.log import AuditLog
    from carag.audit.receipt import Receipt

__all__ = ["KEPT_KINDS", "MAX_NAMED", "Basis", "Erasure", "destroy", "erase", "read_targets"]

MAX_NAMED: Final = 1000
"""Records that one erasure names."""
KEPT_KINDS: Final = {RecordKind.ERASURE, RecordKind.HOLD, RecordKind.DISCLOSURE}
"""Of these, who did it stays known: GDPR Art. 5(2)."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Basis(StrEnum):
    """Why values are erased. The first two wait for a duty to keep them, the others do not."""

    REQUEST = "GDPR_17_1"
    """The person asks, or consent is withdrawn: GDPR Art. 17(1)(a) to (c); yields to Art. 17(3)(b)."""
    STORAGE_LIMIT = "GDPR_5_1_E"
    """They are no longer needed: GDPR Art. 5(1)(e)."""
    UNLAWFUL = "GDPR_17_1_D"
    """They should never have been recorded: GDPR Art. 17(1)(d)."""
    LEGAL_OBLIGATION = "GDPR_17_1_E"
    """A law orders it, or a court or authority under one: GDPR Art. 17(1)(e), 58(2)(g)."""

    @property
    def waits(self) -> bool:
        """Whether a duty to keep the values goes first."""
        return self in (Basis.REQUEST, Basis.STORAGE_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Values behind commitments were destroyed. Who did it is committed to beside it, and so is the list.

    Parameters
    ----------
    basis : Basis
    count : int
        Records that lost a value.
    fields : tuple of str
        Which commitments can no longer be opened.
    records : tuple of int
        The records; none if it was one person's, or more than can be named.
    """

    basis: Basis
    count: int
    fields: tuple[str, ...]
    records: tuple[int, ...] = ()

    kind: ClassVar = RecordKind.ERASURE
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.ERASURE,)
    COMMITS: ClassVar[tuple[str, ...]] = ("actor", "approver", "targets")

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", _fields.member(Basis, self.basis))
        _fields.integer("erased records", self.count, 1)
        for name in self.fields:
            _fields.code("erased field", name)
        if not self.fields or list(self.fields) != sorted(set(self.fields)):
            raise InvalidArgument(f"erased fields are {quoted(self.fields)}; want each once, in order")
        for seq in self.records:
            _fields.integer("erased record", seq, 0)
        if list(self.records) != sorted(set(self.records)) or len(self.records) not in (0, self.count):
            raise InvalidArgument("the erased records are not as many as counted, or not each once, in order")

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {
            "basis": self.basis.value,
            "count": int(self.count),
            "fields": list(self.fields),
            "records": [int(seq) for seq in self.records],
        }

    @classmethod
    def from_json(cls, fields: Any) -> Erasure:
        """Read what :meth:`to_json` returns."""
        return cls(
            basis=fields["basis"],
            count=fields["count"],
            fields=tuple(fields["fields"]),
            records=tuple(fields["records"]),
        )


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
    """Destroy what the log keeps of some records, or of one person.

    Every proof and every receipt made before still verifies; receipts in other hands keep what they show.

    Parameters
    ----------
    log : AuditLog
    actor, approver : str
        Two people; committed to, not written.
    basis : Basis or str
    records : sequence of int
        Or
    subject : str
        whose values are erased as far as they have been recorded by now.
    fields : collection of str
        Only these, such as ``{"subject", "query"}``; all if none is given.

    Returns
    -------
    Receipt
        Of the erasure record.

    Raises
    ------
    Refused
        ``LEGAL_HOLD`` or ``RETENTION``; nothing was changed.
    InvalidArgument
        If there is nothing to erase, or the request is malformed; nothing was changed.
    AuditUnavailable
        If it is not certain that it is done. Opening the log again finishes what was recorded.

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
        raise InvalidArgument("say whose values to erase: either of records or of a subject")
    with log.private.settling():
        targets = _targets(log, records, subject, fields)
        _check_holds(log, targets)
        if reason.waits:
            _check_retention(log, targets)
        return destroy(log, targets, reason, actor=actor, approver=approver, named=subject is None)


def destroy(
    log: AuditLog, targets: Sequence[Target], basis: Basis, *, actor: str, approver: str, named: bool
) -> Receipt:
    """Record an erasure that may be made, then make it; to be called within ``log.private.settling()``."""
    numbers = sorted({target.seq for target in targets})
    event = Erasure(
        basis=basis,
        count=len(numbers),
        fields=tuple(sorted({target.field for target in targets})),
        records=tuple(numbers) if named else (),
    )
    log.private.plan(targets)
    listed = canonical.encode([list(target) for target in targets]).decode()
    receipt = log.append(event, secrets={"actor": actor, "approver": approver, "targets": listed})
    log.private.erase(targets, receipt.seq)
    return receipt


def read_targets(text: str) -> list[Target]:
    """Read the list that an erasure record commits to."""
    return [Target(seq, field) for seq, field in canonical.decode(text.encode())]


def _targets(
    log: AuditLog, records: Iterable[int], subject: str | None, fields: Collection[str]
) -> list[Target]:
    if subject is not None:
        kept = log.private.of_subject(subject)
        found = [target for target in kept if not fields or target.field in fields]
        if not found:
            raise InvalidArgument("nothing is kept of that subject, or not in these fields")
        return found
    numbers = sorted(set(records))
    if len(numbers) > MAX_NAMED:
        raise InvalidArgument(
            f"one erasure names at most {MAX_NAMED} records, got {len(numbers)}; make several"
        )
    return [target for seq in numbers for target in _targets_of(log, seq, fields)]


def _targets_of(log: AuditLog, seq: int, fields: Collection[str]) -> list[Target]:
    record = log.record(seq)
    if record.kind in KEPT_KINDS:
        raise InvalidArgument(f"record {seq} is a {record.kind}: who did it stays known (GDPR Art. 5(2))")
    kept, gone = log.private.of_record(seq), log.private.erased_by(seq)
    wanted = set(fields) or {target.field for target in kept}
    if again := wanted & set(gone):
        name = min(again)
        raise InvalidArgument(f"the {name} of record {seq} was erased by record {gone[name]}")
    found = [target for target in kept if target.field in wanted]
    if missing := wanted - {target.field for target in found}:
        raise InvalidArgument(f"record {seq} has no {min(missing)} to erase")
    if not found:
        by = f"; erased by record {max(gone.values())}" if gone else ""
        raise InvalidArgument(f"nothing is kept of record {seq}{by}")
    return found


def _check_holds(log: AuditLog, targets: Sequence[Target]) -> None:
    holds = log.private.holds_on(targets)
    if holds:
        placed = ", ".join(str(hold.placed) for hold in holds)
        raise Refused(
            "LEGAL_HOLD",
            f"a legal hold covers this (placed by record {placed}); it must be released by two people first",
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
                f"record {seq} is of class {duty.code}, which keeps its values until {until:%Y-%m-%d} "
                f"({duty.law}); a request waits for that (GDPR Art. 17(3)(b)), an order by law does not "
                f"(basis {Basis.LEGAL_OBLIGATION} or {Basis.UNLAWFUL})",
            )
