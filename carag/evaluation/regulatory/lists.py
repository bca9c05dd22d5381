"""Give each sentence of a text the sentences that open the lists in which it is an entry.

"(f) the use of AI systems to infer emotions" forbids nothing; "The following practices shall be prohibited:" above it
does. Legal texts number paragraphs, letter their points and count sub-points in Roman numerals.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


_LABEL: Final = re.compile(r"(?:\((?P<round>\w{1,5})\)|(?P<bare>\d{1,3}|[a-z])[.)]|[-•–*])\s")
_ROMAN: Final = re.compile(r"[ivx]+")


class Entry(NamedTuple):
    """A sentence of a text, and what opens its list."""

    start: int
    end: int
    leads: tuple[str, ...]
    """The leads, outermost first; empty for a sentence that is not a list entry."""


def entries(text: str, cut: Iterable[tuple[int, int]]) -> list[Entry]:
    """Return the sentences of a text, whose positions are in ``cut``, with the leads of each."""
    found: list[Entry] = []
    opened: list[tuple[str, str]] = []
    for start, end in cut:
        sentence = text[start:end]
        if (label := _LABEL.match(sentence)) is None:
            begins_line = not text[:start].rstrip(" ") or text[:start].rstrip(" ").endswith("\n")
            opened = [] if begins_line else opened
            leads: tuple[str, ...] = ()
        else:
            kind = _kind(label, opened)
            kinds = [one for one, _ in opened]
            opened = opened[: kinds.index(kind)] if kind in kinds else opened
            leads = tuple(lead for _, lead in opened)
        if sentence.endswith(":"):
            opened = [*opened, (_kind(label, opened) if label else "", sentence)]
        found.append(Entry(start, end, leads))
    return found


def _kind(label: re.Match[str], opened: list[tuple[str, str]]) -> str:
    """Return how an entry is numbered; (i) is Roman below a lettered point, and otherwise the letter after (h)."""
    said = label["round"] or label["bare"] or ""
    if not said or said.isdigit():
        return "figure" if said else "mark"
    is_below = bool(opened) and opened[-1][0] in ("letter", "Roman")
    return "Roman" if _ROMAN.fullmatch(said) and (is_below or len(said) > 1) else "letter"
