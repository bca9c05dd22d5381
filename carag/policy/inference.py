"""Session and table to policy, deterministically. Default deny: what the table does not say is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.errors import Refused
from carag.policy.time import as_of_minutes, known_at_microseconds

if TYPE_CHECKING:
    from datetime import datetime

    from carag.policy.mask import Policy
    from carag.policy.session import Session
    from carag.policy.table import PolicyTable

__all__ = ["Decision", "infer"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a session may use."""

    role: str
    purpose: str
    policy: Policy
    as_of: int
    """Minutes since 1970-01-01T00:00Z."""
    known_at: int | None
    """Microseconds since 1970-01-01T00:00Z; None: all that is known now."""
    may_know_existence: bool
    table_sha256: str


def infer(session: Session, table: PolicyTable, *, now: datetime) -> Decision:
    """Look up the session's cell.

    Parameters
    ----------
    session : Session
    table : PolicyTable
    now : datetime
        Aware. The decision's ``as_of`` is the earlier of the session's and this: nobody asks from the future.

    Raises
    ------
    Refused
        ``UNKNOWN_ROLE``, ``UNKNOWN_PURPOSE``, ``NO_SUCH_CELL`` or ``ALLOW_LIST_REQUIRED``.
    """
    if session.role not in table.roles:
        raise Refused("UNKNOWN_ROLE", f"unknown role {session.role!r}; want one of {', '.join(table.roles)}")
    if session.purpose not in table.purposes:
        raise Refused(
            "UNKNOWN_PURPOSE",
            f"unknown purpose {session.purpose!r}; want one of {', '.join(table.purposes)}",
        )
    cell = table.get(session.role, session.purpose)
    if cell is None:
        allowed = ", ".join(c.purpose for c in table.cells if c.role == session.role)
        raise Refused(
            "NO_SUCH_CELL",
            f"{session.role} may not ask for {session.purpose}; this role may ask for {allowed}",
        )
    if cell.allow_list == "mandatory":
        raise Refused(
            "ALLOW_LIST_REQUIRED",
            f"{cell.role}/{cell.purpose} needs an allow-list of persons or entities; sessions cannot "
            "carry one yet",
        )
    return Decision(
        role=cell.role,
        purpose=cell.purpose,
        policy=cell.policy,
        as_of=min(as_of_minutes(session.as_of or now), as_of_minutes(now)),
        known_at=_past(session.known_at, now),
        may_know_existence=cell.may_know_existence,
        table_sha256=table.sha256,
    )


def _past(known_at: datetime | None, now: datetime) -> int | None:
    return None if known_at is None or known_at >= now else known_at_microseconds(known_at)
