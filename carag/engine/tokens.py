"""Verify signed tokens (JWT) with PyJWT, which ``carag-engine[tokens]`` installs.

A token states its own algorithm, which attackers use to forge tokens (RFC 8725 section 2.1): they state ``none``, or
use a public key as an HMAC secret. So a key id names one public key and the one algorithm it is for, the token chooses
neither, and no symmetric algorithm is supported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from carag.errors import MALFORMED, InvalidArgument, MissingExtra, Refused
from carag.limits import quoted
from carag.policy.audience import principal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes


__all__ = ["ALGORITHMS", "LONGEST_LIFE", "REQUIRED_CLAIMS", "JwtVerifier", "KeySource", "fits"]

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
"""Signature algorithms that a key may be for (RFC 7518 section 3.1, RFC 8037)."""
REQUIRED_CLAIMS: Final = ("exp", "iat", "iss", "aud", "sub", "role", "purpose")
"""Claims that every token must carry."""
LONGEST_LIFE: Final = 24 * 60 * 60
"""Greatest number of seconds between issue and expiry of a token, by default."""
_MAX_CHARACTERS: Final = 16 << 10
"""Length of the longest token that is parsed."""
_MAX_SECONDS: Final = 253_402_300_799
"""The end of the year 9999 as a NumericDate (RFC 7519 section 2)."""
_MIN_RSA_BITS: Final = 2048
"""Length of the shortest RSA modulus (RFC 7518 section 3.3)."""


class KeySource(Protocol):
    """Public keys that may change, such as those that an issuer publishes."""

    def get(self, kid: str, /) -> tuple[str, PublicKeyTypes] | None:
        """Return a key and the one algorithm it is for (:func:`fits`); None if the id is unknown."""
        ...


class JwtVerifier:
    r"""Accepts tokens from one issuer, for one audience, signed with known keys.

    ``keys`` maps each key id to a public key (PEM) and the one algorithm from :data:`ALGORITHMS` that the key is for.
    Clocks may differ by ``leeway`` seconds, at most 300. A token that lives for more than ``longest`` seconds, from its
    ``iat`` (without one, from now) to its ``exp``, is refused as ``TOKEN_LIFE``. ``required`` are claims that every
    token must carry. ``principals`` maps a claim that names the person or their groups to the kind of principal that
    its values are: ``{"groups": "group", "oid": "user"}`` makes ``group:<id>`` of each group. Every token must carry
    such a claim, if only as an empty list, because a document may be denied to a group that the token left out.

    Examples
    --------
    >>> pem = b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    >>> keys = {"2026": ("EdDSA", pem + b"-----END PUBLIC KEY-----")}
    >>> JwtVerifier(issuer="https://login.example", audience="carag", keys=keys).issuer
    'https://login.example'
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        keys: Mapping[str, tuple[str, bytes]] | KeySource,
        leeway: int = 0,
        longest: int = LONGEST_LIFE,
        required: Sequence[str] = REQUIRED_CLAIMS,
        principals: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        for name, value in (("issuer", issuer), ("audience", audience)):
            if not isinstance(value, str) or not value:
                raise InvalidArgument(f"{name} is {quoted(value)}; want the {name} that tokens must name")
        if isinstance(leeway, bool) or not isinstance(leeway, int) or not 0 <= leeway <= 300:
            raise InvalidArgument(f"leeway is {quoted(leeway)}; want 0 to 300 seconds")
        if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
            raise InvalidArgument(f"longest is {quoted(longest)}; want a number of seconds, 1 or more")
        if isinstance(keys, Mapping) and not keys:
            raise InvalidArgument("keys are missing; want the issuer's public keys by key id")
        self.issuer = issuer
        self.audience = audience
        self._keys: KeySource = (
            {kid: (algorithm, _public_key(kid, algorithm, pem)) for kid, (algorithm, pem) in keys.items()}
            if isinstance(keys, Mapping)
            else keys
        )
        self._leeway, self._longest = leeway, longest
        self._required = list(required)
        self._principals = {
            claim: principal("principals", f"{kind}:x")[:-2] for claim, kind in principals.items()
        }

    def verify(self, token: str) -> Mapping[str, Any]:
        """Return a token's claims, with its audience as text and its principals among the terms of ``carag``.

        Raises Refused with ``TOKEN_MALFORMED``, ``TOKEN_ALGORITHM``, ``TOKEN_KEY_UNKNOWN``, ``TOKEN_SIGNATURE``,
        ``TOKEN_EXPIRED``, ``TOKEN_NOT_YET_VALID``, ``TOKEN_LIFE``, ``TOKEN_ISSUER``, ``TOKEN_AUDIENCE``,
        ``TOKEN_CLAIM_MISSING``, ``TOKEN_CLAIM_INVALID`` or ``TOKEN_GROUPS_LEFT_OUT``; MissingExtra if PyJWT is not
        installed.
        """
        jwt = _jwt()
        if not isinstance(token, str) or len(token) > _MAX_CHARACTERS or not token.isascii():
            raise Refused(
                "TOKEN_MALFORMED",
                f"the token is not ASCII text of at most {_MAX_CHARACTERS} characters; if it lists too many groups, "
                "import their memberships into the store, and let tokens name the person alone",
            )
        try:
            algorithm, key = self._key(jwt.get_unverified_header(token))
        except (jwt.PyJWTError, *MALFORMED) as error:
            raise Refused("TOKEN_MALFORMED", f"this is not a signed token: {error}") from error
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self.issuer,
                audience=self.audience,
                leeway=self._leeway,
                options={"require": self._required},
            )
        except (jwt.PyJWTError, *MALFORMED) as error:
            raise Refused(_code(jwt, error), f"the token is refused: {error}") from error
        self._check_audience(claims["aud"])
        self._check_life(claims)
        return {**claims, "aud": self.audience, **self._shared(claims)}

    def _check_audience(self, said: object) -> None:
        """Accept a list (RFC 7519 section 4.1.3) of this audience only; another could present the token here."""
        others = [one for one in said if one != self.audience] if isinstance(said, list) else []
        if others:
            raise Refused(
                "TOKEN_AUDIENCE",
                f"the token is also for {', '.join(quoted(one) for one in others[:3])}; want {self.audience!r} alone",
            )

    def _check_life(self, claims: Mapping[str, Any]) -> None:
        """Check the times directly: PyJWT reads them with ``int``, which accepts ``" 1_000 "`` and any number."""
        for name in ("exp", "iat", "nbf"):
            value = claims.get(name, 0)
            if type(value) not in (int, float) or not 0 <= value <= _MAX_SECONDS:
                raise Refused(
                    "TOKEN_CLAIM_INVALID",
                    f"the claim {name} is {quoted(value)}; want a JSON number of seconds since 1970, to the year 9999",
                )
        if "exp" not in claims:
            raise Refused("TOKEN_CLAIM_MISSING", "the token lacks the claim exp; want a token that expires")
        if (life := claims["exp"] - claims.get("iat", time.time())) > self._longest:
            raise Refused(
                "TOKEN_LIFE",
                f"the token is valid for {life:.0f} seconds; want at most {self._longest}, from iat to exp",
            )

    def _shared(self, claims: Mapping[str, Any]) -> dict[str, Any]:
        """Return the claim ``carag`` with the principals that other claims name."""
        if not self._principals:
            return {}
        terms = claims.get("carag", {})
        if not isinstance(terms, dict) or not isinstance(stated := terms.get("principals", []), list):
            raise Refused(
                "TOKEN_CLAIM_INVALID", "the token's claim `carag` is not an object with a list of principals"
            )
        found = [one for claim, kind in self._principals.items() for one in _named(claims, claim, kind)]
        return {"carag": {**terms, "principals": [*stated, *found]}}

    def _key(self, header: Mapping[str, Any]) -> tuple[str, PublicKeyTypes]:
        said, kid = header.get("alg"), header.get("kid")
        if said not in ALGORITHMS:
            raise Refused(
                "TOKEN_ALGORITHM", f"the token says {quoted(said)}; want one of {', '.join(ALGORITHMS)}"
            )
        if "crit" in header:  # RFC 7515 section 4.1.11: extensions that are not understood must be refused
            raise Refused(
                "TOKEN_MALFORMED", "the token has critical extensions, which are not supported here"
            )
        if not isinstance(kid, str) or (known := self._keys.get(kid)) is None:
            raise Refused(
                "TOKEN_KEY_UNKNOWN", f"the token names key {quoted(kid)}; want a key id of {self.issuer}"
            )
        algorithm, key = known
        if said != algorithm:
            raise Refused(
                "TOKEN_ALGORITHM", f"the token says {said}; key {quoted(kid)} is for {algorithm} alone"
            )
        return algorithm, key


