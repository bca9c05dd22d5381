"""Files are read in a child process with a budget; after it is ended, the next file is read all the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from carag.readers import child as module
from carag.readers.child import Child
from carag.readers.folder import read_folder
from carag.readers.html import read_html
from carag.readers.outcome import Problem, ReadDocument, Unreadable
from tests.readers.jobs import busy, chatter, end, spin, swell
from tests.readers.writers import docx_package, paragraph, pdf


def refusal(child: Child, function: object, content: bytes = b"x") -> tuple[str, str]:
    with pytest.raises(Unreadable) as refused:
        child.call(function, content)  # type: ignore[arg-type]
    return refused.value.kind.value, str(refused.value)


def test_what_exceeds_its_budget_is_ended_and_the_next_is_read() -> None:
    """Time, memory, a crash, a kill by the system: each is a problem that names its cause."""
    with Child(seconds=1, memory=1 << 30) as child:
        assert (
            "too_large",
            "takes more than 1 seconds of processor time to read; split the file",
        ) == refusal(child, spin)
        assert "takes more memory to read than a file may" in refusal(child, swell)[1]
        assert ("too_large", "takes more memory to read than the machine has; split the file") == refusal(
            child, end, b"%d" % signal.SIGKILL
        )
        assert "too_large" == refusal(child, end, b"%d" % signal.SIGABRT)[0]
        assert "failed" == refusal(child, end, b"%d" % signal.SIGSEGV)[0]
        assert "Sales" == child.call(read_html, b"<p>Sales")["text"]


def test_each_file_has_a_budget_of_its_own() -> None:
    """Time that other files took does not count."""
    with Child(seconds=1) as child:
        for _ in range(2):
            child.call(busy, b"")
        assert child._process is not None


def test_what_a_parser_prints_is_no_reply_and_its_failure_names_no_text(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A parser's output is neither a reply nor printed, and the reason of a problem does not quote the file."""
    with Child() as child:
        assert "said" == child.call(chatter, b"")
        kind, reason = refusal(child, chatter, b"secret")
        assert ("failed", False) == (kind, "secret" in reason)
        assert "said" == child.call(chatter, b"")
    assert ("", "") == capfd.readouterr()


def test_no_file_of_the_current_directory_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder from somebody else may hold a module with a parser's name."""
    (tmp_path / "lxml.py").write_text("raise SystemExit(3)")
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    with Child() as child:
        assert "Sales" == child.call(read_html, b"<p>Sales")["text"]


@pytest.mark.parametrize("name", ["a.html", "a.pdf", "a.docx"])
def test_a_folder_reports_the_file_and_reads_the_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every format that needs a parser; here the budget is too little memory to start."""
    content = {"a.html": b"<p>Sales", "a.pdf": pdf([["Sales"]]), "a.docx": docx_package(paragraph("Sales"))}[
        name
    ]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "z.txt").write_text("Costs")
    first, second = read_folder(tmp_path)
    assert isinstance(first, ReadDocument)
    assert ("Sales", "Costs") == (first.text.strip(), second.text)  # type: ignore[union-attr]
    monkeypatch.setattr(module, "MAX_MEMORY", 1 << 20)
    first, second = read_folder(tmp_path)
    assert (name, True) == (first.where, isinstance(first, Problem))
    assert "Costs" == second.text  # type: ignore[union-attr]


def test_the_child_ends_with_the_reading(tmp_path: Path) -> None:
    """Also if the outcomes are not read to the end."""
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text("<p>Sales")
    outcomes = read_folder(tmp_path)
    next(outcomes)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    assert children.read_text().split()
    before = set(children.read_text().split())
    outcomes.close()  # type: ignore[attr-defined]
    assert before - set(children.read_text().split())
