"""Find document numbers in a question, in any spelling.

Case, dots, blanks, hyphens, "No.", leading zeros and the century in a pair of years do not matter. A number that one of
the given documents has is recognised; so is anything else that is written like a number: parts between slashes, with
letters first and a figure somewhere. The number of a hidden document and a number that does not exist are therefore
read alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.retrieval.reading.names import Mention, Naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_PART: Final = re.compile(
    r"(?<!\d)(?:19|20)?(?P<first>\d\d)\s?[-‐‑–]\s?(?:19|20)?(?P<second>\d\d)(?!\d)|[^\W\d_]+|\d+"
)
"""Two years, such as 2024-25 and 2024-2025, if one follows the other; letters; figures."""
_SAYS_NOTHING: Final = frozenset({"NO", "NOS"})
_WRITTEN: Final = re.compile(
    r"(?<![\w/.:-])(?=[^\s/]*[^\W\d_])[^\W\d_](?:[\w.()&‐‑–-]|\s(?=[/(])|(?<=[/.)])\s(?=[\dA-Z(])|(?<=[Nn]o)\s(?=\d)){0,60}"
    r"(?:\s?/\s?[\w.()&‐‑–-]{1,40}){1,6}"
)
"""What may be a number: parts between slashes, with blanks only around slashes and after dots and "No"."""
_SENTENCE: Final = re.compile(r"\w*[a-z]{3}\.\s")
"""The end of a sentence, which does not belong to the number after it."""
_STROKES: Final = 2
"""The least number of slashes in a number that no given document has; one if the number ends in two years."""
_MOST_PARTS: Final = 24
"""The most parts of a number."""


class NumberPlace(NamedTuple):
    """The place of a number in a question."""

    start: int
    end: int
    mention: Mention
    """Its keys are those of the given documents that have the number; perhaps none."""


def number_key(number: str) -> str:
    """Return a number in a form that is equal for all of its spellings.

    Examples
    --------
    >>> number_key("DoR.SPE.REC.No.05/13.03.00/2024-2025") == number_key("DOR. SPE REC 5 / 13-03.00 / 2024-25")
    True
    >>> number_key("RBI/2024-25/93")
    'RBI2425/93'
    """
    return _joined([part for _, _, part in _parts(number)])


class Numbers:
    """The numbers of documents, one row for each."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[int, int]]] = {}
        self._many = 0

    def add(self, rows: Iterable[tuple[Iterable[str], int]]) -> None:
        """Add a row for each document, its numbers and key. Numbers of a single part are ignored, as ambiguous."""
        for numbers, key in rows:
            for number in {number_key(one) for one in numbers if 1 < len(list(_parts(one))) <= _MOST_PARTS}:
                if any(map(str.isdigit, number)):
                    self._rows.setdefault(number, []).append((self._many, key))
            self._many += 1

    def find(self, text: str, said: Callable[[int], bool]) -> tuple[NumberPlace, ...]:
        """Return the numbers in a text, in its order, at each place the longest.

        ``said`` tells whether a row's document is one of those given; other rows are treated as absent.
        """
        found: list[NumberPlace] = []
        parts, end = list(_parts(text)), 0
        for at, (start, _, _) in enumerate(parts):
            if start < end:
                continue
            for until in range(min(len(parts), at + _MOST_PARTS), at + 1, -1):
                bearers = self._rows.get(_joined([part for _, _, part in parts[at:until]]), ())
                keys = sorted({key for row, key in bearers if said(row)})
                last = parts[until - 1][1]
                if keys and _is_whole(text, start, last):
                    found.append(
                        NumberPlace(start, last, Mention(text[start:last], tuple(keys), Naming.NAME))
                    )
                    end = last
                    break
        for match in _WRITTEN.finditer(text):
            start, last = match.start(), match.start() + len(match[0].rstrip(".,;:)–-"))
            if sentence := _SENTENCE.match(text, start, last):
                start = sentence.end()
            if _is_like_one(text[start:last]) and not any(
                one.start < last and start < one.end for one in found
            ):
                found.append(NumberPlace(start, last, Mention(text[start:last], (), Naming.NAME)))
        return tuple(sorted(found, key=lambda one: one.start))


def _parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and normal form of each part of a number."""
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
    """Join parts; only between two figures does the boundary matter."""
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
