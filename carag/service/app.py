"""Serve a :class:`carag.service.service.Service` over HTTP: routes, headers, streams and the OpenAPI description."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import StreamingResponse
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

import carag
from carag.audit.tlog.encoding import MAX_INTEGER
from carag.errors import type_and_place
from carag.service import telemetry
from carag.service.console.pages import mount_console
from carag.service.problems import MEDIA_TYPE, TITLES, Problem, ProblemBody, problem_of
from carag.service.release import Asker, Released, Schedule
from carag.service.requests import (
    AskBody,
    BreakGlassBody,
    ExplainBody,
    IngestBody,
    RetrieveBody,
    idempotency_key,
    read_body,
)
from carag.service.wire import (
    AnswerBody,
    BrokenGlassBody,
    ExplanationBody,
    JobBody,
    PolicyBody,
    RetrievalBody,
    encoded,
)
from carag.service.writes import WRITES
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel

    from carag.service.service import Service


_logger = logger(__name__)

_READY_SECONDS: Final = 2.0
"""A service that cannot complete an empty request in this time is not ready."""
_PIECE: Final = 200
"""Most characters in one text event."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_SILENT: Final[Any] = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)
"""FastAPI's own spans show paths and queries, its logs the messages of errors; both are on by default."""
_TILE_HEADERS: Final = {**_HEADERS, "Cache-Control": "max-age=31536000, immutable"}
"""The tile at a path never changes (c2sp.org/tlog-tiles)."""
_IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,128}$"},
}
"""The header as described; :func:`carag.service.requests.idempotency_key` reads it."""
_PUBLIC: Final = ("/log/", "/openapi.json", "/docs", "/console/static/", "/console/verify")
"""Paths that wait for no slot: what they serve depends only on the number of records and this version."""


def application(service: Service) -> Callable[..., Any]:
    """Return the ASGI application of the first listener."""
    app = described()
    app.state.service = service
    mount_console(app, service)
    schedule = None if service.slots is None else Schedule(service.slots, service.metrics)
    # The counter is inside, so that it measures the work without the wait for a slot.
    return Released(_Counted(app, service), schedule, _PUBLIC)


def operations(service: Service, *, is_full: Callable[[], bool] = lambda: False) -> Starlette:
    """Return the ASGI application of the second listener: liveness, readiness and metrics.

    - ``is_full``: whether the first listener accepts no more connections.
    """

    async def livez(_: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def readyz(_: Request) -> Response:
        await asyncio.to_thread(service.try_log)
        codes = service.unready() or await _not_answered(service, is_full())
        said = ", ".join(codes)
        told = f"not ready: {said}\n" if said else "ok\n"
        return Response(told, 503 if said else 200, media_type="text/plain")

    async def metrics(_: Request) -> Response:
        return Response(service.metrics.text(**service.gauges()), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics)])


async def _not_answered(service: Service, is_full: bool) -> list[str]:
    """Do what a request would: take a place and a thread, and do nothing there."""
    if is_full:
        return ["BUSY"]
    try:
        await asyncio.wait_for(service.done(lambda: None), _READY_SECONDS)
    except Problem as problem:
        return [problem.code]
    except TimeoutError:
        return ["TIME_LIMIT"]
    return []


