"""The bench of time sees what there is to see, and nothing where there is nothing (``bench/timing``)."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jwt")

from bench.timing.__main__ import REPEATS, Attack, Measured, is_met, request
from bench.timing.clocked import Clocked, Connections

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 11
SLOT = 25_000_000
"""Nanoseconds."""


def measured(shift: int, *, pairs: int = 40 * REPEATS, more: int = 0, slot: bool = False) -> Measured:
    """Lognormal work, of the first kind longer by some nanoseconds, and some bytes more."""
    rng = np.random.default_rng(SEED)
    times: dict[bool, list[Clocked]] = {}
    for kind in (True, False):
        took = rng.lognormal(15, 0.3, pairs) + shift * kind
        left = SLOT + rng.normal(150_000, 20_000, pairs) if slot else took
        times[kind] = [Clocked(int(one), int(one) + 30_000, 1024 + more * kind, 200) for one in left]
    return Measured(Attack("explain", "", "explain", lambda _: b""), times)


def test_a_millisecond_is_seen_by_each_measure_without_slots_and_by_none_with() -> None:
    """The same work, with and without what releases it."""
    off, on = measured(1_000_000), measured(1_000_000, slot=True)
    assert off.single().low > 0.7
    assert off.modelled().low > 0.7
    quartile = off.repeated(SEED)
    assert quartile is not None
    assert quartile.value > 0.99
    assert abs(on.single().value - 0.5) < 0.02
    assert abs(on.modelled().value - 0.5) < 0.02
    assert (False, 0.0, 0.0) == (is_met(off, SEED), on.overruns(True), on.overruns(False))


def test_repeats_see_what_one_response_hides() -> None:
    """A tenth of a millisecond under three of spread."""
    one = measured(100_000)
    quartile = one.repeated(SEED)
    assert quartile is not None
    assert one.single().value < 0.56 < quartile.low


def test_the_model_sees_a_size_that_time_does_not_tell() -> None:
    """So a body outside its class would be found."""
    one = measured(0, more=1, slot=True)
    assert abs(one.single().value - 0.5) < 0.02
    assert one.modelled().low > 0.99
    assert not is_met(one, SEED)


def test_too_few_groups_are_no_measure() -> None:
    """And so no goal is met by them."""
    one = measured(0, pairs=4 * REPEATS, slot=True)
    assert one.repeated(SEED) is None
    assert not is_met(one, SEED)


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that answers each request with its path, in pieces."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                path = data.split(b" ")[1]
                for piece in (b"HTTP/1.1 404 Not", b" Found\r\nContent-Length: %d\r\n\r\n" % len(path), path):
                    connection.sendall(piece)

    def serve() -> None:
        for _ in range(2):
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def test_each_response_is_clocked_with_its_own_request(echo: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the requests, whichever connection they took; the first byte is not after the last."""
    monkeypatch.setattr("os.sched_setaffinity", lambda *_: None)
    connections = Connections(echo, 2, 0.002)
    paths = ["/" + "a" * length for length in range(40)]
    found = connections.send([request("GET", path, "t") for path in paths])
    connections.close()
    head = len(b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n")
    assert [len(path) + head + (len(path) > 9) for path in paths] == [one.size for one in found]
    assert {404} == {one.status for one in found}
    assert all(0 < one.first <= one.last for one in found)
