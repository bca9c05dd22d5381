"""Give a store a public table of companies' names: ``carag names``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carag.cli._files import opened_log, read_bytes
from carag.cli._options import Store
from carag.cli._output import Exit, say


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
