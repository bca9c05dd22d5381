"""Killed at any moment, the log has every record it acknowledged."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import carag
from carag.audit import AuditLog

CHILD = """
import hashlib, os, sys, threading
from carag.audit import AuditLog, Recovery, Ingest

log = AuditLog.open(sys.argv[1])

def work(worker):
    while True:
        event = Ingest(started=1, ended=2, documents=worker, chunks=4, quarantined=0, rows=5,
                       snapshot=b"S" * 32, table=b"T" * 32, embed=None, why="DRILL")
        receipt = log.append(event, secrets={"subject": f"worker {worker}"})
        line = f"{receipt.seq} {hashlib.sha256(receipt.record).hexdigest()}\\n"
        os.write(1, line.encode())  # only now is it acknowledged

for worker in range(8):
    threading.Thread(target=work, args=(worker,)).start()
"""


def acknowledged_until_killed(directory, lines):
    """Run eight writers, kill them after some acknowledgements, and return all that were made."""
    root = str(Path(carag.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    ) as child:
        assert child.stdout is not None
        seen = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        seen += child.stdout.readlines()
    return [line.split() for line in seen if line.endswith(b"\n")]


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.full)])
def test_no_acknowledged_record_is_lost(tmp_path, rounds):
    """After kill -9, over and over on one log, every acknowledged record is there, in place and unaltered."""
    dice, total = random.Random(7), 0  # noqa: S311 - when to kill is no secret
    for _ in range(rounds):
        acknowledged = acknowledged_until_killed(tmp_path, dice.randrange(1, 120))
        with AuditLog.open(tmp_path) as log:
            for seq, digest in acknowledged:
                assert hashlib.sha256(log.receipt(int(seq)).record).hexdigest() == digest.decode()
            assert log.verify().size == log.size
        total += len(acknowledged)
    assert total >= rounds
