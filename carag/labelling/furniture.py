"""Find text that is repeated on the pages of a document and not part of its content: running heads, page numbers.

Pages end at form feeds; without form feeds, only exact repetition is evidence.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


NOTE_MARK: Final = r"\[\^[^\]\s]{1,8}\]"
"""A regular expression for a note's mark, ``[^1]``, as the readers write it after the text it marks."""

_OFTEN: Final = 3
"""How often a short line occurs in a text, or on how many pages a numbered one, before it counts as furniture."""
_SHORT: Final = 120
"""Greatest length of such a line in characters."""
_EDGE: Final = 3
"""How many lines at the beginning and the end of a page may be furniture."""
_LETTERS: Final = 3
"""Greatest length of a line that is a letter or two of a watermark, or a short word in a table."""
_NUMBER: Final = re.compile(r"\d{1,4}|(?<![A-Za-z])[IVXLivxl]{1,7}(?![A-Za-z])")
_HEADING: Final = re.compile(
    r"\W*(?:annex(?:ure|e)?|appendix|schedule|part|title|book|chapter|section|item|article|rule|regulation|form|table)\b",
    re.IGNORECASE,
)
"""Numbered headings, which may begin every page of a text."""
_CLAUSE: Final = re.compile(
    r"\W*(?:(?:provided|proviso|explanations?|notes?|notwithstanding|except(?:ions?)?|illustrations?|footnotes?)\b"
    r"|(?:annex(?:ure|e)?|appendix|schedule)$"
    r"|(?:\d{1,3}\.)+(?:\d|\s)|\(?[a-z\d]{1,4}[.)](?!\w))",
    re.IGNORECASE,
)
"""Lines that occur in many places and belong to each of them."""
_IS_ROW: Final = re.compile(r"\t|\|.*\|")
_WORD: Final = re.compile(r"[^\W\d]{3}")


def furniture(text: str) -> frozenset[str]:
    r"""Return the lines, stripped of white space, that are furniture wherever they occur.

    These are lines that begin or end several pages, word for word or with a number that rises by one from page to page;
    and letters on lines of their own on half of the pages. In a text without form feeds, every repeated line is
    furniture. Lines that are only a page number are not included.
    """
    pages = text.split("\f")
    stands: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    numbered: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    shapes: defaultdict[str, set[str]] = defaultdict(set)
    for page, words in enumerate(pages):
        lines = [line for raw in words.split("\n") if (line := raw.strip())]
        letters.update({line for line in lines if len(line) <= _LETTERS and line.isalpha()})
        edges = lines if len(pages) == 1 else [*lines[:_EDGE], *lines[max(_EDGE, len(lines) - _EDGE) :]]
        for line in edges:
            if _may_run(line):
                stands[line] += 1
                for shape, number in _numbered(line):
                    shapes[shape].add(line)
                    if number is not None:
                        numbered[shape, number - page].add(page)
    found = {line for line, often in stands.items() if often >= _OFTEN}
    found |= {line for line, often in letters.items() if often >= max(_OFTEN, len(pages) / 2)}
    for (shape, _), on in numbered.items():
        if len(on) >= _OFTEN:
            found |= shapes[shape]
    return frozenset(found)


def _may_run(line: str) -> bool:
    return (
        _LETTERS < len(line) <= _SHORT
        and _WORD.search(line) is not None
        and not _CLAUSE.match(line)
        and not _IS_ROW.search(line)
        and line[-1] not in ".:;,"
    )


def _numbered(line: str) -> Iterator[tuple[str, int | None]]:
    """Yield a line without the number at its beginning or end, and that number; None for a Roman numeral."""
    if _HEADING.match(line):
        return
    numbers = list(_NUMBER.finditer(line))
    for one in {numbers[0], numbers[-1]} if numbers else ():
        rest = line[: one.start()] + "#" + line[one.end() :]
        # A number with a full stop or in brackets is a clause's.
        at_edge = not re.search(r"\w", line[: one.start()]) or not re.search(r"\w", line[one.end() :])
        if at_edge and _WORD.search(rest) and not re.match(r"\W*#[.)]", rest):
            yield rest, int(one[0]) if one[0].isdigit() else None
