"""Make the HTTP servers of a service: uvicorn with our limits, without its logs and headers."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import uvicorn

from carag.service.door import MAX_HEAD, Door

BACKLOG: Final = 512
"""Most connections at once; beyond this uvicorn itself answers 503."""


def first_server(app: Any, *, certificate: str | None, drain_seconds: int) -> uvicorn.Server:
    """Return the server for the first listener, with all limits."""
    return plain_server(
        app,
        ssl_certfile=certificate,
        timeout_graceful_shutdown=drain_seconds,
        limit_concurrency=BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD,
        http=Door,
    )


def plain_server(app: Any, **settings: Any) -> uvicorn.Server:
    """Return a server for an application; ``settings`` are uvicorn's own."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,  # that log would contain addresses; the service writes its own
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # nothing here reads where a request comes from
        ws="none",
        **settings,
    )
    server = uvicorn.Server(config)
    # The service handles signals and stops both servers in order; otherwise each would install handlers of its own.
    setattr(server, "capture_signals", contextlib.nullcontext)  # noqa: B010 - mypy rejects assigning to a method
    return server
