"""Resolve the styles of a Word document: hidden, struck, raised and lowered text, fonts, and lists.

Formatting comes from the document's defaults, a paragraph style, a character style and the run itself; a style includes
the styles that it is based on, and toggles in the two kinds of styles cancel each other (ECMA-376, part 1, 17.7).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lxml.etree import _Element


_FALSE: Final = {"0", "false", "off"}
_RAISED_FROM: Final = 2
"""Half-points above or below the line from which text counts as raised or lowered."""


class RunLook(NamedTuple):
    """How a run is shown."""

    hidden: bool
    struck: bool
    shift: int
    """1 if it is raised, -1 if lowered, else 0."""
    font: str


class ListPlace(NamedTuple):
    """A list, and the level at which a paragraph stands in it."""

    number: str
    """The id of the list."""
    level: int | None
    """None if only the style names the list; then the list's definition gives the level."""
    style: str
    """The style that names the list; empty if the paragraph itself does."""


class Styles:
    """The styles of a document; ``root`` is the part ``styles``, if there is one."""

    def __init__(self, root: _Element | None) -> None:
        self._styles: dict[str, _Element] = {}
        self._defaults: _Element | None = None
        self._default = {"paragraph": "", "character": ""}
        for one in root if root is not None else ():
            if name_of(one) == "docDefaults":
                self._defaults = child(one, "rPrDefault", "rPr")
            elif name_of(one) == "style":
                identity, kind = attribute(one, "styleId"), attribute(one, "type")
                self._styles[identity] = one
                if kind in self._default and attribute(one, "default") not in {"", *_FALSE}:
                    self._default[kind] = identity

    def run(self, properties: _Element | None, paragraph_style: str) -> RunLook:
        """Return the look of a run with these properties, in a paragraph of a style."""
        character = stated(properties, "rStyle") or self._default["character"]
        of_paragraph = [*self._chain(paragraph_style or self._default["paragraph"], "rPr")]
        of_character = [*self._chain(character, "rPr")]

        def toggled(name: str) -> bool:
            if (own := child(properties, name)) is not None:
                return is_on(own)
            levels = (_first(of_character, name), _first(of_paragraph, name))
            on = [one for one in levels if one is not None and is_on(one)]
            return len(on) == 1 or (not on and is_on(child(self._defaults, name)))

        def nearest(name: str) -> _Element | None:
            return _first([properties, *of_character, *of_paragraph, self._defaults], name)

        fonts = nearest("rFonts")
        return RunLook(
            hidden=toggled("vanish"),
            struck=toggled("strike") or is_on(nearest("dstrike")),
            shift=_shift(nearest),
            font="" if fonts is None else attribute(fonts, "ascii"),
        )

    def list_of(self, properties: _Element | None) -> ListPlace | None:
        """Return the list of a paragraph with these properties; None if it is in no list."""
        style = stated(properties, "pStyle") or self._default["paragraph"]
        own = child(properties, "numPr")
        number, level = stated(own, "numId"), stated(own, "ilvl")
        named_by = ""
        if not number:
            for identity, one in self._with_bases(style):
                of_style = child(one, "pPr", "numPr")
                number = number or stated(of_style, "numId")
                level = level or stated(of_style, "ilvl")
                if number:
                    named_by = identity
                    break
        if number in {"", "0"}:
            return None
        return ListPlace(number, int(level) if level.isdigit() else None, named_by)

    def list_of_style(self, style: str) -> str:
        """Return the id of the list that a numbering style names; empty if it names none."""
        return stated(child(self._styles.get(style), "pPr", "numPr"), "numId")

    def _chain(self, style: str, part: str) -> Iterator[_Element]:
        return (found for _, one in self._with_bases(style) if (found := child(one, part)) is not None)

    def _with_bases(self, style: str) -> Iterator[tuple[str, _Element]]:
        """Yield a style and the styles that it is based on, the nearest first; a cycle ends where it closes."""
        seen: set[str] = set()
        while style in self._styles and style not in seen:
            seen.add(style)
            yield style, self._styles[style]
            style = stated(self._styles[style], "basedOn")


def _shift(nearest: Callable[[str], _Element | None]) -> int:
    aligned = nearest("vertAlign")
    if aligned is not None:
        return {"superscript": 1, "subscript": -1}.get(attribute(aligned, "val"), 0)
    moved = nearest("position")
    try:
        by = int(attribute(moved, "val")) if moved is not None else 0
    except ValueError:
        by = 0
    return (by >= _RAISED_FROM) - (by <= -_RAISED_FROM)


def _first(levels: Iterable[_Element | None], name: str) -> _Element | None:
    return next((found for one in levels if (found := child(one, name)) is not None), None)


def stated(element: _Element | None, name: str) -> str:
    """Return the value of an element's child; empty if there is no such child."""
    found = child(element, name)
    return "" if found is None else attribute(found, "val")


def child(element: _Element | None, *names: str) -> _Element | None:
    """Follow a path of child names from an element; None if one is missing."""
    for name in names:
        if element is None:
            return None
        element = next(element.iterchildren(f"{{*}}{name}"), None)
    return element


def is_on(toggle: _Element | None) -> bool:
    """Tell whether an on/off property is present and on (ECMA-376, part 1, 17.17.4)."""
    return toggle is not None and attribute(toggle, "val") not in _FALSE


def name_of(element: _Element) -> str:
    """Return an element's name without its namespace."""
    return _local(element.tag)


@lru_cache(maxsize=1024)
def _local(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: _Element, name: str) -> str:
    """Return an attribute by its name without the namespace; empty if it is not set."""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")
