"""Read a number, letter or roman numeral as its places in the lists of which it may be."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["readings_of"]

_ROMAN: Final = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})|l?(x{0,3})(ix|iv|v?i{0,3})|xl(ix|iv|v?i{0,3})")


def readings_of(token: str) -> list[tuple[str, int]]:
    """Return the lists of which a number or letter may be, and its place there.

    Examples
    --------
    >>> readings_of("12"), readings_of("i"), readings_of("BB")
    ([('#', 12)], [('a', 9), ('i', 1)], [('A', 28)])
    """
    if token.isdigit():
        return [("#", int(token))]
    kinds = ("A", "I") if token.isupper() else ("a", "i")
    small = token.lower()
    found = []
    if len(small) == 1:
        found.append((kinds[0], ord(small) - 96))
    elif len(small) == 2 and small[0] == small[1]:
        found.append((kinds[0], ord(small[0]) - 96 + 26))
    if _ROMAN.fullmatch(small):
        found.append((kinds[1], _roman(small)))
    return found


def _roman(token: str) -> int:
    worth = [{"i": 1, "v": 5, "x": 10, "l": 50}[one] for one in token]
    return sum(
        -one if one < following else one for one, following in zip(worth, [*worth[1:], 0], strict=True)
    )
