"""Refused tokens leave records: the first of a kind at once, the rest as a count, and nothing of the token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine, Session
from carag.audit import AuditLog, Denial
from carag.engine.recorder import Denials
from carag.errors import AuditUnavailable, Refused
from carag.policy import SessionSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MINUTE = 60_000_000


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.now = 1_763_755_555_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> Iterator[AuditLog]:
    with AuditLog.open(tmp_path, clock=clock) as opened:
        yield opened


def said(log: AuditLog) -> list[tuple[str, int]]:
    events = [log.record(seq).event for seq in range(log.size)]
    return [(event.why, event.count) for event in events if isinstance(event, Denial)]


def test_the_first_is_on_record_at_once(log: AuditLog, clock: Clock) -> None:
    """One a reason and issuer."""
    denials = Denials(log, clock)
    denials.add("TOKEN_SIGNATURE", issuer="https://a.example", audience="carag")
    denials.add("TOKEN_EXPIRED", issuer="https://a.example", audience="carag")
    denials.add("TOKEN_EXPIRED", issuer="https://b.example", audience="carag")
    assert said(log) == [("TOKEN_SIGNATURE", 1), ("TOKEN_EXPIRED", 1), ("TOKEN_EXPIRED", 1)]
    event = log.record(0).event
    assert isinstance(event, Denial)
    assert (event.first, event.last, event.issuer) == (clock.now, clock.now, "https://a.example")


def test_a_flood_is_a_number_a_minute(log: AuditLog, clock: Clock) -> None:
    """A thousand refusals in three minutes make a handful of records that count every one of them."""
    denials, started = Denials(log, clock), clock.now
    for _ in range(1000):
        denials.add("TOKEN_SIGNATURE", issuer=None, audience=None)
        clock.now += 3 * MINUTE // 1000
    denials.flush()
    counts = [count for _, count in said(log)]
    assert (sum(counts), len(counts)) == (1000, 6)
    events = [log.record(seq).event for seq in range(log.size)]
    assert all(started <= event.first <= event.last < clock.now for event in events)  # type: ignore[union-attr]
    denials.flush()
    assert len(said(log)) == 6


def test_what_was_counted_elsewhere_is_counted_whole(log: AuditLog, clock: Clock) -> None:
    """Whether it comes first or later."""
    denials = Denials(log, clock)
    for count in (40, 1, 7):
        denials.add("TOKEN_UNCHECKED", issuer=None, audience=None, count=count)
        clock.now += 1
    denials.flush()
    assert said(log) == [("TOKEN_UNCHECKED", 40), ("TOKEN_UNCHECKED", 8)]


def test_what_cannot_be_recorded_is_an_error(log: AuditLog, clock: Clock) -> None:
    """A refusal that would leave no trace is an error."""
    denials = Denials(log, clock)
    log.close()
    with pytest.raises(AuditUnavailable):
        denials.add("TOKEN_SIGNATURE", issuer=None, audience=None)


class Verifier:
    """Believes tokens that say so."""

    issuer, audience = "https://login.example", "carag"

    def verify(self, token: str) -> Mapping[str, Any]:
        if not token.startswith("good"):
            raise Refused("TOKEN_SIGNATURE", "the token's signature is not valid")
        audience = "\n" if token.endswith("?") else self.audience
        return {"sub": "ana", "role": "buy_side", "purpose": "invest", "iss": self.issuer, "aud": audience}


class Saying:
    """Believes every token to say what it is told."""

    issuer, audience = "https://login.example", "carag"

    def __init__(self, **claims: Any) -> None:
        self.claims = {"sub": "ana", "role": "buy_side", "purpose": "invest", **claims}

    def verify(self, token: str) -> Mapping[str, Any]:
        token.encode()
        return self.claims


def test_a_token_that_nothing_can_be_made_of_is_on_record_like_any_other(tmp_path: Path) -> None:
    """Whether its text, its claims or what a record cannot hold is at fault: a denial, and no other error."""
    wait = {"cooling_minutes": 10**30}
    with Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        for token, verifier in (
            ("\ud800", Saying()),
            ("t", Saying(sub="ana\ud800")),
            ("t", Saying(sub="a" * 201)),
            ("t", Saying(role="\0")),
            ("t", Saying(carag=wait)),
        ):
            with pytest.raises(Refused):
                engine.session(token, verifier)
        engine._denials.flush()
        assert said(engine._log) == [
            ("TOKEN_MALFORMED", 1),
            ("TOKEN_CLAIM_INVALID", 1),
            ("TOKEN_CLAIM_INVALID", 3),
        ]


def test_the_engine_records_refused_tokens_and_nothing_of_them(tmp_path: Path) -> None:
    """Forged ten times over: the reason, the number, whose tokens were expected; the token stands nowhere."""
    moment = datetime(2026, 11, 22, tzinfo=UTC)
    with Engine.open(tmp_path / "store", embedder="wordllama", clock=lambda: moment) as engine:
        before = engine._log.size
        for n in range(10):
            with pytest.raises(Refused):
                engine.session(f"forged-by-mallory-{n}", Verifier())
        with pytest.raises(Refused):
            engine.session("good?", Verifier())
        assert said(engine._log) == [("TOKEN_SIGNATURE", 1), ("TOKEN_CLAIM_INVALID", 1)]
        assert engine._log.size == before + 2
        session = engine.session("good one", Verifier()).narrow(cooling=timedelta(hours=1))
        assert (session.source, session.issuer, session.audience) == (
            SessionSource.VERIFIED,
            "https://login.example",
            "carag",
        )
        answer = engine.ask("Anything?", session)
        event = engine._log.record(answer.receipt.seq).event
        assert (event.issuer, event.audience) == ("https://login.example", "carag")  # type: ignore[union-attr]
        plain = engine.ask("Anything?", Session(role="buy_side", purpose="invest"))
        assert engine._log.record(plain.receipt.seq).event.issuer is None  # type: ignore[union-attr]
    with AuditLog.open(tmp_path / "store") as log:
        assert sum(count for why, count in said(log) if why == "TOKEN_SIGNATURE") == 10
    for name in ("audit.db", "audit.db-wal", "private.db", "private.db-wal"):
        file = tmp_path / "store" / name
        assert not file.exists() or b"mallory" not in file.read_bytes()
