"""``carag init``, ``ingest`` and ``policy apply`` under a profile that is not EDGAR's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit, app, ingest
from carag.policy.shipped import READERS, SHIPPED, shipped_text

if TYPE_CHECKING:
    from pathlib import Path

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
    assert (code, "1 replayed, 0 contradictions; 0 undecided" in said) == (Exit.OK, True)
    code, said = run(capsys, "init", "--profile", "generic", "--store", store)
    assert code == Exit.BAD_INPUT


def test_a_newcomer_with_circulars_is_told_what_they_must_state_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words that a reader of circulars knows: none of the facts that the profile's reader works out itself."""
    store = tmp_path / "store"
    code, said = run(capsys, "init", "--profile", "circulars", "--store", store, "--embedder", "wordllama")
    assert (code, "must state its date of issue" in said, "checks" in said) == (Exit.OK, True, False)
    assert [
        role for role in ("analyst", "compliance", "branch", "public") if f"  {role} may ask for" not in said
    ] == []
    _, _, following = said.partition("Next:\n")
    lines = following.splitlines()
    assert [line.split()[1] for line in lines] == ["fetch", "ingest", "sync", "ask", "gate"]
    assert len(said.splitlines()) <= 16


@pytest.mark.parametrize("profile_name", SHIPPED)
def test_the_commands_that_come_next_are_ones_that_can_be_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], profile_name: str
) -> None:
    """Each is a command with those options, of a role that may ask; no command that the profile's store refuses."""
    _, said = run(
        capsys, "init", "--profile", profile_name, "--store", tmp_path / "s", "--embedder", "wordllama"
    )
    lines = [line.strip().partition("  ")[0] for line in said.partition("Next:\n")[2].splitlines()]
    assert ("carag sync FOLDER" in lines) == (profile_name != "edgar")
    for line in lines:
        command = [word for word in line.split()[1:] if word.islower()]
        words = command[: 2 if command[0] == "gate" else 1]
        code, said = run(capsys, *words, "--help")
        assert code == Exit.OK
        assert [word for word in command if word.startswith("--") and word not in said] == []
    (asked,) = [line.split() for line in lines if line.startswith("carag ask")]
    code, _ = run(capsys, "ask", "Anything?", *asked[3:])
    assert code == Exit.DECLINED


def test_what_a_reader_of_its_own_wants_is_said_of_each() -> None:
    """Otherwise a newcomer would be asked for facts that the reader works out."""
    assert {*ingest._STATED} == {*READERS} - {"folder"}


def test_of_many_problems_the_first_are_shown_and_all_are_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, store = tmp_path / "docs", tmp_path / "store"
    docs.mkdir()
    for number in range(25):
        (docs / f"{number:02}.txt").write_text(f"Nothing is stated of text {number}.")
    made = ("--profile", "generic", "--embedder", "wordllama")
    app.run(["ingest", str(docs), "--store", str(store), *made])
    said = capsys.readouterr().err
    assert (said.count("is quarantined, so"), "and 15 more, which --json lists" in said) == (10, True)
    code, said = run(capsys, "ingest", docs, "--store", tmp_path / "other", *made, "--json")
    assert (code, len(json.loads(said)["problems"])) == (Exit.OK, 25)


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


def test_rules_that_open_documents_come_into_force_only_if_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A profile without its rule for SECRET is refused, and stored documents that it would open are counted."""
    store, docs = tmp_path / "store", tmp_path / "docs"
    docs.mkdir()
    (docs / "plan.md").write_text("---\nclassification: secret\n---\nThe canteen will close for good.\n")
    made, wider = profile(tmp_path / "office"), profile(tmp_path / "wider")
    policy = wider / "profile.toml"
    policy.write_text(policy.read_text().replace('value = "secret"', 'value = "top secret"'))
    run(capsys, "init", "--profile", made, "--store", store, "--embedder", "wordllama")
    run(capsys, "ingest", docs, "--store", store)
    code, said = run(capsys, "policy", "apply", wider, "--store", store)
    assert (Exit.BAD_INPUT, True, False) == (
        code,
        "'secret' no longer sets SECRET" in said,
        "is in force" in said,
    )
    assert "documents in the store whose label would change: 1; less restricted: 1, such as plan.md" in said
    code, said = run(capsys, "policy", "apply", wider, "--store", store, "--widen")
    assert (Exit.OK, True) == (code, "is in force" in said)
    code, said = run(capsys, "policy", "diff", made, wider, "--json")
    assert ["classification = 'secret' no longer sets SECRET"] == json.loads(said)["opened"]
    assert json.loads(said)["widens"]
    assert Exit.OK == run(capsys, "policy", "apply", made, "--store", store)[0]
