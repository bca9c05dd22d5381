"""Hold a session: who asks, in which role, for which purpose, as of when, and under which lists and legal basis."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, final

from carag.errors import MALFORMED, InvalidArgument, Refused
from carag.limits import check_label, quoted
from carag.policy.audience import principals as checked_principals
from carag.policy.bits import flags_of
from carag.policy.claims import fields_of
from carag.policy.restrictions import (
    DealWindow,
    LegalBasis,
    WallCrossing,
    entities,
    residency_bits,
    whole_minutes,
)
from carag.policy.time import as_of_minutes, known_at_microseconds
from carag.policy.word import same_bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date, datetime, timedelta

    from carag.policy.bits import Bits
    from carag.policy.claims import TokenVerifier
    from carag.policy.word import PolicyFlag


class SessionSource(StrEnum):
    """How the engine came to know the session; the audit record states it."""

    ASSERTED = "asserted"
    """The caller stated it; nothing was verified."""
    VERIFIED = "verified"
    """A verifier checked a signed token."""


@final
@dataclass(frozen=True, slots=True)
class Glass:
    """A broken glass, on record: which cell it opened, and until when."""

    role: str
    purpose: str
    until: int
    """Microseconds since 1970-01-01T00:00Z."""
    record: int
    """Number of the record that says who broke it, and why."""
    cell: str = ""
    """SHA-256 of the cell as it was opened, in hexadecimal; if the cell changes, it is shut."""
    handle: str | None = field(default=None, repr=False)
    """The name that a service gave it; None if an engine in this process opened the cell."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The subject, action and environment of one or more questions (NIST SP 800-162).

    Role and purpose come from the session alone; nothing in a question can widen them.

    Parameters
    ----------
    role, purpose : str
        A cell of the policy table, such as ``"buy_side"`` and ``"invest"``. An unknown cell is refused when the session
        is used, so that the refusal is on record. At most 200 printable characters.
    subject : str, optional
        Who asks; at most 200 printable characters. Recorded only as a salted commitment.
    as_of : datetime or date, optional
        Answer from what was public at this instant: an aware datetime, or a date meaning the end of that day in the
        time zone of the store's profile, for EDGAR US Eastern. By default, and at most, the moment of the question.
        Asking about the past is a right that the cell grants.
    known_at : datetime, optional
        Answer from what the store knew at this instant, so that a past question can be repeated: an aware datetime; by
        default, and at most, the moment of the question. This needs a separate right.

    allow_entities : frozenset of int, optional
        The only companies or persons (for EDGAR, CIKs) that passages may be about: all entities of a passage must be
        listed. For an access request one listed entity is enough: a Form 4 concerns its owner as well as the issuer.
    narrowed_to : frozenset of int, optional
        The entities to which a request restricted itself by :meth:`narrow`. This grants nothing, so it never counts as
        the ``allow_entities`` that a cell demands.
    principals : frozenset of str
        Who asks, as the host knows it, for documents shared with some people only: texts of a kind and an id, such as
        ``"user:ana"`` and ``"group:treasury"``. Groups that hold these are found in the store's own memberships.
        Without any, only documents for everybody are found. Recorded only as a salted commitment.
    acting_as : frozenset of str, optional
        The principals to which a request restricted itself by :meth:`narrow`. Only these open documents; lists of those
        who may not see a document are still tested against all of ``principals``.
    restricted, watched : frozenset of int
        The firm's restricted list and watch list: denied for every purpose except the purpose of a wall-crossing. A
        passage that may be about any of them, for example through a co-registrant, is hidden.
    deals : tuple of DealWindow, optional
        All offerings that the firm takes part in; their companies are denied for publishing inside the offerings'
        windows. None means that no deal list is known; a cell admits what depends on taking part in no offering only if
        a list is given.
    wall_crossings : tuple of WallCrossing
    audit_clients : frozenset of int, optional
        The only companies that an auditor may read about: those that engaged it.
    residency : PolicyFlag, str, int, or iterable of PolicyFlag and str
        Jurisdictions whose documents must not be processed: for EDGAR J_* bits, as :func:`carag.policy.bits_of` reads
        them; stored as a frozen set of flags. Names are EDGAR's.
    eu_transfer_basis : bool, optional
        For a session in the EU: whether there is a basis for transfers (GDPR Art. 46). Without one, personal data of EU
        filers are inadmissible. None for a session elsewhere.
    legal_basis : LegalBasis, optional
    cooling : timedelta, optional
        How long material news must have been public before it is used to invest or publish.
    intents : tuple of str
        Names of the profile's intents, set by the caller, in addition to those that the engine finds in a question.
    conversation : str, optional
        An id that groups the requests in a conversation: at most 200 printable characters. It grants nothing, and is
        recorded only as a salted commitment. If there is a subject, a follow-up such as "And the year before?" is read
        with words of the earlier questions of the same subject, role and purpose.

    Examples
    --------
    >>> from datetime import date
    >>> Session(role="buy_side", purpose="invest", as_of=date(2025, 5, 1)).source.value
    'asserted'
    """

    role: str
    purpose: str
    subject: str | None = None
    as_of: datetime | date | None = None
    known_at: datetime | None = None
    allow_entities: frozenset[int] | None = field(default=None, repr=False)
    narrowed_to: frozenset[int] | None = field(default=None, repr=False)
    principals: frozenset[str] = field(default=frozenset(), repr=False)
    acting_as: frozenset[str] | None = field(default=None, repr=False)
    restricted: frozenset[int] = field(default=frozenset(), repr=False)
    watched: frozenset[int] = field(default=frozenset(), repr=False)
    deals: tuple[DealWindow, ...] | None = field(default=None, repr=False)
    wall_crossings: tuple[WallCrossing, ...] = field(default=(), repr=False)
    audit_clients: frozenset[int] | None = field(default=None, repr=False)
    residency: Bits = frozenset()
    eu_transfer_basis: bool | None = None
    legal_basis: LegalBasis | None = None
    cooling: timedelta | None = None
    intents: tuple[str, ...] = ()
    conversation: str | None = None
    source: SessionSource = field(init=False, default=SessionSource.ASSERTED)
    glass: Glass | None = field(init=False, default=None)
    """What opened the session's cell, if that was breaking the glass; a changed copy has lost it."""
    issuer: str | None = field(init=False, default=None)
    """The issuer of the verified token; None for an asserted session."""
    audience: str | None = field(init=False, default=None)
    """The audience of the verified token; None for an asserted session."""

    def __post_init__(self) -> None:
        for name in ("role", "purpose", "subject", "conversation"):
            if name in ("role", "purpose") or getattr(self, name) is not None:
                self._set(name, _label(f"session {name}", getattr(self, name)))
        if self.as_of is not None:
            as_of_minutes(self.as_of)
        if self.known_at is not None:
            known_at_microseconds(self.known_at)
        for name in ("allow_entities", "narrowed_to", "audit_clients"):
            if (numbers := getattr(self, name)) is not None:
                self._set(name, entities(name, numbers))
        for name in ("restricted", "watched"):
            self._set(name, entities(name, getattr(self, name)))
        self._set("principals", checked_principals("principals", self.principals))
        if self.acting_as is not None:
            self._set("acting_as", checked_principals("acting_as", self.acting_as))
            if unknown := self.acting_as - self.principals:
                raise InvalidArgument(
                    f"acting_as holds {quoted(min(unknown))}, which is not among the session's principals; want some "
                    "of them"
                )
        if self.deals is not None:
            self._set("deals", _all_of(DealWindow, "deals", self.deals))
        self._set("wall_crossings", _all_of(WallCrossing, "wall_crossings", self.wall_crossings))
        self._set("residency", residency_bits(self.residency))
        if self.eu_transfer_basis is not None and not isinstance(self.eu_transfer_basis, bool):
            raise InvalidArgument(
                f"eu_transfer_basis is {quoted(self.eu_transfer_basis)}; want True, False or None"
            )
        if self.legal_basis is not None and not isinstance(self.legal_basis, LegalBasis):
            raise InvalidArgument(f"legal_basis is {quoted(self.legal_basis)}; want a LegalBasis or None")
        if self.cooling is not None:
            whole_minutes(self.cooling)
        self._set("intents", _named_intents(self.intents))

    @classmethod
    def from_token(cls, token: str, verifier: TokenVerifier) -> Self:
        """Make a session from a signed token alone.

        ``verifier``, such as :class:`carag.engine.tokens.JwtVerifier`, checks signature, issuer, audience and times. A
        token that does not pass raises Refused with a code that starts with ``TOKEN_``.
        """
        try:
            claims = verifier.verify(token)
        except MALFORMED as error:
            raise Refused("TOKEN_MALFORMED", "the token is malformed: the verifier cannot read it") from error
        try:
            session = cls(**fields_of(claims))
            issuer, audience = (_named(claims, name) for name in ("iss", "aud"))
        except MALFORMED as error:
            raise Refused(
                "TOKEN_CLAIM_INVALID", f"the token does not describe a valid session: {error}"
            ) from error
        session._verified_by(issuer, audience)
        return session

    def narrow(
        self,
        *,
        allow_entities: Iterable[int] | None = None,
        principals: Iterable[str] | None = None,
        restricted: Iterable[int] = (),
        watched: Iterable[int] = (),
        residency: Bits = 0,
        cooling: timedelta | None = None,
        intents: Iterable[str] = (),
        conversation: str | None = None,
    ) -> Self:
        """Return the session with further restrictions: the only way for a request to change what a token grants.

        A request cannot change role, purpose, subject, instants, deals, crossings or legal basis. The entities that it
        asks for are kept apart from the granted ones, and a passage must satisfy both lists. Of the principals that it
        asks for, those that the session has open documents; those given up still hide documents that deny them. A
        conversation grants nothing.

        Examples
        --------
        >>> granted = Session(role="dpo", purpose="dsar", allow_entities={7, 8})
        >>> asked = granted.narrow(allow_entities={8, 9})
        >>> sorted(asked.allow_entities), sorted(asked.narrowed_to)
        ([7, 8], [8, 9])
        """
        changes: dict[str, Any] = {
            "restricted": self.restricted | entities("restricted", restricted),
            "watched": self.watched | entities("watched", watched),
            "residency": _united(residency_bits(self.residency), residency_bits(residency)),
            "intents": (*self.intents, *_named_intents(intents)),
        }
        if allow_entities is not None:
            asked = entities("allow_entities", allow_entities)
            changes["narrowed_to"] = asked if self.narrowed_to is None else asked & self.narrowed_to
        if principals is not None:
            changes["acting_as"] = self.held & checked_principals("principals", principals)
        if conversation is not None:
            changes["conversation"] = conversation
        if cooling is not None:
            whole_minutes(cooling)
            changes["cooling"] = max(cooling, self.cooling or cooling)
        return self._like(replace(self, **changes), self.glass)

    def under(self, glass: Glass) -> Self:
        """Return the session in the cell that a broken glass opened; ``Engine.break_glass`` calls this."""
        return self._like(replace(self, role=glass.role, purpose=glass.purpose), glass)

    def _like(self, changed: Self, glass: Glass | None) -> Self:
        """Give a changed copy, which ``replace()`` made an asserted session, what proved this one, and its glass."""
        if self.source is SessionSource.VERIFIED:
            changed._verified_by(self.issuer, self.audience)
        changed._set("glass", glass)
        return changed

    @property
    def held(self) -> frozenset[str]:
        """The principals that open documents to the session."""
        return self.principals if self.acting_as is None else self.acting_as

    def _verified_by(self, issuer: str | None, audience: str | None) -> None:
        self._set("source", SessionSource.VERIFIED)
        self._set("issuer", issuer)
        self._set("audience", audience)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _united(granted: frozenset[PolicyFlag], asked: frozenset[PolicyFlag]) -> frozenset[PolicyFlag]:
    """Unite jurisdictions from one profile; those from two, whose numbers mean different places, are refused."""
    if granted and asked and not same_bits(flags_of(granted), flags_of(asked)):
        raise InvalidArgument(
            "residency names places from two profiles; want only places from the session's own profile"
        )
    return granted | asked


def _named(claims: Mapping[str, Any], name: str) -> str | None:
    """Return a token's issuer or audience, checked for the record; None if the verifier does not return it."""
    value = claims.get(name)
    return None if value is None else _label(name, value)


def _label(name: str, value: object) -> str:
    """Check that a record can hold a text, and return it as a plain ``str``: a subclass may change between reads."""
    plain: Any = str.__str__(value) if isinstance(value, str) else value
    check_label(name, plain)
    text: str = plain
    return text


def _all_of(kind: type, name: str, values: Iterable[object]) -> tuple[Any, ...]:
    found = tuple(values) if hasattr(values, "__iter__") else (values,)
    for value in found:
        if not isinstance(value, kind):
            raise InvalidArgument(f"{name} holds a {type(value).__name__}; want {kind.__name__} objects")
    return found


def _named_intents(values: Iterable[object]) -> tuple[str, ...]:
    """Return the names of intents, each once; that the profile has them is checked when the session is used."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidArgument(f"intents is {quoted(values)}; want a tuple of names, such as ('LATEST',)")
    return tuple(dict.fromkeys(_label("an intent of the session", value) for value in values))
