"""Opening what a record commits to: only by role, and on the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from carag.audit import _fields
from carag.audit.event import Outcome, RecordKind
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.audit.canonical import Json
    from carag.audit.commitment import Opening
    from carag.audit.log import AuditLog

__all__ = ["OPENERS", "Disclosure", "disclose"]

OPENERS: Final = ("auditor", "privacy_officer")
"""The roles that may open private values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Somebody opened a record's private values, or tried to.

    Parameters
    ----------
    record : int
    fields : tuple of str
        What was asked for; none means all there is.
    role : str or None
        ``None`` if it is none that may open anything.
    outcome : Outcome
        ANSWER or REFUSE.
    why : str
        The purpose, as a code.
    """

    record: int
    fields: tuple[str, ...]
    role: str | None
    outcome: Outcome
    why: str

    kind: ClassVar = RecordKind.DISCLOSURE
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.DISCLOSURE,)
    COMMITS: ClassVar[tuple[str, ...]] = ("actor",)

    def __post_init__(self) -> None:
        _fields.integer("opened record", self.record, 0)
        for name in self.fields:
            _fields.code("opened field", name)
        object.__setattr__(self, "outcome", _fields.member(Outcome, self.outcome))
        if (self.outcome is Outcome.ANSWER) != (self.role in OPENERS) or self.outcome not in (
            Outcome.ANSWER,
            Outcome.REFUSE,
        ):
            raise InvalidArgument(f"values are opened to {' or '.join(OPENERS)} and refused to anybody else")
        if self.outcome is Outcome.REFUSE and self.role is not None:
            raise InvalidArgument(
                f"a refused role is {quoted(self.role)}; want None, for who that was nobody knows"
            )
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {
            "fields": list(self.fields),
            "outcome": self.outcome.value,
            "record": int(self.record),
            "role": self.role,
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Disclosure:
        """Read what :meth:`to_json` returns."""
        return cls(
            record=fields["record"],
            fields=tuple(fields["fields"]),
            role=fields["role"],
            outcome=fields["outcome"],
            why=fields["why"],
        )


def disclose(
    log: AuditLog, seq: int, *, role: str, actor: str, why: str, fields: Collection[str] = ()
) -> dict[str, Opening]:
    """Open private values of a record, after recording that it was done.

    Parameters
    ----------
    log : AuditLog
    seq : int
    role : str
        ``"auditor"`` or ``"privacy_officer"``, from a verified session.
    actor : str
        Who asks; committed to, not written.
    why : str
        The purpose, as a code such as ``"COMPLAINT-2026-3"``.
    fields : collection of str
        Only these; all if none is given.

    Raises
    ------
    Refused
        ``ROLE_MAY_NOT_OPEN``; the attempt is recorded.
    InvalidArgument
        If a value is not there; the message says by which record it was erased.
    AuditUnavailable
        If it cannot be recorded; nothing is opened.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, place_hold
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     seq = place_hold(log, "MATTER-7", actor="counsel").seq
    ...     disclose(log, seq, role="auditor", actor="eve", why="REVIEW")["actor"].value
    'counsel'
    """
    if not (isinstance(actor, str) and actor.strip()):
        raise InvalidArgument("name the person who opens the values")
    known = log.record(seq).commitments
    wanted = tuple(sorted(set(fields) or known))
    if unknown := set(wanted) - set(known):
        raise InvalidArgument(
            f"record {seq} commits to no {min(unknown)!r}; it has {', '.join(known) or 'none'}"
        )
    if role not in OPENERS:
        attempt = Disclosure(record=seq, fields=wanted, role=None, outcome=Outcome.REFUSE, why=why)
        log.append(attempt, secrets={"actor": actor})
        raise Refused(
            "ROLE_MAY_NOT_OPEN", f"values are opened to {' or '.join(OPENERS)}, not to {quoted(role)}"
        )
    gone = log.private.erased_by(seq)
    kept = log.private.openings(seq)
    if not fields:
        wanted = tuple(name for name in wanted if name in kept) or wanted
    for name in wanted:
        if name in gone:
            raise InvalidArgument(f"the {name} of record {seq} was erased by record {gone[name]}")
        if name not in kept:
            raise InvalidArgument(f"the {name} of record {seq} is not kept; private.db was replaced since")
    opened = Disclosure(record=seq, fields=wanted, role=role, outcome=Outcome.ANSWER, why=why)
    log.append(opened, secrets={"actor": actor})
    return {name: kept[name] for name in wanted}
