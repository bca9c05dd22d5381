"""Anchors run for real over the loopback interface: a witness, a timestamp authority, a strict S3."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from carag.audit import Recovery
from carag.audit.anchors.anchor import Submission
from carag.audit.tlog.log_verifier import parse_vkeys
from carag.audit.tlog.note import Note
from tests.audit.anchors.witness import Witness, serve
from tests.loaded import loaded

NOW = 1_763_755_557


@contextlib.contextmanager
def running(server):
    """Serve in a thread; yield the URL."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def witnessing(name, *vkeys, clock=lambda: NOW):
    witness = Witness(name, vkeys, clock)
    with running(serve(witness)) as url:
        yield SimpleNamespace(url=url, vkey=witness.vkey, itself=witness)


def grow(log, count):
    for _ in range(count):
        log.append(Recovery("DRILL"))
    return log


def submission(log, now=NOW):
    """What the log's newest checkpoint is submitted with."""
    checkpoint = Note.parse(log.checkpoint())
    return Submission(checkpoint, parse_vkeys(log.vkey), log.consistency_hashes, now * 1_000_000)


def double(name):
    """Load the double of a service from its file beside this one."""
    return loaded(Path(__file__).with_name(f"{name}.py"), f"anchors_{name}")


@pytest.fixture(scope="session")
def outside():
    """Give tests the builders of this file."""
    return SimpleNamespace(
        NOW=NOW, double=double, grow=grow, running=running, submission=submission, witnessing=witnessing
    )
