"""Print to the terminal, and name the exit codes of the process.

No other module of the command line writes to a stream. Everything printed goes through :mod:`carag.visible`, because
filings and receipts hold text by strangers. Markup is never read; colour is a separate argument.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TextIO

from carag.limits import shown
from carag.visible import visible, visible_json, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.progress import Progress

    from carag.audit import Verdict


_STANDARD_OUTPUT: Final = 1
"""The file descriptor."""


_NAMED: Final = 10
"""The most documents that one line names."""


class Exit(IntEnum):
    """Exit codes: 64, 65, 70 and 75 as in ``sysexits.h``; 130 and 141 are 128 plus the signal.

    Only a failed cryptographic check ends in 1, and an attack on a system (``carag attack``) that found something.
    """

    OK = 0  # answered, verified or done
    TAMPERED = 1  # a cryptographic check failed
    CANNOT_TELL = 2
    DECLINED = 3
    REFUSED = 4
    USAGE = 64
    BAD_INPUT = 65  # or none of the input could be used
    INTERNAL = 70  # or the log cannot be written
    TRY_AGAIN = 75  # done in part: run the same command again
    INTERRUPTED = 130
    HUNG_UP = 141  # the reader of the output went away


def exit_of(verdict: Verdict) -> Exit:
    """Return the exit code of a cryptographic check."""
    from carag.audit import Verdict

    codes = {Verdict.VERIFIED: Exit.OK, Verdict.FAILED: Exit.TAMPERED, Verdict.UNDECIDED: Exit.CANNOT_TELL}
    return codes[verdict]


def say(text: str, *, style: str = "") -> None:
    """Print one line of the result; line breaks in it become spaces."""
    _line(sys.stdout, text, style)


def warn(text: str, *, style: str = "") -> None:
    """Print one line to standard error: a problem, a note, an error."""
    _line(sys.stderr, text, style)


def say_ids(head: str, ids: Mapping[str, Sequence[str]]) -> None:
    """Print a line, and below it the first ids of each list under its name."""
    say(head)
    for name, several in ids.items():
        if several:
            more = ", ..." if len(several) > _NAMED else ""
            say(f"  {name} {', '.join(map(shown, several[:_NAMED]))}{more}")


def say_lines(text: str) -> None:
    """Print text of several lines, without invisible characters."""
    sys.stdout.write(visible(text.removesuffix("\n")) + "\n")


def say_json(value: object, *, indent: int | None = 2) -> None:
    """Print a value as JSON, with invisible characters escaped; on one line if ``indent`` is None."""
    sys.stdout.write(visible_json(value, indent=indent) + "\n")


def box(text: str, *, title: str) -> None:
    """Print text of several lines in a frame."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    Console().print(Panel(Text(visible(text)), title=Text(visible_line(title)), title_align="left"))


def columns(headings: Sequence[str], rows: Iterable[Sequence[str]], *, wraps: str = "") -> None:
    """Print a table; the column ``wraps`` is wrapped if the terminal is narrow."""
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
    """Return progress bars; a task's ``description`` and ``note`` are ours, never a filer's."""
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


def escape_unencodable() -> None:
    """Make the streams escape characters that they cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Flush standard output while a full disk or a closed pipe can still be reported."""
    sys.stdout.flush()


def hang_up() -> None:
    """Discard further output, so that the process can end after its reader has closed the pipe."""
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
