"""The terminal: filings and receipts are printed as text, which cannot act, hide or forge a line of ours."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag.audit import Outcome, Receipt
from carag.cli import Exit, ask, ingest
from carag.cli.app import run
from carag.engine import Answer, Explanation, IngestReport
from carag.generation import Citation
from carag.policy import Explained, Reason, Rule
from carag.retrieval import Hidden, Withheld

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
EVIL = (
    "10-K[/][/red][link=https://evil.example]x\x1b[31m\x1b]0;title\x07\u202e\u2066\u200b\x9b2J\x7f\r\n"
    "verified: everything\u2028\U000e0041\ue000\ufe0f[b]"
)
SHOWN = "10-K[/][/red][link=https://evil.example]x[31m]0;title2J verified: everything [b]"
ROLE = ["--role", "buy_side", "--purpose", "invest"]
WRITERS = {"child.py", "_output.py", "__main__.py", "logs.py"}
"""The second says what is not installed; the third writes the log of a service."""


def acts(text: str) -> list[str]:
    """Everything in a text that a terminal would act on or a reader not see."""
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return [hex(ord(c)) for c in text if c not in "\n\t" and unicodedata.category(c) in hidden]


def header(number: str, form: str = "10-K", kind: str = "10-K", company: str = "EVIL CO") -> str:
    return (
        f"<SEC-DOCUMENT>{number}.txt : 20230227\n<SEC-HEADER>{number}.hdr.sgml : 20230227\n"
        f"<ACCEPTANCE-DATETIME>20230227162039\nACCESSION NUMBER: {number}\nCONFORMED SUBMISSION TYPE: {form}\n"
        "PUBLIC DOCUMENT COUNT: 1\nCONFORMED PERIOD OF REPORT: 20221231\nFILED AS OF DATE: 20230227\n\nFILER:\n\n"
        f"\tCOMPANY DATA:\n\t\tCOMPANY CONFORMED NAME: {company}\n\t\tCENTRAL INDEX KEY: 0009990001\n"
        "\t\tSTATE OF INCORPORATION: DE\n\n\tBUSINESS ADDRESS:\n\t\tSTATE: CA\n</SEC-HEADER>\n"
        f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>1\n<TEXT>\nThe zebra dividend of the year was 77 cents a share.\n"
        "</TEXT>\n</DOCUMENT>\n</SEC-DOCUMENT>\n"
    )


@pytest.fixture(scope="module")
def filings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filings, rows and files of which every string is a stranger's."""
    home = tmp_path_factory.mktemp("filings")
    one_line = EVIL.replace("\r\n", " ").replace("\u2028", " ")
    (home / "a.txt").write_bytes(header("0009990001-23-000001").encode())
    (home / "b.txt").write_bytes(header("0009990001-23-000002", kind=one_line, company=one_line).encode())
    (home / "c.txt").write_bytes(header("0009990001-23-000003", form=one_line).encode())
    row = {
        "id": EVIL,
        "accession": EVIL,
        "form": EVIL,
        "text": f"The zebra dividend: {EVIL}",
        "company": EVIL,
        "cik": 9990001,
        "filed": "2023-02-27",
        "accepted": EVIL,
        "items": [EVIL],
        "business_state": EVIL,
        "state_of_inc": EVIL,
        "sic": EVIL,
        "documents": [{"type": EVIL, "description": EVIL}],
    }
    likely = {**row, "id": "row", "accession": "0009990001-23-000004", "form": "10-K", "accepted": None}
    let_in = {
        "accession": "0009990001-23-000005",
        "form": "10-K",
        "company": "EVIL CO",
        "cik": 9990001,
        "filed": "2023-02-27",
        "accepted": "2023-02-27T09:00:00-05:00",
        "business_state": "NY",
        "text": f"The zebra dividend of the year was 77 cents a share. {EVIL}",
    }
    rows = [
        row,
        likely,
        let_in,
        {**likely, "accession": 7, EVIL: EVIL},
        {**likely, "filed": EVIL},
        {EVIL: EVIL},
    ]
    lines = [json.dumps(one) for one in rows] + [f'{{"{EVIL}']
    (home / f"rows{one_line.replace('/', '')}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (home / f"{one_line.replace('/', '')}.md").write_text("no filing", encoding="utf-8")
    (home / "CIK0009990001.json").write_text(json.dumps({"cik": EVIL, "name": EVIL, "filings": EVIL}))
    return home


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, filings: Path) -> Path:
    home = tmp_path_factory.mktemp("terminal") / "store"
    assert run(["ingest", str(filings), "--store", str(home), "--embedder", "wordllama"]) == Exit.OK
    return home


