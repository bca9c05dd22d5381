"""Serve an engine over the Model Context Protocol: two tools, with receipts and policy as resources.

``serve`` makes a server for one session, given at start, because a process on stdio serves one person: ``python -m
carag.adapters.mcp --store DIR --role R --purpose P``. ``http_app`` makes one where each request carries a token issued
for this server's URL (MCP 2026-07-28, Authorization: servers MUST validate that; RFC 8707). Chunks are not resources,
because a list of resources would reveal which chunks exist.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import OrderedDict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import carag
from carag.adapters.binding import a_session, a_source
from carag.errors import AuditUnavailable, CaragError, InvalidArgument, Refused, type_and_place
from carag.extras import require
from carag.limits import MAX_QUESTION, quoted
from carag.policy import Session
from carag.visible import logger

require("carag.adapters.mcp", "mcp")

import mcp_types as types  # noqa: E402 - after the message that says what to install
from mcp.server.auth.middleware.auth_context import get_access_token  # noqa: E402
from mcp.server.auth.provider import AccessToken  # noqa: E402
from mcp.server.auth.settings import AuthSettings  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from mcp.server.stdio import stdio_server  # noqa: E402
from mcp.server.transport_security import TransportSecuritySettings  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402
from pydantic import PrivateAttr  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.applications import Starlette

    from carag.adapters.binding import Source
    from carag.audit import Receipt
    from carag.engine import Answer, Engine, Retrieval
    from carag.engine.tokens import JwtVerifier

__all__ = ["MAX_K", "http_app", "serve"]

_logger = logger(__name__)

MAX_K: Final = 50
"""Greatest number of passages for one call of ``carag_retrieve``, since they end up in a model's context."""
_K: Final = 8
_RECEIPTS: Final = 1_000
"""How many of the latest receipts a server keeps in memory; a receipt for 8 passages takes about 15 kB."""
_POLICY: Final = "carag://policy"
_RECEIPT: Final = "carag://receipts/"

_QUESTION: Final = {"type": "string", "minLength": 1, "maxLength": MAX_QUESTION}
_TOOLS: Final = {
    "carag_ask": (
        "Answer a question from the documents that this session may use, with citations and the number of its record.",
        {"question": _QUESTION},
    ),
    "carag_retrieve": (
        "Return the passages nearest to a question that this session may use, with the number of the record.",
        {"question": _QUESTION, "k": {"type": "integer", "minimum": 1, "maximum": MAX_K, "default": _K}},
    ),
}


def serve(
    *, engine: Source | None = None, client: Source | None = None, session: Session | None = None
) -> Server[Any]:
    """Make a server for one session, shared by everyone who connects: for stdio, and for tests in one process.

    ``client`` may be given instead of an engine: anything with the engine's ``ask``, ``retrieve`` and ``explain``.

    Raises
    ------
    InvalidArgument
        Unless exactly one of engine and client, and a session, are given.
    """
    given = a_session(session)
    return _Handlers(a_source(engine, client), lambda: given).server()


def http_app(engine: Engine, verifier: JwtVerifier, *, url: str) -> Starlette:
    """Make an ASGI application for Streamable HTTP at the path ``/mcp``, which takes the session from each token.

    Parameters
    ----------
    verifier : JwtVerifier
        Its audience must be the URL.
    url : str
        Where clients reach this server, such as ``"https://carag.example/mcp"``. Requests for another host are refused.

    Raises
    ------
    InvalidArgument
        If the verifier accepts tokens for an audience other than the URL.
    """
    if verifier.audience != url:
        raise InvalidArgument(
            f"the verifier's audience is {quoted(verifier.audience)}; want {quoted(url)}, so that a token for another "
            "server cannot open this one"
        )
    settings = AuthSettings(issuer_url=verifier.issuer, resource_server_url=url, validate_token_resource=True)
    host = settings.resource_server_url.host
    hosts = [host, f"{host}:*"]
    return (
        _Handlers(a_source(engine, None), _session_of_token)
        .server()
        .streamable_http_app(
            json_response=True,
            stateless_http=True,
            host=host,
            auth=settings,
            token_verifier=_Verifier(engine, verifier),
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"https://{one}" for one in hosts]
            ),
        )
    )


