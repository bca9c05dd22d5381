"""Each way of forging a token is refused by its own code, and no token chooses how it is checked."""

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
from hypothesis import given
from hypothesis import strategies as st

from carag import Session
from carag.audit.records.commitment import commit
from carag.engine.tokens import REQUIRED_CLAIMS, JwtVerifier
from carag.errors import InvalidArgument, MissingExtra, Refused
from carag.policy import SessionSource

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
    """Make a token that no library would: unsigned, or under a key that is not secret."""
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
    "not yet valid": ({"nbf": NOW + 36_000}, "TOKEN_NOT_YET_VALID"),
    "issued in the future": ({"iat": NOW + 36_000}, "TOKEN_NOT_YET_VALID"),
    "another audience": ({"aud": "payroll"}, "TOKEN_AUDIENCE"),
    "an expiry written out": ({"exp": "9_999_999_999"}, "TOKEN_CLAIM_INVALID"),
    "an expiry between blanks": ({"exp": " 9999999999 "}, "TOKEN_CLAIM_INVALID"),
    "an expiry beyond all years": ({"exp": 10**400}, "TOKEN_CLAIM_INVALID"),
    "issued before all years": ({"iat": -1}, "TOKEN_CLAIM_INVALID"),
    "valid from a text": ({"nbf": "1"}, "TOKEN_CLAIM_INVALID"),
    "issued in truth": ({"iat": True}, "TOKEN_CLAIM_INVALID"),
    "a life of a year": ({"exp": int(time.time()) + 365 * 86_400}, "TOKEN_LIFE"),
    "issued two days ago": ({"iat": int(time.time()) - 2 * 86_400}, "TOKEN_LIFE"),
    "this audience among others": ({"aud": ["carag", "payroll"]}, "TOKEN_AUDIENCE"),
    "another issuer": ({"iss": "https://evil.example"}, "TOKEN_ISSUER"),
    **{f"no {name}": ({name: None}, "TOKEN_CLAIM_MISSING") for name in REQUIRED_CLAIMS},
    "a list that is misspelt": ({"carag": {"restrictd": [320193]}}, "TOKEN_CLAIM_INVALID"),
    "a text for a list": ({"carag": {"restricted": "320193"}}, "TOKEN_CLAIM_INVALID"),
    "an entity of 0": ({"carag": {"restricted": [0]}}, "TOKEN_CLAIM_INVALID"),
    "a number for a role": ({"role": 7}, "TOKEN_CLAIM_INVALID"),
    "a role longer than a record names": ({"role": "r" * 201}, "TOKEN_CLAIM_INVALID"),
    "a purpose of two lines": ({"purpose": "invest\npublish"}, "TOKEN_CLAIM_INVALID"),
    "a subject with half a surrogate pair": ({"sub": "ana\ud800"}, "TOKEN_CLAIM_INVALID"),
    "a subject with a NUL": ({"sub": "ana\0"}, "TOKEN_CLAIM_INVALID"),
    "a subject longer than a record names": ({"sub": "a" * 201}, "TOKEN_CLAIM_INVALID"),
    "an empty subject": ({"sub": ""}, "TOKEN_CLAIM_INVALID"),
    "a wait longer than any calendar": ({"carag": {"cooling_minutes": 10**30}}, "TOKEN_CLAIM_INVALID"),
    "a company longer than any number": ({"carag": {"restricted": [10**4000]}}, "TOKEN_CLAIM_INVALID"),
    "a day that is half a surrogate pair": ({"carag": {"as_of": "\ud800"}}, "TOKEN_CLAIM_INVALID"),
}


@pytest.mark.parametrize(("changes", "code"), BAD.values(), ids=BAD)
def test_each_bad_claim_has_its_code(changes: dict[str, Any], code: str) -> None:
    """Well signed, and still refused."""
    assert code_of(sign(claims(**changes))) == code


SHARING = JwtVerifier(
    issuer="https://login.example", audience="carag", keys=KEYS, principals={"groups": "group", "oid": "user"}
)


