"""Calibrate the confidence gate of a store on questions of its own, and show it: ``carag gate``."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from carag.cli._options import (
    AsJson,
    EmbedderName,
    EvidenceUrl,
    NotBefore,
    RankerName,
    Retain,
    Store,
    log_settings,
    model_settings,
)
from carag.cli._output import Exit, say, say_json, warn
from carag.cli.ask import Purpose, Role
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted

if TYPE_CHECKING:
    from carag.engine import GateReport

__all__ = ["app"]

app = typer.Typer(help="When a question is declined because no passage is close.", no_args_is_help=True)

_ERROR: Final = re.compile(r"0?\.[0-9]{1,6}|[0-9]{1,6}/[1-9][0-9]{0,5}", re.ASCII)
"""Bounded, because an exponent could ask for a number of any length."""


@app.command()
def calibrate(
    context: typer.Context,
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="JSON lines, each with question and documents.")
    ],
    store: Store,
    role: Role,
    purpose: Purpose,
    error: Annotated[
        str,
        typer.Option(
            metavar="E",
            help="The share of answerable questions to decline at most: [b]0.1[/b] or [b]1/10[/b].",
        ),
    ] = "0.1",
    ranker: RankerName = None,
    embedder: EmbedderName = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    evidence: EvidenceUrl = None,
    as_json: AsJson = False,
) -> int:
    """Choose how close a passage must be, from questions whose answers you know, and put that in force, on record.

    A line is {"question": "…", "documents": ["ID", …]}: the documents that hold the answer, none if no document does.
    Each question is asked as this role, and is on record. Exit code 4 if this role may not ask for this purpose.

    [dim]carag gate calibrate questions.jsonl --store store --role employee --purpose work[/dim]
    """
    from carag.engine import Engine
    from carag.policy import Session

    session, share = Session(role=role, purpose=purpose), _error(error)
    settings = log_settings(retain, not_before, evidence)
    settings |= model_settings(context, store, embedder=embedder, ranker=ranker)
    with Engine.open(store, create=False, **settings) as engine:
        try:
            report = engine.calibrate_gate(questions, session, error=share)
        except Refused as refusal:
            warn(str(refusal), style="red")
            return Exit.REFUSED
    if as_json:
        say_json(report.to_json())
    else:
        _show(report)
    return Exit.OK


@app.command()
def show(store: Store, as_json: AsJson = False) -> int:
    """Say which gate is in force in a store, and on what it was calibrated.

    [dim]carag gate show --store store[/dim]
    """
    from carag.engine import NO_EMBEDDER, Engine

    with Engine.open(store, create=False, embedder=NO_EMBEDDER) as engine:
        report, gate = engine.gate_report, engine.gate
    if as_json:
        kept = None if report is None else report.to_json()
        say_json({"threshold": gate.threshold, "calibrated": gate.calibrated, "report": kept})
    elif report is not None:
        _show(report)
    elif gate.threshold == -1:
        say("no gate: no passage is too far from a question; calibrate one: carag gate calibrate")
    else:
        say(f"threshold {gate.threshold:.6f}, measured on SEC filings; none was calibrated on this store")
    return Exit.OK


def _error(text: str) -> Fraction:
    if _ERROR.fullmatch(text) is None:
        raise InvalidArgument(f"--error is {quoted(text)}; want a share between 0 and 1, as 0.1 or 1/10")
    return Fraction(text)


def _show(report: GateReport) -> None:
    session = f"{report.role}/{report.purpose}"
    say(
        f"threshold {report.threshold / 1_000_000:.6f} for {report.embedder}; record {report.record} in the audit log"
    )
    say(
        f"  calibrated on {report.answerable} questions of {session}: at most {report.error} of new ones are declined"
    )
    say(f"  declined of those {report.answerable}: {report.answerable_declined} (they set the threshold)")
    say(
        f"  declined of {report.unanswerable} without an answer: {report.unanswerable_declined} (they did not set it)"
    )
    if report.hidden:
        say(f"  left out: {report.hidden}, whose documents are all hidden from {session}")
    say(f"  SHA-256 of the questions: {report.questions}", style="dim")
