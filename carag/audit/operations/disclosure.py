"""Disclose the private values of a record, only to certain roles, and with a record of the disclosure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit.records.custody import OPENERS, Disclosure
from carag.audit.records.kinds import Outcome
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.audit.log.log import AuditLog
    from carag.audit.receipts.receipt import Receipt
    from carag.audit.records.commitment import Opening


def disclose(
    log: AuditLog, seq: int, *, role: str, actor: str, why: str, fields: Collection[str] = ()
) -> dict[str, Opening]:
    """Open private values of a record, after recording the disclosure.

    Parameters
    ----------
    role : str
        ``"auditor"`` or ``"privacy_officer"``, from a verified session.
    actor : str
        The person who asks; recorded as a commitment, not in clear.
    why : str
        The purpose, as a code such as ``"COMPLAINT-2026-3"``.
    fields : collection of str
        Fields to open; by default all.

    Raises
    ------
    Refused
        ``ROLE_MAY_NOT_OPEN``; the attempt is recorded.
    InvalidArgument
        If a value does not exist; the message names the record by which it was erased.
    AuditUnavailable
        If the disclosure cannot be recorded; nothing is opened.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, place_hold
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     seq = place_hold(log, "MATTER-7", actor="counsel").seq
    ...     disclose(log, seq, role="auditor", actor="eve", why="REVIEW")["actor"].value
    'counsel'
    """
    _check_actor(actor)
    known = log.record(seq).commitments
    wanted = tuple(sorted(set(fields) or known))
    if unknown := set(wanted) - set(known):
        raise InvalidArgument(
            f"record {seq} commits to no {min(unknown)!r}; it has {', '.join(known) or 'none'}"
        )
    if role not in OPENERS:
        attempt = Disclosure(record=seq, fields=wanted, role=None, outcome=Outcome.REFUSE, why=why)
        log.append(attempt, secrets={"actor": actor})
        raise _may_not_open(role)
    gone = log.private.erased_by(seq)
    kept = log.private.openings(seq)
    if not fields:
        wanted = tuple(name for name in wanted if name in kept) or wanted
    for name in wanted:
        if name in gone:
            raise InvalidArgument(f"the {name} of record {seq} was erased by record {gone[name]}")
        if name not in kept:
            raise InvalidArgument(f"the {name} of record {seq} is not kept; its values were lost since")
    opened = Disclosure(record=seq, fields=wanted, role=role, outcome=Outcome.ANSWER, why=why)
    log.append(opened, secrets={"actor": actor})
    return {name: kept[name] for name in wanted}


def disclose_report(log: AuditLog, names: str, *, role: str, actor: str, why: str) -> Receipt:
    """Record that a report on a person, who has these names, reads every value; any other role is Refused, on record.

    Arguments and errors are those of :func:`disclose`.
    """
    _check_actor(actor)
    opens = role in OPENERS
    event = Disclosure(
        record=None,
        fields=(),
        role=role if opens else None,
        outcome=Outcome.ANSWER if opens else Outcome.REFUSE,
        why=why,
    )
    receipt = log.append(event, secrets={"actor": actor, "targets": names})
    if not opens:
        raise _may_not_open(role)
    return receipt


def _check_actor(actor: str) -> None:
    if not (isinstance(actor, str) and actor.strip()):
        raise InvalidArgument("name the person who opens the values")


def _may_not_open(role: str) -> Refused:
    return Refused("ROLE_MAY_NOT_OPEN", f"only {' or '.join(OPENERS)} may open values, not {quoted(role)}")
