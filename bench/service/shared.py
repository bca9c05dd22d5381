"""Two services over one shared store: kill them while both answer, or count what both answer a second beside one.

``python -m bench.service.shared --server URL --kills 20``, or ``--rate``. The URL is an administrator's, of a
PostgreSQL server of this machine that syncs to its disk; a schema of its own is made there. For ``--rate`` each service
is held to a fraction of one processor (``--fraction``): two of them, the server and the clients must leave the machine
idle for a good part, and what is printed says whether they did.
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
from operator import truediv
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.service.kills import Kills, Load, examined
from bench.service.office import OFFICERS, QUESTIONS, ROOT, Office, Served, asked, connected, said
from bench.service.quota import busy_seconds, cpu_seconds, family, quota
from carag import Engine
from carag.engine.sharing import share
from carag.postgres.connection import connected as connected_to
from carag.service.wire import receipt_of

if TYPE_CHECKING:
    from collections.abc import Sequence


ROLE: Final = "carag_app"
_KEYS: Final = ("audit.key", "vkey", "private.key")
_MOST: Final = 40
"""Answers waited for, at most, before a kill."""
_GOES_ON: Final = 10
"""Answers of the other process that are waited for after one was killed."""
_AT_ONCE: Final = 4
"""Connections of the load to each process."""
_SAMPLE: Final = 20
"""Receipts of each service that both verifiers are given."""


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
    dice, kills, before = random.Random(seed), Kills(), 0  # noqa: S311 - not a secret
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


def rate(both: tuple[Office, Office], admin: str, rounds: int, count: int, fraction: float) -> dict[str, Any]:
    """Count requests a second of one service, and of both, in turn, each held to a fraction of one processor.

    What limits a service is its quota then, and not who else runs: ``held`` is the share of periods in which the quota
    stopped it, and ``busy`` the share of this machine's processors that was used, by whomever, while both answered.
    """
    with ExitStack() as running:
        quotas = [running.enter_context(quota(fraction)) for _ in both]
        services = [running.enter_context(one.served()) for one in both]
        senders = [
            running.enter_context(_Sender(one, served)) for one, served in zip(both, services, strict=True)
        ]
        for limit, served, sender in zip(quotas, services, senders, strict=True):
            limit.take(served.process.pid)
            sender.send(count // 4)
            sender.seconds()
        used = _Used([one.process.pid for one in services], [one.pid for one in senders], _one_backend(admin))
        before = [limit.held() for limit in quotas]
        rates, spent = _in_turn(senders, used, rounds, count)
        held = [
            (now[1] - then[1]) / (now[0] - then[0])
            for now, then in zip([limit.held() for limit in quotas], before, strict=True)
        ]
        kept = _checked(both, services, 2 * (count // 4) + 3 * rounds * count)
    two = spent["two"]
    return {
        "fraction": fraction,
        "one": round(statistics.median(rates["one"]), 1),
        "two": round(statistics.median(rates["two"]), 1),
        "ratio": round(statistics.median(map(truediv, rates["two"], rates["one"])), 2),
        "ratios": [round(after / alone, 2) for alone, after in zip(rates["one"], rates["two"], strict=True)],
        "cores": len(used.cores),
        "busy": round(two["busy"] / two["wall"] / len(used.cores), 2),
        "held": [round(one, 2) for one in held],
        "seconds": {name: {what: round(value, 1) for what, value in spent[name].items()} for name in spent},
        "service_ms": round(1000 * two["services"] / (2 * rounds * count), 2),
        "server_ms": round(1000 * two["server"] / (2 * rounds * count), 2),
        **kept,
    }


def _in_turn(
    senders: list[_Sender], used: _Used, rounds: int, count: int
) -> tuple[dict[str, list[float]], dict[str, dict[str, float]]]:
    """Send to one, then to both, and again; return requests a second, and the seconds that were spent, of each way."""
    rates: dict[str, list[float]] = {"one": [], "two": []}
    spent: dict[str, dict[str, float]] = {"one": {}, "two": {}}
    for _ in range(rounds):
        for name, some in (("one", senders[:1]), ("two", senders)):
            early = used.seconds()
            for sender in some:
                sender.send(count)
            for sender in some:
                sender.seconds()
            taken = {what: value - early[what] for what, value in used.seconds().items()}
            spent[name] = {what: value + spent[name].get(what, 0.0) for what, value in taken.items()}
            rates[name].append(len(some) * count / taken["wall"])
    return rates, spent


class _Used:
    """Counts processor time: of services, of clients, of a server by one of its workers, and of the machine."""

    def __init__(self, services: list[int], clients: list[int], worker: int) -> None:
        self._services, self._clients, self._worker = services, clients, worker
        self.cores = sorted(os.sched_getaffinity(0))

    def seconds(self) -> dict[str, float]:
        return {
            "services": cpu_seconds(self._services),
            "clients": cpu_seconds(self._clients),
            "server": cpu_seconds(family(self._worker)),
            "busy": busy_seconds(self.cores),
            "wall": time.perf_counter(),
        }


def _one_backend(admin: str) -> int:
    """Return a process of the server that works for a service."""
    with connected_to(admin) as db:
        query = "SELECT pid FROM pg_stat_activity WHERE usename = %s LIMIT 1"
        return int(db.execute(query, (ROLE,)).fetchall()[0][0])


def _checked(both: tuple[Office, Office], services: list[Served], answers: int) -> dict[str, Any]:
    """Ask both for a sample of receipts, end both, and compare the one log with all answers there were."""
    sample = Load(both[0])
    for office, served in zip(both, services, strict=True):
        to, token = connected(served.port), office.token(group=OFFICERS)
        for number in range(_SAMPLE):
            body = {"question": QUESTIONS[number % len(QUESTIONS)]}
            status, data = asked(to, token, "POST", "/v1/retrieve", body)
            assert status == 200, data
            sample.receipts.append(receipt_of(said(data)["receipt"]))
        to.close()
        _end(served)
    found, vkey = Kills(), (both[0].home / "vkey").read_text().strip()
    examined(both[1].home, vkey, sample, 0, found)
    return {
        "answers": answers + len(sample.receipts),
        "records": found.unaccounted + len(sample.receipts) - found.lost,
        "sample": len(sample.receipts),
        "refused": found.refused,
        "damaged": found.damaged,
    }


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
        self._process.communicate()  # which closes its pipes

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, count: int) -> None:
        requests = [self._requests[number % len(self._requests)] for number in range(count)]
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"port": self._port, "connections": _AT_ONCE, "requests": requests}) + "\n"
        )
        self._process.stdin.flush()

    def seconds(self) -> float:
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        if told["failed"]:
            raise RuntimeError(f"{told['failed']} requests failed")
        return float(told["seconds"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print. Exit code 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--fraction", type=float, default=0.4)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="carag-shared-") as place:
        both = offices(Path(place), options.server, f"bench_{time.time_ns()}", embedder=options.embedder)
        if options.rate:
            counted = rate(both, options.server, options.rounds, options.count, options.fraction)
            print(json.dumps(counted, indent=1))
            if counted["records"] != counted["answers"] or counted["refused"] or counted["damaged"]:
                return 1
        if not options.kills:
            return 0
        found = kill_one_of_two(both, options.kills)
    print(json.dumps(asdict(found), indent=1))
    return int(bool(found.lost or found.refused or found.unaccounted or found.damaged or found.otherwise))


if __name__ == "__main__":
    raise SystemExit(main())
