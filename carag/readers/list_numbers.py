"""Write the numbers of lists as pages and word processors show them."""

from __future__ import annotations

from typing import Final

_BULLETS: Final = {"disc", "circle", "square"}
_ROMAN: Final = [
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
]  # fmt: skip
_SMALL: Final = [
    "", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS: Final = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS: Final = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_ENDS: Final = {1: "st", 2: "nd", 3: "rd"}
_MOST_LETTERED: Final = 780
"""Greatest number that Word writes as letters."""
_MOST: Final = 3999
"""Greatest Roman numeral."""


def label_of(kind: str, number: int) -> str:
    """Return the label before an item of an HTML list in a CSS list style; empty for an item without a number."""
    if kind in _BULLETS:
        return "•"
    return "" if kind == "none" else numeral(kind, number) + "."


def numeral(kind: str, number: int) -> str:
    """Write a number in a style; use digits where letters, Roman numerals or words do not reach, as browsers do.

    ``kind`` is a CSS list style such as ``lower-roman``, or one of Word's: ``lower-letter`` (``aa`` after ``z``, then
    ``bb``), ``upper-letter``, ``ordinal``, ``cardinal-words`` and ``ordinal-words``.

    Examples
    --------
    >>> numeral("lower-alpha", 28), numeral("lower-letter", 28), numeral("upper-roman", 9), numeral("ordinal", 22)
    ('ab', 'bb', 'IX', '22nd')
    """
    if kind == "decimal-leading-zero":
        return f"{number:02}"
    if kind == "ordinal":
        return f"{number}{'th' if number % 100 in {11, 12, 13} else _ENDS.get(number % 10, 'th')}"
    case, _, script = kind.partition("-")
    if script in {"alpha", "latin"} and number > 0:
        written = _letters(number)
    elif script == "letter" and 0 < number <= _MOST_LETTERED:
        written = chr(97 + (number - 1) % 26) * (1 + (number - 1) // 26)
    elif script == "roman" and 0 < number <= _MOST:
        written = _roman(number)
    elif script == "words" and 0 < number < 100:
        return _in_words(number, is_ordinal=case == "ordinal").capitalize()
    else:
        return str(number)
    return written.upper() if case == "upper" else written


def _in_words(number: int, *, is_ordinal: bool) -> str:
    tens, ones = divmod(number, 10)
    words = [_TENS[tens], _SMALL[ones]] if number >= len(_SMALL) else [_SMALL[number]]
    if is_ordinal:
        last = words[-1] or words[-2]
        words = [
            *words[: words.index(last)],
            _ORDINALS.get(last) or f"{last.removesuffix('y')}{'ie' * last.endswith('y')}th",
        ]
    return "-".join(filter(None, words))


def _letters(number: int) -> str:
    written = ""
    while number:
        number, last = divmod(number - 1, 26)
        written = chr(97 + last) + written
    return written


def _roman(number: int) -> str:
    written = ""
    for worth, sign in _ROMAN:
        times, number = divmod(number, worth)
        written += sign * times
    return written
