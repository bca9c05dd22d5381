"""Maintain a store: ``upgrade``, ``backup``, ``restore`` and ``share`` it, give it ``names``, move its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._files import opened_log, read_bytes
from carag.cli._options import (
    AsJson,
    BackendUrl,
    EmbedderName,
    Store,
    TrustedWitnesses,
    TsaRoots,
    model_settings,
    store_settings,
)
from carag.cli._output import Exit, progress, say, say_json, warn
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress

    from carag.engine import IngestReport
    from carag.engine.directory import Upgraded
    from carag.engine.migration import Copied


_MAX_KEPT: Final = (64 << 20) + 1
"""How many bytes of a receipt are read: one more than the longest receipt has (``carag.audit.receipts``)."""
_SHOWN: Final = 10
"""The most documents that are listed; ``--json`` has all."""
_Source = Annotated[
    str,
    typer.Option(
        "--from", metavar="URL", help="Where the rows are searched now: [b]native[/b], or a server."
    ),
]
_Target = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="URL",
        help="The place of the copy: [b]native[/b], or a server, as for [b]--backend[/b].",
    ),
]

backend = typer.Typer(
    help="Move a store's rows from one place to another, or build a graph there.", no_args_is_help=True
)


def names(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The SEC's [b]company_tickers.json[/b], or JSON lines with cik, name, tickers and, if known, "
            "fiscal_year_end; gzipped or not.",
        ),
    ],
    store: Store,
) -> int:
    """Give a store a table of companies, by which names and tickers in questions are recognised.

    Names in a question are looked up in this table and among the names in what the session may use, never among those
    in what is hidden from it. A new table replaces the old one.

    [dim]carag names company_tickers.json --store store[/dim]
    """
    from carag.engine.corpus import keep_names
    from carag.retrieval.public_names import MAX_BYTES

    content = read_bytes(file, most=MAX_BYTES + 1)
    # The log's lock covers the whole store: no engine uses the old table meanwhile.
    with opened_log(store) as log, log.alone("a table of names"):
        table = keep_names(store, content, file.name)
    say(f"{len(table.rows)} names of {len({row.cik for row in table.rows})} companies are kept in {store}")
    say(f"  SHA-256 {table.sha256}", style="dim")
    return Exit.OK


def upgrade(
    context: typer.Context,
    store: Store,
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A public table of companies to keep, as for [b]carag names[/b]."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Read the documents again from the folder or file they came from, and store those whose text differs "
            "as new versions. This needs the store's model.",
        ),
    ] = None,
    embedder: EmbedderName = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Upgrade a store of an earlier version: whatever this version needs is made from the store's documents.

    Without [b]--from[/b] nothing is embedded and no file is read, so no model is needed; documents that an earlier
    reader took from files that are parsed, and that this version may read differently, are listed. Can be killed at
    any point and run again. At the end, index, words and documents are checked to be from the same instant.

    [dim]carag upgrade --store store --names company_tickers.json[/dim]
    """
    from carag.engine.directory import upgrade as brought_up
    from carag.retrieval.public_names import MAX_BYTES

    table = None if names is None else (read_bytes(names, most=MAX_BYTES + 1), names.name)
    with progress() as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int, note: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, note="")
            bars.update(tasks[stage], completed=done, total=total or None, note=note)

        found = brought_up(store, names=table, backend=backend, progress=show)
        report = (
            None
            if source is None
            else _read_again(
                source,
                store,
                model_settings(context, store, embedder=embedder) | store_settings(backend=backend),
                show,
            )
        )
    if as_json:
        say_json(found.to_json() | ({} if report is None else {"read_again": report.to_json()}))
        return Exit.OK
    _show(found, store)
    if report is not None:
        say(
            f"of {report.changed + report.unchanged} documents read again, {report.changed} changed; "
            f"{report.added} are new, {len(report.problems)} could not be used"
        )
        for problem in report.problems:
            warn(problem)
    elif found.read_before:
        shown = ", ".join(found.read_before[:_SHOWN]) + (", ..." if len(found.read_before) > _SHOWN else "")
        warn(
            f"{len(found.read_before)} documents were read from files by an earlier version, and this one may read "
            f"them differently: {shown}; read them again with: carag upgrade --store {store} --from FOLDER"
        )
    return Exit.OK


def _read_again(
    source: Path, store: Path, settings: dict[str, Any], show: Callable[[str, int, int, str], None]
) -> IngestReport:
    from carag.engine import Engine

    with Engine.open(store, **settings) as engine:
        return engine.ingest(source, progress=show)


def _show(found: Upgraded, store: Path) -> None:
    say(f"{store} holds {found.documents} documents in {found.passages} passages")
    say(f"  index  {found.rows} rows, {found.rows_made} of them added now from stored vectors")
    say(f"  words  of {found.words} passages, {found.words_made} of them read now")
    say(
        f"  names  {f'{found.names} rows, SHA-256 {found.names_sha256}' if found.names else 'no public table'}"
    )
    if found.moved_values:
        say("  log    its sealed values are in audit.db now, no longer in private.db")
    say(f"all three agree; nothing was embedded; {found.seconds:.1f} s", style="dim")


