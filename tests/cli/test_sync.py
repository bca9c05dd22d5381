"""``carag sync``: once, or each night; what it says, and with which code it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.cli import Exit
from carag.cli.app import run
from carag.engine import freshness
from tests.engine.freshness.folders import written

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Engine.open(tmp_path / "store", profile="generic", embedder="wordllama"):
        return tmp_path / "store"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "circulars", 2)


def test_what_was_done_is_said(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """New, then nothing, then an edit and a loss."""
    words = ["sync", str(folder), "--store", str(store)]
    assert run(words) == Exit.OK
    assert "2 documents added, 0 changed, 0 unchanged" in capsys.readouterr().out
    assert run(words) == Exit.OK
    assert (
        "0 documents added, 0 changed, 2 unchanged; of 0 chunks, 0 were embedded" in capsys.readouterr().out
    )
    path = folder / "c0.md"
    path.write_text(path.read_text().replace("clause 4:", "clause four:"))
    (folder / "c1.md").unlink()
    assert run([*words, "--remove-vanished", "--json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert (said["changed"], said["embedded"], said["vanished"], said["removed"]) == (1, 1, ["c1.md"], 1)
    assert said["reused"] == said["chunks"] - 1


def test_a_file_that_does_not_come_to_rest_ends_in_75(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``EX_TEMPFAIL``: the same command finishes it."""
    states = freshness._states

    def restless(path: Path) -> object:
        (folder / "c1.md").write_text(f"---\nclassification: internal\n---\n{os.urandom(8).hex()}")
        return states(path)

    with monkeypatch.context() as patched:
        patched.setattr(freshness, "_PAUSE", 0.0)
        patched.setattr(freshness, "_states", restless)
        assert run(["sync", str(folder), "--store", str(store)]) == Exit.TRY_AGAIN == 75
    assert "c1.md: changed while it was read; left for the next run" in capsys.readouterr().err
    assert run(["sync", str(folder), "--store", str(store)]) == Exit.OK


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nightly", "--time-zone", "Mars/Olympus"], "want a time zone"),
        (["--nightly", "--at", "25:00"], "such as 02:00"),
        (["--time-zone", "../../etc/passwd"], "want a time zone"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    store: Path, folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sync", str(folder), "--store", str(store), *words]) == Exit.BAD_INPUT
    assert said in capsys.readouterr().err


def test_no_store_is_made(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A nightly run with a slip in its path would fill a new one, under a profile that was not chosen."""
    for more, why in (([], "does not hold a store"), (["--nightly"], "there is no store")):
        assert run(["sync", str(folder), "--store", str(tmp_path / "other"), *more]) == Exit.BAD_INPUT
        assert why in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_folder_of_nothing_usable_ends_in_65(store: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"\xff")
    assert run(["sync", str(tmp_path / "photos"), "--store", str(store)]) == Exit.BAD_INPUT


def test_of_two_at_once_the_second_is_refused(
    store: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the store's lock, before it reads or writes."""
    with Engine.open(store) as engine:
        assert run(["sync", str(folder), "--store", str(store)]) == Exit.BAD_INPUT
        assert f"another writer holds {store}; close it first" in " ".join(capsys.readouterr().err.split())
        assert engine._collection.store.epoch == 0


@pytest.fixture
def service(store: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    words = [
        "sync",
        str(folder),
        "--store",
        str(store),
        "--nightly",
        "--at",
        "02:00",
        "--time-zone",
        "Asia/Kolkata",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "carag", *words], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as one:
        yield one
        one.kill()


def test_the_service_names_the_next_night_leaves_the_store_free_and_ends_at_sigterm(
    service: subprocess.Popen[str], store: Path, folder: Path
) -> None:
    assert service.stderr is not None
    assert "T02:00:00+05:30" in service.stderr.readline()
    assert run(["sync", str(folder), "--store", str(store)]) == Exit.OK
    service.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert service.wait(30) == Exit.OK
    assert time.monotonic() - began < 10
