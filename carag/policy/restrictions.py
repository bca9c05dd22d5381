"""Hold a session's restrictions beyond role and purpose: lists with windows, legal basis, residency.

The lists (Exchange Act 15(g)) are inside information, and a legal basis (GDPR Art. 30) is private, so no ``repr`` shows
them and a record holds only a salted commitment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.bits import bit_names, bits_of, flags_of
from carag.policy.entities import MAX_LISTED, entity_set
from carag.policy.mask import NO_ENTITY
from carag.policy.time import EASTERN, as_of_minutes
from carag.policy.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from datetime import date
    from zoneinfo import ZoneInfo

    from carag.policy.bits import Bits
    from carag.policy.word import PolicyFlag


MAX_COOLING: Final = timedelta(days=366)
"""The longest cooling time of a session."""
_OBLIGED: Final = frozenset({"surveil", "assure"})
"""Purposes that a legal obligation covers (GDPR Art. 6(1)(c)), by default those of EDGAR's table."""


class Basis(StrEnum):
    """Why an entity is on a session's list."""

    RESTRICTED_LIST = "RESTRICTED_LIST"
    WATCH_LIST = "WATCH_LIST"
    QUIET_PERIOD = "QUIET_PERIOD"
    WALL_CROSSED = "WALL_CROSSED"
    OBJECTION = "OBJECTION"
    RESTRICTION = "RESTRICTION"


@dataclass(frozen=True, slots=True)
class Ground:
    """Entities denied, and why."""

    basis: Basis
    entities: frozenset[int] = field(repr=False)


@dataclass(frozen=True, slots=True)
class DealWindow:
    """An offering that the firm takes part in, and its quiet period (FINRA 2241(b)(2)(I)).

    ``entity`` is the issuer, for EDGAR its CIK. ``begins`` and ``ends`` are inclusive: aware datetimes, or dates,
    meaning the whole day in the time zone of the store's profile.

    Examples
    --------
    >>> from datetime import date
    >>> window = DealWindow(320193, date(2025, 6, 2), date(2025, 6, 12))
    >>> window.contains(as_of_minutes(date(2025, 6, 12)))
    True
    >>> window.contains(as_of_minutes(date(2025, 6, 13)))
    False
    """

    entity: int = field(repr=False)
    begins: datetime | date
    ends: datetime | date

    def __post_init__(self) -> None:
        object.__setattr__(self, "entity", one_entity("deal entity", self.entity))
        if as_of_minutes(self.ends) < _first_minute(self.begins):
            raise InvalidArgument(f"deal window ends {self.ends} before it begins {self.begins}; swap them")

    def contains(self, minutes: int, zone: ZoneInfo | None = None) -> bool:
        """Tell whether a minute is inside the window; days are days in ``zone``, by default US Eastern."""
        return _first_minute(self.begins, zone) <= minutes <= as_of_minutes(self.ends, zone)


@dataclass(frozen=True, slots=True)
class WallCrossing:
    """A signed crossing: the entity may be used for the deal's purpose, and must not be used for advice.

    Exchange Act 15(g); Regulation FD 100(b)(2); MAR Art. 11. ``purpose`` is the deal's purpose, such as ``"draft"``. A
    crossing for advice, such as ``"invest"``, is refused when the session is used.
    """

    entity: int = field(repr=False)
    purpose: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "entity", one_entity("crossing entity", self.entity))
        if not isinstance(self.purpose, str) or not self.purpose:
            raise InvalidArgument(
                f"crossing purpose is {quoted(self.purpose)}; want the purpose of the deal, such as 'draft'"
            )


class LawfulBasis(StrEnum):
    """Lawful basis for processing personal data, GDPR Art. 6(1)."""

    CONSENT = "consent"
    LEGAL_OBLIGATION = "legal_obligation"
    LEGITIMATE_INTERESTS = "legitimate_interests"