def described() -> FastAPI:
    """Return the routes without a service, which is what ``docs/reference/openapi.json`` describes."""
    app = FastAPI(
        title="CARAG",
        version=carag.__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_SILENT,
    )
    text: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    binary: dict[str, Any] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    _route(app, "questions", "/v1/ask", ask, _json(AnswerBody), takes=AskBody)
    _route(app, "questions", "/v1/ask/stream", ask_stream, {"text/event-stream": {}}, takes=AskBody)
    _route(app, "questions", "/v1/retrieve", retrieve, _json(RetrievalBody), takes=RetrieveBody)
    _route(app, "questions", "/v1/explain", explain, _json(ExplanationBody), takes=ExplainBody)
    _route(app, "questions", "/v1/break-glass", break_glass, _json(BrokenGlassBody), takes=BreakGlassBody)
    _route(app, "documents", "/v1/ingest", ingest, _json(JobBody), takes=IngestBody, has_key=True)
    for name, one in WRITES.items():
        handler, gives = _writing(name), _json(one.gives)
        _route(app, "documents", f"/v1/{one.path}", handler, gives, takes=one.takes, has_key=one.has_key)
    _route(app, "questions", "/v1/policy", policy, _json(PolicyBody))
    _route(app, "documents", "/v1/jobs/{job_id}", job, _json(JobBody), 404, 422)
    _route(
        app,
        "log",
        "/v1/receipts/{seq}",
        receipt,
        {"application/json": {"schema": {"type": "object"}}},
        404,
        422,
    )
    _route(app, "log", "/log/checkpoint", checkpoint, text)
    _route(app, "log", "/log/tile/{path:path}", tile, binary, 404, 422)
    for kind in (RequestValidationError, HTTPException, Problem, Exception):
        app.add_exception_handler(kind, _failed)
    app.openapi = partial(_openapi, app)  # type: ignore[method-assign, unused-ignore] # as FastAPI's pages say
    return app


def _route(
    app: FastAPI,
    tag: str,
    path: str,
    handler: Callable[..., Any],
    content: dict[str, Any],
    *problems: int,
    takes: type[BaseModel] | None = None,
    has_key: bool = False,
) -> None:
    """Add a route: POST if it takes a body, else GET; ``problems`` are statuses beyond those any route may answer."""
    extra: dict[str, Any] = {"security": [{"bearer": []}]}
    if takes is not None:
        problems = (*problems, 400, 413, 415, 422)
        extra["requestBody"] = {"required": True, "content": _json(takes)}
    left_out = _OF_CONSOLE.union(*(codes for names, codes in _OF_SOME if handler.__name__ not in names))
    responses = _responses(content, left_out, 401, 403, *problems, 429, 500, 503, 504)
    if has_key:
        extra["parameters"] = [_IDEMPOTENCY_KEY]
    is_job = takes is IngestBody
    if is_job:
        responses[200] = {"description": "A job that was sent before and has ended.", "content": content}
        responses[202] = {
            "description": "Accepted; Location says where to ask for its state.",
            "content": content,
        }
    app.add_api_route(
        path,
        handler,
        methods=["GET" if takes is None else "POST"],
        operation_id=handler.__name__,
        tags=[tag],
        status_code=202 if is_job else None,
        response_model=None,
        response_class=Response,
        responses=responses,
        openapi_extra=extra,
    )


async def ask(request: Request) -> Response:
    """Answer a question from what the token's person may use for the purpose. A refusal by the policy is an answer."""
    return _json_response(await _with_body(request, "ask"))


async def ask_stream(request: Request) -> Response:
    """Answer a question as server-sent events: ``record`` first, then ``text``, then ``done`` with the whole answer.

    The record is written, durably, before the first byte of the response.
    """
    found = await _with_body(request, "ask")
    return StreamingResponse(_events(found), headers=_HEADERS, media_type="text/event-stream")


async def retrieve(request: Request) -> Response:
    """Return the best passages that the token's person may use for the purpose, without generating."""
    return _json_response(await _with_body(request, "retrieve"))


async def explain(request: Request) -> Response:
    """Explain why a passage may or may not be used, without its text."""
    return _json_response(await _with_body(request, "explain"))


async def break_glass(request: Request) -> Response:
    """Open a cell for a time, for a written reason, on record; requests of the same person under it name ``glass``."""
    return _json_response(await _with_body(request, "break_glass"))


async def ingest(request: Request) -> Response:
    """Add or remove documents as a job. A job sent again with the same Idempotency-Key is done once."""
    found = await _written(request, "ingest")
    told = json.loads(found)
    headers = {**_HEADERS, "Location": f"/v1/jobs/{told['id']}"}
    status = 200 if told["state"] in ("done", "failed") else 202
    return Response(found, status, headers=headers, media_type="application/json")


async def job(request: Request, job_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]) -> Response:
    """Return the state of one of your own jobs, until a day after it has ended."""
    return _json_response(await _answered(request, "job", job_id.encode()))


async def policy(request: Request) -> Response:
    """Return the roles and purposes that the token grants."""
    return _json_response(await _answered(request, "policy"))