def said_by(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Run a command; return all it prints, after checking that it ends by the table and in text."""
    capsys.readouterr()
    code = run([str(word) for word in words])
    captured = capsys.readouterr()
    assert code in set(Exit), words
    assert code != Exit.INTERNAL, captured.err
    assert [] == acts(captured.out + captured.err), words
    assert "\nverified: everything" not in captured.out + captured.err
    assert "Traceback" not in captured.err
    return captured.out + captured.err


def test_no_command_lets_a_filing_act_on_the_terminal(
    filings: Path, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Filings with escapes, titles, overrides, markup and line breaks in every field, through every reading."""
    receipt = tmp_path / "r.json"
    at = ["--store", store]
    for more in ([], ["--json"]):
        said_by(
            capsys,
            "ingest",
            filings,
            "--store",
            tmp_path / f"again{len(more)}",
            *more,
            "--embedder",
            "wordllama",
        )
        said_by(capsys, "policy", "label", filings, *more)
        for cell in (ROLE, ["--role", "compliance", "--purpose", "surveil"]):
            said_by(capsys, "ask", f"zebra dividend {EVIL}", *at, *cell, *more)
            question = "What was the zebra dividend of the year, in cents a share?"
            assert "zebra" in said_by(capsys, "ask", question, *at, *cell, *more, "--receipt", receipt)
            for chunk in ("0009990001-23-000001:00000", "0009990001-23-000005:00000", EVIL):
                said_by(capsys, "explain", chunk, *at, *cell, *more)
        said_by(capsys, "verify", receipt, "--key", store / "vkey", *more)
        said_by(capsys, "audit", "list", *at, *more)
        said_by(capsys, "audit", "show", 3, *at, *more)
        said_by(capsys, "audit", "verify", *at, *more)
        said_by(capsys, "audit", "replay", *at, *more)
        opened = ["--open", "query", "--purpose", "LAW", "--actor", EVIL]
        assert "zebra dividend" in said_by(capsys, "audit", "show", 3, *at, *opened, *more)


def test_no_error_lets_what_was_typed_or_received_act_on_the_terminal(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of files, roles, times, keys and a receipt that is somebody's letter."""
    letter = tmp_path / f"letter{EVIL.replace('/', '').replace(chr(0x7F), '')}.json"
    letter.write_text(json.dumps({"format": EVIL, "record": EVIL, "proof": EVIL, "hits": [], "openings": {}}))
    at = ["--store", store]
    for words in (
        ["verify", letter, "--key", store / "vkey"],
        ["verify", letter, "--key", EVIL],
        ["verify", letter, "--key", f"{EVIL}+0a1b2c3d+AaBb"],
        ["audit", "verify", *at, "--receipt", letter],
        ["audit", "verify", "--store", letter],
        ["audit", "show", 0, *at, "--open", EVIL, "--purpose", "LAW", "--actor", "a"],
        ["audit", "list", *at, "--since", EVIL],
        ["audit", "list", *at, "--outcome", EVIL],
        ["audit", "replay", *at, "--table", letter],
        ["audit", "hold", *at, "--matter", EVIL, "--actor", EVIL],
        ["audit", "anchor", *at, "--to", EVIL],
        ["policy", "lint", letter],
        ["policy", "show", EVIL],
        ["ask", EVIL, *at, *ROLE, "--as-of", EVIL],
        ["ask", EVIL, *at, "--role", EVIL, "--purpose", EVIL],
        ["ask", EVIL, *at, *ROLE, "--generator", EVIL],
        ["ask", EVIL, *at, *ROLE, "--entity", EVIL],
        ["ingest", EVIL.replace("/", ""), *at],
        ["ingest", letter, *at],
        ["bench", "edgar", "--out", tmp_path / "out", "--from", letter],
        [EVIL],
        ["ask", f"--{EVIL}"],
    ):
        said_by(capsys, *words)


def everywhere(kind: type[Any], **given: object) -> Any:
    """Make a value of which every text is a stranger's."""
    texts = {one.name: EVIL for one in dataclasses.fields(kind) if one.type == "str"}
    return kind(**{**texts, **given})


def test_no_cell_of_what_is_shown_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Answers, explanations and reports, with a stranger's text in every field: shown, and shown as text."""
    receipt = Receipt(0, b"{}", "")
    reason = everywhere(Reason, rule=Rule.NOT_YET_PUBLIC, bits=())
    withheld = Withheld((reason,), (Hidden(EVIL, (reason,)),))
    cited = everywhere(Citation, number=1, start=0, end=1)
    why = everywhere(Explained, reason=reason, basis=(EVIL,))
    shown: Sequence[Any] = (
        lambda: ask._show_answer(
            Answer(Outcome.ANSWER, EVIL, receipt, (), withheld, EVIL, (cited,)), Path(EVIL)
        ),
        lambda: ask._show_explanation(
            Explanation(Outcome.ANSWER, EVIL, receipt, EVIL, (why,), (EVIL,), EVIL)
        ),
        lambda: ingest._show_report(IngestReport(problems=[EVIL], quarantined={EVIL: 1}), EVIL),
    )
    for show in shown:
        show()
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert [] == acts(text)
        assert "[/red]" in text.replace("\n", "")
        if show is not shown[0]:  # which is folded into a table
            assert SHOWN in text


def test_only_the_terminal_writes_to_a_stream() -> None:
    """So no command can print raw what a stranger wrote."""
    raw = set()
    names = re.compile(r"\b(?:print|Console|stdout|stderr)\b")
    for path in (ROOT / "carag").rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if names.search(text) else ():
            named = isinstance(node, ast.Name) and node.id in {"print", "Console"}
            stream = isinstance(node, ast.Attribute) and node.attr in {"stdout", "stderr"}
            if named or stream:
                raw.add(path.name)
    assert WRITERS == raw


def test_no_page_of_a_report_acts_on_its_reader() -> None:
    """Whatever names foreign rows give: pages do not act on a terminal, pictures hold no markup."""
    from carag.evaluation.report.page import as_page
    from carag.evaluation.report.report import report
    from carag.evaluation.report.svg import Dot, dots
    from tests.evaluation.rows import row

    evil = f"{EVIL}<script>alert(1)</script>"
    picture = dots(evil, [Dot(evil, 1.0, note=evil)], unit=evil)
    plain, _ = as_page(report([row(embedder="x|y")]))
    page, _ = as_page(report([row(embedder=f"x|{evil}")]))
    for text in (page, picture):
        assert [] == acts(text)
    assert "<script>" not in picture
    assert plain.count("\n") == page.count("\n")


def test_a_letter_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    """No filer's letter ends a command in an encoding error."""
    (tmp_path / "é漢.txt").write_text(header("0009990001-23-000001"))
    command = [sys.executable, "-m", "carag", "policy", "label", str(tmp_path), "--json"]
    done = subprocess.run(
        command, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii"}, cwd=ROOT
    )
    assert done.returncode == Exit.OK
    assert rb"\xe9\u6f22.txt" in done.stdout


def test_text_is_text_also_where_it_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the only escapes are our own colours."""
    from carag.cli._output import warn

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    warn(EVIL, style="green")
    assert SHOWN in stream.getvalue()
    assert [] == acts(stream.getvalue().replace("\x1b[32m", "").replace("\x1b[0m", ""))
