"""Kill a service under load, over and over on one store: ``python -m bench.service.kills --rounds 20``.

Whatever a client got whole must be on record and verify offline, with CARAG's verifier and with the standalone one. A
client that was cut off may have a record; nothing else may.
"""

from __future__ import annotations

import argparse
import functools
import http.client
import importlib.util
import json
import random
import signal
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.service.office import ANALYSTS, OFFICERS, QUESTIONS, ROOT, Office, asked, connected, said
from carag.audit import Access, Receipt, Verdict, verify_receipt
from carag.audit.auditor.examine import examine, kept_receipt
from carag.audit.auditor.reader import LogReader
from carag.audit.records.record import Record
from carag.service.wire import receipt_of

if TYPE_CHECKING:
    from collections.abc import Sequence


_CLIENTS: Final = 6
_MOST: Final = 100
"""Answers waited for, at most, before a kill."""


@dataclass
class Kills:
    """What was found after the kills."""

    rounds: int = 0
    acknowledged: int = 0
    """Answers that a client got whole, with status 200."""
    cut: int = 0
    """Requests that ended without an answer."""
    lost: int = 0
    """Records of whole answers that were not in the log, or other bytes than the receipt's."""
    refused: int = 0
    """Receipts that a verifier did not accept."""
    unaccounted: int = 0
    """Records of requests beyond those of answers and of requests that were cut."""
    damaged: list[str] = field(default_factory=list)
    """Why the log did not verify, round by round."""
    codes: list[int] = field(default_factory=list)
    """With what each process ended, that was asked to end."""
    otherwise: int = 0
    """Processes that did not go on when another one was killed."""


def kill(place: Path, rounds: int, *, by: signal.Signals = signal.SIGKILL, seed: int = 7) -> Kills:
    """Start a service, load it, end it, examine its log, and again."""
    dice, kills = random.Random(seed), Kills()  # noqa: S311 - not a secret
    office, before = Office(place), 0
    vkey = (office.home / "vkey").read_text().strip()
    for _ in range(rounds):
        load = Load(office)
        with office.served() as served:
            load.start(served.port)
            load.wait(dice.randrange(1, _MOST))
            served.process.send_signal(by)
            code = served.process.wait(60)
            load.join()
        kills.rounds += 1
        kills.acknowledged += len(load.receipts)
        kills.cut += load.cut
        if by is not signal.SIGKILL:
            kills.codes.append(code)
        before = examined(office.home, vkey, load, before, kills)
    return kills


class Load:
    """Clients that ask until the service is gone."""

    def __init__(self, office: Office) -> None:
        self.receipts: list[Receipt] = []
        """Of the answers that arrived whole."""
        self.cut = 0
        self._lock = threading.Lock()
        self._tokens = [
            office.token(f"p{n}@bank.example", (ANALYSTS, OFFICERS)[n % 2]) for n in range(_CLIENTS)
        ]
        self._threads: list[threading.Thread] = []

    def start(self, port: int) -> None:
        """Let all clients ask."""
        self._threads = [
            threading.Thread(target=self._run, args=(port, token, number))
            for number, token in enumerate(self._tokens)
        ]
        for one in self._threads:
            one.start()

    def wait(self, answers: int) -> None:
        """Wait for a number of answers, or until all clients have given up."""
        while len(self.receipts) < answers and any(one.is_alive() for one in self._threads):
            time.sleep(0.005)

    def join(self) -> None:
        """Wait until all clients have given up."""
        for one in self._threads:
            one.join()

    def _run(self, port: int, token: str, number: int) -> None:
        to, count = connected(port), number
        while True:
            path = ("/v1/ask", "/v1/ask/stream", "/v1/retrieve")[count % 3]
            body = {"question": QUESTIONS[count % len(QUESTIONS)]}
            count += 1
            try:
                status, data = asked(to, token, "POST", path, body)
            except ConnectionRefusedError:  # nothing listens: this one was never taken
                return
            except (OSError, http.client.HTTPException):
                to.close()
                with self._lock:
                    self.cut += 1
                continue
            if status == 200:
                self._keep(said(data))
            if status == 503 or count % 50 == 0:  # it drains; or for a change
                to.close()

    def _keep(self, answer: dict[str, Any]) -> None:
        texts = [answer["receipt"], answer.get("follows_receipt")]
        with self._lock:
            self.receipts += [receipt_of(text) for text in texts if text is not None]


def examined(home: Path, vkey: str, load: Load, before: int, kills: Kills) -> int:
    """Compare one round's answers with the log, read without its writer; return the log's size."""
    last = max(load.receipts, key=lambda one: one.seq, default=None)
    kept = [] if last is None else [kept_receipt(last.to_bytes(), vkey)]
    with LogReader(home, vkey=vkey) as reader:
        found = examine(reader, kept)
        if found.verdict is not Verdict.VERIFIED:
            kills.damaged.append(found.reason)
        bodies = dict(reader.bodies())
        size = reader.size
    standalone = _standalone()
    keys = standalone.parse_vkeys(vkey)
    for one in load.receipts:
        kills.lost += bodies.get(one.seq) != one.record
        try:
            standalone.check_receipt(one.to_bytes(), keys)
            accepted = verify_receipt(one.to_bytes(), vkey).verdict is Verdict.VERIFIED
        except (standalone.Failed, standalone.CannotTell):
            accepted = False
        kills.refused += not accepted
    of_requests = {
        seq for seq, body in bodies.items() if seq >= before and isinstance(Record.parse(body).event, Access)
    }
    unanswered = of_requests - {one.seq for one in load.receipts}
    kills.unaccounted += max(
        0, len(unanswered) - 2 * load.cut
    )  # an answer may have a second record: what followed
    return size


@functools.cache
def _standalone() -> Any:
    """Load ``scripts/verify_receipt.py``, which shares no line with CARAG."""
    spec = importlib.util.spec_from_file_location("verify_receipt", ROOT / "scripts" / "verify_receipt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    setattr(module, "ed25519_verify", functools.cache(module.ed25519_verify))  # noqa: B010 - a batch shares a signature
    return module


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print. Exit code 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--by", choices=["SIGKILL", "SIGTERM"], default="SIGKILL")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="carag-kills-") as place:
        found = kill(Path(place), options.rounds, by=signal.Signals[options.by])
    print(json.dumps(asdict(found), indent=1))
    return int(bool(found.lost or found.refused or found.unaccounted or found.damaged))


if __name__ == "__main__":
    raise SystemExit(main())
