"""Kill a writing process again and again, and look for every record that it had acknowledged.

``python -m tests.audit.log.kills DIR`` is the process to be killed: eight writers, who begin, acknowledge, end,
acknowledge.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from carag.audit import Access, AuditLog, Begin, Recovery
from tests.audit.log.disk import ROOT
from tests.audit.log.writers import EVENT, PASSAGES, SECRETS

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import Receipt


_WRITERS: Final = 8
_MOST: Final = 200
"""Acknowledgements waited for, at most, before a kill."""


@dataclass
class Kills:
    """What was found after so many kills of one log's writers."""

    rounds: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Acknowledged records that were not there or altered."""
    unopened: int = 0
    """Acknowledged records whose commitments could not be opened."""
    cut_short: int = 0
    """Begin records whose end never came, each named by a recovery record."""
    hidden: int = 0
    """Acknowledged begin records that neither an end nor a recovery record names."""


def kill(home: Path, rounds: int, *, seed: int = 7) -> Kills:
    """Start the writers, kill them after some acknowledgements, open, look, and again, on one log."""
    dice, kills = random.Random(seed), Kills()  # noqa: S311 - when to kill is no secret
    for _ in range(rounds):
        acks = _acknowledged(home, dice.randrange(1, _MOST))
        kills.rounds += 1
        kills.acknowledged += len(acks)
        with AuditLog.open(home) as log:
            for _, seq, digest in acks:
                if int(seq) >= log.size or _digest(log, int(seq)) != digest:
                    kills.lost += 1
                    continue
                committed, openings = log.record(int(seq)).commitments, log._private.openings(int(seq))
                kills.unopened += not all(
                    name in openings and openings[name].opens(name, value)
                    for name, value in committed.items()
                )
            events = [log.record(seq).event for seq in range(log.size)]
            ended = {event.begun for event in events if isinstance(event, Access)}
            named = {seq for event in events if isinstance(event, Recovery) for seq in event.begins}
            kills.hidden += len({int(seq) for what, seq, _ in acks if what == "begin"} - ended - named)
            kills.cut_short = len(named)
            log.verify()
    return kills


def _acknowledged(home: Path, count: int) -> list[list[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.audit.log.kills", str(home)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as child:
        assert child.stdout is not None
        seen = [child.stdout.readline() for _ in range(count)]
        child.kill()
        seen += child.stdout.readlines()
    return [line.decode().split() for line in seen if line.endswith(b"\n")]


def _digest(log: AuditLog, seq: int) -> str:
    return hashlib.sha256(log.record(seq).to_bytes()).hexdigest()


def _acknowledge(what: str, receipt: Receipt) -> None:
    os.write(1, f"{what} {receipt.seq} {hashlib.sha256(receipt.record).hexdigest()}\n".encode())


def main(directory: str) -> None:
    """Write until killed."""
    log = AuditLog.open(directory)
    begin = Begin(
        started=EVENT.started,
        role=EVENT.role,
        purpose=EVENT.purpose,
        source=EVENT.source,
        as_of=EVENT.as_of,
        policy=EVENT.policy,
        models=EVENT.models,
    )

    def work() -> None:
        while True:
            before = log.append(begin, secrets={"query": SECRETS["query"]})
            _acknowledge("begin", before)  # here a remote model would be called
            event = replace(EVENT, begun=before.seq)
            _acknowledge("end", log.append(event, secrets=SECRETS, passages=PASSAGES))

    for _ in range(_WRITERS):
        threading.Thread(target=work).start()


if __name__ == "__main__":
    main(sys.argv[1])
