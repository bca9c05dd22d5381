"""Make a store and put documents into it: ``carag init`` and ``carag ingest``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._options import (
    AsJson,
    EmbedderName,
    EvidenceUrl,
    NotBefore,
    ProfileName,
    Retain,
    Store,
    log_settings,
    model_settings,
)
from carag.cli._output import Exit, progress, say, say_json, warn
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.cli._configuration import Configuration
    from carag.engine import IngestReport

__all__ = ["ingest", "init"]

_FORMATS: Final = (
    "EDGAR submissions (.txt, .sgml, .nc), JSON lines of filings (.jsonl, .ndjson), EDGAR's lists of filings (.tsv, "
    "CIK##########.json), each also with .gz"
)


_FILES: Final = (
    "PDF, DOCX, HTML, Markdown or plain text, JSON lines with id and text, and metadata.csv or metadata.jsonl that "
    "states their facts"
)


def init(
    context: typer.Context,
    store: Store,
    profile: ProfileName = None,
    embedder: EmbedderName = None,
    as_json: AsJson = False,
) -> int:
    """Make a store under a profile, and say what its documents must state and who may ask.

    A store keeps its profile's bits for ever; its roles change by [b]carag policy apply[/b], on record. A
    [b]carag.toml[/b] that names the store is written into the current directory, or as [b]--config[/b] says, unless
    there is one.

    [dim]carag init --profile generic --store store[/dim]
    """
    from carag.engine import Engine

    if (store / "corpus.db").exists():
        raise InvalidArgument(f"{store} holds a store already; want a new directory")
    configuration: Configuration = context.obj
    configuration.check_begin(store)
    with Engine.open(store, profile=profile, **model_settings(context, store, embedder=embedder)) as engine:
        made, gate = engine.profile, engine.gate
    begun = configuration.begin(store, embedder)
    named = configuration.names(store)
    vocabulary = made.vocabulary
    if as_json:
        said = {"profile": made.name, "sha256": made.table.sha256, "bits": list(vocabulary.flags.__members__)}
        say_json({"store": str(store), **said, "config": str(configuration.path) if named else None})
        return Exit.OK
    say(f"{store} is a store of the profile {made.name}, of {len(vocabulary.flags)} bits.")
    if gate.standing:
        say(f"  {gate.standing}")
    for fact in vocabulary.required:
        say(
            f"  a document must state {fact.field}: {', '.join(fact.one_of)}; one that does not is quarantined"
        )
    for cell in made.table.cells:
        say(f"  {cell.role} may ask for {cell.purpose}")
    say(begun)
    where = "" if named and not configuration.is_given else f" --store {store}"
    say(f"Next: carag ingest PATH{where}, then carag ask QUESTION{where} --role R --purpose P")
    return Exit.OK


def ingest(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A filing, a JSONL file of filings, EDGAR's list of a company's filings (CIK##########.json), or a "
            "directory; under another profile a file or folder of PDF, DOCX, HTML, Markdown, text or JSON lines.",
        ),
    ],
    store: Store,
    profile: ProfileName = None,
    embedder: EmbedderName = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A reader of your own: it takes PATH, and returns documents, and texts that name what is none.",
        ),
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    evidence: EvidenceUrl = None,
    as_json: AsJson = False,
) -> int:
    """Read filings, or documents of another profile, label them, and make them searchable.

    Can be killed at any point and run again: what is stored and unchanged is skipped, by content hash. What cannot be
    labelled is stored in quarantine, where no policy reaches it, and counted with its reason. A filing that is only
    listed, without text, adds no passage; it is an event: it may amend, supersede or delist others.

    [dim]carag ingest data/corpus --store store[/dim]
    """
    from carag.engine import Engine
    from carag.engine.named import imported

    settings = model_settings(context, store, embedder=embedder) | log_settings(retain, not_before, evidence)
    with (
        Engine.open(store, profile=profile, **settings) as engine,
        progress() as bars,
    ):
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int, note: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, note="")
            bars.update(tasks[stage], completed=done, total=total or None, note=note)

        own = None if reader is None else imported("reader", reader, not_in=store)
        report = engine.ingest(path, progress=show, reader=own)
        is_edgar, gate = engine.profile.vocabulary.reader == "edgar", engine.gate
    if as_json:
        say_json(report.to_json())
    else:
        if gate.standing:
            say(gate.standing, style="dim")
        _show_report(report, "filings" if is_edgar else "documents")
    if report.filings or report.events or report.events_unchanged:
        return Exit.OK
    warn(
        f"nothing under {path} could be used: {len(report.problems)} skipped or broken; want "
        f"{_FORMATS if is_edgar else _FILES}",
        style="red",
    )
    return Exit.BAD_INPUT


def _show_report(report: IngestReport, kind: str) -> None:
    say(
        f"{report.added} {kind} added, {report.changed} changed, {report.unchanged} unchanged; "
        f"{report.chunks} chunks, {report.relabelled} relabelled. "
        f"The store holds {report.total_filings} {kind} in {report.total_chunks} chunks."
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
