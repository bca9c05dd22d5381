"""The report of a file of rows, as files: written, or compared with what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.errors import CorruptFile
from carag.evaluation.report import report_from

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_files", "write_files"]


def write_files(rows: Path, out: Path) -> None:
    """Write the report of a file of rows, with what lies beside it, into a directory."""
    out.mkdir(parents=True, exist_ok=True)
    for name, content in report_from(rows).files().items():
        (out / name).write_bytes(content)


def check_files(rows: Path, out: Path) -> None:
    """Compare what is in a directory with what the rows make.

    Raises
    ------
    CorruptFile
        If a file is missing or differs.
    """
    made = report_from(rows).files()
    if odd := [name for name, data in made.items() if not _holds(out / name, data)]:
        raise CorruptFile(f"{out}: {', '.join(odd)} not as {rows} makes them; write the report again")


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
