"""Ask a service for an hour and watch what it holds on to: ``python -m bench.service.soak --minutes 60 --out FILE``.

Sessions of all kinds at a steady rate: questions, passages, explanations, streams, receipts, tiles, what a token
grants; refused tokens, broken bodies, and clients that hang up. Meanwhile memory, open files and threads of the process
are read from ``/proc``. Memory grows by the ratio of two medians: of the last tenth of the time, and of the tenth after
the warm-up, which is a tenth too. Then the service gets SIGTERM, and its log is counted against what was answered.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import signal
import socket
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.harness import commit
from bench.service.office import ANALYSTS, OFFICERS, QUESTIONS, Office, Served, asked, connected, said
from carag.audit import Access
from carag.audit.auditor.examine import examine_log
from carag.audit.auditor.reader import LogReader
from carag.audit.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_PERSONS: Final = 200
_DOCUMENT: Final = "9990000000-23-000077"
_SAMPLE_SECONDS: Final = 1.0
_TENTH: Final = 10
_MOST_WRONG: Final = 100
"""Requests that went wrong until the load is given up."""
_MIX: Final = {
    "ask": 25,
    "retrieve": 25,
    "stream": 12,
    "explain": 10,
    "receipt": 6,
    "tile": 4,
    "policy": 3,
    "refused": 8,
    "broken": 4,
    "gone": 3,
}
"""How often each kind of request is made, of a hundred."""


@dataclass
class Sample:
    """What ``/proc`` says of the process at one time."""

    at: float
    """Seconds since the start."""
    resident: int
    """Kibibytes in memory."""
    files: int
    threads: int


@dataclass
class Soak:
    """What was asked, answered and held."""

    minutes: float
    statuses: dict[str, int] = field(default_factory=dict)
    """Requests by kind and status."""
    records: dict[str, int] = field(default_factory=dict)
    """On record, in the answers and in no answer: an answer is lost with its connection, a record is not."""
    growth: float = 0.0
    """Share by which resident memory grew from after the warm-up to the end."""
    resident: tuple[int, int] = (0, 0)
    """The two medians, in kibibytes."""
    files: tuple[int, int] = (0, 0)
    threads: tuple[int, int] = (0, 0)
    samples: list[Sample] = field(default_factory=list)


def soak(place: Path, minutes: float, *, rate: float, clients: int, seed: int = 7) -> Soak:
    """Run one office's service under load.

    Raises
    ------
    AssertionError
        If a request got a status that its kind must not get, an answer has no record, or the log does not verify.
    """
    office, found = Office(place), Soak(minutes)
    mix = _Mix(office, found, seed)
    with office.served({"PYTHONFAULTHANDLER": "1"}) as served:
        until = time.monotonic() + minutes * 60
        load = [
            threading.Thread(target=mix.run, args=(served.port, number, until, clients / rate))
            for number in range(clients)
        ]
        for one in load:
            one.start()
        found.samples = _watched(served, until)
        for one in load:
            one.join()
        is_there = served.process.poll() is None
        served.process.send_signal(signal.SIGTERM)
        if (code := served.process.wait(60)) or not is_there:
            raise RuntimeError(f"the service ended with {code}: {office.told.read_text()}")
    tenth = minutes * 60 / _TENTH
    early = [one for one in found.samples if tenth <= one.at < 2 * tenth]
    late = [one for one in found.samples if one.at >= (_TENTH - 1) * tenth]
    found.resident = (_median(one.resident for one in early), _median(one.resident for one in late))
    found.files = (_median(one.files for one in early), _median(one.files for one in late))
    found.threads = (_median(one.threads for one in early), _median(one.threads for one in late))
    found.growth = found.resident[1] / found.resident[0] - 1
    assert not mix.wrong, mix.wrong[:5]
    found.records = _counted(office, mix)
    return found


class _Mix:
    """Clients of all kinds; what they got is kept."""

    def __init__(self, office: Office, found: Soak, seed: int) -> None:
        self._found, self._seed, self._lock = found, seed, threading.Lock()
        self.acknowledged: list[int] = []
        """Records that answers named."""
        self.wrong: list[str] = []
        self._persons = [
            office.token(f"person-{number}@bank.example", group)
            for number, group in enumerate([ANALYSTS, OFFICERS] * (_PERSONS // 2))
        ]
        self._tokens_refused = [
            office.token(exp=int(time.time()) - 600),
            office.token(aud="payroll"),
            office.token(iss="https://elsewhere.example"),
            office.token(groups=["interns"]),
            "a.b.c",
            None,
        ]

    def run(self, port: int, number: int, until: float, pause: float) -> None:
        """Ask at a steady rate until a time."""
        dice, connection = random.Random(self._seed + number), connected(port)  # noqa: S311 - not a secret
        kinds: list[Callable[..., None]] = [getattr(self, f"_{name}") for name in _MIX]
        own: dict[str, int] = {}
        due = time.monotonic()
        while time.monotonic() < until and len(self.wrong) < _MOST_WRONG:
            (kind,) = dice.choices(kinds, [*_MIX.values()])
            try:
                kind(connection, dice, own)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.wrong.append(f"{kind.__name__}: {error!r}")
                connection.close()
            if dice.random() < 0.02:
                connection.close()  # and open another with the next request
            due = max(due + pause, time.monotonic() - 1)
            time.sleep(max(0.0, due - time.monotonic()))
        connection.close()

    def _told(self, kind: str, status: int, wanted: Sequence[int]) -> None:
        with self._lock:
            counts, name = self._found.statuses, f"{kind} {status}"
            counts[name] = counts.get(name, 0) + 1
        if status not in wanted:
            self.wrong.append(f"{kind} {status}")

    def _question(self, dice: random.Random) -> str:
        """Nearly all are new, so that what is kept of each would be seen."""
        return f"{dice.choice(QUESTIONS)} {dice.randrange(10**9) if dice.random() < 0.9 else ''}".strip()

    def _answered(self, kind: str, status: int, data: bytes, token: str, own: dict[str, int]) -> None:
        self._told(kind, status, (200,))
        answer = said(data)
        own[token] = answer["record"]
        with self._lock:
            self.acknowledged += [seq for seq in (answer["record"], answer.get("follows")) if seq is not None]

    def _ask(self, to: http.client.HTTPConnection, dice: random.Random, own: dict[str, int]) -> None:
        token = dice.choice(self._persons)
        self._answered(
            "ask", *asked(to, token, "POST", "/v1/ask", {"question": self._question(dice)}), token, own
        )

    def _retrieve(self, to: http.client.HTTPConnection, dice: random.Random, own: dict[str, int]) -> None:
        token = dice.choice(self._persons)
        body = {"question": self._question(dice), "k": dice.randrange(1, 51)}
        self._answered("retrieve", *asked(to, token, "POST", "/v1/retrieve", body), token, own)

    def _explain(self, to: http.client.HTTPConnection, dice: random.Random, own: dict[str, int]) -> None:
        token = dice.choice(self._persons)
        body = {"chunk_id": f"{_DOCUMENT}:{dice.randrange(10**5):05}"}  # most are absent
        self._answered("explain", *asked(to, token, "POST", "/v1/explain", body), token, own)

    def _stream(self, to: http.client.HTTPConnection, dice: random.Random, own: dict[str, int]) -> None:
        token = dice.choice(self._persons)
        body = {"question": self._question(dice)}
        self._answered("stream", *asked(to, token, "POST", "/v1/ask/stream", body), token, own)

    def _receipt(self, to: http.client.HTTPConnection, dice: random.Random, own: dict[str, int]) -> None:
        if not own:
            return
        token, seq = dice.choice([*own.items()])
        foreign = dice.choice(self._persons)
        is_own = dice.random() < 0.8 or own.get(foreign) == seq or foreign == token
        status = asked(to, token if is_own else foreign, "GET", f"/v1/receipts/{seq}")[0]
        self._told("receipt", status, (200,) if is_own else (404,))

    def _tile(self, to: http.client.HTTPConnection, dice: random.Random, _: dict[str, int]) -> None:
        token = dice.choice(self._persons)
        status, data = asked(to, token, "GET", "/log/checkpoint")
        self._told("checkpoint", status, (200,))
        size = int(data.split(b"\n")[1])
        full, rest = divmod(size, 256)
        path = (
            f"{dice.randrange(full):03}"
            if full and (not rest or dice.random() < 0.5)
            else f"{full:03}.p/{rest}"
        )
        status = asked(to, token, "GET", f"/log/tile/0/{path}")[0]
        self._told("tile", status, (200,))

    def _policy(self, to: http.client.HTTPConnection, dice: random.Random, _: dict[str, int]) -> None:
        status = asked(to, dice.choice(self._persons), "GET", "/v1/policy")[0]
        self._told("policy", status, (200,))

    def _refused(self, to: http.client.HTTPConnection, dice: random.Random, _: dict[str, int]) -> None:
        token = dice.choice(self._tokens_refused)
        status = asked(to, token, "POST", "/v1/ask", {"question": self._question(dice)})[0]
        self._told("refused", status, (401, 403))

    def _broken(self, to: http.client.HTTPConnection, dice: random.Random, _: dict[str, int]) -> None:
        body = dice.choice(
            [
                b'{"question": ',
                b"[" * 30_000,
                b'{"question": "a", "question": "b"}',
                b'{"question": "\xff"}',
                json.dumps({"question": "x", f"key-{dice.randrange(10**9)}": 1}).encode(),
                b'{"question": ""}',
                b" " * (70 << 10),
            ]
        )
        status = asked(to, dice.choice(self._persons), "POST", "/v1/retrieve", body)[0]
        self._told("broken", status, (400, 413, 422))

    def _gone(self, to: http.client.HTTPConnection, dice: random.Random, _: dict[str, int]) -> None:
        """Hang up: within the headers, within the body, or before the answer."""
        token = dice.choice(self._persons)
        body = json.dumps({"question": self._question(dice)}).encode()
        whole = (
            b"POST /v1/ask/stream HTTP/1.1\r\nHost: carag\r\nContent-Type: application/json\r\nAuthorization: Bearer "
            + token.encode()
            + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        with socket.create_connection(("127.0.0.1", to.port), 10) as line:
            line.sendall(whole[: dice.choice([40, len(whole) - 5, len(whole)])])
        self._told("gone", 0, (0,))


def _watched(served: Served, until: float) -> list[Sample]:
    """Sample the process until a time, or until it is no more."""
    samples, start, place = [], time.monotonic(), Path(f"/proc/{served.process.pid}")
    while (now := time.monotonic()) < until and served.process.poll() is None:
        told = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        if "VmRSS" in told:  # a process that has just ended has none
            files = sum(1 for _ in (place / "fd").iterdir())
            samples.append(Sample(now - start, int(told["VmRSS"].split()[0]), files, int(told["Threads"])))
        time.sleep(_SAMPLE_SECONDS)
    return samples


def _median(values: Any) -> int:
    return int(statistics.median(values))


def _counted(office: Office, mix: _Mix) -> dict[str, int]:
    """Compare answers with the log."""
    verdict = examine_log(office.home)
    assert verdict.verdict.value == "verified", verdict.reason
    with LogReader(office.home) as reader:
        on_record = {seq for seq, body in reader.bodies() if isinstance(Record.parse(body).event, Access)}
    answers = set(mix.acknowledged)
    assert len(answers) == len(mix.acknowledged), "two answers name one record"
    assert answers <= on_record, "an answer has no record"
    return {
        "records": verdict.size,
        "of requests": len(on_record),
        "in answers": len(answers),
        "in none": len(on_record - answers),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, print, and keep. Exit code 1 if memory grew by a hundredth or more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second, of all clients")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--most", type=float, default=0.01, help="share by which memory may grow")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="carag-soak-") as place:
        found = soak(Path(place), options.minutes, rate=options.rate, clients=options.clients)
    kept = {"commit": commit(), **asdict(found), "samples": [asdict(one) for one in found.samples[::10]]}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
    print(json.dumps({name: value for name, value in kept.items() if name != "samples"}, indent=1))
    return int(found.growth >= options.most)


if __name__ == "__main__":
    raise SystemExit(main())
