"""Tokens: each way of forging one is refused by a code of its own, and none chooses how it is checked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from carag import Session
from carag.errors import InvalidArgument, MissingExtra, Refused
from carag.policy import SessionSource
from carag.tokens import REQUIRED_CLAIMS, JwtVerifier

RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
OTHER_EC = ec.generate_private_key(ec.SECP256R1())


def public_pem(key: Any) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


KEYS = {
    "r": ("RS256", public_pem(RSA_KEY)),
    "e": ("ES256", public_pem(EC_KEY)),
    "d": ("EdDSA", public_pem(ED_KEY)),
}
VERIFIER = JwtVerifier(issuer="https://login.example", audience="carag", keys=KEYS)


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "iss": "https://login.example",
        "aud": "carag",
        "sub": "ana@bank.example",
        "iat": now - 10,
        "exp": now + 600,
        "role": "buy_side",
        "purpose": "invest",
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def part(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def by_hand(header: dict[str, Any], body: dict[str, Any], secret: bytes | None = None) -> str:
    """Make a token that no library would: unsigned, or under a key that is no secret."""
    signed = part(header) + b"." + part(body)
    signature = b"" if secret is None else hmac.new(secret, signed, hashlib.sha256).digest()
    return (signed + b"." + part(signature)).decode()


def sign(body: dict[str, Any], key: Any = EC_KEY, algorithm: str = "ES256", **header: Any) -> str:
    jwt = pytest.importorskip("jwt")
    return jwt.encode(body, key, algorithm=algorithm, headers={"kid": "e", **header})


def code_of(token: Any) -> str:
    pytest.importorskip("jwt")
    with pytest.raises(Refused) as refusal:
        Session.from_token(token, VERIFIER)
    return refusal.value.code


@pytest.mark.parametrize(
    ("kid", "key", "algorithm"), [("r", RSA_KEY, "RS256"), ("e", EC_KEY, "ES256"), ("d", ED_KEY, "EdDSA")]
)
def test_a_good_token_is_a_verified_session(kid: str, key: Any, algorithm: str) -> None:
    """Of each kind of key, with what the token grants and nothing else."""
    terms = {"restricted": [320193], "cooling_minutes": 30, "as_of": "2025-05-01"}
    session = Session.from_token(sign(claims(carag=terms), key, algorithm, kid=kid), VERIFIER)
    assert (session.role, session.purpose, session.subject) == ("buy_side", "invest", "ana@bank.example")
    assert session.source is SessionSource.VERIFIED
    assert session.restricted == {320193}


NOW = int(time.time())
BAD = {
    "expired": ({"exp": NOW - 60}, "TOKEN_EXPIRED"),
    "not yet valid": ({"nbf": NOW + 3600}, "TOKEN_NOT_YET_VALID"),
    "issued in the future": ({"iat": NOW + 3600}, "TOKEN_NOT_YET_VALID"),
    "another audience": ({"aud": "payroll"}, "TOKEN_AUDIENCE"),
    "this audience among others": ({"aud": ["carag", "payroll"]}, "TOKEN_AUDIENCE"),
    "another issuer": ({"iss": "https://evil.example"}, "TOKEN_ISSUER"),
    **{f"no {name}": ({name: None}, "TOKEN_CLAIM_MISSING") for name in REQUIRED_CLAIMS},
    "a list that is misspelt": ({"carag": {"restrictd": [320193]}}, "TOKEN_CLAIM_INVALID"),
    "a list that is none": ({"carag": {"restricted": "320193"}}, "TOKEN_CLAIM_INVALID"),
    "an entity that is none": ({"carag": {"restricted": [0]}}, "TOKEN_CLAIM_INVALID"),
    "a role that is no text": ({"role": 7}, "TOKEN_CLAIM_INVALID"),
}


@pytest.mark.parametrize(("changes", "code"), BAD.values(), ids=BAD)
def test_each_bad_claim_has_its_code(changes: dict[str, Any], code: str) -> None:
    """Well signed, and still refused."""
    assert code_of(sign(claims(**changes))) == code


def test_a_forged_signature_is_refused() -> None:
    """Another key under a known id, or one changed bit."""
    assert code_of(sign(claims(), OTHER_EC)) == "TOKEN_SIGNATURE"
    head, _, signature = sign(claims()).split(".")
    richer = part(claims(role="compliance", purpose="surveil")).decode()
    assert code_of(f"{head}.{richer}.{signature}") == "TOKEN_SIGNATURE"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "HS256", "HS512", "RS512", "", None, 7])
def test_no_token_chooses_how_it_is_checked(alg: Any) -> None:
    """Unsigned, or of an algorithm that is not on the list."""
    assert code_of(by_hand({"alg": alg, "kid": "e"}, claims())) in {"TOKEN_ALGORITHM", "TOKEN_MALFORMED"}


@pytest.mark.parametrize("kid", ["r", "e", "d"])
def test_a_public_key_is_never_a_secret(kid: str) -> None:
    """The forger knows the public key, and signs with it as if it were an HMAC secret."""
    for header in ({"alg": "HS256", "kid": kid}, {"alg": KEYS[kid][0], "kid": kid}):
        token = by_hand(header, claims(), secret=KEYS[kid][1])
        assert code_of(token) in {"TOKEN_ALGORITHM", "TOKEN_SIGNATURE"}
    assert code_of(by_hand({"alg": "HS256", "kid": kid}, claims(), secret=KEYS[kid][1])) == "TOKEN_ALGORITHM"


def test_a_key_is_for_its_one_algorithm() -> None:
    """A good signature by a known key under another algorithm of that key is refused."""
    assert code_of(sign(claims(), RSA_KEY, "PS256", kid="r")) == "TOKEN_ALGORITHM"


@pytest.mark.parametrize("header", [{"kid": "unknown"}, {"kid": None}])
def test_an_unknown_key_is_refused(header: dict[str, Any]) -> None:
    """And so is a token that names none."""
    token = by_hand({"alg": "ES256", **{k: v for k, v in header.items() if v is not None}}, claims())
    assert code_of(token) == "TOKEN_KEY_UNKNOWN"


@pytest.mark.parametrize("token", ["", "x", "a.b", "a.b.c", "....", None, b"a.b.c", "x" * (1 << 21)])
def test_what_is_no_token_is_malformed(token: Any) -> None:
    """Never an exception of another kind."""
    assert code_of(token) == "TOKEN_MALFORMED"


def test_critical_extensions_refuse() -> None:
    """What is critical and not understood must not be passed over."""
    assert (
        code_of(by_hand({"alg": "ES256", "kid": "e", "crit": ["x"], "x": 1}, claims())) == "TOKEN_MALFORMED"
    )


PRIVATE = EC_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
SHORT_RSA = public_pem(rsa.generate_private_key(65537, 1024))  # noqa: S505


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": ""},
        {"audience": None},
        {"leeway": 301},
        {"leeway": -1},
        {"keys": {}},
        {"keys": {"e": ("HS256", b"secret")}},
        {"keys": {"e": ("none", public_pem(EC_KEY))}},
        {"keys": {"e": ("HS256", public_pem(EC_KEY))}},
        {"keys": {"e": ("RS256", public_pem(EC_KEY))}},
        {"keys": {"e": ("ES384", public_pem(EC_KEY))}},
        {"keys": {"e": ("ES256", PRIVATE)}},
        {"keys": {"r": ("RS256", SHORT_RSA)}},
    ],
)
def test_a_verifier_is_made_of_public_keys_and_fixed_algorithms(changes: dict[str, Any]) -> None:
    """What could not verify anything is refused before the first token."""
    whole = {"issuer": "i", "audience": "a", "keys": KEYS, **changes}
    with pytest.raises(InvalidArgument):
        JwtVerifier(**whole)  # type: ignore[arg-type]


def test_without_the_extra_nothing_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the extra."""
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(MissingExtra, match=r"carag-engine\[tokens\]"):
        Session.from_token("a.b.c", VERIFIER)
