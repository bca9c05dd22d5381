"""Put columns of prose one after the other where a page draws them row by row; rows of tables stay rows."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import mean, median
from typing import Final, TypeAlias

from carag.readers.outcome import broken
from carag.readers.pdf.lines import Line

GUTTER: Final = 1.0
"""Smallest width of the gap between columns, in font sizes."""
LEAST_LINES: Final = 3
"""Smallest number of lines for columns to be side by side."""
PROSE: Final = 2.5
"""Smallest average number of words in a line of prose; a table cell has fewer."""
GOES_ON: Final = (0.15, 0.35)
"""Share of lines that begin with a lower-case letter: below the first share a block is a table, from the second on it
is prose."""
LONG_ROW: Final = 6
"""Greatest average number of lines in a table row."""
_LABEL: Final = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivxlc]{1,6})[.)]?|[•·–—*▪■●○o-]")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")

_Gap: TypeAlias = tuple[float, float]
_Column: TypeAlias = list[Line]
"""One column of each line of a block; an empty line where the column is empty."""


def in_columns(lines: list[Line]) -> list[Line]:
    """Return the lines of a page, column after column.

    Raises ``Unreadable`` if columns cannot be told from a table.
    """
    found: list[Line] = []
    at = 0
    while at < len(lines):
        end, gaps = _block(lines, at)
        found += _read_block(lines[at:end], gaps) if gaps else lines[at:end]
        at = end
    return found


def _block(lines: list[Line], at: int) -> tuple[int, list[_Gap]]:
    """Return the end of the run of lines that share gaps, and these gaps; no gaps if there are too few lines."""
    gaps, shared, end, beside = _gaps(lines[at]), [], at + 1, 1
    while gaps and end < len(lines) and _follows(lines[end - 1], lines[end]):
        line = lines[end]
        start, stop = min(run.start for run in line), max(run.end for run in line)
        free = [(-1e9, start), *_gaps(line), (stop, 1e9)]
        least = GUTTER * line[0].size
        left = [(max(a, c), min(b, d)) for a, b in gaps for c, d in free if min(b, d) - max(a, c) >= least]
        if not left:
            break
        gaps, end, beside = left, end + 1, beside + (len(free) > 2)
        shared = left
    return (end, shared) if beside >= LEAST_LINES and shared else (at + 1, [])


def _gaps(line: Line) -> list[_Gap]:
    found, end = [], min(run.start for run in line)
    for run in sorted(line, key=lambda run: run.start):
        if run.start - end >= GUTTER * run.size:
            found.append((end, run.start))
        end = max(end, run.end)
    return found


def _follows(above: Line, line: Line) -> bool:
    down = above[0].height - line[0].height
    return above.turned == line.turned and 0 < down < 4 * max(above[0].size, line[0].size)


def _read_block(block: list[Line], gaps: list[_Gap]) -> list[Line]:
    columns = [_within(block, a[1], b[0]) for a, b in pairwise([(-1e9, -1e9), *gaps, (1e9, 1e9)])]
    columns = _with_labels(columns)
    sure = [_is_prose(column) for column in columns]
    if len(columns) < 2 or False in sure:
        return block
    if sure.count(None) >= sure.count(True) or _has_rows(block, columns):
        raise broken(
            "its columns cannot be told from a table of sentences; want a file with text in reading order"
        )
    return [line for column in columns for line in column if line]


def _within(block: list[Line], start: float, end: float) -> _Column:
    column = []
    for whole in block:
        line = Line(run for run in whole if start - 0.1 <= run.start < end)
        line.turned = whole.turned
        column.append(line)
    return column


def _with_labels(columns: list[_Column]) -> list[_Column]:
    """Merge columns of mere numbers and bullets into the next column."""
    merged: list[_Column] = []
    labels: _Column | None = None
    for column in columns:
        joined = [_joined(a, b) for a, b in zip(labels, column, strict=True)] if labels else column
        texts = [_text(line) for line in column if line]
        labels = joined if all(_LABEL.fullmatch(text) for text in texts) else None
        if labels is None:
            merged.append(joined)
    return [*merged, labels] if labels else merged


def _joined(label: Line, line: Line) -> Line:
    joined = Line([*label, *line])
    joined.turned = line.turned
    return joined


def _is_prose(column: _Column) -> bool | None:
    texts = [_text(line) for line in column if line]
    if len(texts) < LEAST_LINES or mean(len(_WORD.findall(text)) for text in texts) < PROSE:
        return False
    begin = [word.group() for text in texts[1:] if (word := _WORD.search(text))]
    share = mean(word[0].islower() for word in begin) if begin else 0
    if not any(word[0].isupper() or word[0].islower() for word in begin):
        return None  # a script without capital letters
    return None if GOES_ON[0] <= share < GOES_ON[1] else share >= GOES_ON[1]


def _has_rows(block: list[Line], columns: list[_Column]) -> bool:
    """Tell whether all columns pause on the same lines and no sentence continues there, as in table rows."""
    downs = [a[0].height - b[0].height for a, b in pairwise(block)]
    pauses = [at for at, down in enumerate(downs) if down > 1.35 * median(downs)]
    shared = [at for at in pauses if all(column[at] and column[at + 1] for column in columns)]
    if not shared or len(block) > LONG_ROW * (len(shared) + 1):
        return False
    return not any(_goes_on(_text(column[at + 1])) for at in shared for column in columns)


def _goes_on(text: str) -> bool:
    word = _WORD.search(text)
    return word is not None and word[0].islower()


def _text(line: Line) -> str:
    return "".join(" " * run.spaced + run.text for run in line).strip()