class _Bearer(AccessToken):
    _session: Session = PrivateAttr()  # private, so that dumps and reprs do not show it


class _Verifier:
    def __init__(self, engine: Engine, verifier: JwtVerifier) -> None:
        self._engine, self._verifier = engine, verifier

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the session of a token; a refused token is on record, and answered with 401."""
        try:
            session = await asyncio.to_thread(self._engine.session, token, self._verifier)
        except (Refused, AuditUnavailable):
            return None
        # The token itself is not kept, so it cannot be passed on.
        bearer = _Bearer(
            token="",
            client_id=session.subject,
            scopes=[],
            resource=session.audience,
            subject=session.subject,
            claims={"iss": session.issuer},
        )
        bearer._session = session  # noqa: SLF001 - private, so that dumps do not show it
        return bearer


def _session_of_token() -> Session:
    bearer = get_access_token()
    if not isinstance(bearer, _Bearer):  # in-process, or an application without our verifier
        raise Refused("TOKEN_MISSING", "there is no verified token; send one in the Authorization header")
    return bearer._session  # noqa: SLF001


class _Handlers:
    """The protocol's handlers; each checks the raw arguments, so that an unknown one is refused."""

    def __init__(self, source: Source, who: Callable[[], Session]) -> None:
        self._source, self._who = source, who
        self._receipts: OrderedDict[tuple[object, int], bytes] = OrderedDict()

    def server(self) -> Server[Any]:
        server = Server[Any](
            "carag",
            version=carag.__version__,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read,
        )
        # By default the SDK emits an OpenTelemetry span for each message, with the tool name and request id that the
        # caller chose and the text of errors; any of these may be content.
        server.middleware.clear()
        return server

    async def _list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=description,
                    input_schema={
                        "type": "object",
                        "properties": properties,
                        "required": ["question"],
                        "additionalProperties": False,
                    },
                    annotations=hints,
                )
                for name, (description, properties) in _TOOLS.items()
            ],
            ttl_ms=0,
            cache_scope="private",
        )

    async def _call_tool(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given = params.arguments or {}
        if params.name not in _TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"there is no such tool; want one of {', '.join(_TOOLS)}")
        wanted = _TOOLS[params.name][1]
        if given.keys() - wanted:
            raise MCPError(types.INVALID_PARAMS, f"unknown arguments; want only {', '.join(wanted)}")
        try:
            return _told(await asyncio.to_thread(self._do, params.name, given))
        except InvalidArgument as error:
            return _failed(f"InvalidArgument: {error}")
        except Refused as refusal:
            return _failed(f"Refused: {refusal.code}")
        except Exception as error:  # noqa: BLE001 - its message may name files or quote text, and the SDK would send it
            _logger.error("%s failed: %s", params.name, type_and_place(error))  # noqa: TRY400 - for the same reason
            return _failed(f"{type(error).__name__}: nothing is returned; ask the operator of this server")

    def _do(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        session, question, k = self._who(), given.get("question"), given.get("k", _K)
        if not isinstance(question, str):
            raise InvalidArgument(f"question is {quoted(question)}; want text")
        if tool == "carag_ask":
            answer = self._source.ask(question, session)
            self._keep(session, answer.receipt)
            return _answered(answer)
        if type(k) is not int or not 1 <= k <= MAX_K:
            raise InvalidArgument(f"k is {quoted(k)}; want 1 to {MAX_K}")
        found = self._source.retrieve(question, session, k)
        self._keep(session, found.receipt)
        return _retrieved(found)

    def _keep(self, session: Session, receipt: Receipt) -> None:
        self._receipts[_owner(session), receipt.seq] = receipt.to_bytes()
        while len(self._receipts) > _RECEIPTS:
            self._receipts.popitem(last=False)

    async def _list_resources(self, _context: Any, _params: Any) -> types.ListResourcesResult:
        policy = types.Resource(
            uri=_POLICY,
            name="policy",
            description="Role, purpose and rules of this session.",
            mime_type="application/json",
        )
        has = hasattr(self._source, "profile")
        return types.ListResourcesResult(resources=[policy] if has else [], ttl_ms=0, cache_scope="private")

    async def _list_templates(self, _context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        receipt = types.ResourceTemplate(
            uri_template=_RECEIPT + "{record}",
            name="receipt",
            description=f"The receipt of an answer of this session, by the number of its record; the last {_RECEIPTS}.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(
            resource_templates=[receipt], ttl_ms=0, cache_scope="private"
        )

    async def _read(self, _context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            session = self._who()
        except Refused as refusal:
            raise MCPError(types.INVALID_PARAMS, f"Refused: {refusal.code}") from None
        text: str | None = None
        if uri == _POLICY:
            text = _policy(self._source, session)
        elif (
            uri.startswith(_RECEIPT)
            and (number := uri.removeprefix(_RECEIPT)).isdecimal()
            and len(number) < 20
        ):
            receipt = self._receipts.get((_owner(session), int(number)))
            text = None if receipt is None else receipt.decode()
        if text is None:  # the same answer for another session's record as for a record that does not exist
            raise MCPError(types.INVALID_PARAMS, "this session has no such resource")
        contents = [types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
        return types.ReadResourceResult(contents=contents, ttl_ms=0, cache_scope="private")


def _owner(session: Session) -> tuple[str | None, ...]:
    return session.issuer, session.subject, session.role, session.purpose


def _answered(answer: Answer) -> dict[str, Any]:
    """Return the parts of an answer for a model, without anything withheld (`Withheld` is for people)."""
    cited = [
        {"number": one.number, "document_id": one.document_id, "chunk_id": one.chunk_id, "source": one.source}
        for one in answer.citations
    ]
    return {**_head(answer), "text": answer.text, "citations": cited}


def _retrieved(found: Retrieval) -> dict[str, Any]:
    passages = [
        {
            "document_id": one.document_id,
            "chunk_id": one.chunk_id,
            "source": one.source,
            "similarity": one.similarity,
            "text": one.text,
        }
        for one in found.passages
    ]
    return {**_head(found), "passages": passages}


def _head(found: Retrieval) -> dict[str, Any]:
    seq = found.receipt.seq
    return {
        "outcome": found.outcome.value,
        "why": found.why,
        "understood": found.understood,
        "record": seq,
        "receipt": f"{_RECEIPT}{seq}",
    }


def _policy(source: Source, session: Session) -> str | None:
    """Return the cell of a session, or its absence, as JSON; None if the source does not know policies."""
    profile = getattr(source, "profile", None)
    if profile is None:
        return None
    cell = profile.table.get(session.role, session.purpose)
    return json.dumps(
        {
            "profile": profile.name,
            "policy_sha256": profile.table.sha256,
            "role": session.role,
            "purpose": session.purpose,
            "regulation": None if cell is None else cell.regulation,
            "masks": [] if cell is None else [one.model_dump(mode="json") for one in cell.masks],
        }
    )


def _told(result: dict[str, Any]) -> types.CallToolResult:
    text = json.dumps(result, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=result)


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


async def _stdio(server: Server[Any]) -> None:
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve one session on standard input and output until the client leaves."""
    parser = argparse.ArgumentParser(prog="python -m carag.adapters.mcp", description=main.__doc__)
    parser.add_argument("--store", required=True, help="an existing store")
    parser.add_argument("--role", required=True)
    parser.add_argument("--purpose", required=True)
    parser.add_argument("--subject", help="who asks; recorded as a salted commitment")
    parser.add_argument(
        "--conversation", metavar="ID", help="with --subject, follow-ups are read after its questions"
    )
    parser.add_argument(
        "--principal",
        metavar="KIND:ID",
        action="append",
        default=[],
        help="a principal of the asker, for documents shared with certain people only; can be repeated",
    )
    parser.add_argument(
        "--backend", metavar="URL", help="where the store's vectors are, if not in its index file"
    )
    given = parser.parse_args(arguments)
    from carag.engine import Engine

    session = Session(
        role=given.role,
        purpose=given.purpose,
        subject=given.subject,
        conversation=given.conversation,
        principals=frozenset(given.principal),
    )
    with ExitStack() as stack:
        try:
            engine = stack.enter_context(Engine.open(given.store, create=False, backend=given.backend))
        except CaragError as error:
            parser.exit(1, f"{parser.prog}: {error}\n")
        asyncio.run(_stdio(serve(engine=engine, session=session)))


if __name__ == "__main__":
    main()
