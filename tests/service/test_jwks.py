"""The issuer's keys: each for one algorithm, fetched rarely whatever tokens say, and from nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from carag.engine.tokens import ALGORITHMS
from carag.errors import InvalidArgument, Refused
from carag.service import settings as service_settings
from carag.service.jwks import COOLDOWN_SECONDS, FRESH_SECONDS, STALE_SECONDS, JwksKeys, fetched, read_keys
from carag.service.settings import ServiceSettings
from tests.service.conftest import EC_KEY, RSA_KEY, jwk
from tests.sizes import examples

A_SECOND = examples(1000)
"""Made-up key ids per second."""


class Issuer:
    """Publish keys, or be down; count requests."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys, self.asked, self.is_down, self.now = keys, 0, False, 0.0

    def __call__(self) -> bytes:
        self.asked += 1
        if self.is_down:
            raise OSError("connection refused")
        return json.dumps({"keys": self.keys}).encode()

    def clock(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(jwk(EC_KEY, "e", "ES256"), jwk(RSA_KEY, "r", "RS256"))


@pytest.fixture
def keys(issuer: Issuer) -> JwksKeys:
    return JwksKeys(issuer, ["ES256", "RS256"], clock=issuer.clock)


def test_made_up_ids_cause_one_fetch_in_half_a_minute(issuer: Issuer, keys: JwksKeys) -> None:
    """Known keys remain usable meanwhile."""
    assert keys.get("e") is not None
    issuer.now += COOLDOWN_SECONDS
    before = issuer.asked
    for number in range(int(COOLDOWN_SECONDS) * A_SECOND):
        assert keys.get(f"made-up-{number}") is None
        issuer.now += 0.999 / A_SECOND
    assert issuer.asked == before + 1
    assert keys.get("e") is not None


def test_a_new_key_is_found_at_once_after_the_cooldown(issuer: Issuer, keys: JwksKeys) -> None:
    """Without waiting for the old ones to age."""
    assert keys.get("e") is not None
    issuer.now += COOLDOWN_SECONDS
    issuer.keys = (*issuer.keys, jwk(ec.generate_private_key(ec.SECP256R1()), "new", "ES256"))
    assert keys.get("new") is not None
    assert issuer.asked == 2


def test_a_withdrawn_key_counts_for_minutes_and_keys_of_an_unreachable_issuer_for_an_hour(
    issuer: Issuer, keys: JwksKeys
) -> None:
    """After that none does, and the error says so."""
    assert keys.get("r") is not None
    issuer.keys = issuer.keys[:1]
    issuer.now += FRESH_SECONDS + 1
    assert keys.get("r") is None
    got = issuer.now
    issuer.is_down = True
    issuer.now = got + STALE_SECONDS - 1
    assert keys.get("e") is not None
    issuer.now = got + STALE_SECONDS + 1
    with pytest.raises(Refused) as refused:
        keys.get("e")
    assert "TOKEN_KEYS_UNAVAILABLE" == refused.value.code


def test_an_issuer_that_was_never_reached_gives_no_key(issuer: Issuer, keys: JwksKeys) -> None:
    """It is not asked for every request."""
    issuer.is_down = True
    for _ in range(100):
        with pytest.raises(Refused):
            keys.get("e")
    assert 1 == issuer.asked
    issuer.is_down, issuer.now = False, COOLDOWN_SECONDS
    assert keys.get("e") is not None


SHORT = {**jwk(RSA_KEY, "short", "RS256"), "n": jwk(RSA_KEY, "", "RS256")["n"][:170]}
BAD = {
    "for encryption": {**jwk(EC_KEY, "k", "ES256"), "use": "enc"},
    "not for verifying": {**jwk(EC_KEY, "k", "ES256"), "key_ops": ["sign"]},
    "a private one": {**jwk(EC_KEY, "k", "ES256"), "d": "AAAA"},
    "a symmetric one": {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"},
    "a symmetric one that says otherwise": {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "RS256"},
    "of an algorithm that is not configured": jwk(RSA_KEY, "k", "PS256"),
    "of another kind than its algorithm": {**jwk(EC_KEY, "k", "ES256"), "alg": "RS256"},
    "of another curve": {**jwk(ec.generate_private_key(ec.SECP384R1()), "k", "ES384"), "alg": "ES256"},
    "too short": SHORT,
    "without an id": {name: value for name, value in jwk(EC_KEY, "k", "ES256").items() if name != "kid"},
    "cut off": {"kty": "EC", "kid": "k", "alg": "ES256"},
    "no object": "k",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_key_that_cannot_be_used_is_left_out(bad: Any) -> None:
    """Other keys of the set count; a set without any is refused."""
    good = jwk(EC_KEY, "good", "ES256")
    assert {"good"} == set(read_keys(json.dumps({"keys": [bad, good]}).encode(), ["ES256", "RS256"]))
    with pytest.raises(InvalidArgument):
        read_keys(json.dumps({"keys": [bad]}).encode(), ["ES256", "RS256"])


def test_two_keys_with_one_id_are_refused() -> None:
    """Which one is meant is unknown."""
    other = jwk(ec.generate_private_key(ec.SECP256R1()), "e", "ES256")
    with pytest.raises(InvalidArgument):
        read_keys(json.dumps({"keys": [jwk(EC_KEY, "e", "ES256"), other]}).encode(), ["ES256"])


def test_a_key_without_an_algorithm_is_for_the_one_that_fits() -> None:
    """If exactly one does: an RSA key could be for two."""
    bare = {name: value for name, value in jwk(RSA_KEY, "r", "RS256").items() if name != "alg"}
    assert "RS256" == read_keys(json.dumps({"keys": [bare]}).encode(), ["ES256", "RS256"])["r"][0]
    with pytest.raises(InvalidArgument):
        read_keys(json.dumps({"keys": [bare]}).encode(), ["PS256", "RS256"])
    edwards = jwk(ed25519.Ed25519PrivateKey.generate(), "d", "EdDSA")
    del edwards["alg"]
    assert "EdDSA" == read_keys(json.dumps({"keys": [edwards]}).encode(), [*ALGORITHMS])["d"][0]


def test_a_set_of_many_keys_is_refused() -> None:
    """An issuer has two or three."""
    many = [jwk(EC_KEY, f"k{number}", "ES256") for number in range(17)]
    with pytest.raises(InvalidArgument):
        read_keys(json.dumps({"keys": many}).encode(), ["ES256"])


@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(["keys", "kty", "kid", "alg", "crv", "x", "y", "n", "e", "use"]), inner
                )
            ),
            max_leaves=20,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_any_answer_of_an_issuer_is_keys_or_an_error(data: bytes) -> None:
    """Always the same one: that there are no keys."""
    keys = JwksKeys(lambda: data, ["ES256", "RS256"])
    with pytest.raises(Refused) as refused:
        keys.get("k")
    assert "TOKEN_KEYS_UNAVAILABLE" == refused.value.code


def test_keys_of_a_file_are_limited_too(tmp_path: Any) -> None:
    """Like those of an address."""
    (tmp_path / "keys").write_bytes(b" " * (256 << 10) + b"{}")
    with pytest.raises(InvalidArgument):
        fetched(str(tmp_path / "keys"))()


def said(**changes: Any) -> dict[str, Any]:
    return {
        "issuer": "https://login.example",
        "audience": "carag",
        "jwks": "https://login.example/keys",
        "algorithms": ["ES256"],
        "grants": "grants.toml",
        **changes,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"jwks": "http://login.example/keys"},
        {"jwks": "ftp://127.0.0.1/keys"},
        {"jwks": "https:///keys"},
        {"algorithms": ["HS256"]},
        {"algorithms": ["none"]},
        {"algorithms": []},
        {"listen": "0.0.0.0"},  # noqa: S104 - refused
        {"listen": "example.org"},
        {"operations_listen": "10.0.0.1"},
        {"leeway": 61},
        {"secret": "x"},
    ],
    ids=str,
)
def test_settings_that_would_open_what_is_closed_are_refused(changes: dict[str, Any]) -> None:
    """Before anything listens."""
    with pytest.raises(ValidationError):
        ServiceSettings.model_validate(said(**changes))


def test_explicit_settings_are_accepted() -> None:
    """Any address with a certificate, or with a proxy that terminates TLS."""
    for changes in ({"listen": "::"}, {"listen": "10.0.0.1"}):
        assert ServiceSettings.model_validate(said(**changes, behind_proxy=True)).listen
        assert ServiceSettings.model_validate(said(**changes, certificate="c.pem")).listen
    assert ServiceSettings.model_validate(said(jwks="http://127.0.0.1:9/keys")).jwks
    assert service_settings._ALGORITHMS == ALGORITHMS
