"""Route the pages of the console: read what a page needs as its viewer, and render it."""

from __future__ import annotations

import asyncio
import json
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from carag.audit.tlog.encoding import MAX_INTEGER
from carag.service.console.demo import PEOPLE, Demo
from carag.service.console.login import (
    HEADERS,
    VERIFY_HEADERS,
    check_same_site,
    cookie,
    forgotten,
    posted,
    token_in,
)
from carag.service.console.view import STATIC, history_drawing, page, path_drawing
from carag.service.problems import TITLES, Problem, problem_of
from carag.service.release import Asker

if TYPE_CHECKING:
    from starlette.requests import Request

    from carag.service.service import Service


_STATIC_HEADERS: Final = {**HEADERS, "Cache-Control": "max-age=31536000, immutable"}
"""The address of a file contains its hash."""
_REFUSED: Final = frozenset(code for code, (status, _) in TITLES.items() if status == 401)
_FILTERS: Final = ("since", "until", "kind", "role", "purpose", "outcome", "code")


class _NoLogin(Exception):
    """No token was sent, so the service was not asked."""


def mount_console(app: Starlette, service: Service) -> None:
    """Serve a service's pages under ``/console`` of an application, and the page of its interface under ``/docs``."""
    for path in ("/", "/console"):
        app.add_route(path, _to_home)
    app.add_route("/docs", docs)
    app.mount("/console", console(service))


def console(service: Service) -> Starlette:
    """Return the pages of a service; if its keys are a :class:`Demo`'s, the login page offers its people.

    Raises InvalidArgument if a demo could be reached from another machine.
    """
    app = Starlette(
        routes=ROUTES,
        exception_handlers={
            _NoLogin: _to_login,
            HTTPException: _failed,
            Problem: _failed,
            Exception: _failed,
        },
    )
    app.state.service = service
    app.state.demo = None
    if isinstance(keys := service.keys, Demo):
        keys.check(service.settings)
        app.state.demo = keys
    return app


async def docs(_: Request) -> Response:
    """Show the description of the interface, with forms that send requests; without a login, like openapi.json."""
    return _written("docs.html", {"viewer": None})


async def console_home(request: Request) -> Response:
    """Show who is logged in and what the token grants."""
    return _written("home.html", await _read(request, "viewer"))


async def console_login(request: Request) -> Response:
    """Verify a token, and keep it in a cookie until it expires."""
    if request.method == "GET":
        return _login(request)
    said = await posted(request, _service(request).settings.max_body)
    demo: Demo | None = request.app.state.demo
    if demo is not None and said.get("person") in PEOPLE:
        token = demo.token(said["person"])
    else:
        token = said.get("token", "").strip()
    try:
        found = await _answered(request, "console", token, {"page": "viewer"})
        kept = cookie(token, found["viewer"]["expires"])
    except Problem as problem:
        _service(request).metrics.problem(problem.code)
        return _login(request, problem)
    response = RedirectResponse("/console/", 303, headers=HEADERS)
    response.headers.append("Set-Cookie", kept)
    return response


async def console_logout(request: Request) -> Response:
    """Forget the token."""
    check_same_site(request)
    response = RedirectResponse("/console/login", 303, headers=HEADERS)
    response.headers.append("Set-Cookie", forgotten())
    return response


async def console_ask(request: Request) -> Response:
    """Ask one question in two of the viewer's sessions, side by side; each is a request of its own, and recorded."""
    if request.method == "GET":
        values = {**await _read(request, "bits"), "asked": None, "turns": []}
        return _written("ask.html", {**values, "conversation": token_urlsafe(12)})
    said = await posted(request, _service(request).settings.max_body)
    allowed = {"question", "left", "right", "glass", "conversation"}
    if not {"question", "left"} <= said.keys() <= allowed:
        raise Problem("INVALID_REQUEST")
    said.setdefault("conversation", token_urlsafe(12))
    found = await _read(request, "bits")
    chosen = dict.fromkeys(said[side] for side in ("left", "right") if side in said)
    shut = {f"{one['role']}/{one['purpose']}" for one in found["viewer"]["cells"] if one["break_glass"]}
    panes = await asyncio.gather(
        *(_pane(request, said, cell, said.get("glass", "") if cell in shut else "") for cell in chosen)
    )
    ranks = [
        {one["chunk_id"]: rank for rank, one in enumerate(pane.get("passages", ()), start=1)}
        for pane in panes
    ]
    for pane, others in zip(panes, reversed(ranks), strict=True):
        pane["others"] = others if len(panes) > 1 else None
    shown = {pane.get("record") for pane in panes}
    asked = dict(zip(("role", "purpose"), said["left"].split("/", 1), strict=False))
    asked["conversation"] = said["conversation"]
    earlier = [] if "problem" in panes[0] else (await _read(request, "turns", **asked))["turns"]
    turns = [one for one in earlier if one["record"] not in shown]
    values = {"asked": said, "panes": panes, "turns": turns, "conversation": said["conversation"]}
    return _written("ask.html", {**found, **values})


