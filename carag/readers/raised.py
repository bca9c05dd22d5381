"""Write raised and lowered text, so that a note mark is not read as digits of the figure that it follows.

HTML, DOCX and PDF say which text stands above or below its line, and not what that means: ``2,500`` with a raised ``1``
is a figure with a note, ``10`` with a raised ``6`` is a million. One rule decides for all formats. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["NOTE", "bare", "lowered", "raised"]

LONGEST: Final = 8
"""Greatest number of characters of a note mark; longer text that is raised is plain text."""
NOTE: Final = rf"\[\^[^\[\]]{{1,{LONGEST}}}\]"
"""A regular expression of a mark as it is written here."""
_BASE: Final = 64
"""Greatest number of characters before a mark that tell what it is."""
_SIGNS: Final = {"™": "™", "TM": "™", "℠": "℠", "SM": "℠", "®": "®", "©": "©"}
_NO_MARK: Final = frozenset(".,:;·•●▪■◦…'\"’‘“”°′″")
"""Signs that are written higher than others, or bullets."""
_ORDINAL: Final = re.compile(r"(?i)st|nd|rd|th")
_FOREIGN_ORDINAL: Final = re.compile(r"(?i)er|ère|re|e|ème|[º°ª]s?")
"""Of French, Spanish, Italian and Portuguese: joined unless it is a mark of a note in the document."""
_APART: Final = r"(?<![^\W\d_])(?<!['’.])"
"""Begins a word: ``a.m`` and ``company's`` end in no unit."""
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
"""A base and what is an exponent of it, whatever notes the document has."""
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
"""Other signs mark no note: courts set a slash behind each mark."""
_MINUS: Final = str.maketrans("−–‐‑", "----")


def bare(mark: str) -> str:
    """Return a mark without brackets and the word "note" around it, its minus as U+002D.

    Examples
    --------
    >>> bare(" (3)")
    '3'
    """
    return _NAMED.sub("", mark.strip().strip("()[]").strip()).translate(_MINUS)


def raised(before: str, mark: str, *, noted: Collection[str], linked: bool = False, after: str = "") -> str:
    """Return what to write, directly after the text before it, for text that is raised.

    Parameters
    ----------
    before : str
        What is written already; its last line counts.
    mark : str
        The raised text, whole.
    noted : collection of str
        The marks, ``bare``, with which a note of the document begins.
    linked : bool
        Whether the mark is a hyperlink to a place in the document, so that it marks a note.
    after : str
        What follows on the line: a slash makes the mark the upper part of a fraction.

    Examples
    --------
    >>> "2,500" + raised("2,500", "(1)", noted={"1"}) + " per day"
    '2,500[^1] per day'
    >>> "10" + raised("10", "6", noted=()), "40 m" + raised("40 m", "2", noted=()), "1" + raised("1", "st", noted=())
    ('10^6', '40 m^2', '1st')
    >>> raised("", "1", noted={"1"}) + "From 1 April 2025."
    '[^1] From 1 April 2025.'
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
    """Tell an ordinal, a power and a note mark apart by what the mark stands behind."""
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
    """``1,2`` is two marks."""
    return "".join(f"[^{one}]" for one in _marks(mark)) or f"[^{mark}]"


def lowered(before: str, text: str) -> str:
    """Return what to write, directly after the text before it, for text that is lowered.

    Examples
    --------
    >>> "CO" + lowered("CO", "2"), "10" + lowered("10", "2")
    ('CO2', '10_2')
    """
    text = text.strip()
    if len(text) > LONGEST:
        return (" " if before and not before[-1].isspace() else "") + text
    return f"_{text}" if text and before[-1:].isdigit() else text
