"""Make a store, fill it and keep it up to date: ``carag init``, ``fetch``, ``ingest``, ``adopt`` and ``sync``."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from carag.cli._options import (
    AsJson,
    BackendUrl,
    DryRun,
    EmbedderName,
    NotBefore,
    ProfileName,
    Retain,
    Store,
    model_settings,
    store_settings,
)
from carag.cli._output import Exit, logging_shown, progress, say, say_ids, say_json, warn
from carag.cli.erasing.due import due_json, show_due
from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from carag.adopting import AdoptReport
    from carag.cli._configuration import Configuration
    from carag.engine import IngestReport, SyncReport
    from carag.engine.what_if.preview import Preview
    from carag.policy import Profile
    from carag.sources import FetchReport


_FORMATS: Final = (
    "EDGAR submissions (.txt, .sgml, .nc), JSON lines of filings (.jsonl, .ndjson), EDGAR's lists of filings (.tsv, "
    "CIK##########.json), each also with .gz"
)


_FILES: Final = (
    "PDF, DOCX, XLSX, PPTX, CSV, TSV, e-mail, HTML, Markdown or plain text, JSON lines with id and text, and "
    "metadata.csv or metadata.jsonl with their facts"
)
_STATED: Final = {
    "circulars": (
        "a circular must state its date of issue, in its text or as issued in metadata.csv; one that does not, or that "
        "contradicts itself, is quarantined",
        "its number, title, department and addressees, and what it replaces or amends, are read from the same places",
    ),
    "edgar": (
        "a filing states everything in EDGAR's own fields; one that cannot be labelled from them is quarantined",
    ),
}
"""What documents must state, by reader; for any other reader the profile declares it."""
_ANOTHER: Final = "Documents of another profile need their own store: carag init --profile NAME --store DIR"
_SHOWN: Final = 10
"""The most problems that are printed; ``--json`` has all."""


def init(
    context: typer.Context,
    store: Store,
    profile: ProfileName = None,
    embedder: EmbedderName = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Make a store under a profile, and print what its documents must state and who may ask.

    A store's bits never change; [b]carag policy apply[/b] changes its roles, on record. A [b]carag.toml[/b] that names
    the store is written into the current directory, or where [b]--config[/b] says, unless it exists.

    [dim]carag init --profile generic --store store[/dim]
    """
    from carag.engine import Engine

    if (store / "corpus.db").exists():
        raise InvalidArgument(f"{store} already holds a store; name a new directory")
    configuration: Configuration = context.obj
    configuration.check_begin(store)
    settings = model_settings(context, store, embedder=embedder) | store_settings(backend=backend)
    with Engine.open(store, profile=profile, **settings) as engine:
        made, gate = engine.profile, engine.gate
    begun = configuration.begin(store, embedder)
    named = configuration.names(store)
    vocabulary = made.vocabulary
    if as_json:
        said = {"profile": made.name, "sha256": made.table.sha256, "bits": list(vocabulary.flags.__members__)}
        say_json({"store": str(store), **said, "config": str(configuration.path) if named else None})
        return Exit.OK
    say(f"{store} is a store of the profile {made.name}, with {len(vocabulary.flags)} bits.")
    if gate.standing:
        say(f"  {gate.standing}")
    declared = (
        f"a document must state {fact.field}: {', '.join(fact.one_of)}; one that does not is quarantined"
        for fact in vocabulary.required
    )
    for line in _STATED.get(vocabulary.reader, declared):
        say(f"  {line}")
    for cell in made.table.cells:
        narrowed = ", with --entity only" if cell.allow_list == "mandatory" else ""
        say(f"  {cell.role} may ask for {cell.purpose}{narrowed}")
    say(begun)
    _show_next(made, "" if named and not configuration.is_given else f" --store {store}")
    return Exit.OK