async def console_records(request: Request) -> Response:
    """List records by time, kind, role, purpose, outcome and code."""
    _logged_in(request)
    asked = {name: value for name, value in request.query_params.multi_items() if value.strip()}
    if not asked.keys() <= {*_FILTERS, "before"}:
        raise Problem("INVALID_REQUEST")
    said: dict[str, Any] = {**asked}
    if "before" in said:
        said["before"] = _number(said["before"])
    return _written("records.html", {**await _read(request, "records", **said), "asked": asked})


async def console_record(request: Request) -> Response:
    """Show one record, and its path to the signed root."""
    _logged_in(request)
    return _record(await _read(request, "record", record=_number(request.path_params["seq"])))


async def console_open(request: Request) -> Response:
    """Open a value that a record commits to, for a purpose, which is recorded before the value is shown."""
    said = await posted(request, _service(request).settings.max_body)
    if said.keys() != {"field", "purpose"}:
        raise Problem("INVALID_REQUEST", at=["purpose"])
    return _record(await _read(request, "open", record=_number(request.path_params["seq"]), **said))


async def console_receipts(request: Request) -> Response:
    """Link to the path of a record, and to the page that verifies a receipt without this service."""
    found = await _read(request, "viewer")
    if "record" in request.query_params:
        return RedirectResponse(
            f"/console/records/{_number(request.query_params['record'])}", 303, headers=HEADERS
        )
    return _written("receipts.html", found)


async def console_chunk(request: Request) -> Response:
    """Show a passage's labels on both time axes, and why a session may or may not use it; never its text."""
    if request.method == "GET":
        return _written("chunk.html", {**await _read(request, "viewer"), "asked": None})
    said = await posted(request, _service(request).settings.max_body)
    if not {"chunk_id"} <= said.keys() <= {"chunk_id", "cell"}:
        raise Problem("INVALID_REQUEST")
    found = await _read(request, "viewer")
    cell = next(
        (one for one in found["viewer"]["cells"] if f"{one['role']}/{one['purpose']}" == said.get("cell")),
        None,
    )
    asked: dict[str, Any] = {"chunk_id": said["chunk_id"]}
    shown: dict[str, Any] = {"asked": said, "explained": None, "history": None, "may_see_history": True}
    knows = bool(cell and cell["may_know_existence"] and cell["past"] == "as_of+known_at")
    if "cell" in said:
        role, _, purpose = said["cell"].partition("/")
        asked |= {"role": role, "purpose": purpose}
        if not knows:  # otherwise the history explains it, on record as well
            shown["explained"] = await _answered(request, "explain", token_in(request), asked)
    if knows or "audit" in found["viewer"]["duties"]:
        shown |= await _read(request, "history", **asked)
    else:
        shown["may_see_history"] = False
    if shown["history"] is not None:
        shown["drawing"] = history_drawing(shown["history"]["labels"])
    return _written("chunk.html", {**found, **shown})


async def console_policy(request: Request) -> Response:
    """Show who may use what for which purpose, and what another table would change."""
    if request.method == "GET":
        return _written("policy.html", await _read(request, "policy"))
    said = await posted(request, _service(request).settings.max_body)
    if said.keys() != {"proposed"}:
        raise Problem("INVALID_REQUEST")
    return _written(
        "policy.html", await _read(request, "policy", proposed=said["proposed"].replace("\r\n", "\n"))
    )


async def console_health(request: Request) -> Response:
    """Show the state of log, anchors, labels and service."""
    return _written("health.html", await _read(request, "health"))


