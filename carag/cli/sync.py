"""Bring a store up to a folder, once or each night: ``carag sync``."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from carag.cli._options import (
    AsJson,
    EmbedderName,
    EvidenceUrl,
    NotBefore,
    Retain,
    Store,
    log_settings,
    model_settings,
)
from carag.cli._output import Exit, logging_shown, say, say_json, warn
from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.engine import SyncReport

__all__ = ["sync"]


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
            help="Withdraw the documents that this folder gave before and gives no more; else they are only named.",
        ),
    ] = False,
    nightly: Annotated[
        bool,
        typer.Option(
            "--nightly", help="Stay, and run each night, until SIGTERM. The store is free between runs."
        ),
    ] = False,
    at: Annotated[str, typer.Option(metavar="HH:MM", help="With [b]--nightly[/b]: when.")] = "02:00",
    time_zone: Annotated[
        str | None,
        typer.Option(
            "--time-zone",
            metavar="ZONE",
            help="With [b]--nightly[/b]: where it is that time, such as Asia/Kolkata. Default: the profile's zone.",
        ),
    ] = None,
    embedder: EmbedderName = None,
    reader: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A reader of your own, as for [b]carag ingest[/b]."),
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    evidence: EvidenceUrl = None,
    as_json: AsJson = False,
) -> int:
    """Store what is new or changed in a folder, by its content, and name what vanished.

    Of a changed document only the passages are embedded whose text is new to the store; the old version is superseded,
    and stays for questions about the past. A second run does nothing; one that was killed is finished by the next. A
    file that changes while it is read is left to the next run: then, and after SIGTERM, the exit code is 75.

    [dim]carag sync circulars --store store --nightly --at 02:00 --time-zone Asia/Kolkata[/dim]
    """
    from carag.engine import Engine
    from carag.engine.freshness import Nightly
    from carag.engine.kept_profile import profile_of
    from carag.engine.named import imported

    settings = model_settings(context, store, embedder=embedder) | log_settings(retain, not_before, evidence)
    own = None if reader is None else imported("reader", reader, not_in=store)
    zone = _zone(time_zone) if time_zone is not None else None

    def run(stop: Callable[[], bool]) -> SyncReport:
        with Engine.open(store, create=False, **settings) as engine:
            report = engine.sync(path, remove_vanished=remove_vanished, reader=own, stop=stop)
        if as_json:
            say_json(report.to_json(), indent=None if nightly else 2)
        else:
            _show(report)
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


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArgument(
            f"{quoted(name)} is no time zone; want one such as Asia/Kolkata or UTC"
        ) from error


@contextmanager
def _stop_at_sigterm() -> Iterator[Callable[[], bool]]:
    told = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: told.set())
    try:
        yield told.is_set
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(report: SyncReport) -> None:
    say(
        f"{report.added} documents added, {report.changed} changed, {report.unchanged} unchanged; of {report.chunks} "
        f"chunks {report.embedded} embedded, {report.reused} reused. "
        f"The store holds {report.total_filings} documents in {report.total_chunks} chunks."
    )
    if report.vanished:
        say(f"{len(report.vanished)} vanished from the folder, {report.removed} of them withdrawn:")
    for one in report.vanished:
        say(f"  {one}")
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    for problem in report.problems:
        warn(f"  {problem}")
    for file in report.left:
        warn(f"  {file}: changed while it was read; left to the next run")
    if report.stopped:
        warn("stopped before it was done; the next run goes on")