def test_a_token_states_principals_by_the_claims_that_are_mapped() -> None:
    """And by its own terms, which only the issuer can write."""
    body = claims(groups=["desk", "treasury"], oid="ana", carag={"principals": ["user:a7"]})
    session = Session.from_token(sign(body), SHARING)
    assert session.principals == {"group:desk", "group:treasury", "user:ana", "user:a7"}
    assert Session.from_token(sign(body), VERIFIER).principals == {"user:a7"}
    assert Session.from_token(sign(claims(groups=[], oid="ana")), SHARING).principals == {"user:ana"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"groups": None}, "TOKEN_CLAIM_MISSING"),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "TOKEN_GROUPS_LEFT_OUT"),
        ({"groups": None, "hasgroups": True}, "TOKEN_GROUPS_LEFT_OUT"),
        ({"groups": ["desk"], "_claim_names": {"groups": "src1"}}, "TOKEN_GROUPS_LEFT_OUT"),
        ({"groups": [7]}, "TOKEN_CLAIM_INVALID"),
        ({"groups": {"desk": True}}, "TOKEN_CLAIM_INVALID"),
        ({"groups": ["a\nb"]}, "TOKEN_CLAIM_INVALID"),
        ({"groups": ["Desk", "desk"]}, "TOKEN_CLAIM_INVALID"),
        ({"carag": {"principals": "user:ana"}}, "TOKEN_CLAIM_INVALID"),
        ({"carag": ["user:ana"]}, "TOKEN_CLAIM_INVALID"),
        ({"groups": [f"group-{number:04}" for number in range(2000)]}, "TOKEN_MALFORMED"),
    ],
)
def test_a_token_that_leaves_groups_out_is_refused(changes: dict[str, Any], code: str) -> None:
    """Otherwise a document that is denied to one of those groups would open."""
    with pytest.raises(Refused) as refusal:
        Session.from_token(sign(claims(**{"groups": ["desk"], "oid": "ana", **changes})), SHARING)
    assert refusal.value.code == code


def test_a_kind_of_principal_is_checked_when_the_verifier_is_made() -> None:
    with pytest.raises(InvalidArgument, match="want a kind and an id"):
        JwtVerifier(issuer="i", audience="a", keys=KEYS, principals={"groups": "Group"})


def test_a_list_of_this_audience_alone_is_accepted() -> None:
    """RFC 7519 section 4.1.3 allows one audience as a text or as a list; who else is named is told."""
    assert Session.from_token(sign(claims(aud=["carag"])), VERIFIER).subject == "ana@bank.example"
    with pytest.raises(Refused, match="also for 'payroll'"):
        VERIFIER.verify(sign(claims(aud=["carag", "payroll"])))


def test_a_token_may_live_as_long_as_is_said() -> None:
    """From its issue to its expiry, to the second, and where it states no issue, from now."""
    now = int(time.time())
    assert VERIFIER.verify(sign(claims(iat=now - 10, exp=now - 10 + 86_400)))
    assert code_of(sign(claims(iat=now - 10, exp=now - 9 + 86_400))) == "TOKEN_LIFE"
    without = JwtVerifier(issuer=VERIFIER.issuer, audience="carag", keys=KEYS, longest=600, required=("exp",))
    assert without.verify(sign(claims(iat=None, exp=now + 500)))
    with pytest.raises(Refused, match="valid for"):
        without.verify(sign(claims(iat=None, exp=now + 6000)))