async def console_benchmarks(request: Request) -> Response:
    """Show the measurements that were shipped with this version."""
    return _written("benchmarks.html", await _read(request, "viewer"))


async def console_verify(_: Request) -> Response:
    """Serve the page that verifies receipts by itself, byte for byte."""
    data, kind = STATIC["verify.html"]
    return Response(data, headers={**VERIFY_HEADERS, "Content-Type": kind})


async def console_static(request: Request) -> Response:
    """Serve a file of the console."""
    if (name := request.path_params["name"]) not in STATIC or name == "verify.html":
        raise Problem("NOT_FOUND")
    data, kind = STATIC[name]
    return Response(data, headers={**_STATIC_HEADERS, "Content-Type": kind})


ROUTES: Final = (
    Route("/", console_home),
    Route("/login", console_login, methods=["GET", "POST"]),
    Route("/logout", console_logout, methods=["POST"]),
    Route("/ask", console_ask, methods=["GET", "POST"]),
    Route("/records", console_records),
    Route("/records/{seq}", console_record),
    Route("/records/{seq}/open", console_open, methods=["POST"]),
    Route("/receipts", console_receipts),
    Route("/chunk", console_chunk, methods=["GET", "POST"]),
    Route("/policy", console_policy, methods=["GET", "POST"]),
    Route("/health", console_health),
    Route("/benchmarks", console_benchmarks),
    Route("/verify", console_verify),
    Route("/static/{name}", console_static),
)
"""One route per page."""


async def _answered(request: Request, operation: str, token: str, said: dict[str, Any]) -> dict[str, Any]:
    # A page can show two sessions and must wait for the slower one, so the release is not told who asks.
    found: dict[str, Any] = json.loads(
        await _service(request).answered(operation, Asker(token), json.dumps(said).encode())
    )
    return found


async def _read(request: Request, page_name: str, **said: Any) -> dict[str, Any]:
    return await _answered(request, "console", _logged_in(request), {"page": page_name, **said})


def _logged_in(request: Request) -> str:
    """Return the viewer's token; without one the rest of the request is not read."""
    if not (token := token_in(request)):
        raise _NoLogin
    return token


async def _pane(request: Request, asked: dict[str, str], cell: str, glass: str) -> dict[str, Any]:
    """Ask in one session; an error is shown in its own half."""
    role, _, purpose = cell.partition("/")
    try:
        said: dict[str, Any] = {"question": asked["question"], "role": role, "purpose": purpose}
        said["narrow"] = {"conversation": asked["conversation"]}
        if glass:
            said["glass"] = glass.strip()
        found = await _answered(request, "ask", token_in(request), said)
    except Problem as problem:
        _service(request).metrics.problem(problem.code)
        found = {"problem": problem}
    return {"cell": cell, **found}


def _login(request: Request, problem: Problem | None = None) -> Response:
    people = {} if request.app.state.demo is None else {word: one.name for word, one in PEOPLE.items()}
    values = {"viewer": None, "problem": problem, "people": people}
    return _written("login.html", values, 200 if problem is None else problem.status)


def _record(found: dict[str, Any]) -> Response:
    return _written("record.html", {"opened": {}, **found, "drawing": path_drawing(found["path"])})


def _written(template: str, values: dict[str, Any], status: int = 200) -> Response:
    return HTMLResponse(page(template, **values), status, headers=HEADERS)


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and int(text) <= MAX_INTEGER):
        raise Problem("NOT_FOUND")
    return int(text)


async def _to_home(_: Request) -> Response:
    return RedirectResponse("/console/", 303, headers=HEADERS)


async def _to_login(*_: Any) -> Response:
    return RedirectResponse("/console/login", 303, headers=HEADERS)


async def _failed(request: Request, error: Exception) -> Response:
    """Show an error's code and title, and nothing of the request."""
    problem = problem_of(error)
    _service(request).metrics.problem(problem.code)
    if problem.code in _REFUSED:  # the token has expired, or its key is gone: log in again
        response = _login(request, problem)
        response.headers.append("Set-Cookie", forgotten())
    else:
        response = _written(
            "problem.html", {"viewer": None, "code": problem.code, "title": problem.title}, problem.status
        )
    for name, value in problem.headers().items():
        response.headers[name] = value
    return response
