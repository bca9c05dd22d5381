"""A client is the engine: the same signatures and results, and nothing that only a token may say."""

from __future__ import annotations

import asyncio
import inspect
import threading
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import carag
from carag import AsyncClient, Client, Engine, Outcome, Session
from carag.audit import Verdict, verify_receipt
from carag.errors import (
    AuditUnavailable,
    CaragError,
    CorruptFile,
    InvalidArgument,
    ModelUnavailable,
    Refused,
    ServiceUnavailable,
)
from carag.policy import DealWindow, LegalBasis, WallCrossing
from carag.service.service import Service
from carag.service.serving import serve
from carag.service.wire import receipt_of
from tests.service import conftest
from tests.service.conftest import CHUNK, OFFICER, QUESTION, httpx, token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANY = "a.b.c"
ANALYST = Session(role="buy_side", purpose="invest")
OFFICIAL = Session(role="compliance", purpose="surveil")
QUESTIONS = [
    QUESTION,
    "What did the company restate, and why?",
    "How much did directors buy of their own shares?",
    "zwyqcanary blorptang",
]


class Served:
    """A service on a real socket, in a thread of its own."""

    def __init__(self, engine: Engine, home: Path, files: Path, **changes: Any) -> None:
        self.service = Service(engine, home, conftest.settings(files, **changes))
        self.ports: tuple[int, int] = (0, 0)
        self.loop: Any = None
        listening = threading.Event()

        def started(*ports: int) -> None:
            self.ports, self.loop = ports, asyncio.get_running_loop()  # type: ignore[assignment]
            listening.set()

        self.thread = threading.Thread(target=serve, args=(self.service,), kwargs={"started": started})
        self.thread.start()
        assert listening.wait(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    def stop(self) -> None:
        self.service.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def served(engine: Engine, home: Path, files: Path) -> Iterator[Served]:
    running = Served(engine, home, files)
    yield running
    running.stop()


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url, token=lambda: token()) as opened:
        yield opened


