"""Cut the documents of a corpus into overlapping windows of one size that keep their positions in the document."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.lists import Entry, entries
from carag.labelling.sentences import sentences
from carag.limits import quoted

_AROUND: Final = 1_000
"""Most characters of a sentence that are read around a window: text without punctuation is one sentence."""
_BLANK_LINES: Final = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of a document."""

    text: str
    source: str
    chunk_index: int
    start: int
    """Position in its document, in characters: from ``start`` up to ``end``."""
    end: int
    shifts: tuple[tuple[int, int], ...] = ((0, 0),)
    """From character ``shifts[i][0]`` of the window on, character c is at ``c + shifts[i][1]`` in its document."""
    opening: str = ""
    """What a judge of stance reads before the window: the sentences that open its list, and the start of a sentence
    that it cuts."""
    closing: str = ""
    """What the judge reads after the window: the rest of a sentence that it cuts."""

    def place(self, at: int) -> int:
        """Return the position in the document of a character of the window."""
        return at + self.shifts[bisect_right(self.shifts, (at, sys.maxsize)) - 1][1]


@dataclass(frozen=True, slots=True)
class ChunkerConfig:
    """Size and overlap of the windows, in characters."""

    chunk_size: int = 1_000
    chunk_overlap: int = 100

    def __post_init__(self) -> None:
        for name in ("chunk_size", "chunk_overlap"):
            if type(getattr(self, name)) is not int:
                raise InvalidArgument(
                    f"{name} is {quoted(getattr(self, name))}; want a whole number of characters"
                )
        if not 0 <= self.chunk_overlap < self.chunk_size:
            raise InvalidArgument(
                f"the overlap of chunks is {self.chunk_overlap} and their size {self.chunk_size} characters; want an "
                "overlap of at least 0 and less than the size"
            )


def paper_chunks(
    text: str,
    source: str,
    config: ChunkerConfig,
    first: int = 0,
    offset: int = 0,
    *,
    keeps_lines: bool = False,
) -> list[Chunk]:
    """Cut as the paper states: runs of white space become one space, and window k begins at k (size - overlap).

    The last window is the first that reaches the end: another would hold nothing but overlap. With ``keeps_lines``, a
    run that contains a line end becomes a line end, so that sentences and list entries can be told apart; the window
    then also carries what opens its list, and the rest of its first and last sentence. ``first`` is the index of the
    first window, ``offset`` where the text begins in its document.
    """
    words = [(match.start(), match.group()) for match in re.finditer(r"\S+", text)]
    parts: list[str] = []
    shifts: list[tuple[int, int]] = []  # of the whole normalised text
    length = 0
    for at, (start, word) in enumerate(words):
        if at:
            gap = text[words[at - 1][0] + len(words[at - 1][1]) : start]
            parts.append("\n" if keeps_lines and "\n" in gap else " ")
            length += 1
        if not shifts or shifts[-1][1] != offset + start - length:
            shifts.append((length, offset + start - length))
        parts.append(word)
        length += len(word)
    normal = "".join(parts)
    lines = entries(normal, sentences(normal)) if keeps_lines else []
    found = []
    for at, start in enumerate(range(0, length, config.chunk_size - config.chunk_overlap)):
        end = min(start + config.chunk_size, length)
        low, high = (bisect_right(shifts, (place, sys.maxsize)) for place in (start, end - 1))
        mine = tuple((max(place - start, 0), shift + start) for place, shift in shifts[low - 1 : high])
        places = start + shifts[low - 1][1], end + shifts[high - 1][1]
        around = _around(normal, lines, start, end) if keeps_lines else ("", "")
        found.append(Chunk(normal[start:end], source, first + at, *places, mine, *around))
        if end == length:
            break
    return found


def _around(text: str, lines: list[Entry], start: int, end: int) -> tuple[str, str]:
    """Return what a window is read with: the leads of its first sentence, and the rest of the two it cuts."""
    ends = [one.end for one in lines]
    first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
    if first == len(lines):
        return "", ""
    leads = "".join(f"{lead[-_AROUND:]}\n" for lead in lines[first].leads)
    opening = leads + text[max(lines[first].start, start - _AROUND) : start]
    is_cut = last < len(lines) and lines[last].start < end
    return opening, text[end : min(lines[last].end, end + _AROUND)] if is_cut else ""


def package_chunks(
    text: str, source: str, config: ChunkerConfig, first: int = 0, offset: int = 0
) -> list[Chunk]:
    """Cut as the package gaussia does: only three or more line ends shrink, and the last window may be all overlap.

    Windows are stripped; one that is all white space is left out, although it is counted. The arguments are those of
    :func:`paper_chunks`.
    """
    normal = _BLANK_LINES.sub("\n\n", text)
    # Up to character `kept[i]` of the normalised text, `removed[i]` characters of the text were removed.
    kept, removed = [0], [0]
    for match in _BLANK_LINES.finditer(text):
        kept.append(match.start() + 2 - removed[-1])
        removed.append(removed[-1] + match.end() - match.start() - 2)

    def place(at: int) -> int:
        return offset + at + removed[bisect_right(kept, at) - 1]

    found = []
    for at, start in enumerate(range(0, len(normal), config.chunk_size - config.chunk_overlap)):
        window = normal[start : start + config.chunk_size]
        if stripped := window.strip():
            begin = start + len(window) - len(window.lstrip())
            last = begin + len(stripped) - 1
            low, high = (bisect_right(kept, one) for one in (begin, last))
            shifts = tuple(
                (max(one - begin, 0), offset + gone + begin)
                for one, gone in zip(kept[low - 1 : high], removed[low - 1 : high], strict=True)
            )
            found.append(Chunk(stripped, source, first + at, place(begin), place(last) + 1, shifts))
    return found
