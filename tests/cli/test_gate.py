"""``carag gate``: the confidence gate is calibrated on a store's own questions, and shown."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine
from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = ("canteen", "library", "car park", "gym", "reception", "laundry", "archive", "workshop", "garden")
SESSION = ("--role", "employee", "--purpose", "work")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    home = tmp_path / "store"
    with Engine.open(home, profile="generic", embedder="wordllama") as engine:
        engine.add(
            Document(id=topic, text=f"The {topic} opens at {hour}.", facts={"classification": "public"})
            for hour, topic in enumerate(TOPICS, 7)
        )
        engine.add([Document(id="plan", text="The gym will be sold.", facts={"classification": "secret"})])
    return home


def lines(*more: dict[str, Any]) -> str:
    rows = [{"question": f"When does the {topic} open?", "documents": [topic]} for topic in TOPICS]
    return "\n".join(json.dumps(row) for row in [*rows, *more])


def calibrate(store: Path, text: str, *options: str) -> int:
    file = store.parent / "questions.jsonl"
    file.write_text(text)
    return run(["gate", "calibrate", str(file), "--store", str(store), *(options or SESSION)])


def size(store: Path) -> int:
    with Engine.open(store) as engine:
        return engine._log.size


REFUSED = {
    "a line": ("{", SESSION, "questions.jsonl, line 1: the line is not JSON"),
    "too few": (lines().partition("\n")[0], SESSION, "want 9 or more for an error of 1/10"),
    "a smaller error": (lines(), (*SESSION, "--error", "1/20"), "want 19 or more for an error of 1/20"),
    "hidden": (
        lines({"question": "Sold?", "documents": ["plan"]}),
        SESSION,
        "line 10: employee/work may use none",
    ),
    "unknown": (
        lines({"question": "Sold?", "documents": ["plans"]}),
        ("--role", "compliance", "--purpose", "review"),
        "line 10: the document 'plans' is not in the store",
    ),
    **{
        f"--error {error}": (lines(), (*SESSION, "--error", error), why)
        for error, why in {
            "ten": "want a share between 0 and 1",
            "1e-9": "want a share between 0 and 1",
            "1/0": "want a share between 0 and 1",
            "1/00": "want a share between 0 and 1",
            "0.0000001": "want a share between 0 and 1",
            "-0.1": "want a share between 0 and 1",
            "1": "want a share between 0 and 1",
            "2/1": "between 0 and 1",
            "0/3": "between 0 and 1",
        }.items()
    },
}


@pytest.mark.parametrize(("text", "options", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_calibrated_on_is_bad_input_and_changes_nothing(
    store: Path, text: str, options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = size(store)
    assert Exit.BAD_INPUT == calibrate(store, text, *options)
    assert why in " ".join(capsys.readouterr().err.split())
    assert before == size(store)


def test_a_role_that_may_not_ask_is_refused(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the exit code of a refusal, and on record."""
    before = size(store)
    assert Exit.REFUSED == calibrate(store, lines(), "--role", "public", "--purpose", "work")
    assert "public" in capsys.readouterr().err
    assert before + 1 == size(store)


def test_there_must_be_a_store_and_a_file(tmp_path: Path, store: Path) -> None:
    for arguments in (
        ["calibrate", "none.jsonl", *SESSION],
        ["calibrate", str(tmp_path), *SESSION],
        ["show"],
    ):
        where = store if arguments[-1] == "work" else tmp_path / "none"
        assert Exit.BAD_INPUT == run(["gate", *arguments, "--store", str(where)])


def test_it_says_what_was_measured_on_what(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And ``show`` says the same of the store, until it is calibrated again."""
    text = lines({"question": "Who wrote the fugue in G minor?", "documents": []})
    assert Exit.OK == calibrate(store, text)
    said = capsys.readouterr().out
    assert "9 questions of employee/work: at most 1/10 of new ones are declined" in said
    assert "declined among those 9: 0 (they set the threshold)" in said
    assert "declined among 1 without an answer: 1 (they did not set it)" in said
    assert "left out" not in said
    for _ in range(2):
        assert Exit.OK == run(["gate", "show", "--store", str(store)])
        assert said == capsys.readouterr().out
    assert Exit.OK == run(["gate", "show", "--store", str(store), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert Exit.OK == calibrate(store, text, *SESSION, "--json")
    again = json.loads(capsys.readouterr().out)
    assert (True, 9, "1/10", 0) == (shown["calibrated"], again["answerable"], again["error"], again["hidden"])
    assert shown["report"] | {"record": again["record"]} == again
    assert shown["threshold"] == again["threshold"] / 1_000_000
    assert Exit.OK == run(["audit", "list", "--store", str(store)])
    assert "GATE_CALIBRATED" in capsys.readouterr().out


def test_it_says_what_was_left_out_to_who_may_know(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Engine.open(store) as engine:
        engine.add([Document(id="lost", text="This has no label.", facts={})])
    text = lines({"question": "Who labelled this?", "documents": ["lost"]})
    assert Exit.OK == calibrate(store, text, "--role", "compliance", "--purpose", "review")
    assert "left out: 1, whose documents are all hidden from compliance/review" in capsys.readouterr().out


def test_ask_says_so_until_the_gate_is_calibrated(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer and a decline; a refusal has no gate. The shipped gate is in force all the same."""
    ask = ["ask", "When does the gym open?", "--store", str(store), *SESSION]
    decline = ["ask", "Who wrote the fugue in G minor?", "--store", str(store), *SESSION]
    said = "measured on five corpora, and was not calibrated for these documents"
    for words, code in ((ask, Exit.OK), (decline, Exit.DECLINED)):
        assert code == run(words)
        assert said in capsys.readouterr().out
    assert Exit.REFUSED == run([*ask[:-1], "read"])
    assert said not in capsys.readouterr().out
    assert Exit.OK == run(["gate", "show", "--store", str(store)])
    assert "the gate stands at a baseline of 0.09 to 0.32" in capsys.readouterr().out
    assert Exit.OK == calibrate(store, lines())
    assert Exit.OK == run(ask)
    assert said not in capsys.readouterr().out


def test_show_says_that_the_gate_stands_at_its_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.engine.documents import Counting

    Engine.open(tmp_path / "store", profile="generic", embedder=Counting()).close()
    assert Exit.OK == run(["gate", "show", "--store", str(tmp_path / "store")])
    assert "the gate stands at its baseline of 0.65" in capsys.readouterr().out


def test_a_gate_changed_behind_the_log_keeps_the_store_shut_until_it_is_accepted(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the command, and the command works."""
    calibrate(store, lines())
    with closing(sqlite3.connect(store / "corpus.db")) as sql:
        sql.execute("DELETE FROM meta WHERE name = 'gate'")
        sql.commit()
    for command in (["gate", "show"], ["ask", "When does the gym open?", *SESSION]):
        assert Exit.BAD_INPUT == run([*command, "--store", str(store)])
        assert f"carag audit accept --gate --store {store}" in " ".join(capsys.readouterr().err.split())
    assert Exit.BAD_INPUT == run(["audit", "accept", "--labels", "--store", str(store)])
    assert Exit.OK == run(["audit", "accept", "--gate", "--store", str(store)])
    assert Exit.OK == calibrate(store, lines())
