"""``carag erase`` and ``carag audit erasures``, as a person types them who answers a request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.cli import Exit
from carag.cli.app import run
from carag.cli.verify import run as verify

if TYPE_CHECKING:
    from collections.abc import Callable

    Typed = Callable[..., tuple[int, str, str]]

SESSION = Session(role="employee", purpose="work")
BASIS = ("--basis", "GDPR_17_1")
TWO = (*BASIS, "--by", "Dora", "--approver", "Carl")
OPENER = ("--role", "privacy_officer", "--actor", "Dora", "--why", "REQ-7")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three documents, one of which is cited in an answer."""
    home = tmp_path / "store"
    with Engine.open(home, profile="generic", embedder="wordllama") as engine:
        engine.add(
            Document(id=name, text=f"The loan of Ana Weber, number {name}, was granted.", bits=["INTERNAL"])
            for name in ("a.md", "b b.md", "c.md")
        )
        assert engine.ask("Which loan of Ana Weber was granted?", SESSION).citations
    return home


@pytest.fixture
def typed(store: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run a command on the store; return exit code, output and errors."""

    def type_(*words: object) -> tuple[int, str, str]:
        code = run([*map(str, words), "--store", str(store)])
        return code, *capsys.readouterr()

    return type_


def documents(store: Path) -> set[str]:
    with Engine.open(store) as engine:
        return {one.document_id for one in engine.retrieve("Ana Weber's loan", SESSION, 9).passages}


def size(store: Path) -> int:
    with Engine.open(store) as engine:
        return engine.log.size


def test_what_a_dry_run_tells_is_done_and_listed(store: Path, typed: Typed, tmp_path: Path) -> None:
    """In numbers: the dry run's are those of the erasure, and of the list of erasures."""
    file, out = tmp_path / "ids.txt", tmp_path / "kept"
    file.write_text("b b.md\r\n\na.md\n")
    words = ("erase", "a.md", "--file", file, *TWO, "--out", out, "--json")
    before = size(store)
    told = json.loads(typed(*words, "--dry-run")[1])
    assert (size(store), out.exists()) == (before, False)
    done = json.loads(typed(*words)[1])
    same = ("documents", "passages", "answers", "kept", "beyond")
    assert [done[name] for name in same] == [told[name] for name in same]
    assert (told["dry_run"], told["records"], told["statements"]) == (True, [], [])
    assert (done["dry_run"], done["documents"], done["passages"]) == (False, 2, 2)
    assert documents(store) == {"c.md"}
    [listed] = json.loads(typed("audit", "erasures", "--json")[1])
    assert [listed["record"]] == done["records"]
    assert (listed["documents"], listed["passages"]) == (2, 2)
    assert listed["kept"] == [one["record"] for one in done["kept"]]
    assert (listed["basis"], listed["places"]) == ("GDPR_17_1", ["corpus.db", "index", "words"])
    text = typed("audit", "erasures")[1]
    assert f"record {listed['record']}  {listed['erased'][:10]} " in text
    assert "documents 2, passages 2" in text
    assert "a.md" not in text


def test_each_statement_shows_its_document_and_is_made_again_on_record(
    store: Path, typed: Typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ``--out`` keeps is what ``audit erasures --id`` prints later, byte for byte."""
    out = tmp_path / "kept"
    assert typed("erase", "a.md", "b b.md", *TWO, "--out", out)[0] == Exit.OK
    [receipt] = out.glob("receipt-*.json")
    kept = {json.loads(one.read_bytes())["id"]: one for one in out.glob("erased-*.json")}
    assert {*kept} == {"a.md", "b b.md"}
    for id_, path in kept.items():
        before = size(store)
        code, again, _ = typed("audit", "erasures", "--id", id_, *OPENER)
        assert (code, again.encode(), size(store)) == (Exit.OK, path.read_bytes(), before + 1)
        judged = verify(["verify", str(receipt), "--key", str(store / "vkey"), "--erased", str(path)])
        assert (judged, f"it erases document {id_}" in capsys.readouterr().out) == (Exit.OK, True)
    kept["a.md"].write_bytes(kept["a.md"].read_bytes().replace(b"a.md", b"c.md"))
    words = ["verify", str(receipt), "--key", str(store / "vkey"), "--erased", str(kept["a.md"])]
    assert verify(words) == Exit.TAMPERED
    assert "does not erase document c.md" in capsys.readouterr().out
    assert verify([*words[:-1], str(tmp_path / "none")]) == Exit.BAD_INPUT


def test_what_stays_is_told_with_the_reason(store: Path, typed: Typed) -> None:
    """A duty to keep, on request; under an order the answer goes."""
    cited = json.loads(typed("erase", "a.md", "b b.md", "c.md", *TWO, "--dry-run", "--json")[1])["kept"]
    assert len(cited) == 1
    text = typed("erase", "a.md", "b b.md", "c.md", *TWO, "--dry-run")[1]
    assert "nothing was changed" in text
    assert "answers to keep although they cite these: 1" in text
    assert f"in record {cited[0]['record']}: " in text
    assert "which keeps its values until" in text
    ordered = ("--basis", "GDPR_17_1_E", *TWO[2:])
    text = typed("erase", "a.md", "b b.md", "c.md", *ordered)[1]
    assert f"answers erased because they cite these: 1, in records {cited[0]['record']}\n" in text
    assert "answers kept although they cite these: 0" in text
    assert "may still hold something: backups" in text


REFUSED = {
    "an unknown id beside a known one": (("a.md", "none.md", *TWO), "none.md"),
    "no id": (TWO, "no document is named"),
    "an unknown basis": (("a.md", "--basis", "GDPR_18", *TWO[2:]), "GDPR_18"),
    "one person twice": (("a.md", *BASIS, "--by", "Dora", "--approver", "dora"), "second person"),
    "a file that is not there": (("--file", "none.txt", *TWO), "none.txt"),
    "a folder that is not empty": (("a.md", *TWO, "--out", "full"), "full"),
    "a folder that is a file": (("a.md", *TWO, "--out", "full/file"), "full/file"),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_erased_by_a_command_that_is_wrong(
    words: tuple[str, ...], said: str, store: Path, typed: Typed
) -> None:
    """Neither documents nor answers, and nothing is put on record."""
    Path("full").mkdir()
    Path("full/file").write_text("kept")
    before = size(store)
    code, _, error = typed("erase", *words)
    assert (code, said in error.replace("\n", " ")) == (Exit.BAD_INPUT, True)
    assert (size(store), documents(store)) == (before, {"a.md", "b b.md", "c.md"})
    assert Path("full/file").read_text() == "kept"


def test_a_statement_needs_a_role_a_person_and_a_purpose(store: Path, typed: Typed) -> None:
    """A refusal by role is on record; a command that lacks something opens nothing."""
    assert "erasures of documents: 0" in typed("audit", "erasures")[1]
    typed("erase", "a.md", *TWO)
    before = size(store)
    for missing in range(0, 6, 2):
        words = OPENER[:missing] + OPENER[missing + 2 :]
        code, _, error = typed("audit", "erasures", "--id", "a.md", *words)
        assert (code, "--id opens what is sealed" in error.replace("\n", " ")) == (Exit.CANNOT_TELL, True)
        assert typed("audit", "erasures", *OPENER[missing : missing + 2])[0] == Exit.CANNOT_TELL
    assert size(store) == before
    code, text, error = typed("audit", "erasures", "--id", "a.md", *OPENER[2:], "--role", "clerk")
    assert (code, text, size(store)) == (Exit.REFUSED, "", before + 1)
    assert "ROLE_MAY_NOT_OPEN" in error


def test_of_a_store_that_is_not_there_none_is_made(tmp_path: Path) -> None:
    """Erasing opens stores and makes none."""
    assert Exit.BAD_INPUT == run(["erase", "a.md", *TWO, "--store", str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()
