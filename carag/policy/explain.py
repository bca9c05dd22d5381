"""Explain why a passage is hidden, and list the kinds of document that a policy hides, whatever the corpus holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final

from carag.policy.mask import NO_ENTITY, members
from carag.policy.time import NEVER, from_minutes
from carag.policy.vocabulary import meaning, vocabulary_of
from carag.policy.word import QUARANTINE, TOMBSTONE, VERSION_WORD, PolicyBit, PolicyFlag

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.policy.mask import Mask, Policy


_VERSION_FIELD = 7 << 27  # bits 27-29 of a word, its schema version


class Rule(StrEnum):
    """The test that hides a passage."""

    TOMBSTONE = "TOMBSTONE"
    UNLABELLED = "UNLABELLED"
    QUARANTINE = "QUARANTINE"
    NOT_YET_PUBLIC = "NOT_YET_PUBLIC"
    EXPIRED = "EXPIRED"
    COOLING = "COOLING"
    ENTITY_DENIED = "ENTITY_DENIED"
    ENTITY_NOT_ALLOWED = "ENTITY_NOT_ALLOWED"
    AUDIENCE = "AUDIENCE"
    AUTHORITY = "AUTHORITY"
    FORBIDDEN = "FORBIDDEN"
    REQUIRED = "REQUIRED"
    COMBINATION = "COMBINATION"


@dataclass(frozen=True, slots=True)
class Reason:
    """One rule that hides a passage, the bits concerned, and an explanation in words."""

    rule: Rule
    bits: tuple[PolicyFlag, ...]
    text: str

    @property
    def code(self) -> str:
        """A stable code for records: ``FORBIDDEN:PD_SPECIAL``, or with several bits ``REQUIRED:0x7800``."""
        match self.bits:
            case ():
                return self.rule.value
            case (bit,):
                return f"{self.rule.value}:{bit.name}"
        return f"{self.rule.value}:{sum(self.bits):#x}"


def reasons(
    word: int,
    public_at: int,
    policy: Policy,
    as_of: int,
    *,
    entity: int | Collection[int] = NO_ENTITY,
    expires_at: int = NEVER,
) -> tuple[Reason, ...]:
    """Give the minimal reasons why a policy hides one passage; empty exactly when the passage is admissible.

    Control bits come first, because nothing else matters while they fail; then time, the entity, and the mask that
    comes closest to admitting.

    Examples
    --------
    >>> from carag.policy.mask import Mask, Policy
    >>> [r.code for r in reasons(0x0830_0041, 0, Policy(Mask(0, 0x194000)), 0)]
    ['FORBIDDEN:NON_RELIANCE']
    >>> [r.code for r in reasons(0x0800_0041, 0, Policy(Mask(), deny_entities=[7]), 0, entity=7)]
    ['ENTITY_DENIED']
    """
    if word & TOMBSTONE:
        return (Reason(Rule.TOMBSTONE, (), "deleted"),)
    if word & _VERSION_FIELD != VERSION_WORD:
        return (Reason(Rule.UNLABELLED, (), "carries no label of the current vocabulary"),)
    if word & QUARANTINE:
        return (Reason(Rule.QUARANTINE, (), "quarantined: the facts for a label are missing or disagree"),)
    found: list[Reason] = []
    if public_at > as_of:
        found.append(_not_yet_public(public_at))
    elif as_of >= expires_at:
        found.append(_expired(expires_at))
    if not policy.admits_entity(entity):
        found.append(_entity_reason(policy, entity))
    if not any(mask.admits(word) for mask in policy.masks):
        nearest = min(policy.masks, key=lambda mask: _distance(word, mask), default=None)
        found.extend(_NOTHING if nearest is None else _against(word, nearest))
    return tuple(found)


def withheld_kinds(*policies: Policy, cooling: int = 0) -> tuple[Reason, ...]:
    """List the kinds of document that a policy hides, or that several policies hide together, from the policies alone.

    The list states that a list of entities exists, never who is on it. ``cooling`` is the number of minutes for which
    reports of material events are held back.

    Examples
    --------
    >>> from carag.policy.mask import Mask, Policy
    >>> [kind.code for kind in withheld_kinds(Policy(Mask(0, 0x4000)))]
    ['FORBIDDEN:PD_SPECIAL', 'NOT_YET_PUBLIC', 'QUARANTINE']
    """
    masks = tuple(mask for policy in policies for mask in policy.masks)
    is_allowed = any(policy.allow_entities is not None for policy in policies)
    is_denied = any(policy.deny_entities for policy in policies)
    flags = next((policy.flags for policy in policies if policy.masks), PolicyBit)
    return _withheld_kinds(masks, flags, is_allowed, is_denied, cooling)


@lru_cache(maxsize=1024)
def _withheld_kinds(
    masks: tuple[Mask, ...], flags: type[PolicyFlag], is_allowed: bool, is_denied: bool, cooling: int
) -> tuple[Reason, ...]:
    if not masks:
        return _NOTHING
    always = reduce(and_, (mask.forbidden for mask in masks))
    somewhere = reduce(or_, (mask.forbidden for mask in masks)) & ~always
    said = vocabulary_of(flags)
    kinds = [_forbidden(bit) for bit in _bits(always, flags)]
    if somewhere:
        bits = _bits(somewhere, flags)
        kinds.append(Reason(Rule.COMBINATION, bits, f"certain combinations of: {_kinds(bits)}"))
    if all(mask.required for mask in masks):
        required = reduce(or_, (mask.required for mask in masks))
        bits = _bits(required, flags)
        kinds.append(Reason(Rule.REQUIRED, bits, f"everything except: {_kinds(bits)}"))
    if is_allowed:
        kinds.append(Reason(Rule.ENTITY_NOT_ALLOWED, (), f"{said.words.entities} outside the session's list"))
    if is_denied:
        kinds.append(
            Reason(Rule.ENTITY_DENIED, (), f"{said.words.entities} on the session's restricted list")
        )
    if cooling:
        kinds.append(Reason(Rule.COOLING, _bits(said.groups.cooling, flags), _cooling(cooling, flags)))
    # An expired label is not listed as a kind of its own, because it is not public at that time either.
    kinds.append(Reason(Rule.NOT_YET_PUBLIC, (), "documents not public at the session's as-of time"))
    kinds.append(Reason(Rule.QUARANTINE, (), "documents whose label could not be established"))
    return tuple(kinds)


def cooling_reason(cooling: int, public_at: int, flags: type[PolicyFlag] = PolicyBit) -> Reason:
    """Explain that a document cannot be read yet, because it became public too recently."""
    text = f"{_cooling(cooling, flags)}; this one since {_moment(public_at)}"
    return Reason(Rule.COOLING, _bits(vocabulary_of(flags).groups.cooling, flags), text)


def _cooling(minutes: int, flags: type[PolicyFlag]) -> str:
    return f"{vocabulary_of(flags).words.cooling} public for less than {minutes} minutes"


def _moment(minutes: int) -> str:
    try:
        return f"{from_minutes(minutes):%Y-%m-%d %H:%M} UTC"
    except OverflowError:  # 32 bits of minutes reach beyond year 9999, the last of Python's calendar
        return "the year 10000"


def _entity_reason(policy: Policy, entity: int | Collection[int]) -> Reason:
    """Name the listed entities: reasons are given only to roles that may know that the passage exists."""
    kind = vocabulary_of(policy.flags).words.entity
    if denied := policy.denied_of(entity):
        named = ", ".join(f"{kind} {one}" for one in denied if one != NO_ENTITY)
        who = f"about {named}, on the session's restricted list" if named else "its entity is not stated"
        return Reason(Rule.ENTITY_DENIED, (), who)
    if policy.allow_if_any:
        return Reason(Rule.ENTITY_NOT_ALLOWED, (), "about no entity on the session's list")
    outside = [one for one in sorted(members(entity)) if not policy.admits_entity(one)]
    who = ", ".join("an unstated entity" if one == NO_ENTITY else f"{kind} {one}" for one in outside)
    return Reason(Rule.ENTITY_NOT_ALLOWED, (), f"about {who}, outside the session's list")


_NOTHING = (Reason(Rule.REQUIRED, (), "this policy admits nothing"),)
OTHER_AUDIENCE: Final = Reason(Rule.AUDIENCE, (), "shared with other people or groups only")
"""Hides what is not shared with the session's principals; it does not say with whom it is shared."""
FORBIDDEN_ELSEWHERE: Final = Reason(
    Rule.AUTHORITY, (), "forbidden by the authority that the store's owner asks"
)
"""Hides what an authority outside the store does not allow."""