def same(one: Any, other: Any) -> None:
    """All that two results say is equal, but for the receipts, which are of two records."""
    assert type(one) is type(other)
    for field in fields(one):
        if field.name not in ("receipt", "follows", "asked"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name


def test_the_signatures_are_the_engine_s() -> None:
    """Parameters, kinds and defaults."""
    for name in ("ask", "retrieve", "explain"):
        wanted = inspect.signature(getattr(Engine, name)).parameters
        for kind in (Client, AsyncClient):
            assert list(inspect.signature(getattr(kind, name)).parameters.values()) == list(wanted.values())
    assert {"Client", "AsyncClient"} <= {*carag.__all__}


@pytest.mark.release
@pytest.mark.parametrize("session", [ANALYST, OFFICIAL], ids=["analyst", "officer"])
def test_a_client_returns_what_the_engine_returns(engine: Engine, served: Served, session: Session) -> None:
    """Ids, order, scores, texts, reasons and outcomes, and its receipts verify; refusals and declines too."""
    bearer = token() if session is ANALYST else token(**OFFICER)
    with Client(served.url, token=bearer) as client:
        outcomes = set()
        for question in QUESTIONS:
            for narrowed in (session, session.narrow(residency="J_US"), session.narrow(intents=["NO_SUCH"])):
                answer = client.ask(question, narrowed)
                same(answer, engine.ask(question, narrowed))
                assert {**answer.to_json(), "record": 0} == {
                    **engine.ask(question, narrowed).to_json(),
                    "record": 0,
                }
                found = client.retrieve(question, narrowed, 30)
                same(found, engine.retrieve(question, narrowed, 30))
                outcomes |= {answer.outcome, found.outcome}
                for receipt in (answer.receipt, found.receipt):
                    checked = verify_receipt(receipt.to_bytes(), engine.vkey)
                    assert (Verdict.VERIFIED, receipt.seq) == (checked.verdict, checked.record.seq)  # type: ignore[union-attr]
        hidden = engine.retrieve(QUESTION, OFFICIAL, 400).passages
        for chunk in (CHUNK, "0009999999-24-000777:00000", *(one.chunk_id for one in hidden[:40])):
            explained = client.explain(chunk, session)
            same(explained, engine.explain(chunk, session))
            assert verify_receipt(explained.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert {Outcome.ANSWER, Outcome.DECLINE, Outcome.REFUSE} == outcomes


def test_an_asynchronous_client_is_the_same(engine: Engine, served: Served) -> None:
    """Several at once."""

    async def asked() -> list[Any]:
        async with AsyncClient(served.url, token=token()) as client:
            return await asyncio.gather(
                client.ask(QUESTION, ANALYST),
                client.retrieve(QUESTION, ANALYST, 5),
                client.explain(CHUNK, ANALYST),
            )

    answer, found, explained = asyncio.run(asked())
    same(answer, engine.ask(QUESTION, ANALYST))
    same(found, engine.retrieve(QUESTION, ANALYST, 5))
    same(explained, engine.explain(CHUNK, ANALYST))


def test_what_a_session_narrows_arrives(engine: Engine, client: Client) -> None:
    """Each list by itself; for a cell without a mandatory list, entities that are allowed narrow like any other."""
    entity = 9990001
    for session in (
        replace(ANALYST, restricted=frozenset({entity})),
        replace(ANALYST, watched=frozenset({entity})),
        replace(ANALYST, cooling=timedelta(days=2)),
        replace(ANALYST, intents=("LATEST",)),
        replace(ANALYST, conversation="chat-7"),
        ANALYST.narrow(allow_entities=[]),
        ANALYST.narrow(allow_entities=[entity]),
        replace(ANALYST, allow_entities=frozenset({2488, entity})),
    ):
        mine = {one.chunk_id for one in client.retrieve(QUESTION, session, 400).passages}
        assert mine == {one.chunk_id for one in engine.retrieve(QUESTION, session, 400).passages}


@pytest.mark.parametrize(
    "stated",
    [
        {"as_of": date(2024, 6, 30)},
        {"known_at": datetime(2024, 6, 30, tzinfo=UTC)},
        {"deals": ()},
        {"deals": (DealWindow(1, datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)),)},
        {"wall_crossings": (WallCrossing(1, "invest"),)},
        {"audit_clients": frozenset({1})},
        {"eu_transfer_basis": True},
        {"legal_basis": LegalBasis("legal_obligation")},
    ],
    ids=lambda stated: next(iter(stated)),
)
def test_what_only_a_token_may_say_is_refused_before_it_is_sent(stated: dict[str, Any]) -> None:
    """A service would not read it, and an answer for another session than was asked for is none."""
    client = Client("http://127.0.0.1:9", token=token())
    with pytest.raises(InvalidArgument, match="only from the token"):
        client.ask(QUESTION, replace(ANALYST, **stated))


def test_a_session_of_another_person_or_cell_is_refused(client: Client) -> None:
    """By the code of the token that does not fit it."""
    with pytest.raises(Refused) as refused:
        client.ask(QUESTION, replace(ANALYST, subject="ben@bank.example"))
    assert "TOKEN_SUBJECT" == refused.value.code
    with pytest.raises(Refused) as refused:
        client.ask(QUESTION, OFFICIAL)
    assert "TOKEN_CELL" == refused.value.code
    assert client.ask(QUESTION, replace(ANALYST, subject="ana@bank.example")).passages


def test_bad_input_is_an_error_as_of_the_engine(client: Client) -> None:
    """Before anything is sent, where it can be told here."""
    for call in (
        lambda: client.ask("", ANALYST),
        lambda: client.ask("x" * 8193, ANALYST),
        lambda: client.retrieve(QUESTION, ANALYST, 0),
        lambda: client.retrieve(QUESTION, ANALYST, True),
        lambda: client.ask(QUESTION, ANALYST, where={"no_such_field": 1}),
        lambda: client.ask(QUESTION, ANALYST, where="year"),  # type: ignore[arg-type]
        lambda: client.ask(QUESTION, ANALYST, where={"year": object()}),
        lambda: client.ask(QUESTION, None),  # type: ignore[arg-type]
        lambda: Client("carag.example", token=ANY),
        lambda: Client("http://carag.example", token=ANY + "\nX: y"),
        lambda: Client("http://carag.example", token=ANY, seconds=0),
    ):
        with pytest.raises(InvalidArgument):
            call()


def test_no_client_shows_its_token() -> None:
    """Neither in its repr nor in an error."""
    secret = token()
    client = Client("http://127.0.0.1:9", token=secret, seconds=2)
    assert secret not in repr(client)
    with pytest.raises(ServiceUnavailable) as unreachable:
        client.ask(QUESTION, ANALYST)
    assert secret not in str(unreachable.value) + repr(unreachable.value)
    assert unreachable.value.__cause__ is None


@pytest.mark.parametrize(
    "error", [AuditUnavailable("x"), ModelUnavailable("x"), CorruptFile("x"), KeyError("x")], ids=repr
)
def test_an_error_of_the_engine_is_the_same_here(
    engine: Engine, client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """So that a program's handlers need not change; what no error of ours is, is an unavailable service."""

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(engine, "ask", fails)
    wanted = type(error) if isinstance(error, CaragError) else ServiceUnavailable
    with pytest.raises(wanted):
        client.ask(QUESTION, ANALYST)


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b'{"outcome": "answer"}', b"[" * 100_000])
@pytest.mark.parametrize("status", [200, 302, 401, 502])
def test_what_is_no_answer_of_a_service_is_told_as_that(body: bytes, status: int) -> None:
    """A proxy's page, a redirect, half an answer."""
    client = Client("http://carag.test", token=ANY)
    client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(status, content=body)))
    with pytest.raises(ServiceUnavailable):
        client.ask(QUESTION, ANALYST)


def test_a_receipt_of_which_a_part_is_missing_is_none(engine: Engine) -> None:
    """It would come back as another file than the log wrote."""
    from carag.audit import redact

    receipt = engine.ask(QUESTION, ANALYST).receipt
    assert receipt == receipt_of(receipt.to_bytes().decode())
    for parts in ({"passages": [1]}, {"proofs": [1]}):
        with pytest.raises(CorruptFile):
            receipt_of(redact(receipt.to_bytes(), **parts).decode())  # type: ignore[arg-type]
