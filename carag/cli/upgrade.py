"""Bring a store that an earlier version made up to this one: ``carag upgrade``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carag.cli._files import read_bytes
from carag.cli._options import AsJson, Store
from carag.cli._output import Exit, progress, say, say_json

if TYPE_CHECKING:
    from carag.engine.opening import Upgraded

__all__ = ["upgrade"]


def upgrade(
    store: Store,
    names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A public table of companies to keep, as [b]carag names[/b] takes it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Bring a store of an earlier version up to this one: what is missing beside its documents is made from them.

    Nothing is embedded anew and nothing is asked, so it needs no model. Can be killed at any point and run again; of
    a store that is up to date it says so. In the end index, words and documents are checked to be of one instant.

    [dim]carag upgrade --store store --names company_tickers.json[/dim]
    """
    from carag.engine.opening import upgrade as brought_up
    from carag.retrieval.public_names import MAX_BYTES

    table = None if names is None else (read_bytes(names, most=MAX_BYTES + 1), names.name)
    with progress() as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int, note: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, note="")
            bars.update(tasks[stage], completed=done, total=total or None, note=note)

        found = brought_up(store, names=table, progress=show)
    if as_json:
        say_json(found.to_json())
    else:
        _show(found, store)
    return Exit.OK


def _show(found: Upgraded, store: Path) -> None:
    say(f"{store} holds {found.documents} documents in {found.passages} passages")
    say(f"  index  {found.rows} rows, of which {found.rows_made} were added now from vectors kept")
    say(f"  words  of {found.words} passages, of which {found.words_made} were read now")
    say(
        f"  names  {f'{found.names} rows, SHA-256 {found.names_sha256}' if found.names else 'no public table'}"
    )
    say(f"all are of one instant; nothing was embedded; {found.seconds:.1f} s", style="dim")
