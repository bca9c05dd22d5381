"""Parse front matter: the block of metadata between two lines ``---`` at the beginning of a text.

It is a small subset of YAML: one ``key: value`` or ``key: [a, b]`` per line. Values that YAML versions read in
different ways, such as ``no``, ``~`` or ``10:30``, are refused unless quoted. Nesting is refused too. A date stays a
text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from carag.errors import CorruptFile
from carag.limits import quoted
from carag.readers.facts import check_facts

if TYPE_CHECKING:
    from carag.readers.outcome import Fact


_FENCE: Final = "---"
_FIELD: Final = re.compile(r"([^\W\d][\w.-]*):(?:[ \t]+(.*?))?[ \t]*")
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]+)?")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"' r"|'(?:[^']|'')*'")
_AMBIGUOUS: Final = re.compile(r"""[-?:,\[\]{}#&*!|>'"%@`=<~.+]""")
"""Characters that an unquoted value must not begin with, because YAML may give them a meaning."""
_NOT_IN_TEXT: Final = re.compile(r": | #|[^\S ]|[:\s]$")
_NOT_IN_ITEM: Final = re.compile(r"[][{},]")
_WORDS: Final = frozenset({"yes", "no", "on", "off", "y", "n", "null", "true", "false"})
"""Words, in lower case, that are texts in one version of YAML and Booleans or null in another."""
_NUMBERLIKE: Final = re.compile(
    r"[0-9][0-9_]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|0[xob][0-9a-fA-F_]+"
)
"""A number in one version of YAML that is a text or a different number in another: octal, base 60, underscores."""
_DIGITS: Final = 400
"""Greatest number of characters in a number; no float needs as many."""


def split_front_matter(text: str) -> tuple[dict[str, Fact], str]:
    r"""Split a text into the fields of its front matter and the rest; no fields if its first line is not ``---``.

    Raises ``CorruptFile`` if the block does not end, or if a line is not in the subset; the message gives the line's
    number.

    Examples
    --------
    >>> split_front_matter('---\nid: a-1\ntags: [x, "y, z"]\n---\nBody')
    ({'id': 'a-1', 'tags': ['x', 'y, z']}, 'Body')
    >>> split_front_matter("---\nrestricted: no\n---\n")
    Traceback (most recent call last):
    carag.errors.CorruptFile: line 2 of the front matter: 'no' may mean two things in YAML; want quotes, true or false
    """
    first, newline, rest = text.partition("\n")
    if first.rstrip(" \t") != _FENCE or not newline:
        return {}, text
    found: dict[str, Fact] = {}
    number = 1
    while newline:
        line, newline, rest = rest.partition("\n")
        number += 1
        if line.rstrip(" \t") == _FENCE:
            return check_facts(found), rest
        if line.strip():
            try:
                name, value = _field(line)
                if name in found:
                    raise CorruptFile(f"the key {quoted(name)} occurs twice; want it once")  # noqa: TRY301
            except CorruptFile as error:
                raise CorruptFile(f"line {number} of the front matter: {error}") from None
            found[name] = value
    raise CorruptFile("the front matter that the first line --- opens does not end; add another line ---")


def _field(line: str) -> tuple[str, Fact]:
    field = _FIELD.fullmatch(line)
    if not field:
        raise CorruptFile(f"{quoted(line)} cannot be read; want key: value, or key: [a, b]")
    name, value = field[1], field[2] or ""
    if value.startswith("[") and value.endswith("]"):
        return name, _items(value[1:-1].strip(" \t"))
    return name, _scalar(value)


def _items(inside: str) -> list[str]:
    items: list[str] = []
    while inside:
        if stated := _QUOTED.match(inside):
            item: Fact = _unquoted(stated[0])
            inside = inside[stated.end() :].lstrip(" \t")
            comma, rest = inside[:1], inside[1:]
            if comma not in {"", ","}:
                raise CorruptFile(f"{quoted(inside)} follows a quoted item; want a comma")
        else:
            word, comma, rest = inside.partition(",")
            word = word.rstrip(" \t")
            if _NOT_IN_ITEM.search(word):
                raise CorruptFile(
                    f"{quoted(word)} is not a valid list item; put text with []{{}} in it in quotes"
                )
            item = _scalar(word)
            inside = rest
        if not isinstance(item, str):
            raise CorruptFile(f"{quoted(item)} is not text; put such list items in quotes")
        inside = rest.lstrip(" \t")
        if comma and not inside:
            raise CorruptFile("the list ends with a comma; remove it")
        items.append(item)
    return items


def _scalar(value: str) -> str | int | float | bool:
    if _QUOTED.fullmatch(value):
        return _unquoted(value)
    if value in {"true", "false"}:
        return value == "true"
    if len(value) <= _DIGITS and _INTEGER.fullmatch(value):
        return int(value)
    if len(value) <= _DIGITS and _FLOAT.fullmatch(value):
        return float(value)
    if not value:
        raise CorruptFile('a key has no value; state one, write "" for an empty text, or remove the line')
    if value.lower() in _WORDS or _NUMBERLIKE.fullmatch(value):
        raise CorruptFile(f"{quoted(value)} may mean two things in YAML; want quotes, true or false")
    if _AMBIGUOUS.match(value) or _NOT_IN_TEXT.search(value):
        raise CorruptFile(f"{quoted(value)} may mean two things in YAML; want quotes")
    return value


def _unquoted(stated: str) -> str:
    """Double quotes follow the rules of JSON, which is part of YAML 1.2; in single quotes only ``''`` is an escape."""
    if stated[0] == "'":
        return stated[1:-1].replace("''", "'")
    try:
        return str(json.loads(stated))
    except ValueError:
        raise CorruptFile(
            f"{quoted(stated)} has an escape that JSON does not know; want an escape that JSON knows"
        ) from None
