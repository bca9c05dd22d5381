"""Read numerals: a number, letter or Roman numeral as its places in lists, and English number words."""

from __future__ import annotations

import re
from typing import Final

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: Final = {
    **{word: number for number, word in enumerate([*_SMALL.split(), "seventeen", "eighteen", "nineteen"])},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), start=2)},
}
"""English words for numbers below a hundred, without hyphenated ones."""

_ROMAN: Final = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})|l?(x{0,3})(ix|iv|v?i{0,3})|xl(ix|iv|v?i{0,3})")


def readings_of(token: str) -> list[tuple[str, int]]:
    """Return the kinds of list that a number or letter may belong to, with its place in each."""
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