async def receipt(request: Request, seq: Annotated[int, Path(ge=0, le=MAX_INTEGER)]) -> Response:
    """Return the receipt for one of your own records once more, without the question and the answer."""
    return _json_response(await _answered(request, "receipt", b"%d" % seq))


async def checkpoint(request: Request) -> Response:
    """Return the log's newest signed checkpoint (c2sp.org/tlog-checkpoint)."""
    found = await _answered(request, "checkpoint")
    return Response(found, headers=_HEADERS, media_type="text/plain; charset=utf-8")


async def tile(request: Request, path: str) -> Response:
    """Return a tile of the log's tree (c2sp.org/tlog-tiles), ``<L>/<N>`` or ``<L>/<N>.p/<W>``; or ``entries/<N>``."""
    found = await _answered(request, "tile", path.encode("utf-8", "replace"))
    return Response(found, headers=_TILE_HEADERS, media_type="application/octet-stream")


def _writing(name: str) -> Callable[..., Any]:
    """Return what answers a write."""

    async def handler(request: Request) -> Response:
        return _json_response(await _written(request, name, has_key=WRITES[name].has_key))

    handler.__name__, handler.__doc__ = name, WRITES[name].work.__doc__
    return handler


async def _written(request: Request, name: str, *, has_key: bool = True) -> bytes:
    await _answered(request, "may_write", name.encode())  # before reading a body that may be large
    key = idempotency_key(request.headers.getlist("idempotency-key")) if has_key else ""
    body = await _json_body(request, request.app.state.service.settings.max_ingest)
    return await _answered(request, name, key.encode() + b"\n" + body)


async def _with_body(request: Request, operation: str) -> bytes:
    return await _answered(
        request, operation, await _json_body(request, request.app.state.service.settings.max_body)
    )


async def _json_body(request: Request, most: int) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem("CONTENT_TYPE")
    return await read_body(request, most)


async def _answered(request: Request, operation: str, asked: bytes = b"") -> bytes:
    """Ask the service; the asker is in the request's state, where the work fills it in and the release reads it."""
    service: Service = request.app.state.service
    asker = request.state.asker = getattr(request.state, "asker", None) or Asker(_token(request))
    return await service.answered(operation, asker, asked)


def _token(request: Request) -> str:
    """Return the bearer token; empty without one, invalid if there are two."""
    stated = request.headers.getlist("authorization")
    if len(stated) > 1:
        return "."
    scheme, _, token = stated[0].partition(" ") if stated else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


def _events(data: bytes) -> Iterator[bytes]:
    found = json.loads(data)
    yield _event("record", encoded({name: found[name] for name in ("record", "outcome", "why")}))
    text = found["text"]
    for start in range(0, len(text), _PIECE):
        yield _event("text", encoded({"text": text[start : start + _PIECE]}))
    yield _event("done", data)


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (
        name.encode(),
        data,
    )  # the JSON is one line, as the stream's format requires


def _json_response(data: bytes) -> Response:
    return Response(data, headers=_HEADERS, media_type="application/json")


async def _failed(request: Request, error: Exception) -> Response:
    """Answer any error with its code."""
    if isinstance(error, RequestValidationError):
        wanted = {
            str(one["loc"][-1]): one["msg"] for one in error.errors()
        }  # path parameters: names and messages are our own
        problem = Problem("INVALID_REQUEST", at=sorted(wanted), wanted=wanted)
    else:
        problem = problem_of(error)
    request.state.code = problem.code
    request.app.state.service.metrics.problem(problem.code)
    allowed = {"Allow": error.headers["Allow"]} if isinstance(error, HTTPException) and error.headers else {}
    headers = {**_HEADERS, **problem.headers(), **allowed}
    return Response(problem.body(), problem.status, headers=headers, media_type=MEDIA_TYPE)


