"""Run a service: two listeners in one event loop until a signal; then drain, and close in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.service.app import application, operations
from carag.service.door import DoorLoop, PeerListener
from carag.service.http import BACKLOG, first_server, plain_server
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.service.service import Service


_logger = logger(__name__)
_POLL_SECONDS: Final = 0.05
"""How soon a request to stop is noticed; the servers themselves check every 0.1 s."""


def serve(service: Service, *, started: Callable[[int, int], None] = lambda *_: None) -> None:
    """Serve until SIGTERM or SIGINT; then accept no more, finish what is in progress, and return.

    - ``service``: closed on return; its engine is not.
    - ``started``: called with the ports of the two listeners once they listen.

    Raises InvalidArgument if an address cannot be listened on, or the certificate is not usable.
    """
    try:
        _check_certificate(service.settings.certificate)
        with contextlib.ExitStack() as stack, asyncio.Runner(loop_factory=DoorLoop) as runner:
            runner.run(_serve(service, started, stack))
    finally:
        service.close()


async def _serve(service: Service, started: Callable[[int, int], None], stack: contextlib.ExitStack) -> None:
    settings = service.settings
    first_listener = _listening(settings.listen, settings.port)
    is_plain = settings.certificate is None
    listeners = [
        stack.enter_context(PeerListener(first_listener, settings.most_connections_each, is_plain=is_plain)),
        stack.enter_context(_listening(settings.operations_listen, settings.operations_port)),
    ]
    first = first_server(
        application(service),
        certificate=settings.certificate,
        drain_seconds=settings.drain_seconds,
    )
    second = plain_server(
        operations(service, is_full=lambda: len(first.server_state.connections) >= BACKLOG - 1)
    )

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
        # Until the first listener has ended, the second reports that the service is draining.
        first.should_exit = True
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        first.should_exit = second.should_exit = True
        ended = await asyncio.gather(*running, return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error


def _check_certificate(path: str | None) -> None:
    """Load the certificate before anything listens: uvicorn's own error would not say what is wanted."""
    if path is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path)
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgument(
                f"cannot use the certificate in {path} ({type(error).__name__}); want one PEM file with the chain and "
                "its key, without a passphrase"
            ) from error


def _listening(host: str, port: int) -> socket.socket:
    """Bind an address; uvicorn would exit the process if it could not."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidArgument(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another address or port"
        ) from error
    # asyncio sets this option only on sockets that name their protocol. Without it, an answer's body waits 40 ms for
    # the
    # acknowledgement of its head (RFC 9293, 3.7.4). Accepted connections inherit it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
