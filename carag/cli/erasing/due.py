"""Erase the documents whose time is over: ``carag erase-due``.

Exit codes: 0 done, also if some are held, 65 bad input, 70 perhaps not done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._options import AsJson, BackendUrl, Store, unembedded
from carag.cli._output import Exit, say, say_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.engine.erasing.documents import DueReport
    from carag.engine.erasing.retention import Due

_SHOWN: Final = 10
"""The most documents that are printed; ``--json`` has all."""


def erase_due(
    store: Store,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, and show what is due.")] = False,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who erases them; kept sealed.")] = None,
    approver: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The second person, who approves it; a profile may let it be left out."
        ),
    ] = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Erase the documents whose [b]erase_after[/b] has passed, with basis GDPR_5_1_E; those that are held stay.

    What stays, because of a legal hold or of [b]retain_until[/b], is listed, and its refusal is on record. Delete the
    documents where they came from, too: the next ingest of them stores them again.

    [dim]carag erase-due --store s --dry-run[/dim]
    [dim]carag erase-due --store s --by "D. Po" --approver "C. Co"[/dim]
    """
    from carag.engine import Engine
    from carag.engine.erasing.documents import DueReport

    with Engine.open(store, **unembedded(backend)) as engine:
        asked = engine.erasures
        report = DueReport.of(asked.due()) if dry_run else asked.erase_due(by=by, approver=approver)
    if as_json:
        say_json(due_json(report))
    else:
        show_due(report, dry_run=dry_run)
    return Exit.OK


def due_json(report: DueReport) -> dict[str, Any]:
    """Return what ``--json`` prints; ``records`` are those of the erasure, none if nothing was erased."""
    done = report.report
    return {
        "erased": list(report.erased),
        "records": [] if done is None else [one.seq for one in done.receipts],
        "answers": [] if done is None else list(done.answers),
        "stayed": [one._asdict() | {"why": one.refusal} for one in report.stayed],
    }


def show_due(report: DueReport, *, dry_run: bool = False) -> None:
    """Print what was erased, or would be, and what stays."""
    done = (
        ""
        if report.report is None
        else f", record {', '.join(str(one.seq) for one in report.report.receipts)}"
    )
    say(
        f"{len(report.erased)} documents {'are due and would be' if dry_run else 'were due and are'} erased{done}"
    )
    _list([*report.erased] if dry_run else [])
    if report.stayed:
        say(f"{len(report.stayed)} documents are due and stay:")
        _list([_said(one) for one in report.stayed])


def _list(several: Sequence[str]) -> None:
    for one in several[:_SHOWN]:
        say(f"  {one}")
    if len(several) > _SHOWN:
        say(f"  and {len(several) - _SHOWN} more, which --json lists")


def _said(one: Due) -> str:
    from carag.policy import from_minutes

    if one.held:
        return f"{one.document}: held by record {', '.join(map(str, one.held))}"
    return f"{one.document}: must be kept until {from_minutes(one.until):%Y-%m-%d %H:%M} UTC"