def _show_next(made: Profile, where: str) -> None:
    """Print the next commands, as they can be typed."""
    is_edgar = made.vocabulary.reader == "edgar"
    cell = min(made.table.cells, key=lambda one: one.allow_list == "mandatory")
    session = f"{where} --role {cell.role} --purpose {cell.purpose}"
    about = " --entity N" if cell.allow_list == "mandatory" else ""
    say("Next:")
    if not is_edgar:
        say("  carag fetch URL --into FOLDER --contact YOU  copies documents from a site into a folder")
    say(f"  carag ingest PATH{where}  reads {'filings' if is_edgar else 'a folder or file'} into the store")
    if not is_edgar:
        say(f"  carag sync FOLDER{where}  stores what has changed in it since")
    say(f"  carag ask QUESTION{session}{about}  answers; --receipt FILE keeps the proof")
    say(
        f"  carag gate calibrate QUESTIONS{session}  chooses when to decline, from questions whose answers you know"
    )


def fetch(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="Where to begin; no other host is asked, except those of --also."),
    ],
    into: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="New, empty, or filled by an earlier run. The state of the fetch is kept next to it, in "
            "[b]FOLDER.fetch[/b].",
        ),
    ],
    contact: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            envvar="CARAG_CONTACT",
            help="An e-mail address or web page where the site can reach you; it is sent with every request.",
        ),
    ],
    prefix: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A path that documents lie under. Default: the folder of URL."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Another host, by its exact name, from which linked documents are fetched: one that serves the site's "
            "files. Can be repeated.",
        ),
    ] = None,
    depth: Annotated[int, typer.Option(metavar="N", help="The most links to follow from URL.")] = 3,
    interval: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="The least time between requests; robots.txt may ask for more."),
    ] = 1.0,
    addresses: Annotated[
        int, typer.Option(metavar="N", help="The greatest number of addresses that one run fetches.")
    ] = 10_000,
    minutes: Annotated[
        float, typer.Option(metavar="N", help="The longest time of one run; the next run continues.")
    ] = 360.0,
    as_json: AsJson = False,
) -> int:
    """Fetch the documents of a site that have changed: HTML, PDF and text, for [b]carag ingest[/b].

    Obeys robots.txt, makes one request at a time, and downloads again only what has changed. Can be killed at any
    point and run again. Documents that the site no longer has are not deleted but reported, and listed in
    [b]FOLDER.fetch/gone.jsonl[/b].

    [dim]carag fetch https://www.example.org/circulars/ --into circulars --contact you@example.org[/dim]
    """
    from carag.sources import Limits
    from carag.sources import fetch as mirror

    limits = Limits(depth=depth, interval=interval, addresses=addresses, seconds=minutes * 60)
    report = mirror(
        url, into, contact=contact, prefixes=(*(prefix or ()),), also=(*(also or ()),), limits=limits
    )
    if as_json:
        say_json(report.to_json())
    else:
        _show_fetched(report, into)
    return Exit.OK if report.documents else Exit.BAD_INPUT