def _distance(word: int, mask: Mask) -> int:
    """Count a mask's reasons against a word: one for all missing bits together, one for each forbidden bit."""
    return bool(mask.required & ~word) + (mask.forbidden & word).bit_count()


def _against(word: int, mask: Mask) -> tuple[Reason, ...]:
    missing = mask.required & ~word
    forbidden = tuple(_forbidden(bit) for bit in _bits(mask.forbidden & word, mask.flags))
    return (_lacking(missing, mask.flags), *forbidden) if missing else forbidden


# Reasons are cached because many passages share them: each depends on a few bits or one minute alone.
@lru_cache(maxsize=4096)
def _not_yet_public(public_at: int) -> Reason:
    when = "never" if public_at == NEVER else f"not before {_moment(public_at)}"
    return Reason(Rule.NOT_YET_PUBLIC, (), f"not public as of the session: {when}")


@lru_cache(maxsize=4096)
def _expired(expires_at: int) -> Reason:
    return Reason(Rule.EXPIRED, (), f"released until {_moment(expires_at)} only")


def _forbidden(bit: PolicyFlag) -> Reason:
    return _forbidden_of(type(bit), bit)


@lru_cache(maxsize=4096)  # by type and bit, because equal numbers from two profiles are equal keys
def _forbidden_of(_: type[PolicyFlag], bit: PolicyFlag) -> Reason:
    said = meaning(bit)
    return Reason(Rule.FORBIDDEN, (bit,), f"{said.document} ({said.regulation})")


@lru_cache(maxsize=4096)
def _lacking(missing: int, flags: type[PolicyFlag]) -> Reason:
    bits = _bits(missing, flags)
    return Reason(Rule.REQUIRED, bits, f"is not among the required kind: {_kinds(bits)}")


@lru_cache(maxsize=4096)
def _bits(vector: int, flags: type[PolicyFlag]) -> tuple[PolicyFlag, ...]:
    return tuple(bit for bit in flags if vector & bit.value)


def _kinds(bits: tuple[PolicyFlag, ...]) -> str:
    return "; ".join(meaning(bit).document for bit in bits)
