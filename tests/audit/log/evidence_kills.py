"""Kill an engine, or the PostgreSQL server that has its evidence, around the two commits of a record, and compare.

``python -m tests.audit.log.evidence_kills STORE WHOM MOMENT COUNT PID`` is the process that asks, and kills itself
or the server (``PID``) in request ``COUNT``: before PostgreSQL's commit, between the two, or after both.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.audit import AuditLog
from carag.audit.auditor.evidence import compare_evidence
from carag.audit.auditor.reader import LogReader
from carag.audit.log.postgres import EvidenceReader, Place, PostgresEvidence
from carag.audit.log.sqlite import SqliteBackend
from carag.errors import AuditUnavailable
from tests.audit.log.disk import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["MOMENTS", "EvidenceKills", "kill", "kill_server"]

MOMENTS: Final = ("before", "between", "after")
_QUESTIONS: Final = (
    "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?",
    "What is the weather on Mars?",
)
_MOST: Final = 4
"""Answers waited for, at most, before a kill."""


@dataclass
class EvidenceKills:
    """What was found after so many kills of one store's engine or server."""

    rounds: int = 0
    texts: int = 0
    """Answers, declines included, that came out."""
    without_both: int = 0
    """Of these, those whose record was not in both places, before anything was recovered."""
    ahead: int = 0
    """Rounds after which PostgreSQL had a record that ``audit.db`` had not."""
    alone: int = 0
    """Records in one place alone after recovery."""
    refused: int = 0
    """Requests that ended in AuditUnavailable."""
    otherwise: int = 0
    """Requests that ended in any other error."""


def kill(
    store: Path, rounds: int, whom: str, *, server: Callable[[], int], moments: tuple[str, ...] = MOMENTS
) -> EvidenceKills:
    """Start an engine, let it kill, compare, recover, compare, and again, on one store.

    Parameters
    ----------
    store : Path
        A store with documents, whose log has its evidence in PostgreSQL.
    rounds : int
    whom : str
        ``"engine"`` or ``"server"``.
    server : callable
        Starts the server unless it runs; returns its process id.
    moments : tuple of str
        Taken in turn.
    """
    dice, kills = random.Random(7), EvidenceKills()  # noqa: S311 - when to kill is no secret
    for moment in itertools.islice(itertools.cycle(moments), rounds):
        lines = _asked(store, whom, moment, dice.randrange(1, _MOST), server())
        server()
        there, here = dict(_there(store)), dict(_here(store))
        kills.rounds += 1
        kills.ahead += len(there) > len(here)
        texts = [(int(seq), digest) for what, seq, digest in lines if what == "text"]
        kills.texts += len(texts)
        kills.without_both += sum(
            here.get(seq) is None or here.get(seq) != there.get(seq) for seq, _ in texts
        )
        kills.refused += sum(what == "refused" for what, _, _ in lines)
        kills.otherwise += sum(what == "error" for what, _, _ in lines)
        with AuditLog.open(store) as log:
            for seq, digest in texts:
                opened = log.private.openings(seq).get("answer")
                kills.without_both += opened is not None and _digest(opened.value) != digest
        kills.alone += len(set(_there(store)) ^ set(_here(store)))
        with LogReader(store) as reader, contextlib.closing(EvidenceReader(_place(store))) as evidence:
            compare_evidence(reader, evidence)
    return kills


def kill_server(pid: int) -> None:
    """Kill a server and all processes it has, as a power cut of its machine would."""
    import psutil

    parent = psutil.Process(pid)
    whole = [parent, *parent.children(recursive=True)]
    for one in whole:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(whole, timeout=10)


def _asked(store: Path, whom: str, moment: str, count: int, pid: int) -> list[list[str]]:
    child = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.audit.log.evidence_kills",
            str(store),
            whom,
            moment,
            str(count),
            str(pid),
        ],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=120,
    )
    wanted = -signal.SIGKILL if whom == "engine" else 0
    assert child.returncode == wanted, child
    return [line.decode().split() for line in child.stdout.splitlines(keepends=True) if line.endswith(b"\n")]


def _place(store: Path) -> Place:
    return Place.parse((store / "evidence.url").read_text("utf-8").strip())


def _there(store: Path) -> Iterator[tuple[int, bytes]]:
    with contextlib.closing(EvidenceReader(_place(store))) as evidence:
        end = evidence.newest()
        yield from evidence.bodies(0, 0 if end is None else end.size)


def _here(store: Path) -> Iterator[tuple[int, bytes]]:
    with LogReader(store) as reader:
        yield from reader.bodies()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main(store: str, whom: str, moment: str, count: int, pid: int) -> None:
    """Ask until the end, which is planned in request ``count``, and go on for two more if only the server ends."""
    from carag import Engine, Session

    armed = False

    def strike(now: str) -> None:
        nonlocal armed
        if armed and now == moment:
            armed = False
            if whom == "engine":
                os.kill(os.getpid(), signal.SIGKILL)
            kill_server(pid)

    there, here = PostgresEvidence.append, SqliteBackend.append

    def append_there(*of: object) -> None:
        strike("before")
        there(*of)  # type: ignore[arg-type] # as it was called

    def append_here(*of: object) -> None:
        strike("between")
        here(*of)  # type: ignore[arg-type] # as it was called
        strike("after")

    PostgresEvidence.append, SqliteBackend.append = append_there, append_here  # type: ignore[method-assign, assignment]
    session = Session(role="compliance", purpose="surveil", subject="ana@bank.example", conversation="c-1")
    with Engine.open(store, create=False) as engine:
        for number in range(count + 3):
            armed = number == count
            try:
                answer = engine.ask(_QUESTIONS[number % 2], session)
            except AuditUnavailable:
                os.write(1, f"refused {number} -\n".encode())
            except Exception as error:  # noqa: BLE001 - counted
                os.write(1, f"error {number} {type(error).__name__}\n".encode())
            else:
                os.write(1, f"text {answer.receipt.seq} {_digest(answer.text)}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
