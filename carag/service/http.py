"""Make the HTTP servers of a service: uvicorn with our limits, without its logs and its headers."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import uvicorn

from carag.service.door import MAX_HEAD, Door

__all__ = ["BACKLOG", "first_server", "plain_server"]

BACKLOG: Final = 512
"""Connections at once; beyond it the server itself answers 503."""


def first_server(app: Any, *, certificate: str | None, drain_seconds: int) -> uvicorn.Server:
    """Return the server of the first listener, with all its limits."""
    return plain_server(
        app,
        ssl_certfile=certificate,
        timeout_graceful_shutdown=drain_seconds,
        limit_concurrency=BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD,
        http=Door,
    )


def plain_server(app: Any, **settings: Any) -> uvicorn.Server:
    """Return a server of an application; what goes beyond is uvicorn's own setting."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,  # it would hold addresses; the service writes its own
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # nothing here reads from where a request comes
        ws="none",
        **settings,
    )
    server = uvicorn.Server(config)
    # One signal ends both, in order; each server by itself would take it for its own.
    setattr(server, "capture_signals", contextlib.nullcontext)  # noqa: B010 - mypy takes it for another method
    return server
