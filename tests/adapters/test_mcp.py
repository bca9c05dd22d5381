"""Over MCP a model gives a question and a number; server code or a token for this server decides the session."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import Verdict, verify_receipt
from carag.engine.tokens import JwtVerifier
from carag.errors import AuditUnavailable, InvalidArgument
from tests.adapters.faces import QUESTION
from tests.adapters.test_conformance import NAMES, VALUES
from tests.engine.test_tokens import KEYS, claims, sign

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

if os.environ.get("CARAG_REQUIRE_ADAPTERS"):
    import mcp
else:
    mcp = pytest.importorskip("mcp", reason="mcp is not installed: nothing of carag.adapters.mcp is tested")
from carag.adapters.mcp import MAX_K, http_app, serve

ROOT = Path(__file__).parents[2]
EMPLOYEE = Session(role="employee", purpose="work", subject="ana-7731")
URL = "https://carag.example/mcp"


def with_client(server: Any, use: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with mcp.Client(server) as client:
            return await use(client)

    return asyncio.run(run())


def called(server: Any, tool: str, **arguments: Any) -> Any:
    return with_client(server, lambda client: client.call_tool(tool, arguments))


def test_the_schemas_hold_a_question_and_a_bounded_number(engine: Engine) -> None:
    """They refuse all other arguments; answers must not be shared or cached."""
    server = serve(engine=engine, session=EMPLOYEE)
    listed = with_client(server, lambda client: client.list_tools())
    schemas = {tool.name: tool.input_schema for tool in listed.tools}
    assert {"carag_ask": {"question"}, "carag_retrieve": {"question", "k"}} == {
        name: set(schema["properties"]) for name, schema in schemas.items()
    }
    assert [False, False] == [schema["additionalProperties"] for schema in schemas.values()]
    assert (1, MAX_K) == tuple(
        schemas["carag_retrieve"]["properties"]["k"][one] for one in ("minimum", "maximum")
    )
    assert (0, "private") == (listed.ttl_ms, listed.cache_scope)


def test_passages_are_the_engines(engine: Engine) -> None:
    """Ids, order, scores and text, with the record, and nothing of what is withheld."""
    wanted = engine.retrieve(QUESTION, EMPLOYEE, 5).passages
    given = called(serve(engine=engine, session=EMPLOYEE), "carag_retrieve", question=QUESTION, k=5)
    assert not given.is_error
    told = given.structured_content
    assert json.loads(given.content[0].text) == told
    assert [(one.chunk_id, one.similarity, one.text) for one in wanted] == [
        (one["chunk_id"], one["similarity"], one["text"]) for one in told["passages"]
    ]
    assert {"outcome", "why", "understood", "record", "receipt", "passages"} == set(told)


def test_an_answer_names_its_record_and_its_sources(engine: Engine) -> None:
    """A refusal has the same form."""
    told = called(serve(engine=engine, session=EMPLOYEE), "carag_ask", question=QUESTION).structured_content
    assert {"outcome", "why", "understood", "record", "receipt", "text", "citations"} == set(told)
    unknown = serve(engine=engine, session=Session(role="unknown", purpose="x"))
    told = called(unknown, "carag_ask", question=QUESTION).structured_content
    assert ("refuse", "UNKNOWN_ROLE", []) == (told["outcome"], told["why"], told["citations"])
    told = called(unknown, "carag_retrieve", question=QUESTION).structured_content
    assert ("refuse", []) == (told["outcome"], told["passages"])


def test_the_conversation_is_the_host_s(engine: Engine) -> None:
    """A follow-up is read after the question before it; the schemas above name no conversation."""
    server = serve(engine=engine, session=replace(EMPLOYEE, subject="ana", conversation="c"))
    called(server, "carag_ask", question="How much did Acme Corp pay in dividends in 2020?")
    told = called(server, "carag_retrieve", question="And the year before?").structured_content
    assert told["understood"].endswith("read as: How much did Acme Corp pay in dividends in 2019?")


def test_what_a_role_may_know_is_not_told_to_a_model(engine: Engine) -> None:
    """Compliance may know that hidden passages exist; that is for people."""
    server = serve(engine=engine, session=Session(role="compliance", purpose="review", restricted={7}))
    for tool in ("carag_ask", "carag_retrieve"):
        text = called(server, tool, question=QUESTION).content[0].text
        assert "hidden" not in text
        assert "withheld" not in text


def test_receipts_are_those_of_the_session_and_verify(engine: Engine) -> None:
    """Another session's record, one that does not exist and nonsense get the same answer."""

    async def use(client: Any) -> tuple[str, list[str]]:
        told = (await client.call_tool("carag_ask", {"question": QUESTION})).structured_content
        (content,) = (await client.read_resource(told["receipt"])).contents
        errors = []
        for number in (str(foreign), str(10**12), "-1", "x", "", "9" * 30, "١", "../policy"):
            with pytest.raises(mcp.MCPError) as caught:
                await client.read_resource(f"carag://receipts/{number}")
            errors.append(caught.value.message)
        return content.text, errors

    foreign = called(
        serve(engine=engine, session=EMPLOYEE), "carag_ask", question=QUESTION
    ).structured_content["record"]
    receipt, errors = with_client(serve(engine=engine, session=EMPLOYEE), use)
    assert verify_receipt(receipt.encode(), engine.vkey).verdict is Verdict.VERIFIED
    assert {"this session has no such resource"} == {*errors}


