"""Give a store a public table of companies' names: ``carag names``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carag.cli._files import opened_log, read_bytes
from carag.cli._options import Store
from carag.cli._output import Exit, say

__all__ = ["names"]


def names(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="SEC's [b]company_tickers.json[/b], or JSON lines with cik, name, tickers and, if known, "
            "fiscal_year_end; gzipped or not.",
        ),
    ],
    store: Store,
) -> int:
    """Keep a table of companies in a store, by which questions are read: names and tickers to filers.

    Questions are read by this table and by the names of what the session may use, never by those of what is hidden
    from it. A new table takes the place of the old one.

    [dim]carag names company_tickers.json --store store[/dim]
    """
    from carag.engine.kept_profile import keep_names
    from carag.retrieval.public_names import MAX_BYTES

    content = read_bytes(file, most=MAX_BYTES + 1)
    # The log's lock is the store's: no engine reads by the old table meanwhile.
    with opened_log(store) as log, log.alone("a table of names"):
        table = keep_names(store, content, file.name)
    say(f"{len(table.rows)} names of {len({row.cik for row in table.rows})} companies are kept in {store}")
    say(f"  SHA-256 {table.sha256}", style="dim")
    return Exit.OK
