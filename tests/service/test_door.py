"""A client that never completes a request, or sends an enormous one, does not keep others from being answered."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from itertools import product
from typing import TYPE_CHECKING

import pytest

from carag.service import door
from carag.service.door import MAX_HEAD, PeerListener, _peer
from tests.service import conftest
from tests.service.conftest import httpx, token
from tests.service.test_client import Served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag import Engine
    from carag.service.service import Service

EACH = 5


@pytest.fixture
def served(engine: Engine, home: Path, files: Path) -> Iterator[Served]:
    running = Served(engine, home, files, connections_each=EACH, concurrency=2)
    yield running
    running.stop()


def connected(served: Served, peer: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", served.ports[0]), 20, source_address=(peer, 0))
    made.settimeout(20)
    return made


def answer(served: Served, head: bytes, peer: str = "127.0.0.1") -> bytes:
    with connected(served, peer) as one:
        one.sendall(b"GET /v1/policy HTTP/1.1\r\nHost: carag\r\nConnection: close\r\n" + head + b"\r\n")
        try:
            return one.recv(1 << 16).partition(b"\r\n")[0]
        except ConnectionResetError:
            return b"reset"


def good() -> bytes:
    return f"Authorization: Bearer {token()}\r\n".encode()


def ready(served: Served) -> bool:
    return bool(httpx.get(f"http://127.0.0.1:{served.ports[1]}/readyz").status_code == 200)


def test_a_head_that_is_too_long_is_refused_however_it_arrives(served: Served) -> None:
    """Also in one read, and more often than there are places, none of which is lost."""
    names = (b"Authorization: Bearer ", b"Cookie: __Host-carag=", b"X-Any: ")
    for name, size in product(names, (MAX_HEAD + 8192, 40_000, 64 << 10, 200_000)):
        found = answer(served, name + b"a" * size + b"\r\n")
        assert found in (b"HTTP/1.1 400 Bad Request", b"reset"), (name, size)
    assert ready(served)
    assert answer(served, good()).startswith(b"HTTP/1.1 200")


def test_a_long_head_behind_another_request_ends_the_connection(served: Served) -> None:
    """A pipelined request is parsed only after the answer to the one before."""
    head = b"GET /v1/policy HTTP/1.1\r\nHost: carag\r\n" + good()
    found = b""
    with connected(served) as one, suppress(ConnectionError):
        one.sendall(head + b"\r\n" + head + b"X-Any: " + b"a" * 100_000 + b"\r\n\r\n")
        while piece := one.recv(1 << 16):
            found += piece
    assert found.count(b"HTTP/1.1 200") < 2
    assert answer(served, good()).startswith(b"HTTP/1.1 200")


def test_the_connections_of_a_peer_are_limited_and_others_are_answered(served: Served) -> None:
    """Another connection of the same peer is refused."""
    with ExitStack() as stack:
        held = [stack.enter_context(connected(served)) for _ in range(EACH)]
        for one in held:
            one.sendall(b"GET / HTTP/1.1\r\n")
        assert answer(served, good()) in (b"HTTP/1.1 503 Service Unavailable", b"reset")
        assert answer(served, good(), "127.0.0.2").startswith(b"HTTP/1.1 200")
        assert ready(served)


def test_what_goes_beyond_is_closed_where_it_is_accepted() -> None:
    """Before anything is allocated for it; when a connection ends, another is accepted."""
    with (
        PeerListener(socket.create_server(("127.0.0.1", 0)), 2, is_plain=True) as listener,
        ExitStack() as stack,
    ):
        listener.setblocking(False)

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(listener.getsockname(), 20))

        peers = [connect() for _ in range(5)]
        taken = [stack.enter_context(listener.accept()[0]) for _ in range(2)]
        with pytest.raises(BlockingIOError):
            listener.accept()
        for one in peers[2:]:
            assert one.recv(1 << 10).startswith(b"HTTP/1.1 503")
            assert b"" == one.recv(1)
        taken[0].close()
        taken[0].close()  # closing twice counts once
        last = connect()
        assert last.getsockname() == stack.enter_context(listener.accept()[0]).getpeername()
        connect()
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_head_or_body_that_never_ends_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time runs from the connection or the previous answer, whatever trickles in meanwhile."""
    monkeypatch.setattr(door, "HEAD_SECONDS", 0.3)
    for sent in (
        b"",
        b"GET / HTTP/1.1\r\nX: ",
        b"GET /v1/policy HTTP/1.1\r\nHost: c\r\nContent-Length: 999\r\n\r\n",
    ):
        with connected(served) as one:
            one.sendall(sent)
            one.settimeout(0.05)
            for _ in range(400):
                try:
                    if sent:
                        one.sendall(b"a")
                    if not one.recv(1 << 16):
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            else:
                pytest.fail("the connection is still open")
    assert answer(served, good()).startswith(b"HTTP/1.1 200")


def test_ready_means_that_a_request_would_be_answered(served: Served) -> None:
    """While every place is taken, requests and readiness checks are answered 503."""
    service: Service = served.service
    assert ready(served)
    for _ in range(2):
        service.admission.enter_all()
    assert answer(served, good()).startswith(b"HTTP/1.1 503")
    assert not ready(served)
    service.admission.leave_all()
    assert ready(served)
    service.admission.leave_all()


def test_a_peer_is_a_host_or_an_ipv6_network(files: Path) -> None:
    """Behind a proxy it is the proxy, which may have all connections unless configured otherwise."""
    assert _peer("10.0.0.1") != _peer("10.0.0.2")
    assert _peer("2001:db8::1") == _peer("2001:db8::2") != _peer("2001:db8:0:1::1")
    assert conftest.settings(files).most_connections_each == 64
    assert conftest.settings(files, behind_proxy=True).most_connections_each == 512
    assert conftest.settings(files, behind_proxy=True, connections_each=9).most_connections_each == 9
