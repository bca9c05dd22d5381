"""Write raised and lowered text, so that a note mark is not read as digits of the figure before it.

HTML, DOCX and PDF say which text is raised or lowered, but not what that means: ``2,500`` with a raised ``1`` is a
figure with a note, ``10`` with a raised ``6`` is a million. One rule decides for all formats.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection


LONGEST: Final = 8
"""Greatest number of characters in a note mark; longer raised text is plain text."""
NOTE: Final = rf"\[\^[^\[\]]{{1,{LONGEST}}}\]"
"""A regular expression that matches a note mark as it is written here."""
_BASE: Final = 64
"""Characters before a mark that are looked at to classify it."""
_SIGNS: Final = {"™": "™", "TM": "™", "℠": "℠", "SM": "℠", "®": "®", "©": "©"}
_NO_MARK: Final = frozenset(".,:;·•●▪■◦…'\"’‘“”°′″")
"""Bullets, and signs that are always written high."""
_ORDINAL: Final = re.compile(r"(?i)st|nd|rd|th")
_FOREIGN_ORDINAL: Final = re.compile(r"(?i)er|ère|re|e|ème|[º°ª]s?")
"""Ordinal endings in French, Spanish, Italian and Portuguese; joined unless the document has a note with this mark."""
_APART: Final = r"(?<![^\W\d_])(?<!['’.])"
"""These match at the beginning of a word only: ``a.m`` and ``company's`` do not end in a unit."""
_EXPONENT: Final = r"[-+]?\w+|[-+]"
_POWERS: Final = [
    (re.compile(rf"(?:{base})$"), re.compile(exponent))
    for base, exponent in (
        (r"[×x*·]\s*10", _EXPONENT),
        (
            _APART
            + r"(?:[kmcdµμn]?m|[kmµμ]?g|[kMG]?W|[kM]?J|[mµμ]?s|ft|yd|mi|in|ha|h|t|l|L|V|A|K|N|Pa|Hz|mol)",
            r"[23]|-\d",
        ),
    )
]
"""Bases and their exponents, whatever notes the document has."""
_POWERS_UNLESS_NOTED: Final = [
    (re.compile(rf"(?:{base})$"), re.compile(exponent))
    for base, exponent in (
        (r"(?<![\d.,])10", r"-\d+|[2-9]|[1-9]\d"),
        (_APART + r"[^\W\d_]", _EXPONENT),
        (r"[^\W\d_]\d*", r"\d?[-+]"),
    )
]
_NAMED: Final = re.compile(r"(?i)(?:(?:foot|end)?note|nb)\s+")
_BETWEEN: Final = re.compile(r"[,;\s]+|[)\]]\s*[(\[]")
_SHOWS_A_MARK: Final = re.compile(r"[^\W_]|[*†‡§¶#+-]")
"""No other sign is a note mark: courts put a slash after each mark."""
_MINUS: Final = str.maketrans("−–‐‑", "----")


def bare(mark: str) -> str:
    """Return a mark without surrounding brackets and the word "note", its minus as U+002D."""
    return _NAMED.sub("", mark.strip().strip("()[]").strip()).translate(_MINUS)


def raised(before: str, mark: str, *, noted: Collection[str], linked: bool = False, after: str = "") -> str:
    """Return how to write raised text directly after the text before it.

    Parameters
    ----------
    before : str
        What is already written, of which the last line counts.
    mark : str
        The whole raised text.
    noted : collection of str
        The ``bare`` marks at the beginning of the document's notes.
    linked : bool
        Whether the mark links to a place in the document, which makes it a note mark.
    after : str
        The rest of the line: a slash makes the mark the numerator of a fraction.

    Examples
    --------
    >>> "2,500" + raised("2,500", "(1)", noted={"1"}) + " per day"
    '2,500[^1] per day'
    >>> "10" + raised("10", "6", noted=()), "40 m" + raised("40 m", "2", noted=()), "1" + raised("1", "st", noted=())
    ('10^6', '40 m^2', '1st')
    """
    line, bared = before[-_BASE:].rpartition("\n")[2].rstrip(), bare(mark)
    if not bared:
        return ""
    if bared in _SIGNS or _NO_MARK.issuperset(bared):
        return _SIGNS.get(bared, bared)
    apart = " " if before and not before[-1].isspace() else ""
    if len(bared) > LONGEST:
        return apart + bared
    if not _SHOWS_A_MARK.search(bared):
        return bared
    if not line:
        return _note(bared) + " "
    if linked:
        return _note(bared)
    if after.startswith(("/", "⁄")) and bared.isdigit():
        return (apart if line[-1].isdigit() else "") + bared
    return _by_base(line, bared, noted)


def _by_base(line: str, mark: str, noted: Collection[str]) -> str:
    """Tell an ordinal, a power and a note mark apart by the text that the mark follows."""
    is_noted = mark in noted or any(one in noted for one in _marks(mark))
    if line[-1].isdigit() and (
        _ORDINAL.fullmatch(mark) or (_FOREIGN_ORDINAL.fullmatch(mark) and not is_noted)
    ):
        return mark
    powers = _POWERS if is_noted else _POWERS + _POWERS_UNLESS_NOTED
    if any(base.search(line) and exponent.fullmatch(mark) for base, exponent in powers):
        return f"^{mark}"
    return _note(mark)


def _marks(mark: str) -> list[str]:
    return [bare(one) for one in _BETWEEN.split(mark) if bare(one)]


def _note(mark: str) -> str:
    return "".join(f"[^{one}]" for one in _marks(mark)) or f"[^{mark}]"


def lowered(before: str, text: str) -> str:
    """Return how to write lowered text directly after the text before it: ``CO2``, but ``10_2``."""
    text = text.strip()
    if len(text) > LONGEST:
        return (" " if before and not before[-1].isspace() else "") + text
    return f"_{text}" if text and before[-1:].isdigit() else text
