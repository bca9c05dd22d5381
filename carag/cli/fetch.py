"""Mirror a part of a site into a folder that ``carag ingest`` reads: ``carag fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carag.cli._options import AsJson
from carag.cli._output import Exit, say, say_json, warn

if TYPE_CHECKING:
    from carag.sources import FetchReport

__all__ = ["fetch"]


def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where to begin; no other host is asked.")],
    into: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="New, empty, or fetched before. What is known of it stands beside it, in [b]FOLDER.fetch[/b].",
        ),
    ],
    contact: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            envvar="CARAG_CONTACT",
            help="An e-mail address or a page, by which the site can reach you; it is sent with every request.",
        ),
    ],
    prefix: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A path below which documents lie; default: the folder of URL."),
    ] = None,
    depth: Annotated[int, typer.Option(metavar="N", help="Most links from URL.")] = 3,
    interval: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Least time between two requests; robots.txt may ask for more."),
    ] = 1.0,
    addresses: Annotated[int, typer.Option(metavar="N", help="Most addresses of one run.")] = 10_000,
    minutes: Annotated[
        float, typer.Option(metavar="N", help="Longest time of one run; the next goes on with it.")
    ] = 360.0,
    as_json: AsJson = False,
) -> int:
    """Fetch documents of a site that have changed: HTML, PDF and text, for [b]carag ingest[/b].

    Keeps to robots.txt, asks one question at a time, and asks again only for what has changed. Can be killed at any
    point and run again. What the site no longer has is not deleted: it is reported, and listed in
    [b]FOLDER.fetch/gone.jsonl[/b].

    [dim]carag fetch https://www.example.org/circulars/ --into circulars --contact you@example.org[/dim]
    """
    from carag.sources import Limits
    from carag.sources import fetch as mirror

    limits = Limits(depth=depth, interval=interval, addresses=addresses, seconds=minutes * 60)
    report = mirror(url, into, contact=contact, prefixes=tuple(prefix or ()), limits=limits)
    if as_json:
        say_json(report.to_json())
    else:
        _show(report, into)
    return Exit.OK if report.documents else Exit.BAD_INPUT


def _show(report: FetchReport, folder: Path) -> None:
    say(
        f"{report.added} documents added, {report.changed} changed, {report.unchanged} unchanged, by "
        f"{report.requests} requests. {folder} holds {report.documents}."
    )
    if report.disallowed:
        say(f"{len(report.disallowed)} addresses were not asked for: robots.txt keeps them to itself.")
    if report.beyond:
        say(f"{report.beyond} links were not followed: a run may have no more addresses.")
    for one in report.gone:
        warn(f"  gone since {one.since}: {one.file}: {one.url}: {one.why}")
    for problem in report.problems:
        warn(f"  {problem}")
    if report.paused:
        warn(f"{report.paused}; {report.left} addresses are left for the next run", style="red")