def test_the_policy_is_that_of_the_session_alone(engine: Engine) -> None:
    """It shows its own cell, and no rule where it has none."""

    async def use(client: Any) -> dict[str, Any]:
        (policy,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource(policy.uri)).contents
        return dict(json.loads(content.text))

    policy = with_client(serve(engine=engine, session=EMPLOYEE), use)
    assert ("generic", "employee", "work") == (policy["profile"], policy["role"], policy["purpose"])
    assert engine.profile.table.sha256 == policy["policy_sha256"]
    assert ["SECRET", "PERSONAL", "LEGAL"] == policy["masks"][0]["forbidden"]
    assert "compliance" not in json.dumps(policy)
    unknown = with_client(serve(engine=engine, session=Session(role="unknown", purpose="x")), use)
    assert [] == unknown["masks"]


def test_no_chunk_is_a_resource(engine: Engine) -> None:
    """A list of chunks would reveal which exist."""

    async def use(client: Any) -> tuple[list[str], list[str]]:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        return [str(one.uri) for one in resources], [one.uri_template for one in templates]

    listed = with_client(serve(engine=engine, session=EMPLOYEE), use)
    assert (["carag://policy"], ["carag://receipts/{record}"]) == listed


def attacked(engine: Engine, calls: int) -> None:
    may = {one.chunk_id for one in engine.retrieve(QUESTION, EMPLOYEE, 400).passages}
    random_ = random.Random(11)  # noqa: S311

    async def use(client: Any) -> tuple[list[Any], int]:
        widened, refused = [], 0
        for number in range(calls):
            names = ["k"] if number % 2 else random_.sample(NAMES, random_.choice((1, 1, 2)))
            given = {name: random_.choice(VALUES) for name in names}
            try:
                json.dumps(given, allow_nan=False)
                found = await client.call_tool("carag_retrieve", {"question": QUESTION, **given})
            except (mcp.MCPError, TypeError, ValueError):
                refused += 1
                continue
            if found.is_error:
                refused += 1
                continue
            passages = found.structured_content["passages"]
            if {*given} - {"k"} or len(passages) > MAX_K or not {one["chunk_id"] for one in passages} <= may:
                widened.append(given)
        return widened, refused

    widened, refused = with_client(serve(engine=engine, session=EMPLOYEE), use)
    assert [] == widened
    assert calls / 2 < refused < calls


def test_no_hostile_argument_widens(engine: Engine) -> None:
    """An unknown argument is refused, not dropped."""
    attacked(engine, 400)


@pytest.mark.full
def test_of_two_thousand_five_hundred_hostile_calls_none_widens(engine: Engine) -> None:
    """No call with an unknown argument is answered."""
    attacked(engine, 2500)


@pytest.mark.parametrize("k", [0, -1, MAX_K + 1, 10**9, "8", True, 1.5, None, [8]])
def test_a_number_out_of_bounds_is_an_error(engine: Engine, k: Any) -> None:
    """The server enforces the schema, whatever the client checked."""
    given = called(serve(engine=engine, session=EMPLOYEE), "carag_retrieve", question=QUESTION, k=k)
    assert given.is_error
    assert "want 1 to 50" in given.content[0].text