def ingest(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A filing, a JSONL file of filings, EDGAR's list of a company's filings (CIK##########.json), or a "
            "directory; under another profile a file or folder of PDF, office, e-mail, HTML, text or JSON lines.",
        ),
    ],
    store: Store,
    profile: ProfileName = None,
    embedder: EmbedderName = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Your own reader: it takes PATH and returns documents and, for each file that is not a document, a "
            "message that says why.",
        ),
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    backend: BackendUrl = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Read filings, or documents of another profile, label them, and make them searchable.

    Can be killed at any point and run again: what is stored already, with the same content hash, is skipped. What
    cannot be labelled is stored in quarantine, where no policy reaches it, and counted with its reason. A filing that
    is only listed, without text, adds no passage, but its event may amend, supersede or delist other filings.

    [dim]carag ingest data/corpus --store store[/dim]
    """
    from carag.engine import Engine
    from carag.engine.directory import undone_if_empty
    from carag.engine.factories import imported

    settings = model_settings(context, store, embedder=embedder) | store_settings(retain, not_before, backend)
    if dry_run:
        own = None if reader is None else imported("reader", reader, not_in=store)
        with undone_if_empty(store), Engine.open(store, profile=profile, **settings) as engine:
            show_preview(engine.contents.preview(path, reader=own), as_json=as_json)
        return Exit.OK
    with (
        undone_if_empty(store),
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
        is_edgar, name, gate = engine.profile.vocabulary.reader == "edgar", engine.profile.name, engine.gate
    if as_json:
        say_json(report.to_json())
    else:
        if gate.standing:
            say(gate.standing, style="dim")
        _show_report(report, "filings" if is_edgar else "documents")
    if report.newly_quarantined > (report.filings + report.events) / 2:
        warn(
            f"most of it is quarantined; does it belong in this store, whose profile is {name}? {_ANOTHER}",
            style="red",
        )
    if report.filings or report.events or report.events_unchanged:
        return Exit.OK
    warn(
        f"nothing under {path} could be used: {len(report.problems)} skipped or broken; the store's profile is {name}: "
        f"want {_FORMATS if is_edgar else _FILES}. {_ANOTHER}",
        style="red",
    )
    return Exit.BAD_INPUT


def adopt(
    context: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="[b]postgresql://…?table=NAME[/b] (pgvector), [b]chroma:FOLDER[/b], [b]qdrant:FOLDER[/b], "
            "[b]qdrant://HOST:PORT/COLLECTION[/b], [b]lancedb:FOLDER[/b] or [b]faiss:FILE?rows=FILE.jsonl[/b]; after a "
            "folder, [b]?name=[/b] chooses a collection. Only read, never written to.",
        ),
    ],
    store: Store,
    profile: ProfileName = None,
    embedder: EmbedderName = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML: which fields are id, text, vector and document, and which state the profile's facts. By "
            "default id, text and vector, and all others are facts.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read everything, say what would be stored, and store nothing.")
    ] = False,
    remove_vanished: Annotated[
        bool,
        typer.Option(
            "--remove-vanished",
            help="Withdraw documents that an earlier run took from here and that are gone; otherwise they are listed.",
        ),
    ] = False,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Adopt the vectors and texts of an existing index as they are, and label them by the profile's rules.

    Nothing is embedded again. What cannot be labelled is quarantined, where no policy reaches it, and listed. Run it
    again to take over what is new or changed. The model that made the vectors is [b]--embedder[/b], or the mapping's
    [b]model[/b]; without an embedder the store cannot answer questions until it is opened with one.

    [dim]carag adopt faiss:index.faiss?rows=rows.jsonl --profile generic --mapping mapping.toml --store store[/dim]
    """
    from carag.adopting import Mapping, run, source_of, spooled
    from carag.engine import Engine
    from carag.engine.corpus import has_store, profile_of
    from carag.engine.directory import undone_if_empty
    from carag.policy import Profile

    read = Mapping.read(mapping)
    settings = model_settings(context, store, embedder=embedder) | store_settings(backend=backend)
    with source_of(address, read.wanted) as source, spooled(source, read) as spool:
        model = read.model or _model_of(settings.get("embedder"))
        if dry_run:
            given = profile_of(store) if has_store(store) else Profile.open(profile or "edgar")
            report = run.tried(spool, given.vocabulary, model)
        else:
            settings.setdefault("embedder", _stand_in(model, spool.dim))
            with undone_if_empty(store), Engine.open(store, profile=profile, **settings) as engine:
                report = run.adopt(engine, spool, model, remove_vanished=remove_vanished)
    say_json(report.to_json()) if as_json else _show_adopted(report, is_tried=dry_run)
    return Exit.OK if report.filings or report.vanished else Exit.BAD_INPUT


def _model_of(embedder: Any) -> str:
    if embedder is None:
        raise InvalidArgument(
            'which model made the vectors is not stated; give --embedder, or a --mapping with model = "NAME"'
        )
    return str(embedder.name)


