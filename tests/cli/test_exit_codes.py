"""Exit code 1 says that a cryptographic check failed or that ``carag attack`` found something; no error ends in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag.cli import Exit
from carag.cli.app import assembled, run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PRIVATE = "what must not be shown"
UNFORESEEN = {
    ValueError(PRIVATE): Exit.INTERNAL,
    KeyError(PRIVATE): Exit.INTERNAL,
    AssertionError(PRIVATE): Exit.INTERNAL,
    UnicodeEncodeError("utf-8", PRIVATE, 0, 1, "surrogates"): Exit.INTERNAL,
    RecursionError(PRIVATE): Exit.INTERNAL,
    MemoryError(PRIVATE): Exit.INTERNAL,
    SystemExit(1): Exit.INTERNAL,
    SystemExit(PRIVATE): Exit.INTERNAL,
    EOFError(PRIVATE): Exit.INTERNAL,
    OSError(28, "No space left on device"): Exit.INTERNAL,
    KeyboardInterrupt(): Exit.INTERRUPTED,
    BrokenPipeError(32, "Broken pipe"): Exit.HUNG_UP,
}


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command there is, by its words."""
    for name, one in group.commands.items():
        yield from commands(one, *path, name) if hasattr(one, "commands") else [((*path, name), one)]


COMMANDS = dict(commands(assembled()))


AS_GIVEN = {("verify",): ["1"], ("receipt",): ["redact", "1", "--out", "2"]}
"""What commands insist on that read their words themselves."""


def words_for(name: tuple[str, ...]) -> list[str]:
    """Return a command line with all that the command insists on."""
    words = list(name)
    for parameter in COMMANDS[name].params:
        if parameter.required:
            words += ["1"] if parameter.param_type_name == "argument" else [parameter.opts[0], "1"]
    return words + AS_GIVEN.get(name, [])