def test_a_token_of_any_length_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 KiB hold thousands of groups; nothing is parsed of what is longer."""
    monkeypatch.setattr("jwt.get_unverified_header", None)
    assert code_of("a" * (16 * 1024 + 1)) == "TOKEN_MALFORMED"


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


DEEP = part(b"[" * 300_000).decode()


@pytest.mark.parametrize(
    "token",
    ["", "x", "a.b", "a.b.c", "....", None, b"a.b.c", "x" * (1 << 21), "\ud800", "a.b.\ud800", f"{DEEP}.b.c"],
)
def test_what_is_no_token_is_malformed(token: Any) -> None:
    """Never an exception of another kind."""
    assert code_of(token) == "TOKEN_MALFORMED"


def test_critical_extensions_refuse() -> None:
    """What is critical and not understood must not be passed over."""
    assert (
        code_of(by_hand({"alg": "ES256", "kid": "e", "crit": ["x"], "x": 1}, claims())) == "TOKEN_MALFORMED"
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TERMS = [
    "as_of", "known_at", "allow_entities", "restricted", "watched", "deals", "wall_crossings", "audit_clients",
    "residency", "eu_transfer_basis", "legal_basis", "cooling_minutes", "intents",
]  # fmt: skip
likely = st.sampled_from(
    [
        2**63,
        10**30,
        -1,
        0,
        7,
        "",
        "J_EU",
        "9999-12-31",
        "0001-01-01T00:00:00+23:59",
        "2025-05-01",
        "consent",
        [0],
        [7],
    ]
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "entity": json_values | likely,
        "begins": likely,
        "ends": likely,
        "purpose": json_values | likely,
    },
)
terms = st.fixed_dictionaries(
    {}, optional={name: json_values | likely | st.lists(entries | likely, max_size=2) for name in TERMS}
)
whole_claims = st.fixed_dictionaries(
    {name: st.just("buy_side") | json_values for name in ("sub", "role", "purpose")},
    optional={"iss": json_values, "aud": json_values, "carag": terms | json_values},
)


def session_or_code(token: str, verifier: Any) -> Session | str:
    try:
        return Session.from_token(token, verifier)
    except Refused as refusal:
        return refusal.code


class Believer:
    """Has checked everything already."""

    def __init__(self, claims: Any) -> None:
        self.claims = claims

    def verify(self, token: str) -> Any:
        return self.claims


@given(whole_claims | json_values)
def test_whatever_claims_say_they_make_a_session_or_a_refusal(said: Any) -> None:
    """Any JSON at all, near and far from what claims look like; and what becomes a session, a record can hold."""
    found = session_or_code("good", Believer(said))
    if isinstance(found, str):
        assert found in {"TOKEN_CLAIM_INVALID", "TOKEN_CLAIM_MISSING"}
        return
    for text in (found.subject, found.role, found.purpose):
        assert commit("subject", text, bytes(32))
        assert 0 < len(text) <= 200


@given(
    st.text(st.characters(), max_size=40)
    | st.lists(st.binary(max_size=30) | json_values, min_size=1, max_size=4).map(
        lambda parts: b".".join(part(one) for one in parts).decode()
    )
    | st.tuples(json_values, json_values).map(lambda two: by_hand({"alg": two[0], "kid": two[1]}, claims()))
)
def test_whatever_a_stranger_sends_is_refused(token: str) -> None:
    """Any text, any parts in base64, any header: always by a code, never with another error."""
    assert code_of(token).startswith("TOKEN_")


@given(whole_claims | json_values)
def test_whatever_an_issuer_signs_makes_a_session_or_a_refusal(said: Any) -> None:
    """The signature is good, and what it stands under is anything."""
    pytest.importorskip("jwt")
    body = {**claims(), **said} if isinstance(said, dict) else said
    signed = part({"alg": "EdDSA", "kid": "d"}) + b"." + part(body)
    token = (signed + b"." + part(ED_KEY.sign(signed))).decode()
    found = session_or_code(token, VERIFIER)
    assert found.startswith("TOKEN_") if isinstance(found, str) else found.source is SessionSource.VERIFIED


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), KeyError("kid"), OverflowError("exp"), RecursionError("deep"), AttributeError("get")],
)
def test_a_verifier_that_stumbles_over_a_token_refuses_it(error: Exception) -> None:
    """The host's own verifier included; an error in fetching keys is not the token's fault, and goes through."""

    class Stumbling:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def verify(self, token: str) -> dict[str, Any]:
            raise self.error

    with pytest.raises(Refused) as refusal:
        Session.from_token("t", Stumbling(error))
    assert refusal.value.code == "TOKEN_MALFORMED"
    with pytest.raises(ConnectionError):
        Session.from_token("t", Stumbling(ConnectionError("no keys")))


PRIVATE = EC_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
SHORT_RSA = public_pem(rsa.generate_private_key(65537, 1024))  # noqa: S505


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": ""},
        {"audience": None},
        {"leeway": 301},
        {"leeway": -1},
        {"longest": 0},
        {"longest": True},
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
