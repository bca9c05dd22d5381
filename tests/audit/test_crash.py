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
from carag.audit import Access, AuditLog, Recovery

CHILD = """
import hashlib, os, sys, threading
from dataclasses import replace
from bench.audit.writers import EVENT, PASSAGES, SECRETS
from carag.audit import Access, AuditLog, Recovery, Begin

log = AuditLog.open(sys.argv[1])
begin = Begin(started=EVENT.started, role=EVENT.role, purpose=EVENT.purpose, source=EVENT.source, as_of=EVENT.as_of,
              policy=EVENT.policy, models=EVENT.models)

def acknowledge(what, receipt):
    os.write(1, f"{what} {receipt.seq} {hashlib.sha256(receipt.record).hexdigest()}\\n".encode())

def work(worker):
    while True:
        before = log.append(begin, secrets={"query": SECRETS["query"]})
        acknowledge("begin", before)  # here a remote model would be called
        event = replace(EVENT, begun=before.seq)
        acknowledge("end", log.append(event, secrets=SECRETS, passages=PASSAGES))

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


@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.full)])
def test_no_acknowledged_record_is_lost(tmp_path, rounds):
    """After kill -9, over and over on one log, every acknowledged record is there, in place, unaltered and opens.

    Every begin that was acknowledged has its end, or a recovery record names it: no call of a model is hidden.
    """
    dice, total, cut_short = random.Random(7), 0, 0  # noqa: S311 - when to kill is no secret
    for _ in range(rounds):
        acknowledged = acknowledged_until_killed(tmp_path, dice.randrange(1, 160))
        with AuditLog.open(tmp_path) as log:
            for _, seq, digest in acknowledged:
                record = log.record(int(seq))
                assert hashlib.sha256(record.to_bytes()).hexdigest() == digest.decode()
                openings = log._private.openings(int(seq))
                assert all(openings[name].opens(name, value) for name, value in record.commitments.items())
            events = [log.record(seq).event for seq in range(log.size)]
            ended = {event.begun for event in events if isinstance(event, Access)}
            named = {seq for event in events if isinstance(event, Recovery) for seq in event.begins}
            begun = {int(seq) for what, seq, _ in acknowledged if what == b"begin"}
            assert begun <= ended | named
            assert not ended & named
            assert log.verify().size == log.size
            cut_short += len(named)
        total += len(acknowledged)
    assert total >= rounds
    assert cut_short > 0
