"""What all benchmarks share: arguments, what a run was made on, timing in turn, intervals, tables and sections."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.run_metadata import processor_name
from carag.index import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


ROOT: Final = Path(__file__).parents[1]
"""The checkout."""


def parser(program: str, doc: str | None, *, data: bool = False) -> argparse.ArgumentParser:
    """Return a parser for ``python -m PROGRAM``, with its module's docstring as the help.

    Parameters
    ----------
    program : str
    doc : str, optional
    data : bool
        Whether it reads the corpus that does not ship; ``--data`` is then required unless ``CARAG_SHARED_DATA`` is set.
    """
    made = argparse.ArgumentParser(
        prog=f"python -m {program}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if data:
        shared = os.environ.get("CARAG_SHARED_DATA")
        made.add_argument(
            "--data",
            type=Path,
            default=shared and Path(shared),
            required=not shared,
            help="the directory of the corpus that does not ship; by default CARAG_SHARED_DATA",
        )
    return made


# ---------------------------------------------------------------- what a run was made on


def commit() -> str:
    """Return what ``git describe`` says of this tree, ending in ``-dirty`` if changed; unknown outside of git."""
    words = ["git", "describe", "--always", "--dirty"]
    described = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def about(**settings: Any) -> dict[str, Any]:
    """Describe a run that begins: its settings, the machine, the versions and the commit."""
    return settings | {
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "kernel": kernels.active(),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
    }


def described(run: dict[str, Any]) -> str:
    """Write what :func:`about` found as a sentence.

    Examples
    --------
    >>> described({**about(), "processor": "X", "processors": 2, "kernel": "avx2", "load": 0.5, "commit": "c"})[:44]
    'X, 2 processors, kernel avx2, load 0.5 at th'
    """
    return (
        "{processor}, {processors} processors, kernel {kernel}, load {load:.1f} at the start; {system}; "
        "Python {python}, numpy {numpy}; {date}, commit {commit}."
    ).format(**run)


# ---------------------------------------------------------------- measuring


def in_turn(works: Sequence[Callable[[], object]], times: int, first: int = 0) -> list[float]:
    """Return the least milliseconds of each work, called in turn; ``first`` says which of them begins.

    Examples
    --------
    >>> len(in_turn([list, dict], times=2, first=7))
    2
    """
    least = [math.inf] * len(works)
    for turn in range(len(works) * times):
        at = (first + turn) % len(works)
        start = time.perf_counter()
        works[at]()
        least[at] = min(least[at], 1000 * (time.perf_counter() - start))
    return least


def child(module: str, *words: object, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a step in a process of its own, and return the JSON object that it prints.

    Raises
    ------
    subprocess.CalledProcessError
        If it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        stdout=subprocess.PIPE,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def forget(directory: Path) -> None:
    """Drop the files below a directory from the page cache, so that the next to open them reads the disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def p50_p95(taken: Sequence[float], digits: int = 2) -> list[str]:
    """Return the median and the 95th percentile, written.

    Examples
    --------
    >>> p50_p95([1.0, 2.0, 3.0])
    ['2.00', '2.90']
    """
    return [f"{statistics.median(taken):.{digits}f}", f"{np.quantile(taken, 0.95):.{digits}f}"]


def wilson(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927).

    Examples
    --------
    >>> [round(one, 3) for one in wilson(9, 10)]
    [0.596, 0.982]
    """
    if not of:
        return 0.0, 1.0
    z = 1.959964
    share, bent = count / of, z * z / of
    middle = (share + bent / 2) / (1 + bent)
    half = z * math.sqrt(share * (1 - share) / of + bent / (4 * of)) / (1 + bent)
    return max(middle - half, 0.0), min(middle + half, 1.0)


# ---------------------------------------------------------------- pages


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as Markdown.

    Examples
    --------
    >>> print(table(["a", "b"], [[1, "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x/y |
    """
    cells = [[str(cell).replace("|", "/").replace("\n", " ") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in [list(head), *cells]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def replaced(text: str, section: str, command: str, name: str) -> str:
    r"""Put a section between its marks in a page; ``command`` is the one that writes it.

    Raises
    ------
    InvalidArgument
        If the marks are not both there, once, in order.

    Examples
    --------
    >>> page = "before\n<!-- a: this section is written by `x` -->\nold\n<!-- /a -->\n"
    >>> print(replaced(page, "new", "x", "a"))
    before
    <!-- a: this section is written by `x` -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- /a -->
    <BLANKLINE>
    """
    begin, end = f"<!-- {name}: this section is written by `{command}` -->", f"<!-- /{name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1 or text.count(begin) != 1 or text.count(end) != 1:
        raise InvalidArgument(
            f"the page has no single section from {begin!r} to {end!r}; put the two lines in, and run it again"
        )
    return pattern.sub(lambda _: f"{begin}\n\n{section}\n\n{end}", text)


def write(page: str, out: Path | None) -> None:
    """Print a page, and write it to a file if one is given."""
    print(page)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