def fits(algorithm: str, key: object) -> bool:
    """Tell whether a key is a public key for an algorithm in :data:`ALGORITHMS`, and long enough."""
    if algorithm in ("RS256", "PS256"):
        return isinstance(key, rsa.RSAPublicKey) and key.key_size >= _MIN_RSA_BITS
    if algorithm in ("ES256", "ES384"):
        curve = "secp256r1" if algorithm == "ES256" else "secp384r1"
        return isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == curve
    return algorithm == "EdDSA" and isinstance(key, ed25519.Ed25519PublicKey)


def _named(claims: Mapping[str, Any], claim: str, kind: str) -> list[str]:
    """Return the principals that a claim names; refuse a token from which the issuer left them out.

    With more groups than fit, Microsoft Entra ID states ``hasgroups``, or names the claim in ``_claim_names``, whose
    values must be asked for elsewhere (OpenID Connect Core 1.0 section 5.6.2).
    """
    distributed = claims.get("_claim_names", {})
    if (isinstance(distributed, dict) and claim in distributed) or (
        claim == "groups" and claims.get("hasgroups")
    ):
        raise Refused(
            "TOKEN_GROUPS_LEFT_OUT",
            f"the issuer left {quoted(claim)} out of the token, because there are too many; let it state only groups "
            "assigned to this application, or import their memberships into the store",
        )
    if claim not in claims:
        raise Refused(
            "TOKEN_CLAIM_MISSING", f"the token lacks {quoted(claim)}; want it, if only as an empty list"
        )
    values = claims[claim] if isinstance(claims[claim], list) else [claims[claim]]
    if not all(isinstance(one, str) for one in values):
        raise Refused(
            "TOKEN_CLAIM_INVALID", f"the claim {quoted(claim)} is not a string or a list of strings"
        )
    return [f"{kind}:{one}" for one in values]


