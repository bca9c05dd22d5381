"""``carag policy show``, ``lint``, ``diff``, and ``--profile``: what they print, and what they exit with."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.cli import Exit, app
from carag.policy import Profile
from carag.store.store import CorpusStore

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


def test_a_folder_is_a_profile_with_bits_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Show, lint and diff take the folder; a table alone has EDGAR's bits, so the generic one is refused."""
    folder = files("carag").joinpath("profiles/generic")
    assert run(capsys, "lint", str(folder)) == (Exit.OK, "4 cells, 0 findings\n")
    assert run(capsys, "lint", str(folder / "roles.toml"))[0] == Exit.BAD_INPUT
    assert run(capsys, "lint", str(tmp_path))[0] == Exit.BAD_INPUT
    assert "no cell differs" in run(capsys, "diff", str(folder), str(folder))[1]
    by_name, by_folder = (run(capsys, "show", "--profile", one) for one in ("generic", str(folder)))
    assert by_name == by_folder
    assert "employee/work" in by_name[1]
    assert "buy_side" not in by_name[1]


def test_show_tells_what_is_in_force_in_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also while an engine holds it; a directory without one is refused, and so is a second source."""
    with Engine.open(tmp_path, profile="generic", embedder="wordllama"):
        assert run(capsys, "show", "--store", str(tmp_path)) == run(capsys, "show", "--profile", "generic")
    assert run(capsys, "show", "--store", str(tmp_path / "none"))[0] == Exit.BAD_INPUT
    begun = tmp_path / "begun"
    begun.mkdir()
    CorpusStore.open(begun / "corpus.db").close()
    assert run(capsys, "show", "--store", str(begun)) == (Exit.BAD_INPUT, "")
    assert run(capsys, "show", "--store", str(tmp_path), "--profile", "generic")[0] == Exit.BAD_INPUT


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
        assert app.run(command) == Exit.OK
        assert "bit 2" in capsys.readouterr().out
        assert app.run([*command, "--profile", str(folder)]) == Exit.OK
        named = capsys.readouterr().out
        assert "SECRET" in named
        assert "bit 2" not in named
    app.run(verify)
    assert 'narrowed by:  {"year":[2024]}' in capsys.readouterr().out
    (folder / "roles.toml").write_text(roles + "\n", "utf-8")
    for command in (verify, show):
        assert app.run([*command, "--profile", str(folder)]) in (Exit.BAD_INPUT, Exit.CANNOT_TELL)
        assert "is not the one that the record names" in capsys.readouterr().err.replace("\n", " ")


def test_what_if_names_documents_and_shows_no_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By cell; ``apply`` counts the same, and then nothing more would change."""
    store, wider = tmp_path / "store", tmp_path / "wider"
    with Engine.open(store, profile="generic", embedder="wordllama") as engine:
        engine.add([Document(id="plan/a", text="The canteen closes.", bits=["SECRET"])])
    wider.mkdir()
    for name in ("profile.toml", "roles.toml"):
        text = files("carag").joinpath(f"profiles/generic/{name}").read_text()
        (wider / name).write_text(text.replace('["SECRET", "PERSONAL", "LEGAL"]', '["PERSONAL", "LEGAL"]'))
    asked = ("what-if", str(wider), "--store", str(store))
    code, said = run(capsys, *asked)
    assert (code, "canteen" in said) == (Exit.OK, False)
    assert said.splitlines() == [
        "employee/work  documents opened: 1, closed: 0",
        "  opened plan/a",
        "in all cells, documents opened: 1, closed: 0",
    ]
    (told,) = json.loads(run(capsys, *asked, "--json")[1])["cells"]
    assert told["at_once"] == {"opened": ["plan/a"], "closed": []}
    assert (
        "in all cells, documents opened: 1, closed: 0"
        in run(capsys, "apply", *asked[1:], "--widen")[1].splitlines()
    )
    assert json.loads(run(capsys, *asked, "--json")[1])["cells"] == []


def test_what_if_names_the_passages_that_answers_lose(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By record or line, and by passage; neither the question nor a text is shown."""
    store, stricter = tmp_path / "store", tmp_path / "stricter"
    with Engine.open(store, profile="generic", embedder="wordllama") as engine:
        engine.add([Document(id="plan", text="The canteen closes.", bits=["INTERNAL"])])
        asked = engine.retrieve("When does the canteen close?", Session(role="employee", purpose="work"))
    stricter.mkdir()
    for name in ("profile.toml", "roles.toml"):
        text = files("carag").joinpath(f"profiles/generic/{name}").read_text()
        (stricter / name).write_text(text.replace('["SECRET", "PERS', '["INTERNAL", "SECRET", "PERS'))
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "What closes?", "role": "employee", "purpose": "work"}')
    command = ("what-if", str(stricter), "--store", str(store), "--last", "5", "--questions", str(questions))
    said = run(capsys, *command)[1]
    assert "canteen" not in said
    assert said.splitlines()[-6:] == [
        f"record {asked.receipt.seq}  employee/work  passages lost: 1 of 1",
        "  lost plan:00000",
        "of the last 5 answers on record, with passages lost: 1",
        "question in line 1  employee/work",
        "  left plan:00000",
        "questions with other passages: 1",
    ]
    told = json.loads(run(capsys, *command, "--json")[1])
    assert told["records"][0]["lost"] == told["questions"][0]["left"] == ["plan:00000"]
