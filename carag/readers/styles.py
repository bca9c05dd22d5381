"""Tell from an HTML page's styles what is hidden, struck or raised, which font it is in, and how lists are numbered.

What counts is an element's tag, ``face`` and ``style``, and the rules in the page's ``<style>`` whose selector is a
tag, a class, an id, or a tag with a class or id (``p.note``); of two declarations, the nearer counts. Other selectors,
and rules within ``@media``, are ignored.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Look(Enum):
    """How the text of an element is treated."""

    AS_TEXT = auto()
    LEFT_OUT = auto()
    """Hidden or deleted."""
    EMPTIED = auto()
    """Struck or invisible, so that a cell of a table keeps its place."""
    RAISED = auto()
    LOWERED = auto()


class Style(NamedTuple):
    """The properties that are read from an element's style."""

    look: Look
    font: str | None
    """The first of its fonts, if any is stated."""
    marker: str
    """The CSS list style that a list or item states for itself; may be empty."""


_OF_TAGS: Final = {
    **dict.fromkeys(("del", "s", "strike"), Look.LEFT_OUT),
    "sup": Look.RAISED,
    "sub": Look.LOWERED,
}
_ABOVE: Final = re.compile(r"super|text-top|\+?(?!0(?:pt|px|em|ex|%)?\s*$)[\d.]+(?:pt|px|em|ex|%)")
_BELOW: Final = re.compile(r"sub|text-bottom|-[\d.]+")
_LENGTH: Final = re.compile(r"([-+]?)[\d.]*[1-9]")
INLINE: Final = {"a", "abbr", "b", "em", "font", "i", "small", "span", "strong", "sup", "sub", "u", "cite"}
_MARKERS: Final = {
    "none", "disc", "circle", "square", "decimal", "decimal-leading-zero", "lower-alpha", "lower-latin", "upper-alpha",
    "upper-latin", "lower-roman", "upper-roman",
}  # fmt: skip
_OF_TYPES: Final = {
    "1": "decimal",
    "a": "lower-alpha",
    "A": "upper-alpha",
    "i": "lower-roman",
    "I": "upper-roman",
}
"""The attribute ``type`` of lists and items (HTML Standard, 4.4.5)."""
_READ: Final = {
    "bottom", "display", "font-family", "list-style", "position", "text-decoration", "top", "vertical-align",
    "visibility",
}  # fmt: skip
_SHORT: Final = {"list-style-type": "list-style", "text-decoration-line": "text-decoration"}
_LONGEST: Final = 64
"""The number of characters of a value that are read: a page may repeat a value in each of its elements."""
_SIZE: Final = re.compile(r"\d(?:pt|px|em|rem|ex|%|in|cm|mm)(?:/|$)|\b(?:small|medium|large)(?:/|$)")
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
"""An unclosed comment extends to the end of the style sheet (CSS Syntax Module 3, 4.3.2)."""
_AT_RULE: Final = re.compile(r"@[^{};]*+[{;]?|[{}]")
_SIMPLE: Final = re.compile(r"(?:[a-z][\w-]*)?(?:[.#][\w-]+)?", re.IGNORECASE)


