"""A session has only what the verified claims state, and a mistake in them never widens it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from carag.errors import MALFORMED, Refused
from carag.policy import DealWindow, Intent, LegalBasis, PolicyBit, Session, SessionSource, WallCrossing


class Believer:
    """A verifier that has checked everything already."""

    def __init__(self, **claims: Any) -> None:
        self.claims = claims

    def verify(self, token: str) -> dict[str, Any]:
        if token != "good":  # noqa: S105
            raise Refused("TOKEN_SIGNATURE", "forged")
        return self.claims


WHO = {"sub": "ana", "role": "sell_side", "purpose": "publish"}


def session_of(**terms: Any) -> Session:
    return Session.from_token("good", Believer(**WHO, carag=terms))


def test_every_term_arrives() -> None:
    """Each key of the claim becomes the session's own value."""
    session = session_of(
        as_of="2025-05-01",
        known_at="2025-06-01T00:00:00Z",
        allow_entities=[3, 1],
        restricted=[7],
        watched=[8],
        deals=[{"entity": 7, "begins": "2025-06-01", "ends": "2025-06-11"}],
        wall_crossings=[{"entity": 7, "purpose": "draft"}],
        audit_clients=[1],
        residency=["J_EU"],
        eu_transfer_basis=False,
        legal_basis={"basis": "consent", "purposes": ["publish"], "restrictions": [9]},
        cooling_minutes=15,
        intents=["LATEST"],
    )
    expected = Session(
        role="sell_side",
        purpose="publish",
        subject="ana",
        as_of=date(2025, 5, 1),
        known_at=datetime(2025, 6, 1, tzinfo=UTC),
        allow_entities=frozenset({1, 3}),
        restricted=frozenset({7}),
        watched=frozenset({8}),
        deals=(DealWindow(7, date(2025, 6, 1), date(2025, 6, 11)),),
        wall_crossings=(WallCrossing(7, "draft"),),
        audit_clients=frozenset({1}),
        residency=frozenset({PolicyBit.J_EU}),
        eu_transfer_basis=False,
        legal_basis=LegalBasis("consent", frozenset({"publish"}), restrictions=frozenset({9})),  # type: ignore[arg-type]
        cooling=timedelta(minutes=15),
        intents=(Intent.LATEST,),
    )
    assert session.source is SessionSource.VERIFIED
    fields = [name for name in Session.__dataclass_fields__ if name != "source"]
    assert [getattr(session, name) for name in fields] == [getattr(expected, name) for name in fields]


def test_an_aware_time_is_a_time() -> None:
    """Instants and days are both read from text."""
    assert session_of(as_of="2025-05-01T10:00:00-04:00").as_of == datetime(2025, 5, 1, 14, tzinfo=UTC)
    (deal,) = (
        session_of(deals=[{"entity": 7, "begins": "2025-06-01T00:00:00Z", "ends": "2025-06-11"}]).deals or ()
    )
    assert (deal.begins, deal.ends) == (datetime(2025, 6, 1, tzinfo=UTC), date(2025, 6, 11))


@pytest.mark.parametrize(
    "terms",
    [
        {"restrictd": [7]},
        {"restricted": [7.5]},
        {"restricted": ["7", "x"]},
        {"restricted": [0]},
        {"restricted": [True]},
        {"restricted": ["7"]},
        {"deals": [{"entity": 7, "begins": 20250601, "ends": 20250611}]},
        {"deals": [{"entity": 7, "begins": "2025-06-01T00:00:00", "ends": "2025-06-11"}]},
        {"known_at": "2025-05-01"},
        {"known_at": 1_700_000_000},
        {"restricted": 7},
        {"allow_entities": "all"},
        {"as_of": "yesterday"},
        {"as_of": "2025-05-01T10:00:00"},
        {"as_of": 5},
        {"known_at": "2025-05-01T10:00:00"},
        {"deals": [{"entity": 7, "begins": "2025-06-11", "ends": "2025-06-01"}]},
        {"deals": [{"entity": 7, "begins": "2025-06-01"}]},
        {"wall_crossings": [{"entity": 7, "purpose": ""}]},
        {"residency": ["J_MARS"]},
        {"eu_transfer_basis": "no"},
        {"legal_basis": {"basis": "because"}},
        {"cooling_minutes": 0},
        {"cooling_minutes": 10**9},
        {"intents": [""]},
        {"restricted": [320193, "x"]},
    ],
)
def test_a_mistake_in_a_term_refuses_the_token(terms: dict[str, Any]) -> None:
    """Nothing is silently left out, and the refusal names no company: the holder may not be cleared for the lists."""
    with pytest.raises(Refused) as refusal:
        session_of(**terms)
    assert refusal.value.code == "TOKEN_CLAIM_INVALID"
    assert "320193" not in str(refusal.value)


@pytest.mark.parametrize("carag", ["all", 7, [], None])
def test_the_claim_is_one_object(carag: Any) -> None:
    """Anything but an object of known keys is refused."""
    with pytest.raises(Refused, match="carag") as refusal:
        Session.from_token("good", Believer(**WHO, carag=carag))
    assert refusal.value.code == "TOKEN_CLAIM_INVALID"


@pytest.mark.parametrize("name", WHO)
def test_role_purpose_and_subject_come_from_the_token(name: str) -> None:
    """A verifier that accepts a token without them does not lead to a session without them."""
    with pytest.raises(Refused) as refusal:
        Session.from_token("good", Believer(**{**WHO, name: None} if name == "sub" else _without(name)))
    assert refusal.value.code in {"TOKEN_CLAIM_MISSING", "TOKEN_CLAIM_INVALID"}


def _without(name: str) -> dict[str, str]:
    return {key: value for key, value in WHO.items() if key != name}


def test_a_verifiers_refusal_is_the_sessions() -> None:
    """The refusal keeps the verifier's code."""
    with pytest.raises(Refused, match="forged") as refusal:
        Session.from_token("bad", Believer(**WHO))
    assert refusal.value.code == "TOKEN_SIGNATURE"


@pytest.mark.parametrize("error", MALFORMED)
def test_a_token_that_makes_a_verifier_fail_is_malformed(error: type[Exception]) -> None:
    """Whatever it raises gives one code, and no session."""

    class Stumbler:
        def verify(self, token: str) -> dict[str, Any]:
            raise error

    with pytest.raises(Refused) as refusal:
        Session.from_token("good", Stumbler())
    assert refusal.value.code == "TOKEN_MALFORMED"


def test_a_session_says_whose_token_it_was_and_for_whom_narrowed_or_not() -> None:
    """As far as the verifier says; a value that no record can hold refuses the token."""
    for said, expected in (
        ({"iss": "login.example", "aud": "carag"}, ("login.example", "carag")),
        ({}, (None, None)),
    ):
        proved = Session.from_token("good", Believer(**WHO, **said))
        for session in (proved, proved.narrow(restricted={7})):
            assert (SessionSource.VERIFIED, *expected) == (session.source, session.issuer, session.audience)
    for name in ("iss", "aud"):
        with pytest.raises(Refused, match=f"{name} is ''") as refusal:
            Session.from_token("good", Believer(**WHO, **{name: ""}))
        assert refusal.value.code == "TOKEN_CLAIM_INVALID"
