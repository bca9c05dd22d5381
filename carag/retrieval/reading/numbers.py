"""Find the numbers of documents that a question names, in whatever way they are spelt.

Capitals, dots, blanks and hyphens do not count, nor "No.", zeros before a number, and the century of a year that two
years name. A number that a document given bears is found as such; else what is written like one: parts between
strokes, with letters first and a figure in it. So a number that only hidden documents bear, and one that none bears,
are read alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.retrieval.reading.names import Mention, Naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Numbers", "Place", "number_key"]

_PART: Final = re.compile(
    r"(?<!\d)(?:19|20)?(?P<first>\d\d)\s?[-‐‑–]\s?(?:19|20)?(?P<second>\d\d)(?!\d)|[^\W\d_]+|\d+"
)
"""Two years, such as 2024-25 and 2024-2025; letters; figures. That one year follows the other is tested."""
_SAYS_NOTHING: Final = frozenset({"NO", "NOS"})
_WRITTEN: Final = re.compile(
    r"(?<![\w/.:-])(?=[^\s/]*[^\W\d_])[^\W\d_](?:[\w.()&‐‑–-]|\s(?=[/(])|(?<=[/.)])\s(?=[\dA-Z(])|(?<=[Nn]o)\s(?=\d)){0,60}"
    r"(?:\s?/\s?[\w.()&‐‑–-]{1,40}){1,6}"
)
"""What may be a number: parts between strokes without blanks, but for those around strokes, after dots and "No"."""
_SENTENCE: Final = re.compile(r"\w*[a-z]{3}\.\s")
"""The end of a sentence, which is no part of the number behind it."""
_STROKES: Final = 2
"""The least number of strokes of what is no document's and taken for a number; one, where it ends in two years."""
_MOST_PARTS: Final = 24
"""Greatest number of parts of a number, by which a document's is looked for in a question."""


class Place(NamedTuple):
    """Where a question names a number."""

    start: int
    end: int
    mention: Mention
    """Its keys are the documents that bear it; none where no document given does."""


def number_key(number: str) -> str:
    """Return a number in the form in which its spellings are equal.

    Examples
    --------
    >>> number_key("DoR.SPE.REC.No.05/13.03.00/2024-2025") == number_key("DOR. SPE REC 5 / 13-03.00 / 2024-25")
    True
    >>> number_key("RBI/2024-25/93")
    'RBI2425/93'
    """
    return _joined([part for _, _, part in _parts(number)])


class Numbers:
    """The numbers of documents."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[int, int]]] = {}
        self._many = 0

    def add(self, rows: Iterable[tuple[Iterable[str], int]]) -> None:
        """Add a row a document: its numbers, and its key. A number of one part alone could be any figure."""
        for numbers, key in rows:
            for number in {number_key(one) for one in numbers if 1 < len(list(_parts(one))) <= _MOST_PARTS}:
                if any(map(str.isdigit, number)):
                    self._rows.setdefault(number, []).append((self._many, key))
            self._many += 1

    def find(self, text: str, said: Callable[[int], bool]) -> tuple[Place, ...]:
        """Return the numbers that a text names, in its order; of one place the longest.

        Parameters
        ----------
        text : str
        said : callable
            Tells of a row whether its document is one of those given: the others are as if they were not there.
        """
        found: list[Place] = []
        parts, end = list(_parts(text)), 0
        for at, (start, _, _) in enumerate(parts):
            if start < end:
                continue
            for until in range(min(len(parts), at + _MOST_PARTS), at + 1, -1):
                bearers = self._rows.get(_joined([part for _, _, part in parts[at:until]]), ())
                keys = sorted({key for row, key in bearers if said(row)})
                last = parts[until - 1][1]
                if keys and _is_whole(text, start, last):
                    found.append(Place(start, last, Mention(text[start:last], tuple(keys), Naming.NAME)))
                    end = last
                    break
        for match in _WRITTEN.finditer(text):
            start, last = match.start(), match.start() + len(match[0].rstrip(".,;:)–-"))
            if sentence := _SENTENCE.match(text, start, last):
                start = sentence.end()
            if _is_like_one(text[start:last]) and not any(
                one.start < last and start < one.end for one in found
            ):
                found.append(Place(start, last, Mention(text[start:last], (), Naming.NAME)))
        return tuple(sorted(found, key=lambda one: one.start))


def _parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of a number, with where each stands."""
    for match in _PART.finditer(text):
        if match["first"] and (int(match["first"]) + 1) % 100 == int(match["second"]):
            yield match.start(), match.end(), match["first"] + match["second"]
        elif match["first"]:
            for one in re.finditer(r"\d+", match[0]):
                yield match.start() + one.start(), match.start() + one.end(), one[0].lstrip("0") or "0"
        elif match[0].isdigit():
            yield match.start(), match.end(), match[0].lstrip("0") or "0"
        elif match[0].upper() not in _SAYS_NOTHING:
            yield match.start(), match.end(), match[0].upper()


def _joined(parts: list[str]) -> str:
    """Join parts: only between two figures does it matter where one ends."""
    return "".join(
        f"/{part}" if at and part[0].isdigit() and parts[at - 1][-1].isdigit() else part
        for at, part in enumerate(parts)
    )


def _is_whole(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())


def _is_like_one(text: str) -> bool:
    if not any(map(str.isdigit, text)) or "www" in text:
        return False
    ends_in_years = re.search(r"\d.*/\s?(?:19|20)?\d\d[-‐‑–](?:19|20)?\d\d$", text)
    return text.count("/") >= _STROKES or bool(ends_in_years)
