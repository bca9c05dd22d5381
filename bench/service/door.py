"""Ask as one peer while another attacks the door: ``python -m bench.service.door --count 10000``.

Alone and beside the attack in turn, over one service. The attacker, 127.0.0.1, opens connections with malformed heads,
oversized tokens and cookies, bodies that never end, and none of it; the other is 127.0.0.2.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from bench.commit import commit
from bench.service.office import Office
from carag.evaluation.run_metadata import processor_name

_BIG: Final = b"a" * (64 << 10)
_HEAD: Final = b"POST /v1/ask HTTP/1.1\r\nHost: carag\r\n"
_ATTACKS: Final = (
    b"\x00\xff nothing\r\n\r\n",
    _HEAD + b"Authorization: Bearer " + _BIG + b"\r\n\r\n",
    _HEAD + b"Cookie: __Host-carag=" + _BIG + b"\r\n\r\n",
    _HEAD + b"Content-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
    _HEAD,
    b"",
)


def attack(port: int, count: int, most: int) -> None:
    """Open connections, one after another, and hold the newest; beyond 64 the door refuses, below it parses."""
    held: list[socket.socket] = []
    for number in range(count):
        with contextlib.suppress(OSError):
            one = socket.create_connection(("127.0.0.1", port), 5, source_address=("127.0.0.1", 0))
            held.append(one)
            one.sendall(_ATTACKS[number % len(_ATTACKS)])
        if len(held) > most:
            held.pop(0).close()


def ask(port: int, token: str) -> float:
    """Return the seconds of one retrieval over a connection of its own, as 127.0.0.2."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=("127.0.0.2", 0))
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/retrieve", json.dumps({"question": "What drove revenue?"}), headers)
        answer = connection.getresponse()
        answer.read()
    if answer.status != 200:
        raise SystemExit(f"not answered: {answer.status}")
    return time.perf_counter() - start


def measure(count: int, rounds: int, held: int) -> dict[str, object]:
    """Ask alone and beside a part of the attack, in turn."""
    alone: list[float] = []
    beside: list[float] = []
    with (
        tempfile.TemporaryDirectory() as place,
        (office := Office(Path(place), slots="off")).served() as served,
    ):
        token = office.token()
        words = [sys.executable, "-m", "bench.service.door", "--port", str(served.port), "--held", str(held)]
        for _ in range(rounds):
            with subprocess.Popen([*words, "--count", str(count // rounds)]) as attacker:
                while attacker.poll() is None:
                    beside.append(ask(served.port, token))
            alone += [ask(served.port, token) for _ in range(100)]
        operations = http.client.HTTPConnection("127.0.0.1", served.operations_port, timeout=30)
        operations.request("GET", "/readyz")
        ready = operations.getresponse().status == 200
    found = {
        name: [len(taken), *(round(1000 * float(np.quantile(taken, part)), 1) for part in (0.5, 0.99))]
        for name, taken in (("alone", alone), ("beside", beside))
    }
    return {
        "connections": count,
        "held": held,
        "n, p50, p99 in ms": found,
        "ready": ready,
        "cpu": processor_name(),
        "kernel": platform.release(),
        "commit": commit(),
    }


def main() -> int:
    """Measure and print; with a port, attack."""
    parser = argparse.ArgumentParser(prog="python -m bench.service.door", description=__doc__)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--held", type=int, default=100)
    parser.add_argument("--port", type=int)
    given = parser.parse_args()
    if given.port is not None:
        attack(given.port, given.count, given.held)
    else:
        print(json.dumps({**measure(given.count, given.rounds, given.held), "load": os.getloadavg()[0]}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