@dataclass(frozen=True, slots=True)
class LegalBasis:
    """The controller's lawful basis for processing, and the people who objected to processing or restricted it.

    Consent covers the ``purposes`` consented to; a legal obligation covers surveillance and assurance; legitimate
    interests cover any purpose. Persons who objected (Art. 21) are denied, except under a legal obligation or for an
    access request; persons whose data are restricted (Art. 18) are denied, except for an access request.

    Examples
    --------
    >>> LegalBasis(LawfulBasis.LEGAL_OBLIGATION).covers("surveil")
    True
    >>> LegalBasis(LawfulBasis.CONSENT, purposes=frozenset({"public_qa"})).covers("invest")
    False
    """

    basis: LawfulBasis
    purposes: frozenset[str] = frozenset()
    objections: frozenset[int] = field(default=frozenset(), repr=False)
    restrictions: frozenset[int] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "basis", LawfulBasis(self.basis))
        except ValueError:
            known = ", ".join(LawfulBasis)
            raise InvalidArgument(f"legal basis is {quoted(self.basis)}; want one of {known}") from None
        is_several = isinstance(self.purposes, Iterable) and not isinstance(self.purposes, str)
        purposes = tuple(self.purposes) if is_several else (None,)
        if not all(isinstance(purpose, str) for purpose in purposes):
            raise InvalidArgument(f"purposes consented to are {quoted(self.purposes)}; want a set of strings")
        object.__setattr__(self, "purposes", frozenset(purposes))
        if (self.basis is LawfulBasis.CONSENT) != bool(self.purposes):
            raise InvalidArgument(
                f"legal basis {self.basis.value} has {len(self.purposes)} purposes; list the purposes consented to "
                "with consent, and none with any other basis"
            )
        for name in ("objections", "restrictions"):
            object.__setattr__(self, name, entities(name, getattr(self, name)))

    def covers(self, purpose: str, *, obliged: frozenset[str] = _OBLIGED) -> bool:
        """Tell whether this basis covers a purpose; ``obliged`` are the purposes that a legal obligation covers."""
        match self.basis:
            case LawfulBasis.CONSENT:
                return purpose in self.purposes
            case LawfulBasis.LEGAL_OBLIGATION:
                return purpose in obliged
        return True

    @property
    def denied(self) -> tuple[Ground, ...]:
        """The entities denied, except for an access request."""
        restricted = Ground(Basis.RESTRICTION, self.restrictions)
        if self.basis is LawfulBasis.LEGAL_OBLIGATION:  # Art. 21(1) speaks of Art. 6(1)(e) and (f)
            return (restricted,)
        return (restricted, Ground(Basis.OBJECTION, self.objections))


def entities(name: str, numbers: Iterable[int]) -> frozenset[int]:
    """Check a list of entities, which must not contain :data:`~carag.policy.NO_ENTITY`."""
    found = entity_set(name, numbers)
    if NO_ENTITY in found:
        raise InvalidArgument(
            f"{name} holds {NO_ENTITY}, which stands for no entity; want CIKs, 1 to {MAX_LISTED}"
        )
    return found


def one_entity(name: str, number: int) -> int:
    """Read the number of one entity; an error calls the argument ``name``."""
    (found,) = entities(name, [number])
    return found


def residency_bits(bits: Bits) -> frozenset[PolicyFlag]:
    """Check a profile's jurisdictions, written as :func:`carag.policy.bits_of` reads them; names are EDGAR's."""
    flags = flags_of(bits)
    places = vocabulary_of(flags).groups.jurisdictions
    found = bits_of(bits, name="residency", flags=flags)
    if others := bit_names(found & ~places, flags):
        raise InvalidArgument(
            f"residency names {', '.join(others)}; want jurisdictions that must not be processed, among "
            f"{', '.join(bit_names(places, flags)) or 'none: this profile declares no jurisdictions'}"
        )
    return frozenset(bit for bit in flags if found & bit.value)


def _first_minute(value: datetime | date, zone: ZoneInfo | None = None) -> int:
    if isinstance(value, datetime) or not hasattr(value, "year"):
        return as_of_minutes(value)
    start: datetime = datetime.combine(value, time(0), tzinfo=zone or EASTERN)
    return as_of_minutes(start)


def whole_minutes(window: timedelta) -> int:
    """Check a cooling time, a positive timedelta of at most a year, and round it up to minutes, which is stricter."""
    if not isinstance(window, timedelta) or not timedelta(0) < window <= MAX_COOLING:
        raise InvalidArgument(
            f"cooling is {quoted(window)}; want a positive timedelta of at most {MAX_COOLING.days} days, or None"
        )
    return -(-window // timedelta(minutes=1))
