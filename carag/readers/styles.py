"""Tell from the styles of an HTML page what hides, strikes, raises or lowers an element, and what counts its lists.

An element's tag and ``style`` are read, and those rules of the page's ``<style>`` whose selector is a tag, a class, an
id, or one of each (``p.note``). Other selectors and rules within ``@media`` are not read: they hold elsewhere.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INLINE", "Look", "StyleSheet"]


class Look(Enum):
    """What is done with the text of an element."""

    AS_TEXT = auto()
    LEFT_OUT = auto()
    """Hidden, struck or deleted."""
    RAISED = auto()
    LOWERED = auto()


_OF_TAGS: Final = {
    **dict.fromkeys(("del", "s", "strike"), Look.LEFT_OUT),
    "sup": Look.RAISED,
    "sub": Look.LOWERED,
}
_LEFT_OUT: Final = re.compile(
    r"\b(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|text-decoration(?:-line)?\s*:[^;]*line-through)",
    re.IGNORECASE,
)
_RAISED: Final = re.compile(
    r"vertical-align\s*:\s*(?:super|text-top|\+?(?!0(?:pt|px|em|ex|%)?\s*(?:;|$))[\d.]+(?:pt|px|em|ex|%))"
    r"|position\s*:\s*relative\b.*?(?<![-\w])(?:top\s*:\s*-|bottom\s*:\s*\+?)[\d.]*[1-9]",
    re.IGNORECASE | re.DOTALL,
)
_LOWERED: Final = re.compile(
    r"vertical-align\s*:\s*(?:sub|text-bottom|-[\d.]+)"
    r"|position\s*:\s*relative\b.*?(?<![-\w])(?:bottom\s*:\s*-|top\s*:\s*\+?)[\d.]*[1-9]",
    re.IGNORECASE | re.DOTALL,
)
INLINE: Final = {"a", "abbr", "b", "em", "font", "i", "small", "span", "strong", "sup", "sub", "u", "cite"}
_MARKER: Final = re.compile(r"list-style(?:-type)?\s*:\s*(?:[^;]*?\s)??(none|[a-z-]+)", re.IGNORECASE)
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
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE: Final = re.compile(r"([^{}]*)\{([^{}]*)\}")
_SIMPLE: Final = re.compile(r"(?:[a-z][\w-]*)?(?:[.#][\w-]+)?", re.IGNORECASE)


class StyleSheet:
    """The rules of a page, as far as they were read."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        """Declarations by selector, such as ``p.note``, ``.note`` or ``#n1``."""

    def add(self, text: str) -> None:
        """Read what stands in a ``<style>`` element."""
        for selectors, declared in _RULE.findall(_outside_at_rules(_COMMENT.sub(" ", text))):
            for one in map(str.strip, selectors.split(",")):
                if one and _SIMPLE.fullmatch(one):
                    name = one if "." in one or "#" in one else one.lower()
                    self._rules[name] = f"{self._rules.get(name, '')};{declared}"

    def look(self, tag: str, attributes: Mapping[str, str]) -> Look:
        """Return what is done with an element's text."""
        if "hidden" in attributes:
            return Look.LEFT_OUT
        if declared := self._declared(tag, attributes):
            if _LEFT_OUT.search(declared):
                return Look.LEFT_OUT
            if tag in INLINE:
                if _RAISED.search(declared):
                    return Look.RAISED
                if _LOWERED.search(declared):
                    return Look.LOWERED
        return _OF_TAGS.get(tag, Look.AS_TEXT)

    def marker(self, tag: str, attributes: Mapping[str, str]) -> str:
        """Return the kind of number that a list or an item states for itself, as CSS names it; empty if none."""
        for found in reversed(_MARKER.findall(self._declared(tag, attributes))):
            if found.lower() in _MARKERS:
                return str(found.lower())
        kind = attributes.get("type", "")
        return _OF_TYPES.get(kind, kind.lower() if kind.lower() in _MARKERS else "")

    def _declared(self, tag: str, attributes: Mapping[str, str]) -> str:
        own = attributes.get("style", "")
        if not self._rules:
            return own
        names = ["." + one for one in attributes.get("class", "").split()]
        if identity := attributes.get("id"):
            names.append("#" + identity)
        selectors = [tag, *names, *(tag + name for name in names)]
        return ";".join([*(self._rules[one] for one in selectors if one in self._rules), own])


def _outside_at_rules(text: str) -> str:
    """Return a style sheet without what stands in braces within braces."""
    kept, depth, start = [], 0, 0
    for match in re.finditer(r"@[^{};]*(?:;|\{)|[{}]", text):
        if depth == 0 and match[0].startswith("@"):
            kept.append(text[start : match.start()])
            start, depth = match.end(), int(match[0].endswith("{"))
        elif depth:
            depth += {"{": 1, "}": -1}.get(match[0][-1], 0)
            start = match.end() if depth == 0 else start
    return "".join(kept) + (text[start:] if depth == 0 else "")
