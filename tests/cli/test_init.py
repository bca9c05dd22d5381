"""``carag init``, ``ingest`` and ``policy apply`` under a profile that is not EDGAR's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from carag.cli import Exit, app
from carag.policy.shipped import shipped_text

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROLES = shipped_text("generic", "roles.toml")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = app.run([str(one) for one in arguments])
    return code, capsys.readouterr().out


def profile(folder: Path, roles: str = ROLES) -> Path:
    folder.mkdir()
    text = shipped_text("generic", "profile.toml").replace('"generic"', '"office"')
    (folder / "profile.toml").write_text(text)
    (folder / "roles.toml").write_text(roles)
    return folder


def test_a_newcomer_is_told_what_to_state_and_who_may_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a folder goes in, is asked, and what is hidden stays hidden."""
    store, docs = tmp_path / "store", tmp_path / "docs"
    docs.mkdir()
    (docs / "lunch.md").write_text("---\nclassification: internal\n---\nThe canteen opens at noon.\n")
    (docs / "plan.md").write_text("---\nclassification: secret\n---\nThe canteen will close for good.\n")
    code, said = run(capsys, "init", "--profile", "generic", "--store", store, "--embedder", "wordllama")
    assert (code, "classification: public, internal" in said, "employee may ask for work" in said) == (
        0,
        True,
        True,
    )
    code, said = run(capsys, "ingest", docs, "--store", store)
    assert (code, "2 documents added" in said) == (0, True)
    asked = (
        "ask",
        "When does the canteen open?",
        "--store",
        store,
        "--role",
        "employee",
        "--purpose",
        "work",
    )
    code, said = run(capsys, *asked)
    assert (code, "noon" in said, "for good" in said) == (0, True, False)
    assert ("lunch.md:00000" in said, "filer" in said) == (True, False)
    code, said = run(capsys, "audit", "replay", "--store", store)
    assert (code, "1 replayed, 0 contradictions; 0 cannot be told" in said) == (Exit.OK, True)
    code, said = run(capsys, "init", "--profile", "generic", "--store", store)
    assert code == Exit.BAD_INPUT


def test_a_folder_without_documents_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what it could have held."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "photo.jpg").write_bytes(b"x")
    more = ("--profile", "generic", "--embedder", "wordllama", "--store", tmp_path / "store")
    assert run(capsys, "ingest", tmp_path / "docs", *more)[0] == Exit.BAD_INPUT


def test_wider_roles_come_into_force_only_if_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What changes is shown either way; narrower ones need no word."""
    store = tmp_path / "store"
    made = profile(tmp_path / "office")
    run(capsys, "init", "--profile", made, "--store", store, "--embedder", "wordllama")
    wider = profile(tmp_path / "wider", ROLES.replace('"SECRET", "PERSONAL", "LEGAL"', '"SECRET", "LEGAL"'))
    code, said = run(capsys, "policy", "apply", wider, "--store", store)
    assert (code, "no longer forbids PERSONAL" in said, "is in force" in said) == (
        Exit.BAD_INPUT,
        True,
        False,
    )
    code, said = run(capsys, "policy", "apply", wider, "--store", store, "--widen")
    assert (code, "is in force" in said) == (Exit.OK, True)
    code, said = run(capsys, "policy", "apply", made, "--store", store)
    assert (code, "also forbids PERSONAL" in said) == (Exit.OK, True)
    code, said = run(capsys, "audit", "list", "--store", store, "--json")
    rows = [json.loads(line) for line in said.splitlines()]
    assert sum("TABLE_CHANGED" in json.dumps(row) for row in rows) == 2
    run(capsys, "ask", "Anything?", "--store", store, "--role", "employee", "--purpose", "work")
    assert run(capsys, "audit", "replay", "--store", store)[0] == Exit.CANNOT_TELL
    assert run(capsys, "audit", "replay", "--store", store, "--table", made)[0] == Exit.OK
    code, _ = run(capsys, "policy", "apply", "edgar", "--store", store)
    assert code == Exit.BAD_INPUT
