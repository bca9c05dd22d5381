"""Read the figures of a sentence with their units and comparators, and tell whether two sentences can both be true.

"At least 1 month" is not "at least 6 months", though both have a figure and a month; "at least half a year" is the same
as that. A figure is read as the interval of what it allows, in the base unit of its kind: days, per cent, a currency,
or the thing counted. A claim agrees with a rule if all that the claim allows lies within what the rule allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf, isclose
from typing import TYPE_CHECKING, Final

from carag.labelling.furniture import NOTE_MARK
from carag.labelling.numerals import NUMBER_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_CALENDAR: Final = 0.02
"""Greatest relative difference at which a time in days equals one in months: 180 days are six months."""
_MONTH: Final = 365.25 / 12
_WORDS: Final = {
    **NUMBER_WORDS,
    **{f"{ten}-{one}": value + digit for ten, value in NUMBER_WORDS.items() if value >= 20
       for one, digit in NUMBER_WORDS.items() if 0 < digit < 10},
    "a": 1.0, "an": 1.0, "half a": 0.5, "half an": 0.5, "one half": 0.5, "one and a half": 1.5, "two and a half": 2.5,
    "a quarter of a": 0.25, "three quarters of a": 0.75, "a dozen": 12.0, "a couple of": 2.0,
}  # fmt: skip
_MULTIPLIERS: Final = {
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "lakh": 1e5,
    "lakhs": 1e5,
    "million": 1e6,
    "mn": 1e6,
    "m": 1e6,
    "cr": 1e7,
    "crore": 1e7,
    "crores": 1e7,
    "billion": 1e9,
    "bn": 1e9,
}
_TIMES: Final = {
    "second": 1 / 86400,
    "minute": 1 / 1440,
    "min": 1 / 1440,
    "hour": 1 / 24,
    "hr": 1 / 24,
    "h": 1 / 24,
    "day": 1.0,
    "calendar day": 1.0,
    "week": 7.0,
    "fortnight": 14.0,
}
_MONTHS: Final = {
    "month": 1,
    "calendar month": 1,
    "quarter": 3,
    "year": 12,
    "calendar year": 12,
    "decade": 120,
}
_SHARES: Final = {
    **dict.fromkeys(["%", "per cent", "percent", "per centum", "pct"], 1.0),
    **dict.fromkeys(["basis point", "bp", "bps"], 0.01),
    **dict.fromkeys(["per mille", "‰"], 0.1),
}
_CURRENCIES: Final = {
    **dict.fromkeys(["€", "eur", "euro"], "EUR"),
    **dict.fromkeys(["$", "usd", "us$", "dollar", "us dollar"], "USD"),
    **dict.fromkeys(["£", "gbp", "pound"], "GBP"),
    **dict.fromkeys(["₹", "rs", "rs.", "inr", "rupee"], "INR"),
    **dict.fromkeys(["¥", "jpy", "yen"], "JPY"),
}
_KINDS: Final = frozenset({"time", "working time", "share", *_CURRENCIES.values()})
"""The kinds that are not the name of what is counted."""
_NOT: Final = r"no(?:t)?"
_LEAST: Final = (
    rf"at least|{_NOT} less than|{_NOT} fewer than|{_NOT} earlier than|{_NOT} shorter than"
    r"|(?:a )?minimum(?: \w+)? of|not below|≥|>="
)
_MORE: Final = r"more than|greater than|longer than|higher than|over|exceed(?:s|ing)?|above|>"
_MOST: Final = (
    rf"at most|{_NOT} more than|{_NOT} later than|{_NOT} longer than|{_NOT} (?:to )?exceed(?:ing)?|not above|up to"
    r"|(?:a )?maximum(?: \w+)? of|within|≤|<="
)
_LESS: Final = r"less than|fewer than|shorter than|lower than|below|under|<"
_BOUNDS: Final = dict(more=">", least=">=", behind_least=">=", most="<=", behind_most="<=", less="<")  # noqa: C408
_BEHIND_LEAST: Final = r"or more|or longer|or later|and above|at (?:the )?least|at (?:the )?minimum"
_BEHIND_MOST: Final = (
    r"or less|or fewer|or earlier|and below|at (?:the )?most|at (?:the )?latest|at (?:the )?maximum"
)


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(one) for one in sorted(words, key=lambda one: (-len(one), one)))


_FIGURE: Final = r"\d{1,3}(?:[, ]\d{2,3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_NOT_COUNTED: Final = frozenset({
    "of", "the", "and", "or", "to", "in", "on", "for", "from", "by", "with", "that", "which", "who", "is", "are", "be",
    "was", "as", "at", "if", "than", "per", "not", "may", "shall", "must", "it", "its", "each", "every",
    "can", "will", "would", "were", "has", "have", "had", "but", "while", "compared", "respectively", "annually",
})  # fmt: skip
"""Words after a figure that are not what it counts."""


def _number(which: int) -> str:
    return (
        rf"(?P<sign{which}>(?:{_any(one for one in _CURRENCIES if len(one) < 4)})\s*)?"
        rf"(?P<number{which}>{_FIGURE}|(?:{_any(_WORDS)})(?![\w-]))(?:\s*\((?:{_FIGURE})\))?"
        rf"(?!/\d)(?P<times{which}>\s*(?:{_any(_MULTIPLIERS)})(?!\w))?"
    )


def _unit_behind(which: int) -> str:
    return (
        rf"(?P<unit{which}>\s*-?\s*(?:{_any(_SHARES)}|[€$£₹¥](?!\s?[\d.])|(?!(?:{_any(_NOT_COUNTED)})\b)"
        r"(?:(?:working|business|calendar|us) )?[^\W\d_]+))?"
    )


_QUANTITY: Final = re.compile(
    rf"(?<![\w.,/])(?:(?P<least>{_LEAST})\s+|(?P<more>{_MORE})\s*|(?P<most>{_MOST})\s+|(?P<less>{_LESS})\s*"
    rf"|(?:between|from)\s+)?(?:(?:a|the) (?:period|term|total) of\s+)?{_number(1)}{_unit_behind(1)}"
    rf"(?:\s*(?:and|to|-|–)\s*{_number(2)}{_unit_behind(2)})?"
    rf"(?:\s*,?\s*(?:(?P<behind_least>{_BEHIND_LEAST})|(?P<behind_most>{_BEHIND_MOST}))(?!\w)"
    rf"(?!\s+(?:{_FIGURE}|(?:{_any(_WORDS)})\b)))?",
    re.IGNORECASE,
)
_NAMED_NOT_COUNTED: Final = re.compile(
    r"(?:article|articles|art\.?|section|sections|sec\.?|annex|paragraph|point|chapter|recital|title|clause|note|no\.?|"
    r"regulation|directive|form|item|§)\s*(?:\([eu]+\)\s*)?$",
    re.IGNORECASE,
)
_OF_A_NAME: Final = re.compile(r"[^\W\d_][-–]?\Z")
"""What stands before a number that belongs to a name, such as ``LMF-204``."""
_SIGN_OUTSIDE: Final = re.compile(r"([$€£₹¥])(\s?)\((?=[\d.])")
_CLOSES: Final = re.compile(
    rf"\s?\)(?:\s?(?P<times>{_any(_MULTIPLIERS)})(?!\w)|\s?(?P<share>%))?", re.IGNORECASE
)
"""The end of a negative number in parentheses, and its multiplier."""
_NAMES_ON: Final = re.compile(r"[-–][A-Z]\b")
_YEAR_TO: Final = re.compile(r"\b(?:19|20)\d\d[-–/]$")
_BARE_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_NOTE_MARK: Final = re.compile(NOTE_MARK)
_DATE: Final = re.compile(
    r"\b\d{1,2}\s+(?:january|february|march|april|may|june|july|august|september|october|november|december)\b(?:\s+\d{4})?"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\s+\d{1,2}(?:,?\s+\d{4})?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a figure allows: the numbers of one kind from ``low`` to ``high``.

    Examples
    --------
    >>> quantities("at least six months")[0].text, quantities("up to 5 %")[0].kind
    ('at least six months', 'share')
    """

    kind: str
    """``time`` in days, ``working time`` in working days, ``share`` in per cent, a currency, or what is counted."""
    low: float
    high: float
    open_low: bool
    """Whether ``low`` itself is not allowed."""
    open_high: bool
    text: str
    is_calendar: bool = False
    """For a time: whether it is given in months or years."""

    @property
    def is_exact(self) -> bool:
        """Whether it allows only one number."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a text with its unit, without its comparator.

    Examples
    --------
    >>> [(one.kind, one.value) for one in figures("between 5 and 10 days, or 1.5 % of $(2) million")]
    [('time', 5.0), ('time', 10.0), ('share', 1.5), ('USD', -2000000.0)]
    """

    start: int
    end: int
    """Where the number stands with its sign and its unit; what is counted stands behind it."""
    kind: str
    """As for :class:`Quantity`; empty if the number has no unit."""
    value: float
    """In the base unit of its kind; negative if a minus or parentheses say so."""
    step: float
    """What a difference of one in the last digit is worth, in the same unit; 0 for a number in words."""
    bound: str = ""
    """``>``, ``>=``, ``<=`` or ``<``, as its comparator says; empty without one."""


