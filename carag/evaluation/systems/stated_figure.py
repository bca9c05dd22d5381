"""Read the figures that a text states, and tell whether an answer states the figure that a gold answer consists of."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


TOLERANCE: Final = 0.005
"""Greatest relative error of a right figure: half a per cent, within which rounding to three digits stays."""
_MOST_WORDS: Final = 25
"""The number of words above which a gold answer says more than a figure."""
_LARGE: Final = 100_000
"""Least amount of money that a table would print in thousands or more."""
_SCALES: Final = {
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    "k": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "mm": 1e6,
    "b": 1e9,
    "bn": 1e9,
}
_TABLE_SCALES: Final = (1.0, 1e3, 1e6, 1e9)

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_SCALE: Final = r"(?:thousand|million|billion|trillion)s?\b"
_NO_FIGURES: Final = re.compile(
    rf"""\d{{4}}-\d\d-\d\d | \d{{1,2}}/\d{{1,2}}/\d{{2,4}} | \d{{1,2}}:\d\d           # dates and times
    | \b{_MONTH}\s+\d{{1,2}}(?:,?\s+\d{{4}})?\b | \b\d{{1,2}}\s+{_MONTH}(?:\s+\d{{4}})?(?!\w)
    | \bfy\s?'?\d{{2,4}}\b | (?<!\w)'\d\d\b                                         # FY22, '22
    | \b(?:items?|notes?|sections?|pages?|exhibits?|rules?|asc|asu|ifrs|ias|topic|parts?|level|tier|forms?|articles?
        |schedule|no\.|\d+\s+cfr|chapter)\s+\d[\w.-]*(?:\([^()]{{1,3}}\))*                 # numbers that name something
    | (?:^|(?<=\n))\s*\d{{1,2}}[.)](?=\s) | (?<![$€£|])(?<!\|\s)\(\d{{1,2}}\)(?=\s+(?!{_SCALE})[a-z]) | \[\d+\]  # marks
    """,
    re.IGNORECASE | re.VERBOSE,
)
_CURRENCY: Final = r"(?:US\$|C\$|USD|GBP|EUR|[$€£])"
_FIGURE: Final = re.compile(
    rf"""(?<![\w.,/'])(?<![A-Za-z][-–])                          # not part of a word, a fraction or COVID-19
    (?P<lead>(?P<minus>(?<![\w%)])[-–−])?(?P<open>\()?(?P<money>{_CURRENCY}\s?)?(?P<inner>\(|[-−])?)
    (?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)
    (?P<close>\s?%?\s?\))?
    (?:(?P<percent>\s?%|\s?per\s?cent\b|\s?pct\b|[\s-]percentage\s+points?\b)
      |(?P<basis>\s?basis\s+points?\b|\s?bps\b)
      |[\s-]?(?P<scale>{_SCALE})
      |\s?(?P<short>bn|mn|mm)\b|(?P<letter>[kmb])\b)?
    (?![\w(/]|[-–][A-Za-z]|[.,:]\d)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DIGITS_BEFORE: Final = re.compile(r"[\d%]\s?[-–]\s?$")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_SIGN: Final = re.compile(rf"{_CURRENCY}|\(", re.IGNORECASE)
_YES_NO: Final = re.compile(r"\s*(?:yes|no)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[.!?;]\s+\S")
_ASKED_IN: Final = re.compile(
    r"\bin\s+(?:USD\s+|US\$\s*|\$\s*)?(thousand|million|billion)s?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as a text states it."""

    value: float  # with scale word and sign; a share in per cent
    percent: bool = False  # whether it has a per cent sign
    money: bool = False  # whether it has a currency sign
    scaled: bool = False  # whether it has a scale word
    year: bool = False  # whether it is a year, which must be exact


def figures(text: str, *, years: bool = False) -> tuple[Figure, ...]:
    """Return the figures of a text in order, without the ends of ranges."""
    plain = _NO_FIGURES.sub(lambda found: " " * (len(found[0]) - 1) + "|", text)
    found = [(match, one) for match in _FIGURE.finditer(plain) for one in _read(match, plain, years=years)]
    ends = {at for first in _ranges(found, plain) for at in (first, first + 1)}
    return tuple(one for at, (_, one) in enumerate(found) if at not in ends)


def single_figure(gold: str, question: str = "") -> Figure | None:
    """Return the figure that a gold answer consists of; None if it says yes or no, or more than one figure."""
    if _YES_NO.match(gold) or _SENTENCE.search(gold) or len(gold.split()) > _MOST_WORDS:
        return None
    found = figures(gold, years=_is_year(gold))
    if len(found) != 1:
        return None
    (one,) = found
    asked = _ASKED_IN.search(question)
    if asked and one.money and not one.scaled:
        return replace(one, value=one.value * _SCALES[asked[1].lower()], scaled=True)
    return one


def states(answer: str, gold: Figure) -> bool:
    """Tell whether an answer states a figure, within `TOLERANCE`, whatever else it states."""
    off = 0.0 if gold.year else TOLERANCE * abs(gold.value)
    in_a_table = gold.scaled or (gold.money and abs(gold.value) >= _LARGE)
    return any(
        one.percent is gold.percent
        and any(
            abs(one.value * scale - gold.value) <= off
            for scale in (_TABLE_SCALES if in_a_table and not one.scaled else (1.0,))
        )
        for one in figures(answer, years=gold.year)
    )


def _read(match: re.Match[str], text: str, *, years: bool) -> Iterator[Figure]:
    digits, money = match["digits"], match["money"] is not None
    letter = match["letter"]
    if letter and not money:  # 3M is a company
        return
    word = (match["scale"] or match["short"] or letter or "").lower()
    scale = _SCALES[word.removesuffix("s")] if word else 1.0
    percent = bool(match["percent"] or match["basis"] or "%" in (match["close"] or ""))
    year = _YEAR.fullmatch(digits) is not None and not (money or percent or word)
    if year and not years:
        return
    # A number alone in parentheses is a loss; together with a scale word it is an aside: ($1.8 bn).
    enclosed = match["close"] and (match["open"] or match["inner"] == "(")
    minus = match["inner"] in ("-", "−") or (
        match["minus"] and not _DIGITS_BEFORE.search(text[: match.end("minus")])
    )
    value = float(digits.replace(",", "")) * scale / (100 if match["basis"] else 1)
    yield Figure(-value if enclosed or minus else value, percent, money, bool(word), year)


def _ranges(found: list[tuple[re.Match[str], Figure]], text: str) -> Iterator[int]:
    """Yield the positions of the first ends of ranges, unlike "from 4 to 5", a change, or "3 % to $4"."""
    for at, ((first, one), (second, other)) in enumerate(pairwise(found)):
        if one.percent is not other.percent and (one.percent or one.money or one.scaled):
            continue
        between = text[first.end() : second.start("digits")]
        joint, before = _SIGN.sub("", between).strip().lower(), text[: first.start()].rstrip().lower()
        if (joint in ("to", "-", "–", "—") and not before.endswith("from")) or (
            joint == "and" and before.endswith("between")
        ):
            yield at


def _is_year(text: str) -> bool:
    return _YEAR.fullmatch(text.strip(" .")) is not None