def fail(monkeypatch: pytest.MonkeyPatch, name: tuple[str, ...], error: BaseException) -> None:
    def failing(*_: object, **__: object) -> int:
        hidden = PRIVATE.upper()
        raise error if hidden else AssertionError

    monkeypatch.setattr(COMMANDS[name], "callback", failing)


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_whatever_is_unforeseen_is_70_in_every_command(
    name: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error, without the error's own words, which could hold text that is not on record."""
    fail(monkeypatch, name, ValueError(PRIVATE))
    assert Exit.INTERNAL == run(words_for(name))
    captured = capsys.readouterr()
    assert ("", 1) == (captured.out, len(captured.err.splitlines()))
    assert PRIVATE not in captured.err


@pytest.mark.parametrize("error", UNFORESEEN, ids=repr)
def test_no_error_of_any_type_is_1(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupted is 130, a reader who went away 141, both without a word; all else is 70 and a line."""
    fail(monkeypatch, ("policy", "bits"), error)
    code = run(["policy", "bits"])
    assert UNFORESEEN[error] == code
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line]
    assert ("", code < Exit.INTERRUPTED) == (captured.out, len(lines))
    assert PRIVATE not in captured.err


def test_a_traceback_is_asked_for_and_shows_no_variables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``CARAG_DEBUG=1`` prints how it came to that; what variables held, nothing prints."""
    fail(monkeypatch, ("policy", "bits"), ValueError("on purpose"))
    monkeypatch.setenv("CARAG_DEBUG", "1")
    assert run(["policy", "bits"]) == Exit.INTERNAL
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert "ValueError: on purpose" in said
    assert PRIVATE.upper() not in said


@pytest.mark.parametrize(
    "step", ["carag.audit.auditor.reader.LogReader.__init__", "carag.audit.tlog.encoding.load"]
)
def test_a_failure_within_an_examination_is_no_verdict(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the error comes from deep below, in the midst of checking a log."""
    from carag.audit import AuditLog, Recovery

    with AuditLog.open(tmp_path) as log:
        log.append(Recovery("DRILL")).write(tmp_path / "r.json")

    def fail(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(step, fail)
    at = ["--store", str(tmp_path)]
    ran = {
        words[0]: run(["audit", *words, *at])
        for words in (
            ["verify"],
            ["replay"],
            ["list"],
            ["show", "0"],
            ["export", "--out", str(tmp_path / "e")],
        )
    }
    assert Exit.TAMPERED not in ran.values()
    assert Exit.INTERNAL in ran.values()


def test_a_reader_who_went_away_is_no_tampering() -> None:
    """As when the output is piped into ``head``; nothing is printed about it."""
    command = f"{sys.executable} -m carag policy bits | true; echo ${{PIPESTATUS[0]}} ${{PIPESTATUS[1]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split()[0] in {str(int(Exit.HUNG_UP)), "0"}  # it may have been quicker than the pipe
    assert "" == done.stderr


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), KeyboardInterrupt(), MemoryError()])
def test_an_error_that_cannot_be_told_is_no_tampering(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If standard error is closed, or a second interrupt comes while the first is reported."""

    def deaf(*_: object, **__: object) -> None:
        raise error

    fail(monkeypatch, ("policy", "bits"), ValueError())
    monkeypatch.setattr("carag.cli.app.warn", deaf)
    assert run(["policy", "bits"]) == Exit.INTERNAL


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk to write to")  # noqa: PTH110
def test_a_full_disk_is_no_tampering() -> None:
    """What could not be printed was not said."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "carag", "policy", "bits"], stdout=full, check=False, cwd=ROOT
        )
    assert done.returncode not in {Exit.OK, Exit.TAMPERED}


def test_ingesting_nothing_usable_is_bad_input(
    tmp_path: Path, small_corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what was there and what is wanted; a run that finds everything unchanged has found something."""
    (tmp_path / "papers").mkdir()
    ingest = ["ingest", str(tmp_path / "papers"), "--store", str(tmp_path / "s"), "--embedder", "wordllama"]
    assert run(ingest) == Exit.BAD_INPUT
    (tmp_path / "papers" / "memo.md").write_text("a memo")
    (tmp_path / "papers" / "rows.jsonl").write_text("{broken\n")
    for more in ([], ["--json"]):
        capsys.readouterr()
        assert run([*ingest, *more]) == Exit.BAD_INPUT
        said = capsys.readouterr().err
        assert "2 skipped or broken" in said
        assert ".jsonl" in said
    filing = next(small_corpus.glob("*.txt"))
    (tmp_path / "papers" / filing.name).write_bytes(filing.read_bytes())
    assert [Exit.OK, Exit.OK] == [run(ingest), run(ingest)]


def test_both_spellings_of_the_key_are_one_option() -> None:
    """``--vkey`` works wherever ``--key`` does, but is not an option of its own."""
    options = {
        name: {one for parameter in COMMANDS[name].params for one in parameter.opts} for name in COMMANDS
    }
    assert not [name for name, own in options.items() if "--vkey" in own]
    with_key = [name for name, own in options.items() if "--key" in own or name == ("verify",)]
    assert len(with_key) > 3
    for name in with_key:
        words = words_for(name)
        if "--key" in words:
            at = words.index("--key")
            words[at : at + 2] = []
        ran = [run([*words, option, "log.example/1+0a1b2c3d+AaBb"]) for option in ("--key", "--vkey")]
        assert ran[0] == ran[1] != Exit.USAGE, name


def test_version_and_completion(capsys: pytest.CaptureFixture[str]) -> None:
    """Which version it is, and how a shell completes it."""
    import carag

    assert run(["--version"]) == Exit.OK
    assert capsys.readouterr().out == f"carag {carag.__version__}\n"
    command = [sys.executable, "-m", "carag"]
    asked = {
        **os.environ,
        "_CARAG_COMPLETE": "complete_bash",
        "COMP_WORDS": "carag audit sh",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=asked, cwd=ROOT)
    assert ["show"] == done.stdout.split()
    shown = [*command, "--show-completion", "bash"]
    # Without this variable typer asks which shell the tests were started from, and knows not every one.
    named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(shown, capture_output=True, text=True, check=True, env=named, cwd=ROOT)
    assert "_CARAG_COMPLETE=complete_bash" in done.stdout
