"""Measure what a request over HTTP costs beyond `Engine.retrieve`: ``python -m bench.service`` writes RESULTS.md.

One engine is asked in two ways in turn, by as many at once: its own method from threads, and a service in the same
process. Another process sends the requests. Every retrieval is on record.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.harness import ROOT, about, described, parser, write
from bench.service.office import AUDIENCE, ISSUER, Office
from carag import Engine, Session
from carag.engine.tokens import JwtVerifier
from carag.retrieval import DEFAULT_EMBEDDER
from carag.service.grants import REQUIRED, Grants, GrantVerifier
from carag.service.jwks import JwksKeys, fetched
from carag.service.service import Service
from carag.service.serving import serve

if TYPE_CHECKING:
    from argparse import Namespace

_AT_ONCE: Final = (1, 4, 8)
_WAYS: Final = ("engine", "service")
_PAGE: Final = """\
# What a request over HTTP costs

Written by `python -m bench.service`; do not edit. {described}
{rows:,} passages, k 8, every retrieval durably on record. `Engine.retrieve` from threads, the same engine served in
its process, in turn, {rounds} rounds of {count} requests each; another process
sends them. The session is that of the token, the same for both. Milliseconds; in brackets, how much more than
`Engine.retrieve`.

Goal: without slots of time, p50 at most 2 ms and p99 at most 10 ms above `Engine.retrieve`; with the engine's process
pinned to one core, and the process that sends to another, at least 90 % of the requests a second
that the engine answers itself ({at_once} at once, median of {rounds} rounds in turn).

{parts}"""
_PART: Final = """\
## Embedder {embedder}

| at once | way | p50 | p99 |
|---|---|---|---|
{latency}

