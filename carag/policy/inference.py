"""Infer the policy of a session from the role and purpose table. Default deny: a cell not in the table is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.errors import InvalidArgument, PolicyConflict, Refused
from carag.limits import quoted
from carag.policy.asked_day import AskedDay
from carag.policy.bits import bits_of, flags_of, nearest
from carag.policy.decision import Decision
from carag.policy.mask import NO_ENTITY, Policy
from carag.policy.restrictions import Basis, Ground, whole_minutes
from carag.policy.session import Session
from carag.policy.time import as_of_minutes, known_at_microseconds
from carag.policy.vocabulary import vocabulary_of
from carag.policy.word import same_bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date, datetime
    from zoneinfo import ZoneInfo

    from carag.policy.intent import IntentRule
    from carag.policy.table import Cell, PolicyTable


def infer(
    session: Session,
    table: PolicyTable,
    *,
    now: datetime,
    intents: Iterable[str] = (),
    days: Sequence[date | None] = (),
) -> Decision:
    """Look up the session's cell and tighten it by the session's own restrictions.

    Raises Refused with ``UNKNOWN_ROLE``, ``UNKNOWN_PURPOSE``, ``NO_SUCH_CELL``, ``ALLOW_LIST_REQUIRED``,
    ``NO_LEGAL_BASIS``, ``CROSSED_FOR_ADVICE``, ``PAST_NOT_GRANTED``, ``UNKNOWN_INTENT``, ``FOREIGN_RESIDENCY``,
    ``CONFLICT``, ``TOO_MANY_MASKS``, ``BREAK_GLASS_REQUIRED``, ``BREAK_GLASS_CHANGED`` or
    ``BREAK_GLASS_ENDED``.

    ``as_of`` is the earlier of the session's instant and ``now``, so it is never in the future. ``intents`` were found
    in the question, and add to the session's own; :class:`carag.policy.AskedDay` decides whether one of ``days``
    becomes ``as_of``.
    """
    if type(session) is not Session:
        raise InvalidArgument(f"session is {quoted(session)}; want a carag.Session")
    cell = _cell(session, table)
    _check_glass(session, cell, now)
    if cell.allow_list == "mandatory" and not session.allow_entities:
        raise Refused(
            "ALLOW_LIST_REQUIRED",
            f"{cell.role}/{cell.purpose} needs an allow-list of persons or entities; set the session's "
            "allow_entities",
        )
    basis, kinds = session.legal_basis, table.vocabulary.kinds
    if basis is not None and not basis.covers(cell.purpose, obliged=kinds.obliged):
        raise Refused(
            "NO_LEGAL_BASIS",
            f"the legal basis {basis.basis.value} does not cover {cell.purpose}; ask the controller",
        )
    if advised := sorted({one.purpose for one in session.wall_crossings} & kinds.advice):
        raise Refused(
            "CROSSED_FOR_ADVICE",
            f"a wall-crossing names the purpose {advised[0]}, which is advice; name the deal's purpose: a person "
            "brought over the wall must not invest in the entity or publish on it",
        )
    zone = table.vocabulary.zone
    asked = AskedDay.of(days, stated=session.as_of, may_ask="as_of" in cell.past, now=now, zone=zone)
    stated = session.as_of or (asked and asked.day)
    as_of, known_at = _moments(session, stated, cell, now, zone)
    applied = _applied({*session.intents, *intents}, cell, table)
    grounds = _grounds(session, table, (as_of_minutes(now), as_of))
    is_access = cell.purpose in kinds.access_request
    return Decision(
        role=cell.role,
        purpose=cell.purpose,
        policy=_listing(_tightened(cell.policy, session, applied), session, grounds, is_access=is_access),
        as_of=as_of,
        known_at=known_at,
        may_know_existence=cell.may_know_existence,
        table_sha256=table.sha256,
        regulation=cell.regulation,
        reopened=_reopened(cell, session, applied, grounds, is_access=is_access),
        cooling=whole_minutes(session.cooling) if session.cooling and cell.purpose in kinds.advice else 0,
        grounds=grounds,
        intents=tuple(rule.name for rule in applied),
        asked_day=asked,
    )


def tighten(policy: Policy, intent: str) -> Policy:
    """Add an intent's bits to every mask; PolicyConflict if the policy hides what the intent asks for.

    Examples
    --------
    >>> from carag.policy.mask import Mask
    >>> tighten(Policy(Mask(0, 0x4000)), "LATEST").masks
    (Mask(forbidden=['PD_SPECIAL', 'NOT_LATEST']),)
    """
    (rule,) = vocabulary_of(policy.flags).intents.named([intent])
    return _with_bits(policy, rule.mask.required, rule.mask.forbidden)


def _with_bits(policy: Policy, required: int, forbidden: int) -> Policy:
    return policy.with_masks(*(mask.tightened(required, forbidden) for mask in policy.masks))


def _applied(meant: set[str], cell: Cell, table: PolicyTable) -> tuple[IntentRule, ...]:
    """Return the intents that apply to a cell; an intent does not apply if the cell has the right that it names."""
    rules = table.vocabulary.intents
    try:
        named = rules.named(meant)
    except KeyError as unknown:
        known = nearest(str(unknown.args[0]), [rule.name for rule in rules.rules])
        raise Refused("UNKNOWN_INTENT", f"unknown intent {unknown.args[0]!r}; {known}") from None
    return tuple(rule for rule in named if rule.unless is None or not getattr(cell, rule.unless))


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


def _check_glass(session: Session, cell: Cell, now: datetime) -> None:
    """Refuse a cell that opens by breaking the glass, unless that was done for it and its time has not ended."""
    if cell.break_glass is None:
        return
    glass = session.glass
    if glass is None or (glass.role, glass.purpose) != (cell.role, cell.purpose):
        raise Refused(
            "BREAK_GLASS_REQUIRED",
            f"{cell.role}/{cell.purpose} opens only by breaking the glass, for a written reason (Engine.break_glass)",
        )
    if glass.cell != cell.sha256:
        raise Refused(
            "BREAK_GLASS_CHANGED",
            f"the policy for {cell.role}/{cell.purpose} has changed since the cell was opened; break the glass again",
        )
    if known_at_microseconds(now) >= glass.until:
        raise Refused(
            "BREAK_GLASS_ENDED",
            f"the time for which {cell.role}/{cell.purpose} was opened has ended; break the glass again",
        )


def _moments(
    session: Session, stated: datetime | date | None, cell: Cell, now: datetime, zone: ZoneInfo
) -> tuple[int, int | None]:
    """Return ``as_of`` and ``known_at``; refuse a past instant unless the cell has a right to it."""
    today = as_of_minutes(now)
    as_of = min(as_of_minutes(stated or now, zone), today)
    known_at = None
    if session.known_at is not None and session.known_at < now:
        known_at = known_at_microseconds(session.known_at)
    for name, is_past in (("as_of", as_of < today), ("known_at", known_at is not None)):
        if is_past and name not in cell.past:
            raise Refused(
                "PAST_NOT_GRANTED",
                f"{cell.role}/{cell.purpose} has no right to ask {name} a past instant; ask about the present, or have "
                "compliance grant the right in the table",
            )
    return as_of, known_at


def _tightened(policy: Policy, session: Session, intents: tuple[IntentRule, ...]) -> Policy:
    if session.residency and not same_bits(flags_of(session.residency), policy.flags):
        raise Refused(
            "FOREIGN_RESIDENCY", "the session's residency names places of another profile, not of the store's"
        )
    try:
        policy = _with_bits(policy, 0, bits_of(session.residency, flags=policy.flags))
        for rule in intents:
            policy = _with_bits(policy, rule.mask.required, rule.mask.forbidden)
        return _without_transfer(policy) if session.eu_transfer_basis is False else policy
    except PolicyConflict as conflict:
        raise Refused("CONFLICT", f"the session contradicts its cell: {conflict}") from conflict
    except InvalidArgument as error:
        raise Refused("TOO_MANY_MASKS", f"the session splits its cell too far: {error}") from error


def _without_transfer(policy: Policy) -> Policy:
    """Make EU filers' personal data inadmissible (GDPR Art. 44-46): each pair becomes two, not EU or not personal."""
    groups = vocabulary_of(policy.flags).groups
    if not groups.transfer or not groups.personal:
        raise PolicyConflict("this profile cannot tell which passages hold personal data of the EU")
    pairs = []
    for mask in policy.masks:
        halves = [half for half in (groups.transfer, groups.personal) if not mask.required & half]
        if not halves:
            raise PolicyConflict(
                f"a pair requires {mask.required:#x}, personal data of EU filers; there is no transfer basis"
            )
        pairs += [mask.tightened(forbidden=half) for half in halves]
    return policy.with_masks(*pairs)


