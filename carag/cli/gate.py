"""Calibrate the confidence gate of a store on its own questions, and show it: ``carag gate``."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from carag.cli._options import (
    AsJson,
    BackendUrl,
    EmbedderName,
    NotBefore,
    PassageReaderName,
    RankerName,
    Retain,
    Store,
    model_settings,
    store_settings,
    unembedded,
)
from carag.cli._output import Exit, say, say_json, warn
from carag.cli.ask import GeneratorName, Purpose, Role
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted

if TYPE_CHECKING:
    from carag.engine import GateReport


app = typer.Typer(
    help="Decide when a question is declined because no passage is close.", no_args_is_help=True
)

_ERROR: Final = re.compile(r"0?\.[0-9]{1,6}|[0-9]{1,6}/[1-9][0-9]{0,5}", re.ASCII)
"""Bounded and without an exponent, which could ask for a number of any length."""


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
        str | None,
        typer.Option(
            metavar="E",
            help="The largest share of answerable questions to decline: [b]0.1[/b] or [b]1/10[/b], the default.",
        ),
    ] = None,
    wrong: Annotated[
        str | None,
        typer.Option(
            metavar="E",
            help="Instead of --error: the largest share of wrong answers among those given, such as [b]0.05[/b]. The "
            "generator then answers each question.",
        ),
    ] = None,
    generator: GeneratorName = "extractive",
    ranker: RankerName = None,
    passage_reader: PassageReaderName = None,
    embedder: EmbedderName = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Choose how close a passage must be, from questions whose answers you know; put it in force, and record it.

    A line is {"question": "…", "documents": ["ID", …]}, with the documents that hold the answer; the list is empty if
    no document does. "passages": ["ID:00000", …] may name the chunks that hold it. Each question is asked in this role,
    and recorded. Exit code 4 if this role may not ask for this purpose.

    [dim]carag gate calibrate questions.jsonl --store store --role employee --purpose work[/dim]
    """
    from carag.engine import Engine
    from carag.policy import Session

    session = Session(role=role, purpose=purpose)
    if error is not None and wrong is not None:
        raise InvalidArgument("one threshold cannot promise both --error and --wrong; give one of them")
    shares = {"error": _share("--error", error), "wrong": _share("--wrong", wrong)}
    settings = store_settings(retain, not_before, backend)
    settings |= model_settings(
        context, store, embedder=embedder, generator=generator, ranker=ranker, passage_reader=passage_reader
    )
    with Engine.open(store, create=False, **settings) as engine:
        try:
            report = engine.calibrate_gate(questions, session, **shares)
        except Refused as refusal:
            warn(str(refusal), style="red")
            return Exit.REFUSED
    if as_json:
        say_json(report.to_json())
    else:
        _show(report)
    return Exit.OK


@app.command()
def show(store: Store, backend: BackendUrl = None, as_json: AsJson = False) -> int:
    """Show which gate is in force in a store, and on what it was calibrated.

    [dim]carag gate show --store store[/dim]
    """
    from carag.engine import Engine

    with Engine.open(store, **unembedded(backend)) as engine:
        report, gate = engine.calibration.report, engine.gate
    if as_json:
        kept = None if report is None else report.to_json()
        say_json(
            {
                "threshold": gate.threshold,
                "calibrated": gate.calibrated,
                "gate": gate.standing,
                "report": kept,
            }
        )
    elif report is not None:
        _show(report)
        if gate.standing:
            say(f"  {gate.standing}")
    else:
        say(gate.standing or f"the gate stands at {gate.threshold:g}, measured on {gate.measured_on}")
        say("  drift is not monitored: that takes a gate calibrated on this store's own questions")
    return Exit.OK


def _share(option: str, text: str | None) -> Fraction | None:
    if text is None:
        return None
    if _ERROR.fullmatch(text) is None:
        raise InvalidArgument(
            f"{option} is {quoted(text)}; want a share between 0 and 1, such as 0.1 or 1/10; 5 percent is 0.05"
        )
    return Fraction(text)


def _show(report: GateReport) -> None:
    session = f"{report.role}/{report.purpose}"
    say(
        f"threshold {report.threshold / 1_000_000:.6f} for {report.embedder}; record {report.record} in the audit log"
    )
    asked = report.answerable + report.unanswerable
    if report.promise == "wrong":
        say(
            f"  calibrated on {asked} questions of {session}: at most {report.error} of new answers are wrong"
        )
        say(f"  wrong among the {report.answered} answered: {report.answered_wrong} (they set the threshold)")
        by = ""
    else:
        say(
            f"  calibrated on {report.answerable} questions of {session}: at most {report.error} of new ones are "
            "declined"
        )
        by = " (they set the threshold)"
    say(f"  declined among those {report.answerable}: {report.answerable_declined}{by}")
    by = by and " (they did not set it)"
    say(f"  declined among {report.unanswerable} without an answer: {report.unanswerable_declined}{by}")
    if report.hidden:
        say(f"  left out: {report.hidden}, whose documents are all hidden from {session}")
    say(f"  SHA-256 of the questions: {report.questions}", style="dim")