def _jwt() -> ModuleType:
    try:
        import jwt
    except ImportError as error:
        raise MissingExtra("tokens need PyJWT; install carag-engine[tokens]") from error
    return jwt  # type: ignore[no-any-return, unused-ignore] # typed only where it is installed


def _public_key(kid: str, algorithm: str, pem: bytes) -> PublicKeyTypes:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"key {quoted(kid)} is not a public key in PEM: {error}") from error
    if not fits(algorithm, key):
        raise InvalidArgument(
            f"key {quoted(kid)} does not fit {quoted(algorithm)}; want one of {', '.join(ALGORITHMS)} with its "
            "own kind "
            f"of key, RSA with {_MIN_RSA_BITS} bits or more"
        )
    return key


def _code(jwt: ModuleType, error: Exception) -> str:
    """Name a failure; the narrower classes come first."""
    codes = {
        "ExpiredSignatureError": "TOKEN_EXPIRED",
        "ImmatureSignatureError": "TOKEN_NOT_YET_VALID",
        "InvalidAudienceError": "TOKEN_AUDIENCE",
        "InvalidIssuerError": "TOKEN_ISSUER",
        "MissingRequiredClaimError": "TOKEN_CLAIM_MISSING",
        "InvalidSignatureError": "TOKEN_SIGNATURE",
        "InvalidAlgorithmError": "TOKEN_ALGORITHM",
    }
    for name, code in codes.items():
        if isinstance(error, getattr(jwt, name)):
            return code
    return "TOKEN_MALFORMED"