def figures(text: str) -> list[Figure]:
    """Return the numbers of a text one by one, in order, without dates, bare years and numbers that name something."""
    said = _NOTE_MARK.sub(lambda match: " " * len(match[0]), text)
    said = _SIGN_OUTSIDE.sub(r"(\2\1", said)  # every character keeps its place
    dates = [match.span() for match in _DATE.finditer(said)]
    found = []
    for match in _QUANTITY.finditer(said):
        for which in (1, 2):
            at, end = match.span(f"number{which}")
            names = which == 2 and _is_named(said, match.start("number1"))  # Tier-2 to 4
            if at >= 0 and not names and not any(at < until and since < end for since, until in dates):
                found += _figure(said, match, which)
    return found


def _is_named(text: str, at: int) -> bool:
    return bool(_NAMED_NOT_COUNTED.search(text, 0, at) or _OF_A_NAME.search(text, max(0, at - 2), at))


def _figure(text: str, match: re.Match[str], which: int) -> list[Figure]:
    """Read one number of a match; an empty list if it names or dates something, or is an article."""
    number, sign, times = (match[f"{name}{which}"] or "" for name in ("number", "sign", "times"))
    at, end = match.span(f"number{which}")
    kind, size, _ = _unit(match, which)
    if which == 1 and match["number2"]:  # "3 and 6 months", "$5.0 and $5.2 million"
        kind2, size2, _ = _unit(match, 2)
        times = times or (match["times2"] or "" if kind in ("", kind2) and "." in number else "")
        kind, size = (kind, size) if kind else (kind2, size2)
    is_year = _BARE_YEAR.fullmatch(number) and not (times or sign or kind == "share")
    said = number.lower()
    is_word = said in _WORDS and not times and (not kind or (said == "one" and kind not in ("time", "share")))
    if said in ("a", "an") or is_word or is_year or _is_named(text, at) or _NAMES_ON.match(text, end):
        return []
    if _YEAR_TO.search(text, max(0, at - 5), at) and len(number) == 2:
        return []
    start = match.start(f"sign{which}") if sign else at
    closes = _CLOSES.match(text, end) if text[:start].rstrip().endswith("(") else None
    if closes and closes["share"]:
        kind, size = "share", 1.0
    times = (closes["times"] or "" if closes else "") or times
    is_minus = text[start - 1 : start] in ("-", "−") and text[max(0, start - 2) : start - 1] in ("", " ", "(")
    value = _WORDS[said] if said in _WORDS else float(re.sub("[, ]", "", said))
    size *= _MULTIPLIERS.get(times.strip().lower(), 1.0)
    step = 0.0 if said in _WORDS else 10.0 ** -len(number.partition(".")[2])
    until = max(end, match.end(f"times{which}"), closes.end() if closes else 0)
    if not sign and kind in _KINDS:
        until = max(until, match.end(f"unit{which}"))
    bound = next((sign for name, sign in _BOUNDS.items() if which == 1 and match[name]), "")
    return [Figure(start, until, kind, (-value if is_minus or closes else value) * size, step * size, bound)]


