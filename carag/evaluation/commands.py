"""``carag bench edgar``: the report of a file of rows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 # Typer reads the annotations
from typing import Annotated

import typer

from carag.errors import CorruptFile

__all__ = ["edgar"]


def edgar(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the report goes.")],
    rows: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="ROWS",
            help="Rows of a run, [b]rows.jsonl[/b] or [b].gz[/b]; [b]run.json[/b] and [b]words.json[/b] are read "
            "beside it.",
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if what is in DIR is not what the rows say.")
    ] = False,
) -> int:
    """Make the report of the SEC EDGAR benchmark from its rows: the same rows, the same bytes.

    [dim]carag bench edgar --from bench/edgar/rows.jsonl.gz --out report[/dim]
    """
    from carag.evaluation.report import report_from

    made = report_from(rows).files()
    if check:
        odd = [name for name, data in made.items() if not _holds(out / name, data)]
        if odd:
            raise CorruptFile(f"{out}: {', '.join(odd)} not as {rows} makes them; write the report again")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        (out / name).write_bytes(data)
    return 0


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
