"""Run a service: two listeners in one event loop, until a signal; then drain, and close in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from carag.errors import InvalidArgument
from carag.service.app import application, operations
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.service.service import Service

__all__ = ["serve"]

_logger = logger(__name__)
_BACKLOG: Final = 512
"""Connections at once; beyond it the server itself answers 503."""
_POLL_SECONDS: Final = 0.05
"""How soon a request to stop is seen; the servers themselves look every 0.1 s."""
_HEADERS: Final = 16 << 10
"""Greatest number of bytes of a request's headers; a token with many groups has a few thousand."""


def serve(service: Service, *, started: Callable[[int, int], None] = lambda *_: None) -> None:
    """Serve until SIGTERM or SIGINT: then take no more, end what is in work, and return.

    Parameters
    ----------
    service : Service
        Closed when this returns; its engine is not.
    started : callable
        Told the ports of the two listeners once they listen.

    Raises
    ------
    InvalidArgument
        If an address cannot be listened on.
    """
    try:
        with contextlib.ExitStack() as stack:
            asyncio.run(_serve(service, started, stack))
    finally:
        service.close()


async def _serve(service: Service, started: Callable[[int, int], None], stack: contextlib.ExitStack) -> None:
    settings = service.settings
    listeners = [
        stack.enter_context(_listening(settings.listen, settings.port)),
        stack.enter_context(_listening(settings.operations_listen, settings.operations_port)),
    ]
    first = _server(
        application(service),
        ssl_certfile=settings.certificate,
        timeout_graceful_shutdown=settings.drain_seconds,
        limit_concurrency=_BACKLOG,
        h11_max_incomplete_event_size=_HEADERS,
    )
    second = _server(operations(service))

    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread
            loop.add_signal_handler(one, service.stop)
    running = [
        asyncio.create_task(server.serve([listener]))
        for server, listener in zip((first, second), listeners, strict=True)
    ]
    try:
        while not (first.started and second.started):
            if any(task.done() for task in running):
                break
            await asyncio.sleep(0.01)
        else:
            started(*(listener.getsockname()[1] for listener in listeners))
            _logger.info("serving", extra={"event": "SERVING"})
        while not (service.is_draining or any(task.done() for task in running)):
            await asyncio.sleep(_POLL_SECONDS)
        # The second listener says that the service drains until the first has ended.
        first.should_exit = True
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        first.should_exit = second.should_exit = True
        ended = await asyncio.gather(*running, return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error


def _server(app: Any, **settings: Any) -> uvicorn.Server:
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


def _listening(host: str, port: int) -> socket.socket:
    """Bind an address; uvicorn would end the process where it cannot."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidArgument(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another"
        ) from error
    # asyncio asks for it only where a socket names its protocol, and without it an answer's body waits 40 ms for the
    # acknowledgement of its head (RFC 9293, 3.7.4). What is accepted here takes it over.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