class _Counted:
    """Count requests and log one line for each, with values from fixed lists; pass no error on to the server."""

    def __init__(self, app: Callable[..., Any], service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        traces = [value for name, value in scope["headers"] if name == b"traceparent"]
        trace = (
            traces[0].decode("latin-1") if len(traces) == 1 else None
        )  # several are ignored (W3C Trace Context 3.2)
        with telemetry.request(scope["method"], trace):
            await self._counted(scope, receive, send)

    async def _counted(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        started, status = time.monotonic(), 500

        async def counted(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except Exception as error:  # noqa: BLE001 - answered by _failed already, or the connection is gone
            place = type_and_place(error)
            failed = {"event": "ERROR", "code": "INTERNAL", "error": place}
            _logger.error("INTERNAL: %s", place, extra=failed)  # noqa: TRY400 - a traceback quotes it
        finally:
            seconds = time.monotonic() - started
            operation = getattr(scope.get("endpoint"), "__name__", "other")
            code = scope.get("state", {}).get("code")
            self._service.metrics.request(operation, status, seconds)
            facts = {"operation": operation, "code": code}
            telemetry.note(
                {f"carag.{name}": one for name, one in facts.items()} | {"http.response.status_code": status}
            )
            said = {"event": "REQUEST", "status": status, "ms": round(seconds * 1000), **facts}
            _logger.info("%s %d %.0f ms", operation, status, seconds * 1000, extra=said)


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(model)}}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _responses(
    content: dict[str, Any], left_out: frozenset[str], *problems: int
) -> dict[int | str, dict[str, Any]]:
    told = {MEDIA_TYPE: {"schema": _reference(ProblemBody)}}
    return {
        200: {"description": "As asked.", "content": content},
        **{
            status: {"description": f"{_STATUS[status]}\n\n{_codes(status, left_out)}", "content": told}
            for status in problems
        },
    }


def _codes(wanted: int, left_out: frozenset[str]) -> str:
    """Name the codes of a status as a docstring would."""
    found = (code for code, (status, _) in TITLES.items() if status == wanted and code not in left_out)
    return f"Codes: {', '.join(f'``{code}``' for code in found)}."


_OF_CONSOLE: Final = frozenset({"CROSS_SITE", "TOKEN_TOO_LONG"})
_OF_SOME: Final = (
    (
        {"ingest", *(name for name, one in WRITES.items() if one.has_key)},
        frozenset({"IDEMPOTENCY_KEY_MISSING", "IDEMPOTENCY_KEY_REUSED"}),
    ),
    ({"ingest"}, frozenset({"FILINGS_ONLY", "QUEUE_FULL"})),
    ({"break_glass"}, frozenset({"NOT_BREAK_GLASS", "BREAK_GLASS_LIMIT"})),
    ({"break_glass", "erase", "erase_due"}, frozenset({"APPROVER_REQUIRED"})),
    ({"erase", "erase_due"}, frozenset({"LEGAL_HOLD", "RETENTION"})),
)
"""Codes that only some operations answer."""
_STATUS: Final = {
    400: "Not JSON, a key given twice, or no Idempotency-Key where one is needed.",
    401: "No token, or a refused one; recorded.",
    403: "The token does not grant this, is another person's, or no glass is broken for it; recorded.",
    404: "Nothing here, or nothing of yours.",
    413: "The body is too large.",
    415: "Not application/json.",
    422: "The request does not match this description.",
    429: "Too many requests, in a second or at once.",
    500: "The service failed.",
    503: "Not now: the log cannot be written, a model failed, or too many requests are being worked on.",
    504: "It took too long.",
}


def _openapi(app: FastAPI) -> dict[str, Any]:
    found: dict[str, Any] = get_openapi(title=app.title, version=app.version, routes=app.routes)
    taken = (AskBody, RetrieveBody, ExplainBody, BreakGlassBody, IngestBody)
    writes: set[type[BaseModel]] = {kind for one in WRITES.values() for kind in (one.takes, one.gives)}
    bodies: tuple[type[BaseModel], ...] = (
        *taken,
        *writes,
        AnswerBody,
        RetrievalBody,
        ExplanationBody,
        BrokenGlassBody,
        PolicyBody,
        JobBody,
        ProblemBody,
    )
    _, schemas = models_json_schema(
        [(model, "validation") for model in bodies],
        ref_template="#/components/schemas/{model}",
    )
    components = found.setdefault("components", {})
    # This takes the place of FastAPI's own schema of validation errors, which this service never sends.
    components["schemas"] = dict(sorted(schemas["$defs"].items()))
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    return found