class StyleSheet:
    """The rules of a page that are supported."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        """Supported declarations by selector, such as ``p.note``, ``.note`` or ``#n1``."""

    def add(self, text: str) -> None:
        """Read the contents of a ``<style>`` element."""
        for rule in _outside_at_rules(_COMMENT.sub(" ", text)).split("}")[:-1]:
            before, brace, declared = rule.rpartition("{")
            said = _kept(declared) if brace else ""
            for one in map(str.strip, before.rpartition("{")[2].split(",")) if said else ():
                if one and _SIMPLE.fullmatch(one):
                    name = one if "." in one or "#" in one else one.lower()
                    self._rules[name] = _kept(f"{self._rules.get(name, '')};{said}")

    def of(self, tag: str, attributes: Mapping[str, str]) -> Style:
        """Return an element's style."""
        declared = self._declared(tag, attributes)
        if face := attributes.get("face"):
            declared = f"font-family:{face};{declared}"
        style = _style(tag, declared)
        if "hidden" in attributes:
            return style._replace(look=Look.LEFT_OUT)
        if not style.marker and (kind := attributes.get("type")):
            return style._replace(
                marker=_OF_TYPES.get(kind, kind.lower() if kind.lower() in _MARKERS else "")
            )
        return style

    def _declared(self, tag: str, attributes: Mapping[str, str]) -> str:
        own = attributes.get("style", "")
        if not self._rules:
            return own
        names = ["." + one for one in dict.fromkeys(attributes.get("class", "").split())]
        if identity := attributes.get("id"):
            names.append("#" + identity)
        selectors = [tag, *names, *(tag + name for name in names)]
        return ";".join([*(self._rules[one] for one in selectors if one in self._rules), own])


@lru_cache(maxsize=4096)
def _style(tag: str, declared: str) -> Style:
    said = {name: value.removesuffix("!") for name, value in _declarations(declared).items()}
    markers = [one for one in said.get("list-style", "").split() if one in _MARKERS]
    font = said.get("font-family")
    return Style(_look(tag, said), font, markers[-1] if markers else "")


def _kept(declared: str) -> str:
    return ";".join(f"{name}:{value}" for name, value in _declarations(declared).items())


def _declarations(declared: str) -> dict[str, str]:
    """Return the lower-case values of supported properties; of two values, the important or the last one."""
    found: dict[str, str] = {}
    for one in declared.lower().split(";"):
        name, _, value = one.partition(":")
        name = name.strip()
        name = _SHORT.get(name, name)
        value, mark, _ = value.partition("!")
        if name == "font":
            name, value = "font-family", _family(value)
        if name not in _READ or (found.get(name, "").endswith("!") and not mark):
            continue
        if name == "font-family":
            value = value.partition(",")[0].strip(" \t\n\r\"'")
        found[name] = value.strip()[:_LONGEST] + mark
    return found


def _family(shorthand: str) -> str:
    """Return the family of the shorthand ``font``, which follows the size and the line height."""
    words = "/".join(map(str.strip, shorthand.split("/"))).split()
    sizes = [at for at, word in enumerate(words, 1) if _SIZE.search(word)]
    return " ".join(words[sizes[-1] :] if sizes else words)


def _look(tag: str, said: Mapping[str, str]) -> Look:
    if said.get("display") == "none":
        return Look.LEFT_OUT
    if said.get("visibility") in {"hidden", "collapse"} or "line-through" in said.get("text-decoration", ""):
        return Look.EMPTIED
    if tag in INLINE:
        aligned = said.get("vertical-align", "")
        moved = _moved(said) if said.get("position") == "relative" else 0
        if moved > 0 or _ABOVE.match(aligned):
            return Look.RAISED
        if moved < 0 or _BELOW.match(aligned):
            return Look.LOWERED
    return _OF_TAGS.get(tag, Look.AS_TEXT)


def _moved(said: Mapping[str, str]) -> int:
    for name, up in (("top", -1), ("bottom", 1)):
        if length := _LENGTH.match(said.get(name, "")):
            return -up if length[1] == "-" else up
    return 0


def _outside_at_rules(text: str) -> str:
    """Return a style sheet without the blocks of its at-rules."""
    kept, depth, start = [], 0, 0
    for match in _AT_RULE.finditer(text):
        if depth == 0 and match[0].startswith("@"):
            kept.append(text[start : match.start()])
            start, depth = match.end(), int(match[0].endswith("{"))
        elif depth:
            depth += {"{": 1, "}": -1}.get(match[0][-1], 0)
            start = match.end() if depth == 0 else start
    return "".join(kept) + (text[start:] if depth == 0 else "")
