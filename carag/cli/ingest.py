"""Ingest filings: ``carag ingest``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._options import AsJson, NotBefore, Retain, Store, log_settings
from carag.cli._output import Exit, progress, say, say_json, warn

if TYPE_CHECKING:
    from carag.engine import IngestReport

__all__ = ["ingest"]

_FORMATS: Final = (
    "EDGAR submissions (.txt, .sgml, .nc), JSON lines of filings (.jsonl, .ndjson), EDGAR's lists of filings (.tsv, "
    "CIK##########.json), each also with .gz"
)


def ingest(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A filing, a JSONL file of filings, EDGAR's list of a company's filings (CIK##########.json), or a "
            "directory.",
        ),
    ],
    store: Store,
    embedder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For a new store: [b]minilm[/b] (default) or [b]wordllama[/b]."),
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    as_json: AsJson = False,
) -> int:
    """Read filings, label them, and make them searchable.

    Can be killed at any point and run again: what is stored and unchanged is skipped, by content hash. A filing
    that cannot be labelled is stored in quarantine, where no policy reaches it, and counted with its reason. A filing
    that is only listed, without text, adds no passage; it is an event: it may amend, supersede or delist others.

    [dim]carag ingest data/corpus --store store[/dim]
    """
    from carag.engine import Engine

    with (
        Engine.open(store, embedder=embedder, **log_settings(retain, not_before)) as engine,
        progress() as bars,
    ):
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int, note: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, note="")
            bars.update(tasks[stage], completed=done, total=total or None, note=note)

        report = engine.ingest(path, progress=show)
    if as_json:
        say_json(report.to_json())
    else:
        _show_report(report)
    if report.filings or report.events or report.events_unchanged:
        return Exit.OK
    warn(
        f"nothing under {path} could be used: {len(report.problems)} skipped or broken; want {_FORMATS}",
        style="red",
    )
    return Exit.BAD_INPUT


def _show_report(report: IngestReport) -> None:
    say(
        f"{report.added} filings added, {report.changed} changed, {report.unchanged} unchanged; "
        f"{report.chunks} chunks, {report.relabelled} relabelled. "
        f"The store holds {report.total_filings} filings in {report.total_chunks} chunks."
    )
    if report.events or report.events_unchanged or report.total_events:
        say(
            f"{report.events} events without text, {report.events_unchanged} rows said nothing new; "
            f"the store knows {report.total_events} filings by their facts alone."
        )
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    for problem in report.problems:
        warn(f"  {problem}")
