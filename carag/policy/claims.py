"""Read a verified token's claims as the fields of a session.

Besides registered claims (RFC 7519, 4.1) a token names ``role`` and ``purpose``. All restrictions are in one object,
``carag``, with a fixed set of keys, so that a misspelt key is an error.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from carag.errors import InvalidArgument, Refused
from carag.policy.restrictions import MAX_COOLING, DealWindow, LegalBasis, WallCrossing
from carag.policy.time import parse_moment

if TYPE_CHECKING:
    from collections.abc import Mapping


_REQUIRED: Final = ("sub", "role", "purpose")
"""Claims that every token must have."""


class TokenVerifier(Protocol):
    """Verifies tokens."""

    def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token whose signature, issuer, audience and times are valid."""
        ...


class _Claims(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class _Deal(_Claims):
    entity: int
    begins: str
    ends: str


class _Crossing(_Claims):
    entity: int
    purpose: str


class _Legal(_Claims):
    basis: str
    purposes: list[str] = []
    objections: list[int] = []
    restrictions: list[int] = []


class _Terms(_Claims):
    as_of: str | None = None
    known_at: str | None = None
    allow_entities: list[int] | None = None
    principals: list[str] = []
    restricted: list[int] = []
    watched: list[int] = []
    deals: list[_Deal] | None = None
    wall_crossings: list[_Crossing] = []
    audit_clients: list[int] | None = None
    residency: list[str] = []
    eu_transfer_basis: bool | None = None
    legal_basis: _Legal | None = None
    cooling_minutes: int | None = Field(default=None, gt=0, le=MAX_COOLING // timedelta(minutes=1))
    intents: list[str] = []


def fields_of(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of a session from a token's claims."""
    if missing := [name for name in _REQUIRED if name not in claims]:
        raise Refused(
            "TOKEN_CLAIM_MISSING", f"the token lacks {', '.join(missing)}; want {', '.join(_REQUIRED)}"
        )
    try:
        terms = _Terms.model_validate(claims.get("carag", {}))
    except ValidationError as error:
        # The error's own text is not used, because it quotes the lists.
        where = ", ".join(_places(error)) or "its top level"
        raise Refused(
            "TOKEN_CLAIM_INVALID",
            f"the token's claim `carag` is not valid at {where}; see carag.policy.claims",
        ) from None
    legal = terms.legal_basis
    fields = {
        "role": claims["role"],
        "purpose": claims["purpose"],
        "subject": claims["sub"],
        "as_of": None if terms.as_of is None else parse_moment(terms.as_of),
        "known_at": None if terms.known_at is None else parse_moment(terms.known_at),
        "allow_entities": terms.allow_entities,
        "principals": terms.principals,
        "restricted": terms.restricted,
        "watched": terms.watched,
        "deals": terms.deals if terms.deals is None else [_deal(one) for one in terms.deals],
        "wall_crossings": [WallCrossing(one.entity, one.purpose) for one in terms.wall_crossings],
        "audit_clients": terms.audit_clients,
        "residency": terms.residency,
        "eu_transfer_basis": terms.eu_transfer_basis,
        "legal_basis": None if legal is None else _legal(legal),
        "cooling": None if terms.cooling_minutes is None else timedelta(minutes=terms.cooling_minutes),
        "intents": terms.intents,
    }
    if fields["subject"] is None:  # the subject is optional in a session, but not in a token
        raise InvalidArgument("the claim `sub` must be a string")
    return fields


def _deal(one: _Deal) -> DealWindow:
    return DealWindow(one.entity, parse_moment(one.begins), parse_moment(one.ends))


def _legal(one: _Legal) -> LegalBasis:
    return LegalBasis(
        one.basis,  # type: ignore[arg-type] # checked there
        frozenset(one.purposes),
        frozenset(one.objections),
        frozenset(one.restrictions),
    )


def _places(error: ValidationError) -> list[str]:
    return sorted(
        {".".join(str(part) for part in one["loc"] if not isinstance(part, int)) for one in error.errors()}
    )
