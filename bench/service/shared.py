"""Two services over one shared store: kill them while both answer, or count what both answer a second beside one.

``python -m bench.service.shared --server URL --kills 20``, or ``--rate``. The URL is an administrator's, of a
PostgreSQL server of this machine that syncs to its disk; a schema of its own is made there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.service.kills import Kills, Load, examined
from bench.service.office import OFFICERS, QUESTIONS, ROOT, Office, Served
from carag import Engine
from carag.audit._postgres import connected
from carag.engine.sharing import share

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ROLE", "kill_one_of_two", "main", "offices"]

ROLE: Final = "carag_app"
_KEYS: Final = ("audit.key", "vkey", "private.key")
_MOST: Final = 40
"""Answers waited for, at most, before a kill."""
_GOES_ON: Final = 10
"""Answers of the other process that are waited for after one was killed."""
_AT_ONCE: Final = 4
"""Connections of the load to each process."""


def offices(place: Path, admin: str, schema: str, *, embedder: str = "wordllama") -> tuple[Office, Office]:
    """Set up a shared store with the corpus that ships, and two offices that serve it from directories of their own."""
    url = f"{admin.replace('//postgres@', f'//{ROLE}@')}&schema={schema}"
    homes = [place / name / "store" for name in ("one", "two")]
    share(homes[0], url, admin=admin)
    with Engine.open(homes[0], embedder=embedder) as engine:
        engine.ingest(ROOT / "data" / "corpus")
    share(homes[1], url)
    for name in _KEYS:
        shutil.copy(homes[0] / name, homes[1] / name)
    return Office(homes[0].parent), Office(homes[1].parent)


def kill_one_of_two(both: tuple[Office, Office], rounds: int, *, seed: int = 7) -> Kills:
    """Load both services, kill one while both answer, see that the other goes on, end it, examine the log; repeat."""
    dice, kills, before = random.Random(seed), Kills(), 0  # noqa: S311 - when to kill is no secret
    vkey = (both[0].home / "vkey").read_text().strip()
    for number in range(rounds):
        loads = [Load(one) for one in both]
        with ExitStack() as running:
            services = [running.enter_context(one.served()) for one in both]
            for load, served in zip(loads, services, strict=True):
                load.start(served.port)
            for load in loads:
                load.wait(dice.randrange(1, _MOST))
            victim, other = number % 2, 1 - number % 2
            _end(services[victim])
            loads[victim].join()
            done = len(loads[other].receipts)
            loads[other].wait(done + _GOES_ON)
            kills.otherwise += len(loads[other].receipts) < done + _GOES_ON
            _end(services[other])
            loads[other].join()
        kills.rounds += 1
        merged = Load(both[0])
        merged.receipts = [receipt for load in loads for receipt in load.receipts]
        merged.cut = sum(load.cut for load in loads)
        kills.acknowledged += len(merged.receipts)
        kills.cut += merged.cut
        # Read from the directory of either, by the same key.
        before = examined(both[victim].home, vkey, merged, before, kills)
    return kills


def _end(served: Served) -> None:
    served.process.kill()
    served.process.wait(60)


def rate(both: tuple[Office, Office], admin: str, rounds: int, count: int) -> dict[str, Any]:
    """Count requests a second of one service, and of both, in turn; each process has a core of its own.

    Beside it what a request costs of processor time, in milliseconds, of a service and of the server: a busy machine
    hardly changes that, and their ratio is how many services one core of the server feeds.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    with ExitStack() as running:
        services = [running.enter_context(one.served()) for one in both]
        for served, core in zip(services, cores, strict=False):
            os.sched_setaffinity(served.process.pid, {core})
        senders = [
            running.enter_context(_Sender(one, served)) for one, served in zip(both, services, strict=True)
        ]
        for sender in senders:
            sender.send(count)
            sender.seconds()
        servers = _backends(admin)
        before = _cpu_seconds([services[0].process.pid]), _cpu_seconds(servers)
        senders[0].send(count)
        senders[0].seconds()
        after = _cpu_seconds([services[0].process.pid]), _cpu_seconds(servers)
        costs = [1000 * (late - early) / count for early, late in zip(before, after, strict=True)]
        found: dict[str, list[float]] = {"one": [], "two": []}
        for _ in range(rounds):
            for name, some in (("one", senders[:1]), ("two", senders)):
                start = time.perf_counter()
                for sender in some:
                    sender.send(count)
                for sender in some:
                    sender.seconds()
                found[name].append(len(some) * count / (time.perf_counter() - start))
    one, two = (statistics.median(found[name]) for name in ("one", "two"))
    return {
        "one": round(one, 1),
        "two": round(two, 1),
        "ratio": round(two / one, 2),
        "cores": len(cores),
        "service_ms": round(costs[0], 2),
        "server_ms": round(costs[1], 2),
    }


def _backends(admin: str) -> list[int]:
    """Return the processes of the server that work for the services."""
    with connected(admin) as db:
        query = "SELECT pid FROM pg_stat_activity WHERE usename = %s"
        return [pid for (pid,) in db.execute(query, (ROLE,)).fetchall()]


def _cpu_seconds(pids: Sequence[int]) -> float:
    """Add up the processor time of processes of this machine (Linux)."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # utime and stime, proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


class _Sender:
    """A process that sends retrievals to one service."""

    def __init__(self, office: Office, served: Served) -> None:
        self._port = served.port
        token = office.token(group=OFFICERS)  # whose answers wait for no slot of time
        self._requests = [
            f"POST /v1/retrieve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
            for body in (json.dumps({"question": question}) for question in QUESTIONS)
        ]

    def __enter__(self) -> _Sender:
        words = [sys.executable, "-m", "bench.service.load"]
        self._process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def send(self, count: int) -> None:
        requests = [self._requests[number % len(self._requests)] for number in range(count)]
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"port": self._port, "connections": _AT_ONCE, "requests": requests}) + "\n"
        )
        self._process.stdin.flush()

    def seconds(self) -> float:
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        if said["failed"]:
            raise RuntimeError(f"{said['failed']} requests failed")
        return float(said["seconds"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print. Exit code 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=400)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="carag-shared-") as place:
        both = offices(Path(place), options.server, f"bench_{time.time_ns()}", embedder=options.embedder)
        if options.rate:
            print(json.dumps(rate(both, options.server, options.rounds, options.count)))
        if not options.kills:
            return 0
        found = kill_one_of_two(both, options.kills)
    print(json.dumps(asdict(found), indent=1))
    return int(bool(found.lost or found.refused or found.unaccounted or found.damaged or found.otherwise))


if __name__ == "__main__":
    raise SystemExit(main())