| pinned | requests/s | of the engine's own |
|---|---|---|
{rate}
"""


class Bench:
    """One engine, a service over it, and a process that sends requests."""

    def __init__(self, stack: ExitStack, embedder: str, given: Namespace) -> None:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.engine = stack.enter_context(Engine.open(home / "store", embedder=embedder))
        self.engine.ingest(given.corpus)
        self.questions = _questions(given.corpus.parent / "questions.jsonl")
        self.office = Office(home)
        self.token = self.office.token()
        self.port = self._served(stack, home)
        tokens = JwtVerifier(
            issuer=ISSUER,
            audience=AUDIENCE,
            keys=JwksKeys(fetched(str(home / "jwks.json")), ["ES256"]),
            required=REQUIRED,
        )
        grants = Grants.read(home / "grants.toml", self.engine.profile.table)
        # The session that the service makes of the token, so that both put the same on record.
        self.session = self.engine.session(self.token, GrantVerifier(tokens, grants, "groups"))
        self.sender = subprocess.Popen(
            [sys.executable, "-m", "bench.service.load"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(self._end)

    def run(self, way: str, at_once: int, count: int) -> tuple[float, list[float]]:
        """Ask in one way; return the seconds in all, and of each."""
        asked = [self.questions[number % len(self.questions)] for number in range(count)]
        if way == "engine":
            return _direct(self.engine, self.session, at_once, asked)
        said = {
            "port": self.port,
            "connections": at_once,
            "requests": [_request(question, self.token) for question in asked],
        }
        assert self.sender.stdin is not None
        assert self.sender.stdout is not None
        self.sender.stdin.write(json.dumps(said) + "\n")
        self.sender.stdin.flush()
        found = json.loads(self.sender.stdout.readline())
        if found["failed"]:
            raise SystemExit(f"{found['failed']} of {count} requests were not answered")
        return found["seconds"], found["taken"]

    def _served(self, stack: ExitStack, home: Path) -> int:
        settings = self.office.settings(port=0, slots="off")
        service = Service(self.engine, home / "store", settings)
        ports: list[int] = []
        listening = threading.Event()

        def started(first: int, _: int) -> None:
            ports.append(first)
            listening.set()

        thread = threading.Thread(target=serve, args=(service,), kwargs={"started": started})
        thread.start()
        stack.callback(thread.join)
        stack.callback(service.stop)
        if not listening.wait(60):
            raise SystemExit("the service does not listen")
        return int(ports[0])

    def _end(self) -> None:
        assert self.sender.stdin is not None
        self.sender.stdin.close()
        self.sender.wait()


def main() -> int:
    """Measure, print and write the page."""
    arguments = parser("bench.service", __doc__)
    arguments.add_argument("--corpus", type=Path, default=ROOT / "data/corpus")
    arguments.add_argument("--embedders", nargs="+", default=[DEFAULT_EMBEDDER, "wordllama"])
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--count", type=int, default=200, help="requests a round")
    arguments.add_argument("--out", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    given, run = arguments.parse_args(), about()
    cores, parts = os.sched_getaffinity(0), []
    for embedder in given.embedders:
        with ExitStack() as stack:
            bench = Bench(stack, embedder, given)
            for way in _WAYS:
                bench.run(way, max(_AT_ONCE), given.count)  # warm
            latency = [row for at_once in _AT_ONCE for row in _latency(bench, at_once, given)]
            _pin(bench)
            stack.callback(os.sched_setaffinity, 0, cores)
            rate = _rate(bench, given)
            rows = len(bench.engine._collection.index)  # noqa: SLF001 - no public count
        parts.append(
            _PART.format(embedder=embedder, latency="\n".join(latency), rate="\n".join(rate)),
        )
    page = _PAGE.format(
        described=described(run),
        rows=rows,
        rounds=given.rounds,
        count=given.count,
        at_once=max(_AT_ONCE),
        parts="\n".join(parts),
    )
    write(page, given.out)
    return 0


def _latency(bench: Bench, at_once: int, given: Namespace) -> list[str]:
    taken: dict[str, list[float]] = {way: [] for way in _WAYS}
    for number in range(given.rounds):
        for place in range(len(_WAYS)):
            way = _WAYS[(number + place) % len(_WAYS)]
            taken[way] += bench.run(way, at_once, given.count)[1]
    own = [1000 * float(np.quantile(taken["engine"], part)) for part in (0.5, 0.99)]
    rows = []
    for way in _WAYS:
        found = [1000 * float(np.quantile(taken[way], part)) for part in (0.5, 0.99)]
        cells = [
            f"{one:.2f}" + ("" if way == "engine" else f" ({one - mine:+.2f})")
            for one, mine in zip(found, own, strict=True)
        ]
        rows.append(f"| {at_once} | {way} | {' | '.join(cells)} |")
    return rows


def _rate(bench: Bench, given: Namespace) -> list[str]:
    found: dict[str, list[float]] = {way: [] for way in _WAYS}
    for number in range(given.rounds):
        for place in range(len(_WAYS)):
            way = _WAYS[(number + place) % len(_WAYS)]
            found[way].append(given.count / bench.run(way, max(_AT_ONCE), given.count)[0])
    own = statistics.median(found["engine"])
    return [
        f"| {way} | {statistics.median(one):.0f} | {100 * statistics.median(one) / own:.0f} % |"
        for way, one in found.items()
    ]


def _direct(
    engine: Engine, session: Session, at_once: int, questions: list[str]
) -> tuple[float, list[float]]:
    taken: list[float] = []
    waiting, lock = iter(questions), threading.Lock()

    def ask() -> None:
        while True:
            with lock:
                question = next(waiting, None)
            if question is None:
                return
            start = time.perf_counter()
            engine.retrieve(question, session)
            taken.append(time.perf_counter() - start)

    threads = [threading.Thread(target=ask) for _ in range(at_once)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start, taken


def _pin(bench: Bench) -> None:
    """Pin this process to one core, and all that it started to another; a new thread has the core of its maker."""
    first, *others = sorted(os.sched_getaffinity(0))
    children = [bench.sender.pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid():
            children.append(int(path.parent.name))
    for process, core in [(os.getpid(), first), *((child, (others or [first])[0]) for child in children)]:
        for task in Path(f"/proc/{process}/task").iterdir():
            os.sched_setaffinity(int(task.name), {core})


def _questions(path: Path) -> list[str]:
    return [json.loads(line)["question"] for line in path.read_text("utf-8").splitlines() if line][:200]


def _request(question: str, token: str) -> str:
    body = json.dumps({"question": question})
    return (
        f"POST /v1/retrieve HTTP/1.1\r\nHost: carag\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nAuthorization: Bearer {token}\r\n\r\n{body}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