def _grounds(session: Session, table: PolicyTable, moments: tuple[int, ...]) -> tuple[Ground, ...]:
    """List the entities that the session may not read about, and why; quiet periods count now and at its instant."""
    purpose, kinds, zone = session.purpose, table.vocabulary.kinds, table.vocabulary.zone
    crossed = {crossing.entity for crossing in session.wall_crossings}
    lifted = {crossing.entity for crossing in session.wall_crossings if crossing.purpose == purpose}
    quiet = {
        window.entity
        for window in (session.deals or ())
        if purpose in kinds.publishing and any(window.contains(moment, zone) for moment in moments)
    }
    listed = (
        (Basis.RESTRICTED_LIST, session.restricted - lifted),
        (Basis.WATCH_LIST, session.watched - lifted),
        (Basis.QUIET_PERIOD, quiet),
        (Basis.WALL_CROSSED, crossed if purpose in kinds.advice else set()),
    )
    grounds = [Ground(basis, frozenset(entities)) for basis, entities in listed if entities]
    if session.legal_basis is not None and purpose not in kinds.access_request:
        grounds += [ground for ground in session.legal_basis.denied if ground.entities]
    return tuple(grounds)


def _listing(
    policy: Policy,
    session: Session,
    grounds: tuple[Ground, ...],
    more: frozenset[int] = frozenset(),
    *,
    is_access: bool,
) -> Policy:
    """Add the lists of entities to a policy. If any entity is denied, passages that name no entity are denied too.

    An allow list is an information barrier: a passage may be about no other entity, such as a co-registrant or an
    owner. For an access request one listed entity is enough: a Form 4 is not withheld from its owner because of its
    issuer (GDPR Art. 15(1)); the controller has to protect other people's data in it (Art. 15(4)).
    """
    denied = more.union(*(ground.entities for ground in grounds))
    lists = (session.allow_entities, session.audit_clients, session.narrowed_to)
    walls = [allowed for allowed in lists if allowed is not None]
    return Policy(
        *policy.masks,
        allow_entities=frozenset.intersection(*walls) if walls else None,
        deny_entities=denied | {NO_ENTITY} if denied else (),
        allow_if_any=is_access and session.audit_clients is None,
    )


def _reopened(
    cell: Cell,
    session: Session,
    intents: tuple[IntentRule, ...],
    grounds: tuple[Ground, ...],
    *,
    is_access: bool,
) -> Policy | None:
    """Admit what depends on taking part in no offering only if a deal list is known, and then for no company on it."""
    if session.deals is None or cell.reopened is None:
        return None
    issuers = frozenset(window.entity for window in session.deals)
    return _listing(
        _tightened(cell.reopened, session, intents), session, grounds, issuers, is_access=is_access
    )
