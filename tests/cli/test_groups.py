"""``carag groups``: an import takes effect whole and on record, or not at all; a list shows who is in which group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine
from carag.audit import GroupChange
from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

LINES = (
    '{"group": "group:treasury", "members": ["user:ana", "group:desk-fx"]}\n'
    '{"group": "group:audit", "members": ["user:bo"], "from": "2025-05-01", "until": "2025-05-31"}\n'
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Engine.open(tmp_path / "store", profile="generic", embedder="wordllama"):
        pass
    return tmp_path / "store"


def imported(store: Path, text: str, *more: str) -> int:
    file = store.parent / "groups.jsonl"
    file.write_text(text)
    return run(["groups", "import", str(file), "--store", str(store), *more])


def recorded(store: Path) -> list[GroupChange]:
    with Engine.open(store) as engine:
        events = [engine.log.record(number).event for number in range(engine.log.size)]
    return [one for one in events if isinstance(one, GroupChange)]


def listed(store: Path, capsys: pytest.CaptureFixture[str], *name: str) -> list[str]:
    capsys.readouterr()
    assert run(["groups", "list", *name, "--store", str(store)]) == Exit.OK
    return capsys.readouterr().out.splitlines()


def test_an_import_is_on_record_once(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same again changes nothing and records nothing; a group that was never stated is named."""
    for expected in (
        "opened: 3, closed: 0; groups stated for the first time: 2; on record",
        "nothing differs",
    ):
        assert imported(store, LINES, "--by", "anna") == Exit.OK
        said = capsys.readouterr()
        assert expected in said.out
        assert "no members of their own on record: group:desk-fx" in said.err
    (change,) = recorded(store)
    assert (change.opened, change.closed, change.added, change.why) == (3, 0, 2, "GROUPS_IMPORTED")


def test_a_dry_run_changes_and_records_nothing(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It reports what the import would."""
    assert imported(store, LINES, "--dry-run", "--json") == Exit.OK
    tried = json.loads(capsys.readouterr().out)
    assert (tried["opened"], tried["known_at"], recorded(store)) == (3, None, [])
    assert listed(store, capsys) == []
    imported(store, LINES, "--json")
    done = json.loads(capsys.readouterr().out)
    assert done == {**tried, "known_at": done["known_at"]}
    assert [one.at for one in recorded(store)] == [done["known_at"]]


def test_what_if_names_persons_and_documents(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run counts the same documents; an import then opens them, and nothing more would change."""
    with Engine.open(store) as engine:
        engine.add(
            [
                Document(id="plan", text="The canteen closes.", bits=[], allow=["group:treasury"]),
                Document(id="rules", text="Doors close at six.", bits=[], deny=["group:audit"]),
            ]
        )
    file = store.parent / "groups.jsonl"
    asked = ["policy", "what-if", "generic", "--store", str(store), "--groups", str(file)]
    assert imported(store, LINES, "--dry-run") == Exit.OK
    assert "for all principals, documents opened: 2, closed: 0" in capsys.readouterr().out
    assert run(asked) == Exit.OK
    assert capsys.readouterr().out.splitlines() == [
        "in all cells, documents opened: 0, closed: 0",
        *(
            line
            for name, opened in (
                ("group:desk-fx", "plan, rules"),
                ("user:ana", "plan, rules"),
                ("user:bo", "rules"),
            )
            for line in (
                f"{name}  documents opened: {opened.count(',') + 1}, closed: 0",
                f"  opened {opened}",
            )
        ),
        "everyone whom the documents' lists admit  documents opened: 1, closed: 0",
        "  opened rules",
        "for all principals, documents opened: 2, closed: 0",
    ]
    assert imported(store, LINES) == Exit.OK
    capsys.readouterr()
    assert run([*asked, "--json"]) == Exit.OK
    told = json.loads(capsys.readouterr().out)["groups"]
    assert (told["principals"], told["released"], told["not_judged"]) == ([], [], 0)


def test_a_list_shows_groups_and_their_members(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the minutes in which they are members; while an engine holds the store, too."""
    imported(store, LINES)
    with Engine.open(store):
        assert listed(store, capsys) == ["group:audit  members: 1", "group:treasury  members: 2"]
    assert listed(store, capsys, "group:treasury") == ["group:desk-fx", "user:ana"]
    since, until = "2025-05-01T00:00+00:00", "2025-06-01T00:00+00:00"
    assert listed(store, capsys, "group:audit") == [f"user:bo  from {since}  until {until}"]
    assert run(["groups", "list", "group:audit", "--json", "--store", str(store)]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == [{"member": "user:bo", "from": since, "until": until}]
    assert run(["groups", "list", "--json", "--store", str(store)]) == Exit.OK
    assert {one["group"]: one["members"] for one in json.loads(capsys.readouterr().out)} == {
        "group:audit": 1,
        "group:treasury": 2,
    }
    assert run(["groups", "list", "group:none", "--store", str(store)]) == Exit.BAD_INPUT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LINES + '{"group": "group:x", "members": ["ana"]}', "groups.jsonl, line 3: members holds 'ana'"),
        (LINES + '{"group": "group:desk-fx", "members": ["group:treasury"]}', "the groups hold each other"),
        ("", "groups.jsonl is empty"),
    ],
)
def test_a_file_with_a_fault_changes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    """It says where and why, and records nothing."""
    assert imported(store, text) == Exit.BAD_INPUT
    assert why in capsys.readouterr().err
    assert listed(store, capsys) == []
    assert recorded(store) == []


def test_no_store_is_made(tmp_path: Path) -> None:
    """Neither by an import nor by a list."""
    (tmp_path / "groups.jsonl").write_text(LINES)
    nowhere = str(tmp_path / "none")
    assert run(["groups", "import", str(tmp_path / "groups.jsonl"), "--store", nowhere]) == Exit.BAD_INPUT
    assert run(["groups", "list", "--store", nowhere]) == Exit.BAD_INPUT
    assert not (tmp_path / "none").exists()
