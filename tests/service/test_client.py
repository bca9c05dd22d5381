"""A client stands in for the engine: the same signatures and results, and nothing that only a token may state."""

from __future__ import annotations

import asyncio
import inspect
import threading
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
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
    """A service on a real socket, in a thread."""

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
    """Assert that two results are equal except for their receipts."""
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
    """Ids, order, scores, texts, reasons and outcomes, also of refusals and declines; receipts verify."""
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
    """With several requests at once."""

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
    """Each list separately; allowed entities narrow a cell without a mandatory list."""
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


def test_what_only_a_token_may_state_is_refused_before_it_is_sent() -> None:
    """The service would ignore it, and answer for another session."""
    client = Client("http://127.0.0.1:9", token=token())
    deal = DealWindow(1, datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC))
    stated: list[dict[str, Any]] = [
        {"as_of": date(2024, 6, 30)},
        {"known_at": datetime(2024, 6, 30, tzinfo=UTC)},
        {"deals": ()},
        {"deals": (deal,)},
        {"wall_crossings": (WallCrossing(1, "invest"),)},
        {"audit_clients": frozenset({1})},
        {"eu_transfer_basis": True},
        {"legal_basis": LegalBasis("legal_obligation")},
    ]
    for one in stated:
        with pytest.raises(InvalidArgument, match="only from the token"):
            client.ask(QUESTION, replace(ANALYST, **one))


def test_a_session_of_another_person_or_cell_is_refused(client: Client) -> None:
    """With the code of the token that does not fit."""
    with pytest.raises(Refused) as refused:
        client.ask(QUESTION, replace(ANALYST, subject="ben@bank.example"))
    assert "TOKEN_SUBJECT" == refused.value.code
    with pytest.raises(Refused) as refused:
        client.ask(QUESTION, OFFICIAL)
    assert "TOKEN_CELL" == refused.value.code
    assert client.ask(QUESTION, replace(ANALYST, subject="ana@bank.example")).passages


def test_bad_input_is_the_engine_s_error(client: Client) -> None:
    """Before anything is sent if possible."""
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


def test_a_client_does_not_show_its_token() -> None:
    """Neither in its repr nor in an error."""
    secret = token()
    client = Client("http://127.0.0.1:9", token=secret, seconds=2)
    assert secret not in repr(client)
    with pytest.raises(ServiceUnavailable) as unreachable:
        client.ask(QUESTION, ANALYST)
    assert secret not in str(unreachable.value) + repr(unreachable.value)
    assert unreachable.value.__cause__ is None


def test_an_error_of_the_engine_is_the_same_here(
    engine: Engine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a program's handlers need not change; any other error is an unavailable service."""
    for error in (AuditUnavailable("x"), ModelUnavailable("x"), CorruptFile("x"), KeyError("x")):

        def fails(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr(engine, "ask", fails)
        wanted = type(error) if isinstance(error, CaragError) else ServiceUnavailable
        with pytest.raises(wanted):
            client.ask(QUESTION, ANALYST)


def test_an_answer_that_is_not_the_service_s_is_an_error() -> None:
    """A proxy's page, a redirect, half an answer."""
    client = Client("http://carag.test", token=ANY)
    bodies = (b"", b"{}", b"<html>", b'{"outcome": "answer"}', b"[" * 100_000)
    for status, body in product((200, 302, 401, 502), bodies):
        response = httpx.Response(status, content=body)
        client._http = httpx.Client(transport=httpx.MockTransport(lambda _, one=response: one))
        with pytest.raises(ServiceUnavailable):
            client.ask(QUESTION, ANALYST)


def test_a_receipt_with_a_missing_part_is_refused(engine: Engine) -> None:
    """It would be written as another file than the log's."""
    from carag.audit import redact

    receipt = engine.ask(QUESTION, ANALYST).receipt
    assert receipt == receipt_of(receipt.to_bytes().decode())
    for parts in ({"passages": [1]}, {"proofs": [1]}):
        with pytest.raises(CorruptFile):
            receipt_of(redact(receipt.to_bytes(), **parts).decode())  # type: ignore[arg-type]