def share(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="postgresql://ROLE@HOST/DATABASE, with ?schema=NAME for a schema other than carag. The password goes "
            "into ~/.pgpass.",
        ),
    ],
    store: Store,
    admin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Create role, tables and grants first, as this administrator."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="A store in files to move there, with log and keys."),
    ] = None,
) -> int:
    """Let several processes share one store: texts, labels and log in PostgreSQL, and a directory for each process.

    The directory is this process's own, with keys, index and state. It must not hold a store. For another process,
    share the same URL from another directory, and copy [b]audit.key[/b], [b]vkey[/b] and [b]private.key[/b].

    With [b]--from[/b] a store in files is moved there in one transaction: its log continues, and receipts stay valid.
    The files are left, marked as moved, and take no more changes. If the command is killed, run it again.

    [dim]carag share postgresql://carag_app@db/carag --store one --admin postgresql://dba@db/carag[/dim]
    """
    from carag.engine.sharing import move
    from carag.engine.sharing import share as shared

    if source is None:
        place = shared(store, url, admin=admin)
    elif admin is None:
        raise InvalidArgument("--from moves a store as the server's administrator; give --admin URL")
    else:
        place, records, passages = move(source, store, url, admin=admin)
        say(f"moved {records} records and {passages} passages; {source} is read-only from now on")
    say(f"the store of {store} is schema {place.schema} on the server; every process needs the same keys")
    return Exit.OK


def backup(
    store: Store,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="DIR", help="Where to put the data: a new directory."),
    ],
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to put the keys, away from the data. Default: keys are not copied. They change with each "
            "erasure and rotation.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Copy a store, even while it is in use, with every record acknowledged before the copy began.

    Text, labels, vectors, log and private values are consistent; index and words are not copied, because restoring
    rebuilds them. Nothing appears at either place before all is copied and the log's records are hashed again.

    [dim]carag backup --store store --to backups/monday --keys safe/monday[/dim]
    """
    from carag.engine.backup import back_up

    done = back_up(store, to, keys=keys)
    if as_json:
        say_json(done.to_json())
        return Exit.OK
    say(f"{to} has {done.records} records of {done.origin} and what they refer to, {done.bytes} bytes")
    say(
        f"the keys are in {keys}; keep them away from the data"
        if keys
        else "no keys were copied; restoring needs audit.key and private.key"
    )
    on_record = "on record" if done.is_on_record else "not on record: a running engine holds the log"
    say(f"{on_record}; {done.seconds:.1f} s", style="dim")
    return Exit.OK


def restore(
    store: Store,
    source: Annotated[Path, typer.Option("--from", metavar="DIR", help="What carag backup --to made.")],
    keys: Annotated[Path, typer.Option(metavar="DIR", help="What carag backup --keys made.")],
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The newest receipt, checkpoint, proof or evidence kept elsewhere; can be repeated.",
        ),
    ] = None,
    anchor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ANCHOR",
            help="Where the log was anchored, as for [b]carag audit anchor --to[/b]; can be repeated.",
        ),
    ] = None,
    policy: TrustedWitnesses = None,
    tsa_roots: TsaRoots = None,
    region: Annotated[str | None, typer.Option(metavar="R", help="The bucket's AWS region.")] = None,
    erased: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Statements of documents that were erased after the backup, which are erased again; give the receipts "
            "of the erasures too.",
        ),
    ] = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Restore a backup that lacks records known elsewhere; the log then says how many.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Restore a store from a backup into a new directory, and show what it lacks.

    Only what was kept elsewhere can show that records came after the backup: give the newest receipts, and the anchors.
    Exit codes: 0 restored, 1 the backup lacks records and was not restored, 65 damaged, or mixed from several stores.

    [dim]carag restore --from backups/monday --keys safe/monday --store store --receipt newest.json[/dim]
    """
    from carag.audit.anchors.targets import anchors_named
    from carag.engine.backup import Behind
    from carag.engine.backup import restore as put_back

    kept = {str(path): read_bytes(path, most=_MAX_KEPT) for path in receipt or []}
    statements = b"" if erased is None else read_bytes(erased, most=_MAX_KEPT)
    anchors = anchors_named(anchor or [], policy=policy, tsa_roots=tsa_roots, region=region)
    try:
        done = put_back(
            source, keys, store, kept=kept, anchors=anchors, accept_loss=accept_loss, erased=statements
        )
    except Behind as behind:
        if as_json:
            say_json({"records": behind.records, "known": behind.known, "findings": [*behind.findings]})
        for one in behind.findings:
            warn(f"BEHIND  {one}", style="red")
        warn(
            f"nothing was restored: the backup has {behind.records} records, and {behind.known} are known. Restore "
            "a newer backup, or accept the loss, on record, with --accept-loss"
        )
        return Exit.TAMPERED
    if as_json:
        say_json(done.to_json())
        return Exit.OK
    say(f"{store} has {done.records} records of {done.origin}; the backup had {done.backup_records}")
    for one in done.findings:
        warn(f"LOST  {one}", style="red")
    say(
        f"it extends everything that was kept elsewhere and given here ({done.compared})"
        if done.compared and not done.findings
        else "the loss of records is on record"
        if done.findings
        else "nothing kept elsewhere was given, so it is unknown what came after the backup"
    )
    if done.erased:
        say(f"documents that were erased after the backup, and erased again: {done.erased}")
    if done.unerased:
        warn(
            f"documents that were erased after the backup and may be back, as the log says: {done.unerased}; erase "
            "them again, or restore with their statements: --erased FILE",
            style="red",
        )
    say("values that were erased after the backup are back: erase them again", style="dim")
    return Exit.OK