def quantities(text: str) -> list[Quantity]:
    """Return the figures of a text, in order, without dates and numbers that name something."""
    return [found for _, found in _found(text)]


def without_quantities(text: str) -> str:
    """Return a text without its figures and their comparators, whose words may negate but deny nothing."""
    kept, at = [], 0
    for (start, end), _ in _found(text):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def agrees(claim: Quantity, rule: Quantity) -> bool | None:
    """Tell whether a claim allows only what a rule allows; None if the two cannot be compared.

    A rule that states one number, and a claim with that number as its bound, agree: "for five years" and "for at least
    five years".
    """
    if claim.kind != rule.kind:
        return None
    is_mixed = claim.is_calendar != rule.is_calendar

    def same(one: float, other: float) -> bool:
        return one == other or (is_mixed and isclose(one, other, rel_tol=_CALENDAR)) or isclose(one, other)

    if rule.is_exact and not claim.is_exact:
        return same(claim.low, rule.low) or same(claim.high, rule.high)
    above = claim.low > rule.low or (same(claim.low, rule.low) and (claim.open_low or not rule.open_low))
    below = claim.high < rule.high or (
        same(claim.high, rule.high) and (claim.open_high or not rule.open_high)
    )
    return above and below


def _found(text: str) -> Iterator[tuple[tuple[int, int], Quantity]]:
    text = _NOTE_MARK.sub(
        lambda match: " " * len(match[0]), text
    )  # so that "2,500[^1] days" keeps its places
    dates = [match.span() for match in _DATE.finditer(text)]
    for match in _QUANTITY.finditer(text):
        start, end = match.span()
        is_date = any(start < until and since < end for since, until in dates)
        if is_date or _NAMED_NOT_COUNTED.search(text, 0, match.start("number1")):
            continue
        if (found := _quantity(match)) is not None:
            yield match.span(), found


