"""``carag backup`` and ``carag restore``: what they print, and the code that each end has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Callable

WORKER = Session(role="employee", purpose="work")


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("backup") / "store"
    with Engine.open(home, profile="generic", embedder="wordllama") as engine:
        engine.add([Document(id="memo/1", text="The canteen opens at noon.", bits=["INTERNAL"])])
    return home


@pytest.fixture
def home(founded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(founded, tmp_path / "store"))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def ran(*words: object) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out.replace("\n", " "), err.replace("\n", " ")

    return ran


def test_backed_up_and_restored(
    home: Path, tmp_path: Path, said: Callable[..., tuple[int, str, str]]
) -> None:
    """Each says what it did, on record or not, and what cannot be known."""
    backup, keys, again = (tmp_path / name for name in ("backup", "keys", "again"))
    code, out, _ = said("backup", "--store", home, "--to", backup, "--keys", keys)
    assert (code, "keep them away from the data" in out, out.count("not on record")) == (Exit.OK, True, 0)
    code, out, _ = said("restore", "--from", backup, "--keys", keys, "--store", again)
    assert (code, "it is unknown what came after" in out) == (Exit.OK, True)
    with Engine.open(again, create=False) as engine:
        assert len(engine.retrieve("When does the canteen open?", WORKER).passages) == 1
        code, out, _ = said("backup", "--store", again, "--to", tmp_path / "live", "--json")
        found = json.loads(out)
        assert (code, found["is_on_record"], found["has_keys"]) == (Exit.OK, False, False)
        assert found["records"] == engine.log.size


def test_behind_is_1_and_puts_nothing_in_place(
    home: Path, tmp_path: Path, said: Callable[..., tuple[int, str, str]]
) -> None:
    """Both sizes are reported; --accept-loss restores it all the same."""
    backup, keys, again = (tmp_path / name for name in ("backup", "keys", "again"))
    assert said("backup", "--store", home, "--to", backup, "--keys", keys)[0] == Exit.OK
    with Engine.open(home) as engine:
        receipt = engine.retrieve("When does the canteen open?", WORKER).receipt
    receipt.write(tmp_path / "newest.json")
    words = [
        "restore",
        "--from",
        backup,
        "--keys",
        keys,
        "--store",
        again,
        "--receipt",
        tmp_path / "newest.json",
    ]
    code, out, err = said(*words)
    assert (code, out) == (Exit.TAMPERED, "")
    assert f"the backup has {receipt.seq} records, and {receipt.seq + 1} are known" in err
    assert not again.exists()
    code, out, _ = said(*words, "--json")
    assert (code, json.loads(out)["known"]) == (Exit.TAMPERED, receipt.seq + 1)
    code, out, err = said(*words, "--accept-loss")
    assert (code, "LOST" in err, "the loss of records is on record" in out) == (Exit.OK, True, True)
    shown = said("audit", "list", "--store", again)[1]
    assert f"RESTORED_WITH_LOSS:{receipt.seq}/{receipt.seq + 1}" in shown.replace(" ", "")


def test_what_cannot_be_used_is_65(
    home: Path, tmp_path: Path, said: Callable[..., tuple[int, str, str]]
) -> None:
    backup, keys, again = (tmp_path / name for name in ("backup", "keys", "again"))
    assert said("backup", "--store", tmp_path / "nothing", "--to", backup)[0] == Exit.BAD_INPUT
    assert said("backup", "--store", home, "--to", backup, "--keys", backup / "keys")[0] == Exit.BAD_INPUT
    assert said("backup", "--store", home, "--to", backup, "--keys", keys)[0] == Exit.OK
    restored = ["restore", "--from", backup, "--keys", keys, "--store"]
    assert said(*restored, home)[0] == Exit.BAD_INPUT
    code, _, err = said(*restored, again, "--anchor", "ftp://example")
    assert (code, "names no anchor" in err) == (Exit.BAD_INPUT, True)
    (backup / "corpus.db").write_bytes((backup / "corpus.db").read_bytes()[:-1] + b"x")
    code, _, err = said(*restored, again)
    assert (code, "is damaged" in err) == (Exit.BAD_INPUT, True)
    assert not again.exists()
