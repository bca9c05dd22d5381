"""``carag share``: two directories, one store, by the commands that a page shows."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit
from carag.cli.app import run
from tests.sharing import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.sharing import SharedServer

ASK = ("ask", "When does the canteen open?", "--role", "employee", "--purpose", "work")


@pytest.fixture
def said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(tmp_path)

    def ran(*words: object) -> tuple[int, str]:
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, f"{out} {err}".replace("\n", " ")

    return ran


def test_two_directories_share_one_store(
    tmp_path: Path, sharing: SharedServer, said: Callable[..., tuple[int, str]]
) -> None:
    """Set up, filled from one, asked from both; the log of both is examined from either, and found out if altered."""
    schema = sharing.a_schema()
    url, one, two = sharing.address(schema), tmp_path / "one", tmp_path / "two"
    code, out = said("share", url, "--store", one, "--admin", sharing.url)
    assert (code, f"schema {schema} on the server" in out) == (Exit.OK, True)
    assert said("init", "--profile", "generic", "--embedder", "wordllama", "--store", one)[0] == Exit.OK
    (tmp_path / "memos").mkdir()
    memo = "---\nclassification: internal\n---\nThe canteen opens at noon."
    (tmp_path / "memos" / "canteen.md").write_text(memo)
    assert said("ingest", tmp_path / "memos", "--store", one)[0] == Exit.OK

    assert said("share", url, "--store", two)[0] == Exit.OK
    code, out = said(*ASK, "--store", two)
    assert (code, "copy audit.key, vkey and private.key" in out) == (Exit.BAD_INPUT, True)
    for name in KEYS:
        shutil.copy(one / name, two / name)
    for home in (one, two):
        code, out = said(*ASK, "--store", home)
        assert (code, "The canteen opens at noon." in out) == (Exit.OK, True)
    for home in (one, two):
        code, out = said("audit", "verify", "--store", home, "--key", one / "vkey")
        assert (code, "verified" in out) == (Exit.OK, True), out

    code, out = said("audit", "show", 3, "--store", two, "--json")
    assert (code, json.loads(out)["commits_to"]["query"]) == (Exit.OK, "can be opened")

    sharing.alter(
        f"ALTER TABLE {schema}_log.record DISABLE TRIGGER carag_append_only",
        f"UPDATE {schema}_log.record SET body = substr(body, 1, 9) || 'z' || substr(body, 11) WHERE seq = 1",  # noqa: S608
        f"ALTER TABLE {schema}_log.record ENABLE ALWAYS TRIGGER carag_append_only",
    )
    assert said("audit", "verify", "--store", two, "--key", one / "vkey")[0] == Exit.TAMPERED


def test_a_store_in_files_is_moved(
    tmp_path: Path, sharing: SharedServer, said: Callable[..., tuple[int, str]]
) -> None:
    """Without the word the command says how; then the new directory answers, and the old one says which."""
    own, new, url = tmp_path / "own", tmp_path / "new", sharing.address(sharing.a_schema())
    assert said("init", "--profile", "generic", "--embedder", "wordllama", "--store", own)[0] == Exit.OK
    (tmp_path / "memo.md").write_text("---\nclassification: internal\n---\nThe canteen opens at noon.")
    assert said("ingest", tmp_path / "memo.md", "--store", own)[0] == Exit.OK
    code, out = said("share", url, "--store", own)
    assert (code, f"--from {own} --store EMPTY" in out) == (Exit.BAD_INPUT, True)
    code, out = said("share", url, "--store", new, "--from", own)
    assert (code, "give --admin URL" in out) == (Exit.BAD_INPUT, True)
    for _ in range(2):
        code, out = said("share", url, "--store", new, "--from", own, "--admin", sharing.url)
        assert (code, "records and 1 passages; " in out) == (Exit.OK, True)
    code, out = said(*ASK, "--store", new)
    assert (code, "The canteen opens at noon." in out) == (Exit.OK, True)
    code, out = said(*ASK, "--store", own)
    assert (code, "was moved to postgresql://" in out) == (Exit.BAD_INPUT, True)
    for home in (own, new):
        assert said("audit", "verify", "--store", home)[0] == Exit.OK
