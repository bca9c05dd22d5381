"""The command line's one way to a terminal: text is shown as text, whoever wrote it.

Nothing here reads markup, and everything goes through :mod:`carag.visible`; colours are given beside the text. No other
module of the command line writes to a stream, so that nobody can forget it.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from carag.visible import visible, visible_json, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.progress import Progress

__all__ = [
    "box",
    "columns",
    "flush",
    "hang_up",
    "logging_shown",
    "progress",
    "say",
    "say_json",
    "say_lines",
    "survive",
    "warn",
]

_STANDARD_OUTPUT: Final = 1


def say(text: str, *, style: str = "") -> None:
    """Print one line of result; line breaks within become spaces."""
    _line(sys.stdout, text, style)


def warn(text: str, *, style: str = "") -> None:
    """Print one line that is no result: a problem, a note, an error."""
    _line(sys.stderr, text, style)


def say_lines(text: str) -> None:
    """Print text of several lines as it is, but for what a reader would not see."""
    sys.stdout.write(visible(text.removesuffix("\n")) + "\n")


def say_json(value: object, *, indent: int | None = 2) -> None:
    """Print a value as JSON that loses nothing; on one line without an indentation."""
    sys.stdout.write(visible_json(value, indent=indent) + "\n")


def box(text: str, *, title: str) -> None:
    """Print text of several lines in a frame."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    Console().print(Panel(Text(visible(text)), title=Text(visible_line(title)), title_align="left"))


def columns(headings: Sequence[str], rows: Iterable[Sequence[str]], *, wraps: str = "") -> None:
    """Print a table; the column named by ``wraps`` gives way where the terminal is narrow."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim")
    for heading in headings:
        table.add_column(heading, no_wrap=heading != wraps, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    Console().print(table)


def progress() -> Progress:
    """Return bars for stages of work; a task's ``description`` and ``note`` are ours, never a filer's."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    texts = [TextColumn(text, markup=False) for text in ("{task.description:<9}", "{task.fields[note]}")]
    bars = (texts[0], BarColumn(), texts[1], TimeElapsedColumn())
    return Progress(*bars, console=Console(stderr=True), transient=True)


@contextmanager
def logging_shown() -> Iterator[None]:
    """Print what ``carag.*`` logs at INFO and above."""
    handler, root = _Shown(), logging.getLogger("carag")
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def survive() -> None:
    """Have streams escape what they cannot encode, instead of failing on a filer's letter."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Write out what is buffered, while a full disk or a reader who went away can still be told."""
    sys.stdout.flush()


def hang_up() -> None:
    """Let go of a reader who went away, so that the end of the process fails at nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)


class _Shown(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(self.format(record), style="dim")


def _line(stream: TextIO, text: str, style: str) -> None:
    line = visible_line(text)
    if not style:
        stream.write(line + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    Console(file=stream, highlight=False).print(Text(line, style), soft_wrap=True)