def test_a_dead_log_gives_no_passage_and_no_words_of_it(
    dying: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model learns that nothing is returned, and no detail of the fault."""
    server = serve(engine=dying, session=Session(role="public", purpose="read"))

    def dead(_: object) -> None:
        raise AuditUnavailable("the disk /secret/place is gone")

    monkeypatch.setattr(dying._log._backend, "append", dead)
    for tool in ("carag_ask", "carag_retrieve"):
        given = called(server, tool, question=QUESTION)
        assert given.is_error
        assert given.structured_content is None
        assert (
            "AuditUnavailable: nothing is returned; ask the operator of this server" == given.content[0].text
        )


def test_a_server_needs_a_source_and_a_session(engine: Engine) -> None:
    """There is no default for either."""
    for given in ({}, {"engine": engine}, {"session": EMPLOYEE}, {"engine": engine, "session": "compliance"}):
        with pytest.raises(InvalidArgument):
            serve(**given)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="audience"):
        http_app(engine, JwtVerifier(issuer="https://login.example", audience="carag", keys=KEYS), url=URL)


def posted(engine: Engine, *tokens: str | None, **headers: str) -> list[Any]:
    """Return the answers over HTTP to a question with each of the tokens."""
    httpx = pytest.importorskip("httpx")
    verifier = JwtVerifier(issuer="https://login.example", audience=URL, keys=KEYS)
    app = http_app(engine, verifier, url=URL)
    call = {"name": "carag_retrieve", "arguments": {"question": QUESTION, "k": 3}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    fixed = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18", **headers}

    async def run() -> list[Any]:
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="https://carag.example") as client,
        ):
            return [
                await client.post(
                    "/mcp",
                    json=body,
                    headers=fixed | ({} if one is None else {"authorization": f"Bearer {one}"}),
                )
                for one in tokens
            ]

    return asyncio.run(run())


def granted(**changes: Any) -> str:
    return sign(claims(**{"aud": URL, "role": "employee", "purpose": "work", **changes}))


def test_over_http_each_request_brings_a_token_for_this_server(engine: Engine) -> None:
    """No token, a bad one, or a good one for another server is answered with 401, and the refusal is on record."""
    refused = (None, "x", granted(aud="https://other.example/mcp"), granted(aud=None), granted(exp=1))
    size = engine._log.size
    answers = posted(engine, *refused)
    assert [401] * 5 == [one.status_code for one in answers]
    assert engine._log.size > size
    for one in answers:
        assert "Branches" not in one.text
    (good,) = posted(engine, granted())
    assert 200 == good.status_code
    passages = good.json()["result"]["structuredContent"]["passages"]
    wanted = engine.retrieve(QUESTION, EMPLOYEE, 3).passages
    assert [one.chunk_id for one in wanted] == [one["chunk_id"] for one in passages]


def test_over_http_two_tokens_are_two_sessions(engine: Engine) -> None:
    """Each request has the role of its own token, whatever was asked before."""
    answers = posted(engine, granted(role="compliance", purpose="review"), granted(role="unknown"), granted())
    found = [one.json()["result"]["structuredContent"] for one in answers]
    assert ["answer", "refuse", "answer"] == [one["outcome"] for one in found]


def test_over_http_another_host_is_refused(engine: Engine) -> None:
    """A page in a browser cannot lead its own name to this server (DNS rebinding)."""
    (answer,) = posted(engine, granted(), host="evil.example")
    assert 421 == answer.status_code
    (answer,) = posted(engine, granted(), origin="https://evil.example")
    assert 403 == answer.status_code


@pytest.mark.release
def test_the_server_over_stdio_has_the_session_of_its_start(tmp_path: Path) -> None:
    """As a process it does not start without role and purpose, nor where there is no store."""
    store = tmp_path / "store"
    with Engine.open(store, profile="generic", embedder="wordllama") as engine:
        engine.add(
            [
                Document(id="open", text="Branches report on Mondays.", bits=()),
                Document(id="secret", text="Branches report in secret.", bits=("SECRET",)),
            ]
        )
    command = [sys.executable, "-m", "carag.adapters.mcp", "--store", str(store)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    session = ["--role", "employee", "--purpose", "work"]
    no_backend = "there is no backend of vectors 'oracle'"
    for arguments, code, words in (
        (command, 2, "--role"),
        ([*command[:-1], str(tmp_path / "none"), *session], 1, ""),
        ([*command, *session, "--backend", "oracle://host/rows"], 1, no_backend),
    ):
        done = subprocess.run(
            arguments, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (code, True) == (done.returncode, words in done.stderr)
    assert not (tmp_path / "none").exists()

    async def run() -> Any:
        parameters = mcp.StdioServerParameters(
            command=command[0], args=[*command[1:], *session], env=environment, cwd=tmp_path
        )
        async with mcp.Client(mcp.stdio_client(parameters)) as client:
            return await client.call_tool("carag_retrieve", {"question": QUESTION})

    found = asyncio.run(run())
    assert ["open:00000"] == [one["chunk_id"] for one in found.structured_content["passages"]]


def test_no_span_holds_what_a_caller_sent(
    engine: Engine, ended_spans: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK would name a span after the requested tool, and put the words of errors on it."""
    from mcp.server.lowlevel import Server

    server = serve(engine=engine, session=EMPLOYEE)

    def fails(*_: Any) -> None:
        raise KeyError("the words of an error")

    async def tell(client: Any) -> None:
        for tool, arguments in (
            ("carag_ask", {"question": QUESTION}),
            ("carag_ask", {"question": QUESTION, "the words of a key": 1}),
            ("the words of a tool", {"question": QUESTION}),
        ):
            with contextlib.suppress(mcp.MCPError):
                await client.call_tool(tool, arguments)

    with_client(server, tell)
    monkeypatch.setattr(engine, "ask", fails)
    called(server, "carag_ask", question=QUESTION)
    assert [] == ended_spans
    server.middleware[:] = Server("as the SDK makes it").middleware
    with_client(server, tell)
    assert any("the words of a tool" in one.name for one in ended_spans)
