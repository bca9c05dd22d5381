"""From filings to a proved answer: the whole path once, on the corpus in data/.

Ingests the small corpus, asks one question as four sessions, shows what each may use, what is withheld by
which rule and, for roles that may know, which chunks are hidden; then verifies the receipts offline and shows
that one altered byte is found. Run it through ``./scripts/quickstart``.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

import carag
from carag.audit import Verdict, verify_receipt

ROOT = Path(__file__).parents[1]
STORE = ROOT / "quickstart-store"
SESSIONS = (
    carag.Session(role="buy_side", purpose="invest"),
    carag.Session(role="compliance", purpose="surveil"),
    carag.Session(role="public", purpose="public_qa"),
    carag.Session(role="counsel", purpose="draft", as_of=date(2024, 6, 30)),
)
console = Console(highlight=False)


def main() -> int:
    """Walk the path; return 0 if every step did what it must."""
    question = showcase()
    with carag.Engine.open(STORE) as engine:
        started = time.monotonic()
        report = engine.ingest(ROOT / "data" / "corpus")
        console.print(
            f"Ingested {report.total_filings} filings, {report.total_chunks} chunks into {STORE.name}/ in "
            f"{time.monotonic() - started:.0f} s; quarantined: {dict(report.quarantined) or 'none'}."
        )
        answers = [engine.ask(question, session) for session in SESSIONS]
        vkey = engine.vkey
    console.print(Rule(escape(question)))
    for session, answer in zip(SESSIONS, answers, strict=True):
        show(session, answer)
    return prove(answers, vkey)


def showcase() -> str:
    """Return the question that the corpus answers differently for different sessions."""
    lines = (ROOT / "data" / "questions.jsonl").read_text("utf-8").splitlines()
    return next(str(row["question"]) for row in map(json.loads, lines) if row["id"] == "showcase")


def show(session: carag.Session, answer: carag.Answer) -> None:
    """Print one session's view."""
    when = f" as of {session.as_of}" if session.as_of else ""
    console.print(
        f"\n[bold]{session.role} / {session.purpose}[/bold]{when}: {answer.outcome.value} ({answer.why})"
    )
    console.print(f"  {answer.text}", markup=False)
    console.print("  admissible evidence:", style="dim")
    for passage in answer.passages:
        cited = "*" if any(c.chunk_id == passage.chunk_id for c in answer.citations) else " "
        console.print(
            f"  {cited} {passage.similarity:.3f}  {passage.chunk_id}  {passage.form:<8} {passage.company}",
            markup=False,
        )
    if answer.withheld:
        console.print("  withheld by rule:", style="dim")
        for kind in answer.withheld.kinds:
            console.print(f"    {kind.code}: {kind.text}", markup=False, style="dim")
        for hidden in answer.withheld.hidden:
            why = ", ".join(reason.code for reason in hidden.reasons)
            console.print(f"    hidden neighbour {hidden.chunk_id}: {why}", markup=False)


def prove(answers: list[carag.Answer], vkey: str) -> int:
    """Verify every receipt offline, and one with an altered byte."""
    console.print(Rule("Receipts"))
    failures = 0
    for answer in answers:
        path = STORE / f"receipt-{answer.receipt.seq}.json"
        answer.receipt.write(path)
        checked = verify_receipt(path.read_bytes(), vkey)
        failures += checked.verdict is not Verdict.VERIFIED
        console.print(f"{path.name}: {checked.verdict.value} ({checked.reason})", markup=False)
    altered = bytearray(answers[0].receipt.to_bytes())
    position = altered.index(b'"text":"') + len(b'"text":"')
    altered[position] ^= 0x01
    checked = verify_receipt(bytes(altered), vkey)
    failures += checked.verdict is not Verdict.FAILED
    console.print(f"one altered byte: {checked.verdict.value} ({checked.reason})", markup=False)
    console.print(
        f"Check one yourself: .venv/bin/carag verify {path.relative_to(ROOT)} --key {STORE.name}/vkey"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
