"""Infer the policy of a session from the role and purpose table. Default deny: a cell not in the table is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument, PolicyConflict, Refused
from carag.limits import quoted
from carag.policy.bits import bits_of, nearest
from carag.policy.decision import Decision
from carag.policy.intents import Intent, add_bits, tighten
from carag.policy.mask import NO_ENTITY, Mask, Policy
from carag.policy.restrictions import ADVICE, DSAR, Basis, Ground, whole_minutes
from carag.policy.session import Session
from carag.policy.time import as_of_minutes, known_at_microseconds
from carag.policy.vocabulary import PolicyBit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from carag.policy.table import Cell, PolicyTable

__all__ = ["infer"]

_PERSONAL: Final = bits_of(["PD_INSIDER", "PD_COMP", "PD_NATURAL", "PD_SPECIAL"])
"""The bits of personal data (GDPR Art. 4(1))."""


def infer(session: Session, table: PolicyTable, *, now: datetime, intents: Iterable[Intent] = ()) -> Decision:
    """Look up the session's cell and tighten it by what the session brings.

    Parameters
    ----------
    session : Session
    table : PolicyTable
    now : datetime
        Aware. The decision's ``as_of`` is the earlier of the session's and this, so never in the future.
    intents : iterable of Intent
        Those found in the question, in addition to the session's own.

    Raises
    ------
    Refused
        ``UNKNOWN_ROLE``, ``UNKNOWN_PURPOSE``, ``NO_SUCH_CELL``, ``ALLOW_LIST_REQUIRED``, ``NO_LEGAL_BASIS``,
        ``PAST_NOT_GRANTED``, ``CONFLICT`` or ``TOO_MANY_MASKS``.
    InvalidArgument
        If the session is not exactly a :class:`Session`: a subclass could name one role here and another on record.
    """
    if type(session) is not Session:
        raise InvalidArgument(f"session is {quoted(session)}; want a carag.Session")
    cell = _cell(session, table)
    if cell.allow_list == "mandatory" and not session.allow_entities:
        raise Refused(
            "ALLOW_LIST_REQUIRED",
            f"{cell.role}/{cell.purpose} needs an allow-list of persons or entities; give the session "
            "allow_entities",
        )
    if session.legal_basis is not None and not session.legal_basis.covers(cell.purpose):
        raise Refused(
            "NO_LEGAL_BASIS",
            f"the legal basis {session.legal_basis.basis.value} does not cover {cell.purpose}; ask the controller",
        )
    as_of, known_at = _moments(session, cell, now)
    meant = set(session.intents) | set(intents)
    if cell.personal_data:
        meant -= {Intent.PERSON_NAMED}
    applied = tuple(intent for intent in Intent if intent in meant)
    grounds = _grounds(session, (as_of_minutes(now), as_of))
    return Decision(
        role=cell.role,
        purpose=cell.purpose,
        policy=_listing(_tightened(cell.policy, session, applied), session, grounds),
        as_of=as_of,
        known_at=known_at,
        may_know_existence=cell.may_know_existence,
        table_sha256=table.sha256,
        regulation=cell.regulation,
        reopened=_reopened(cell, session, applied, grounds),
        cooling=whole_minutes(session.cooling) if session.cooling and cell.purpose in ADVICE else 0,
        grounds=grounds,
        intents=applied,
    )


def _cell(session: Session, table: PolicyTable) -> Cell:
    if session.role not in table.roles:
        raise Refused("UNKNOWN_ROLE", f"unknown role {session.role!r}; {nearest(session.role, table.roles)}")
    if session.purpose not in table.purposes:
        raise Refused(
            "UNKNOWN_PURPOSE",
            f"unknown purpose {session.purpose!r}; {nearest(session.purpose, table.purposes)}",
        )
    cell = table.get(session.role, session.purpose)
    if cell is None:
        allowed = ", ".join(c.purpose for c in table.cells if c.role == session.role)
        raise Refused(
            "NO_SUCH_CELL",
            f"{session.role} may not ask for {session.purpose}; this role may ask for {allowed}",
        )
    return cell


def _moments(session: Session, cell: Cell, now: datetime) -> tuple[int, int | None]:
    """Return ``as_of`` and ``known_at``; refuse a past instant unless the cell has a right to it."""
    today = as_of_minutes(now)
    as_of = min(as_of_minutes(session.as_of or now), today)
    known_at = None
    if session.known_at is not None and session.known_at < now:
        known_at = known_at_microseconds(session.known_at)
    for name, is_past in (("as_of", as_of < today), ("known_at", known_at is not None)):
        if is_past and name not in cell.past:
            raise Refused(
                "PAST_NOT_GRANTED",
                f"{cell.role}/{cell.purpose} has no right to ask {name} a past instant; ask of the present, or have "
                "compliance grant it in the table",
            )
    return as_of, known_at


def _tightened(policy: Policy, session: Session, intents: tuple[Intent, ...]) -> Policy:
    try:
        policy = add_bits(policy, 0, bits_of(session.residency))
        for intent in intents:
            policy = tighten(policy, intent)
        return _without_transfer(policy) if session.eu_transfer_basis is False else policy
    except PolicyConflict as conflict:
        raise Refused("CONFLICT", f"the session contradicts its cell: {conflict}") from conflict
    except InvalidArgument as error:
        raise Refused("TOO_MANY_MASKS", f"the session splits its cell too far: {error}") from error


def _without_transfer(policy: Policy) -> Policy:
    """Make personal data of EU filers inadmissible (GDPR Art. 44-46).

    *Not (EU and personal)* is not a conjunction, so each pair becomes two: not EU, or not personal. Of a pair that
    requires one side only the other remains; of a pair that requires both nothing does.
    """
    pairs = []
    for mask in policy.masks:
        halves = [half for half in (PolicyBit.J_EU.value, _PERSONAL) if not mask.required & half]
        if not halves:
            raise PolicyConflict(
                f"a pair requires {mask.required:#x}, personal data of EU filers; there is no transfer basis"
            )
        pairs += [Mask(mask.required, mask.forbidden | half) for half in halves]
    return policy.with_masks(*pairs)


def _grounds(session: Session, moments: tuple[int, ...]) -> tuple[Ground, ...]:
    """List the entities that the session may not read about, and why.

    A quiet period counts both now and as of the session's instant: asking about the past does not evade it.
    """
    purpose = session.purpose
    crossed = {crossing.entity for crossing in session.wall_crossings}
    lifted = {crossing.entity for crossing in session.wall_crossings if crossing.purpose == purpose}
    quiet = {
        window.entity
        for window in (session.deals or ())
        if purpose == "publish" and any(window.contains(moment) for moment in moments)
    }
    listed = (
        (Basis.RESTRICTED_LIST, session.restricted - lifted),
        (Basis.WATCH_LIST, session.watched - lifted),
        (Basis.QUIET_PERIOD, quiet),
        (Basis.WALL_CROSSED, crossed if purpose in ADVICE else set()),
    )
    grounds = [Ground(basis, frozenset(entities)) for basis, entities in listed if entities]
    if session.legal_basis is not None:
        grounds += [ground for ground in session.legal_basis.denied(purpose) if ground.entities]
    return tuple(grounds)


def _listing(
    policy: Policy, session: Session, grounds: tuple[Ground, ...], more: frozenset[int] = frozenset()
) -> Policy:
    """Add the lists of entities to a policy. If any entity is denied, so are passages that name no entity.

    An allow list is an information barrier: a passage may be about no other entity, be it a co-registrant or an
    owner. For an access request one listed entity is enough: the issuer of an owner's Form 4 is no reason to withhold
    the form from its owner (GDPR Art. 15(1)); the controller has to protect other people's data in it (Art. 15(4)).
    """
    denied = more.union(*(ground.entities for ground in grounds))
    lists = (session.allow_entities, session.audit_clients, session.narrowed_to)
    walls = [allowed for allowed in lists if allowed is not None]
    return Policy(
        *policy.masks,
        allow_entities=frozenset.intersection(*walls) if walls else None,
        deny_entities=denied | {NO_ENTITY} if denied else (),
        allow_if_any=session.purpose == DSAR and session.audit_clients is None,
    )


def _reopened(
    cell: Cell, session: Session, intents: tuple[Intent, ...], grounds: tuple[Ground, ...]
) -> Policy | None:
    """Admit what depends on taking part in no offering: only if a deal list is known, and no company that is on it."""
    if session.deals is None or cell.reopened is None:
        return None
    issuers = frozenset(window.entity for window in session.deals)
    return _listing(_tightened(cell.reopened, session, intents), session, grounds, issuers)
