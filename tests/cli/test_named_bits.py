"""``--profile``: an auditor with a profile's two files reads the names of its bits, and other files do not mislead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag import Document, Engine, Session
from carag.cli import Exit
from carag.cli.app import run
from carag.policy import Profile

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_profile_of_ones_own_names_the_bits_of_its_receipts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The two files as they were, which the hash in the record proves; other files are refused."""
    folder, store, receipt = tmp_path / "office", tmp_path / "store", tmp_path / "receipt.json"
    text, roles = Profile.open("generic").texts
    folder.mkdir()
    (folder / "profile.toml").write_text(text.replace('name = "generic"', 'name = "office"'), "utf-8")
    (folder / "roles.toml").write_text(roles, "utf-8")
    with Engine.open(store, profile=folder, embedder="wordllama") as engine:
        engine.add([Document(id="memo", text="The canteen opens at noon.", bits=(), metadata={"year": 2024})])
        found = engine.retrieve("Noon?", Session(role="public", purpose="read"), where={"year": 2024})
        found.receipt.write(receipt)
    verify = ["verify", str(receipt), "--key", str(store / "vkey")]
    show = ["audit", "show", str(found.receipt.seq), "--store", str(store)]
    for command in (verify, show):
        assert run(command) == Exit.OK
        assert "bit 2" in capsys.readouterr().out
        assert run([*command, "--profile", str(folder)]) == Exit.OK
        named = capsys.readouterr().out
        assert "SECRET" in named
        assert "bit 2" not in named
    run(verify)
    assert 'narrowed by:  {"year":[2024]}' in capsys.readouterr().out
    (folder / "roles.toml").write_text(roles + "\n", "utf-8")
    for command in (verify, show):
        assert run([*command, "--profile", str(folder)]) in (Exit.BAD_INPUT, Exit.CANNOT_TELL)
        assert "is not the one that the record names" in capsys.readouterr().err.replace("\n", " ")
