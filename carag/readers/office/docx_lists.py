"""Count the automatic numbers of a Word document's paragraphs, and write them as Word shows them.

A list is an instance of a definition of nine levels; instances of one definition share its counters, unless one
overrides where it starts (ECMA-376, part 1, 17.9).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.readers.blocks import Number
from carag.readers.list_numbers import numeral
from carag.readers.office.docx_styles import attribute, child, is_on, name_of, stated

if TYPE_CHECKING:
    from lxml.etree import _Element

    from carag.readers.office.docx_styles import ListPlace, Styles


_LEVELS: Final = 9
_PLACE: Final = re.compile(r"%([1-9])")


class _Level(NamedTuple):
    kind: str
    """The format of the level's number, as ``w:numFmt`` names it."""
    start: int
    text: str
    """The text that is shown, in which ``%1`` stands for the number of the first level."""
    restarts: int
    """The level, from 1, whose numbers restart this one, as those of the levels above it do; 0 for no restart."""
    is_legal: bool
    """Whether all numbers in the text are written in digits."""
    style: str
    """The paragraph style that belongs to this level."""
    is_apart: bool
    """Whether a tab or a space follows the number."""


class _List(NamedTuple):
    definition: str
    levels: dict[int, _Level]
    starts: dict[int, int]
    """Where a level starts in this instance, by level."""


class Lists:
    """The lists of a document, counted from its beginning; ``root`` is the part ``numbering``, if there is one."""

    def __init__(self, root: _Element | None, styles: Styles) -> None:
        self._styles = styles
        self._definitions: dict[str, _Element] = {}
        self._instances: dict[str, _Element] = {}
        for one in root if root is not None else ():
            if name_of(one) == "abstractNum":
                self._definitions[attribute(one, "abstractNumId")] = one
            elif name_of(one) == "num":
                self._instances[attribute(one, "numId")] = one
        self._read: dict[str, _List | None] = {}
        self._counts: dict[str, list[int | None]] = {}
        self._started: set[tuple[str, int]] = set()

    def number(self, place: ListPlace) -> Number:
        """Count a paragraph, and return the number that Word shows before it, which may be empty."""
        if place.number not in self._read:
            self._read[place.number] = self._list(place.number)
        found = self._read[place.number]
        if found is None:
            return Number("")
        at = place.level
        if place.style:  # a level that names the style decides, whatever the style says
            at = next((one for one, level in found.levels.items() if level.style == place.style), at)
        at = min(at or 0, _LEVELS - 1)
        if at not in found.levels:
            return Number("")
        counts = self._counts.setdefault(found.definition, [None] * _LEVELS)
        self._count(place.number, found, counts, at)
        return _shown(found.levels, counts, at)

    def _count(self, number: str, found: _List, counts: list[int | None], at: int) -> None:
        last = counts[at]
        begins = at in found.starts and (number, at) not in self._started
        self._started.add((number, at))
        if begins or last is None:
            counts[at] = found.starts.get(at, found.levels[at].start)
        else:
            counts[at] = last + 1
        for below in range(at + 1, _LEVELS):
            if below in found.levels and at < found.levels[below].restarts:
                counts[below] = None

    def _list(self, number: str, depth: int = 0) -> _List | None:
        instance = self._instances.get(number)
        if instance is None:
            return None
        identity = stated(instance, "abstractNumId")
        definition = self._definitions.get(identity)
        linked = child(definition, "numStyleLink")
        if linked is not None and depth < _LEVELS:  # the definition is that of the numbering style
            other = self._list(self._styles.list_of_style(attribute(linked, "val")), depth + 1)
            return other and other._replace(starts={**other.starts, **_starts(instance)})
        levels = _levels(definition)
        for one in instance:
            if name_of(one) == "lvlOverride":
                levels |= _levels(one)
        return _List(identity, levels, _starts(instance))


def _levels(parent: _Element | None) -> dict[int, _Level]:
    found = {}
    for one in parent if parent is not None else ():
        if name_of(one) == "lvl":
            at = _whole(attribute(one, "ilvl"), 0)
            restarts = child(one, "lvlRestart")
            found[at] = _Level(
                kind=stated(one, "numFmt") or "decimal",
                start=_whole(stated(one, "start"), 0),
                text=stated(one, "lvlText"),
                restarts=at if restarts is None else _whole(attribute(restarts, "val"), at),
                is_legal=is_on(child(one, "isLgl")),
                style=stated(one, "pStyle"),
                is_apart=stated(one, "suff") != "nothing",
            )
    return found


def _starts(instance: _Element) -> dict[int, int]:
    found = {}
    for one in instance:
        start = child(one, "startOverride")
        if start is not None:
            found[_whole(attribute(one, "ilvl"), 0)] = _whole(attribute(start, "val"), 0)
    return found


def _shown(levels: dict[int, _Level], counts: list[int | None], at: int) -> Number:
    level = levels[at]
    if level.kind == "bullet":
        return Number("•")
    if level.kind == "none" and not _PLACE.sub("", level.text).strip():
        return Number("")

    numbers = {}
    for which, one in levels.items():
        kind = "decimal" if level.is_legal and one.kind != "none" else one.kind
        count = counts[which] if which < _LEVELS else None
        numbers[str(which + 1)] = _written(kind, one.start if count is None else count)
    shown = _PLACE.sub(lambda match: numbers.get(match[1], ""), level.text).lstrip()
    return Number(shown.rstrip() if level.is_apart else shown, level.is_apart)


def _written(kind: str, number: int) -> str:
    """Write a number in one of Word's formats; an unknown format is marked, with the number in digits."""
    if kind == "none":
        return ""
    if kind in KINDS:
        return numeral(KINDS[kind], number)
    return f"⟨{number} as {kind}⟩"


KINDS: Final = {
    "decimal": "decimal",
    "decimalZero": "decimal-leading-zero",
    "lowerLetter": "lower-letter",
    "upperLetter": "upper-letter",
    "lowerRoman": "lower-roman",
    "upperRoman": "upper-roman",
    "ordinal": "ordinal",
    "cardinalText": "cardinal-words",
    "ordinalText": "ordinal-words",
}
"""Word's formats, each with the name that ``numeral`` uses."""


def _whole(written: str, default: int) -> int:
    return int(written) if written.isdecimal() and len(written) < _LEVELS else default
