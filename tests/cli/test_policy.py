"""``carag policy show``, ``lint``, ``diff``: what they print, and what they exit with."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit, app

if TYPE_CHECKING:
    from pathlib import Path

TEXT = files("carag").joinpath("profiles/edgar/roles.toml").read_text()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = app.run(["policy", *arguments])
    return code, capsys.readouterr().out


def test_show_names_every_cell_and_one(capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as one object, with the hash that records carry."""
    code, said = run(capsys, "show")
    assert code == Exit.OK
    assert "public/public_qa" in said
    code, said = run(capsys, "show", "buy_side", "invest", "--json")
    shown = json.loads(said)
    assert [cell["masks"][0]["hex"] for cell in shown["cells"]] == ["(0x0000000, 0x0194000)"]
    assert len(shown["sha256"]) == 64
    assert [cell["past"] for cell in shown["cells"]] == ["as_of"]
    for role, purpose, may in (("buy_side", "invest", False), ("auditor", "assure", True)):
        _, said = run(capsys, "show", role, purpose)
        assert "may ask what was public then" in said
        assert may == ("may ask what was known then" in said)
    assert run(capsys, "show", "wizard")[0] == Exit.BAD_INPUT


def test_the_shipped_table_lints_clean(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, and no finding."""
    code, said = run(capsys, "lint", "--json")
    assert (code, json.loads(said)["findings"]) == (Exit.OK, [])


@pytest.mark.parametrize("text", ["", "schema = 1", TEXT.replace("PD_SPECIAL", "PD_SPECIEL")])
def test_what_is_no_table_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown bit among them: 65, and nothing on standard output."""
    path = tmp_path / "roles.toml"
    path.write_text(text)
    assert run(capsys, "lint", str(path)) == (Exit.BAD_INPUT, "")
    assert run(capsys, "lint", str(tmp_path / "none.toml")) == (Exit.BAD_INPUT, "")


def test_a_finding_exits_65(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a pipeline stops."""
    path = tmp_path / "roles.toml"
    path.write_text(TEXT.replace('"dpo", "public"]', '"dpo", "public", "intern"]'))
    code, said = run(capsys, "lint", str(path))
    assert code == Exit.BAD_INPUT
    assert "UNUSED_ROLE  intern" in said


def test_diff_says_which_cells_widen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By cell and by bit."""
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(TEXT)
    new.write_text(TEXT.replace('masks = [{ forbidden = ["PD_SPECIAL"] }]', "masks = [{}]", 1))
    code, said = run(capsys, "diff", str(old), str(new), "--json")
    told = json.loads(said)
    assert (code, told["widens"]) == (Exit.OK, True)
    assert [(one["role"], one["direction"], one["notes"]) for one in told["changes"]] == [
        ("compliance", "widens", ["mask 1: no longer forbids PD_SPECIAL"])
    ]
    assert "compliance/surveil  widens" in run(capsys, "diff", str(old), str(new))[1]
    assert json.loads(run(capsys, "diff", str(new), str(old), "--json")[1])["widens"] is False
    assert "no cell differs" in run(capsys, "diff", str(old), str(old))[1]


@pytest.mark.parametrize("command", ["show", "lint", "diff"])
def test_help_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command shows a whole line to try."""
    code, said = run(capsys, command, "--help")
    assert code == Exit.OK
    assert f"carag policy {command}" in said
    assert "[dim]" not in said