def _quantity(match: re.Match[str]) -> Quantity | None:
    first, second = _value(match, 1), _value(match, 2) if match["number2"] else None
    kind, size, is_calendar = _unit(match, 1)
    if second is not None:
        kind2, size2, is_calendar2 = _unit(match, 2)
        if not kind:  # "between 3 and 6 months": the first takes the unit of the second
            kind, size, is_calendar = kind2, size2, is_calendar2
        elif kind2 != kind:
            return None
        low, high = sorted((first * size, second * size2))
        return Quantity(kind, low, high, False, False, match[0].strip(), is_calendar) if kind else None
    if not kind or (match["number1"].lower() in ("a", "an") and kind != "time"):
        return None
    value = first * size
    low = high = value
    open_low = open_high = False
    if match["least"] or match["behind_least"]:
        high = inf
    elif match["more"]:
        high, open_low = inf, True
    elif match["most"] or match["behind_most"]:
        low = -inf
    elif match["less"]:
        low, open_high = -inf, True
    return Quantity(kind, low, high, open_low, open_high, match[0].strip(), is_calendar)


def _value(match: re.Match[str], which: int) -> float:
    said = match[f"number{which}"].lower()
    number = _WORDS[said] if said in _WORDS else float(re.sub("[, ]", "", said))
    return number * _MULTIPLIERS.get((match[f"times{which}"] or "").strip().lower(), 1.0)


def _unit(match: re.Match[str], which: int) -> tuple[str, float, bool]:
    """Return a figure's kind, the size of its unit in the base unit, and whether that is a calendar unit."""
    sign, said = ((match[f"{name}{which}"] or "").strip(" -").lower() for name in ("sign", "unit"))
    if sign:
        return _CURRENCIES[sign], 1.0, False
    one = _singular(said)
    for name in (said, one):
        if name in _SHARES:
            return "share", _SHARES[name], False
        if name in _CURRENCIES:
            return _CURRENCIES[name], 1.0, False
        if name in _TIMES:
            return "time", _TIMES[name], False
        if name in _MONTHS:
            return "time", _MONTHS[name] * _MONTH, True
    if one in ("working day", "business day"):
        return "working time", 1.0, False
    is_year = re.fullmatch(r"(?:19|20)\d\d", match[f"number{which}"]) is not None
    if one in _NOT_COUNTED or len(one) < 3 or is_year:
        return "", 1.0, False
    return {"share": "stock", "time": "turn"}.get(one, one), 1.0, False  # the others are names of kinds


def _singular(word: str) -> str:
    for end, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")):
        if word.endswith(end) and len(word) > len(end) + 1:
            return word.removesuffix(end) + instead
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