def _stand_in(model: str, dim: int) -> Any:
    from carag.retrieval import AdoptedEmbedder

    if not dim:
        raise InvalidArgument("the source has no row with a usable vector; nothing was stored")
    return AdoptedEmbedder(model, dim)


def _show_adopted(report: AdoptReport, *, is_tried: bool) -> None:
    would = "would be " if is_tried else ""
    say(
        f"{report.rows} rows: {report.added} documents {would}added, {report.changed} changed, {report.unchanged} "
        f"unchanged, with {report.chunks} passages; none {would}embedded."
    )
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    if report.vanished:
        say_ids(
            f"{len(report.vanished)} are gone from the source, {report.removed} of them withdrawn:",
            {"gone": report.vanished},
        )
    _show_problems(report.problems)


def sync(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of documents, or one file of them.")
    ],
    store: Store,
    remove_vanished: Annotated[
        bool,
        typer.Option(
            "--remove-vanished",
            help="Withdraw documents that have vanished from this folder; otherwise they are only listed.",
        ),
    ] = False,
    nightly: Annotated[
        bool,
        typer.Option(
            "--nightly",
            help="Keep running until SIGTERM, and sync once a night. The store is free between runs.",
        ),
    ] = False,
    at: Annotated[
        str, typer.Option(metavar="HH:MM", help="With [b]--nightly[/b]: the time of day.")
    ] = "02:00",
    time_zone: Annotated[
        str | None,
        typer.Option(
            "--time-zone",
            metavar="ZONE",
            help="With [b]--nightly[/b]: the time zone, such as Asia/Kolkata. Default: the profile's.",
        ),
    ] = None,
    erase_due: Annotated[
        bool,
        typer.Option(
            "--erase-due",
            help="Then erase the documents whose [b]erase_after[/b] has passed, as [b]carag erase-due[/b] does.",
        ),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With [b]--erase-due[/b]: who erases them; kept sealed."),
    ] = None,
    approver: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With [b]--erase-due[/b]: who approves it; kept sealed."),
    ] = None,
    embedder: EmbedderName = None,
    reader: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Your own reader, as for [b]carag ingest[/b]."),
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    backend: BackendUrl = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Store what is new or changed in a folder, by its content, and list what has vanished.

    Only passages whose text is new to the store are embedded. The old version of a document is superseded, and stays
    for questions about the past. A second run does nothing; the next run finishes one that was killed. A file that
    changes while it is read is left for the next run: then, and after SIGTERM, the exit code is 75.

    [dim]carag sync circulars --store store --nightly --at 02:00 --time-zone Asia/Kolkata[/dim]
    """
    from carag.audit.operations.persons import acting
    from carag.engine import Engine
    from carag.engine.corpus import profile_of
    from carag.engine.factories import imported
    from carag.engine.freshness import Nightly

    if dry_run and (nightly or erase_due):
        raise InvalidArgument("--dry-run says what one sync would do; leave --nightly and --erase-due out")
    if not erase_due and (by or approver):
        raise InvalidArgument("--by and --approver are for --erase-due; add it, or leave them out")
    if erase_due:
        acting(by, approver, two=profile_of(store).vocabulary.two_persons_erase)
    settings = model_settings(context, store, embedder=embedder) | store_settings(retain, not_before, backend)
    own = None if reader is None else imported("reader", reader, not_in=store)
    zone = _zone(time_zone) if time_zone is not None else None
    if dry_run:
        with Engine.open(store, create=False, **settings) as engine:
            found = engine.contents.preview(path, reader=own, sync=True, remove_vanished=remove_vanished)
        show_preview(found, as_json=as_json)
        return Exit.OK

    def run(stop: Callable[[], bool]) -> SyncReport:
        with Engine.open(store, create=False, **settings) as engine:
            report = engine.sync(path, remove_vanished=remove_vanished, reader=own, stop=stop)
            due = engine.erasures.erase_due(by=by, approver=approver) if erase_due and not stop() else None
        if as_json:
            more = {} if due is None else {"due": due_json(due)}
            say_json(report.to_json() | more, indent=None if nightly else 2)
        else:
            _show_sync(report)
            if due is not None:
                show_due(due)
        return report

    if nightly:
        night = Nightly(run, at=at, zone=zone or profile_of(store).vocabulary.zone)
        is_shown = context.find_root().params["verbose"]
        with nullcontext() if is_shown else logging_shown():
            night.start()
        return Exit.OK
    with _stop_at_sigterm() as stop:
        report = run(stop)
    if not report.is_done:
        return Exit.TRY_AGAIN
    if report.filings or report.vanished or not report.problems:
        return Exit.OK
    warn(f"nothing under {path} could be used: {len(report.problems)} skipped or broken", style="red")
    return Exit.BAD_INPUT


def show_preview(found: Preview, *, as_json: bool) -> None:
    """Print what would be done."""
    if as_json:
        say_json(found.to_json())
        return
    say(f"dry run: nothing was written; {found.unchanged} documents are unchanged")
    for what in ("added", "changed", "closed", "removed", "vanished"):
        for one in getattr(found, what):
            say(f"  {what:<11} {visible_line(one)}")
    for one, why in found.quarantined.items():
        say(f"  quarantined {visible_line(one)}: {visible_line(why)}")
    _show_problems(found.problems)


def _show_report(report: IngestReport, kind: str) -> None:
    say(
        f"{report.added} {kind} added, {report.changed} changed, {report.unchanged} unchanged; "
        f"{report.chunks} chunks, {report.relabelled} relabelled. "
        f"The store holds {report.total_filings} {kind} in {report.total_chunks} chunks."
    )
    if report.events or report.events_unchanged or report.total_events:
        say(
            f"{report.events} events without text, {report.events_unchanged} rows unchanged; "
            f"the store knows {report.total_events} filings by their facts alone."
        )
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    _show_problems(report.problems)


def _show_fetched(report: FetchReport, folder: Path) -> None:
    say(
        f"{report.added} documents added, {report.changed} changed, {report.unchanged} unchanged, in "
        f"{report.requests} requests. {folder} holds {report.documents}."
    )
    for note in report.notes:
        say(f"  {note}")
    if report.disallowed:
        say(f"{len(report.disallowed)} addresses were not requested: robots.txt disallows them.")
    if report.beyond:
        say(f"{report.beyond} links were not followed: the run has reached its limit of addresses.")
    for one in report.gone:
        warn(f"  gone since {one.since}: {one.file}: {one.url}: {one.why}")
    _show_problems(report.problems)
    if report.paused:
        warn(f"{report.paused}; {report.left} addresses are left for the next run", style="red")


def _show_problems(problems: Sequence[str]) -> None:
    for problem in problems[:_SHOWN]:
        warn(f"  {problem}")
    if len(problems) > _SHOWN:
        warn(f"  and {len(problems) - _SHOWN} more, which --json lists")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArgument(
            f"--time-zone is {quoted(name)}; want a time zone such as Asia/Kolkata or UTC"
        ) from error


@contextmanager
def _stop_at_sigterm() -> Iterator[Callable[[], bool]]:
    told = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: told.set())
    try:
        yield told.is_set
    finally:
        signal.signal(signal.SIGTERM, before)


def _show_sync(report: SyncReport) -> None:
    say(
        f"{report.added} documents added, {report.changed} changed, {report.unchanged} unchanged; of {report.chunks} "
        f"chunks, {report.embedded} were embedded and {report.reused} reused. "
        f"The store holds {report.total_filings} documents in {report.total_chunks} chunks."
    )
    if report.vanished:
        say(f"{len(report.vanished)} vanished from the folder, {report.removed} of them withdrawn:")
    for one in report.vanished:
        say(f"  {one}")
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    _show_problems(report.problems)
    for file in report.left:
        warn(f"  {file}: changed while it was read; left for the next run")
    if report.stopped:
        warn("stopped before the end; the next run continues")