@backend.command()
def copy(
    store: Store,
    source: _Source,
    to: _Target,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard what an earlier run wrote, and copy everything again.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Copy the rows of a store to another place; [b]carag backend switch[/b] then makes searches use the copy.

    The copy becomes visible once all of it has been read back and is the same. The command can be killed at any point
    and run again. An earlier copy is brought up to date. A password belongs in the environment.

    [dim]carag backend copy --store store --from native --to postgresql://carag_rows@HOST/DATABASE[/dim]
    """
    from carag.engine.migration import copy_backend

    with progress() as bars:
        done = copy_backend(store, source, to, restart=restart, progress=_Bars(bars))
    return _moved(done, "copied to", as_json=as_json)


@backend.command()
def switch(store: Store, to: _Target, as_json: AsJson = False) -> int:
    """Search a store's rows in their copy from now on, if the copy is the same to the last bit.

    From then on, commands need its place as [b]--backend[/b]. The rows that were searched before stay where they are.

    [dim]carag backend switch --store store --to postgresql://carag_rows@HOST/DATABASE[/dim]
    """
    from carag.engine.migration import switch_backend

    with progress() as bars:
        done = switch_backend(store, to, progress=_Bars(bars))
    return _moved(done, "searched in", as_json=as_json)


@backend.command()
def compare(
    store: Store,
    source: _Source,
    to: _Target,
    searches: Annotated[
        int,
        typer.Option(
            "--searches", metavar="N", min=0, help="Searches to compare, spread over the store's rows."
        ),
    ] = 100,
    as_json: AsJson = False,
) -> int:
    """Compare the rows of a store with a copy to the last bit, and what exact searches find in both. Changes nothing.

    [dim]carag backend compare --store store --from native --to postgresql://carag_rows@HOST/DATABASE[/dim]
    """
    from carag.engine.migration import compare_backend

    with progress() as bars:
        done = compare_backend(store, source, to, searches=searches, progress=_Bars(bars))
    return _moved(done, f"equal, in {searches} searches too, in", as_json=as_json)


@backend.command()
def graph(
    url: Annotated[
        str,
        typer.Option(
            "--backend",
            metavar="URL",
            help="A PostgreSQL server with rows.",
        ),
    ],
    memory_mb: Annotated[
        int | None,
        typer.Option(
            "--memory-mb",
            metavar="MB",
            help="Megabytes that a server may use: 4 bytes for each number and about 500 for each row. What does not "
            "fit is built on disk, many times slower. Default: the server's maintenance_work_mem.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Build a graph over rows in PostgreSQL, which speeds up questions whose session admits very many rows.

    Build it once the rows are there; later rows are added to it as they come. Only the account that made the tables may
    build it, and nothing can be written meanwhile. What the graph finds is checked like everything else, but its recall
    is below 1.

    [dim]carag backend graph --backend postgresql://carag_owner@HOST/DATABASE --memory-mb 4000[/dim]
    """
    from carag.engine.rows import build_graph

    built = build_graph(url, memory_mb=memory_mb)
    if as_json:
        say_json(built._asdict())
    else:
        say(f"{built.rows} rows have a graph with a declared recall of {built.recall}")
    return Exit.OK


class _Bars:
    """Shows the progress of a copy, stage by stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, note="")
        self._bars.update(self._tasks[stage], completed=done, total=total, note=f"{done} of {total} rows")


def _moved(done: Copied, how: str, *, as_json: bool) -> int:
    place, collection = done.state.backend, done.state.collection
    if as_json:
        say_json({"rows": done.rows, "root": done.root, "backend": place, "collection": collection})
    else:
        say(f"{done.rows} rows are {how} {place}, collection {collection}")
        say(f"  state root {done.root}", style="dim")
    return Exit.OK
