"""Write the number in a cell of a workbook as its number format shows it (ECMA-376, part 1, 18.8.31).

A format changes what a figure says: ``#,##0,`` shows thousands, brackets a negative figure. A date with its day, month
and year is written in ISO 8601, because some formats depend on the reader's computer. A format that is not known here
is written behind the bare number and never guessed: ``1.5⟨[h]:mm⟩``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final, TypeAlias

from carag.readers.outcome import broken

_ACCOUNT: Final = '_(* {0}_);_(* \\({0}\\);_(* "-"??_);_(@_)'
BUILT_IN: Final = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?",
    13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM",
    20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: _ACCOUNT.format("#,##0"),
    43: _ACCOUNT.format("#,##0.00"), 45: "mm:ss", 46: "[h]:mm:ss", 47: "mmss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip
"""The formats that files need not define (18.8.30), but for amounts in the currency of the reader's country."""
_Section: TypeAlias = list[tuple[str, str]]
"""The kind and text of each token."""
_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,330}(?:\.\d{0,330})?|\.\d{1,330})(?:[eE][-+]?\d{1,3})?", re.ASCII)
_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[(?:(?i:black|blue|cyan|green|magenta|red|white|yellow|color ?\d+)'
    r"|\$-[\da-f]*|\$(?P<money>[^-\]]+)(?:-[\da-f]*)?)\]|(?P<general>General)|(?P<half>AM/PM|A/P)"
    r"|(?P<time>y+|m+|d+|h+|s+)|(?P<digits>[0#?.,]+(?:E[+-]0+)?)|(?P<end>;)|(?P<unknown>[a-z\[])|(?P<sign>.)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_PATTERN: Final = re.compile(r"(?P<whole>[0#?,]*?)(?P<scale>,*)(?:\.(?P<part>[0#?]*))?(?P<late>,*)")
_EXACT: Final = Context(prec=700, rounding=ROUND_HALF_UP)
_DIGITS: Final = 15
"""Digits of a number that a workbook shows at most."""
_LAST_DAY: Final = 2958466
"""The day after 31 December 9999."""
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def number_shown(value: str, code: str, *, since_1904: bool = False) -> str:
    """Return the number in a cell as its format shows it.

    Raises ``Unreadable`` if the value is not a number.

    Examples
    --------
    >>> [number_shown("-1234567.5", code) for code in ("General", "#,##0;(#,##0)", "0.0,,", "0%;[Red]-0%")]
    ['-1234567.5', '(1,234,568)', '-1.2', '-123456750%']
    >>> [number_shown("45382", code) for code in ("dd/mm/yy", "mmm yyyy", "# ?/?")]
    ['2024-03-31', 'March 2024', '45382⟨# ?/?⟩']
    """
    if not _NUMBER.fullmatch(value):
        raise broken("a cell's number is not valid; save the file again")
    number = Decimal(f"{Decimal(value):.{_DIGITS}g}")
    sections = _sections(code)
    many = sum(("sign", "@") not in one for one in sections)
    at = 1 if number < 0 and many > 1 else 2 if not number and many > 2 else 0
    if any(kind == "unknown" for kind, _ in sections[at]):
        said = None
    elif any(kind == "time" for kind, _ in sections[at]):
        said = _time(number, sections[at], since_1904=since_1904)
    else:
        said = _figure(abs(number), sections[at])
        said = f"-{said}" if said and number < 0 and at == 0 and re.search("[1-9]", said) else said
    return f"{_general(number)}⟨{code}⟩" if said is None else said.strip()


@lru_cache(maxsize=1024)
def _sections(code: str) -> list[_Section]:
    sections: list[_Section] = [[]]
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup
        if kind == "end":
            sections.append([])
        elif kind:
            sections[-1].append((kind, found[kind]))
    return sections


def _figure(number: Decimal, section: _Section) -> str | None:
    """Return a figure without its sign; None if its digits are torn by other signs, as in a fraction."""
    number = number.scaleb(2 * section.count(("sign", "%")), _EXACT)
    said, many = "", 0
    for kind, text in section:
        if kind == "digits":
            many += 1
            said += _digits(number, text)
        else:
            said += _general(number) if kind == "general" or (kind, text) == ("sign", "@") else text
    return said if many < 2 else None


def _digits(number: Decimal, pattern: str) -> str:
    found = _PATTERN.fullmatch(pattern)
    if found is None:  # a power of ten
        return _general(number)
    whole, part = found["whole"], found["part"] or ""
    number = number.scaleb(-3 * len(found["scale"] + found["late"]), _EXACT)
    digits, _, rest = f"{number.quantize(Decimal(1).scaleb(-len(part)), context=_EXACT):f}".partition(".")
    least = part.rindex("0") + 1 if "0" in part else 0
    rest = rest[:least] + rest[least:].rstrip("0")
    digits = ("" if digits == "0" else digits).zfill(whole.count("0"))
    if "," in whole:
        digits = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", digits)
    return f"{digits}.{rest}" if rest else digits


def _time(number: Decimal, section: _Section, *, since_1904: bool) -> str | None:
    """Return a date or a time of day; None for a length of time, part of a date that says little, or words in it."""
    times = "".join(text[0].lower() if len(text) < 3 or kind == "half" else text[:3].lower()
                    for kind, text in section if kind in {"time", "half"})  # fmt: skip
    times = re.sub("ddd|a", "", times.replace("mmm", "M").replace("yyy", "y"))
    date, clock = (re.sub("m(?=s)|(?<=h)m|[hs]", "", times).lower(), re.findall("[hs]|m(?=s)|(?<=h)m", times))
    has_words = any(
        kind == "digits" or (kind not in {"time", "half"} and re.search(r"\w", text))
        for kind, text in section
    )
    in_range = (not date or number >= 1) and 0 <= number < _LAST_DAY - 1462 * since_1904
    if has_words or not in_range or (not since_1904 and 60 <= number < 61) or (clock and clock[0] != "h"):
        return None
    start = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30 + (number < 60))  # noqa: DTZ001
    moment = start + timedelta(seconds=int((number * 86400).to_integral_value(ROUND_HALF_UP)))
    month = _MONTHS[moment.month - 1]
    dates = {"dmy": f"{moment:%Y-%m-%d}", "my": f"{month} {moment.year}", "dm": f"{moment.day} {month}", "m": month,
             "y": str(moment.year), "": ""}  # fmt: skip
    said = dates.get("".join(sorted(date)))
    if said is None or (clock and date and len(date) < 3):
        return None
    return f"{said} {moment:{'%H:%M:%S' if 's' in clock else '%H:%M'}}".strip() if clock else said


def _general(number: Decimal) -> str:
    number = number.normalize(_EXACT)
    return f"{number:f}" if -_DIGITS < number.adjusted() < 21 else f"{number:E}"
