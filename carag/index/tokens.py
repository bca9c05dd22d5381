"""Split text into terms, in the same way for indexed text and for queries.

Text is normalised by Unicode NFKC and case folding, so that "ﬁ", "Ⅳ" and "STRASSE" match what they look like, and is
then split into words by general category: letters, marks and numbers belong to a word, and everything else ends it. No
language is assumed and there are no stop words: a list derived from all rows would reveal hidden ones. Han, Hiragana
and Katakana are written without spaces, so each of their characters is a term; other scripts without spaces (Thai,
Khmer, Lao) keep a run of letters as one term.

With ``figures``, figures, tickers and clause numbers are kept whole as well. Such a term stands before its parts, which
are terms too:

=================  ==========================================
``1,234,567.89``   ``1234567.89``: thousands separators are removed
``1.25``           ``1.25``
``10-K``           ``10-k`` ``10`` ``k``
``2023-10-15``     ``2023-10-15`` ``2023`` ``10`` ``15``
``§ 12(3)``        ``§12`` ``12(3)`` ``12`` ``3``
``4.1.2``          ``4.1.2`` ``4`` ``1`` ``2``
``BRK.B``          ``brk.b`` ``brk`` ``b``
``FY2018``         ``fy2018``
=================  ==========================================
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import Final

from carag.errors import InvalidArgument
from carag.limits import quoted

TOKENS_VERSION: Final = 1
"""Changes whenever a text may give different terms: text indexed under another version is indexed again."""

_ALONE: Final = (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Hiragana, Katakana and Han: the Unicode blocks of scripts in which every character is a term."""


@cache
def _marks() -> str:
    """List the marks (categories Mn, Mc and Me) for the inside of a character class; ``re`` has no class for them."""
    ranges: list[list[int]] = []
    for code in range(0x300, sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


@cache
def _special() -> re.Pattern[str]:
    return re.compile(rf"[{_ALONE}{_marks()}]")


@cache
def _pattern(*, is_special: bool, figures: bool) -> re.Pattern[str]:
    """Make the pattern of a term; a pattern without marks and single-character scripts is several times faster."""
    word, rest = r"[^\W_]+", r"[^\W_]+"
    if is_special:
        word = rf"(?:(?![{_ALONE}])(?:[^\W_]|[{_marks()}]))+"
        rest = rf"{word}|(?=\w)[{_ALONE}]"
    if not figures:
        return re.compile(rest)
    end = r"(?![^\W_])"  # a number must not end inside a word
    return re.compile(
        rf"(?P<thousands>(?<![\d.,])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?{end}(?![,.]\d))"
        rf"|(?P<clause>\d+[a-z]?(?:\.\d+)*(?:\([0-9a-z]{{1,5}}\))+)"
        rf"|(?P<decimal>\d+\.\d+{end}(?![.\-/]?\d))"
        rf"|(?P<compound>{word}(?:[.\-/&]{word})+)"
        rf"|(?P<rest>{rest})"
    )


_TICKER: Final = re.compile(r"[a-z]{1,5}[.\-&/][a-z]{1,2}")
_SECTION: Final = re.compile(r"§+\s*(\d+)")


def tokenize(text: str, *, figures: bool = True) -> list[str]:
    """Split a text into its terms, in order and with repetitions.

    ``figures`` keeps figures, tickers, clause and section numbers whole, in addition to their parts.

    Examples
    --------
    >>> tokenize("Apple's 10-K for FY2018: net sales of $265,595 million.")
    ['apple', 's', '10-k', '10', 'k', 'for', 'fy2018', 'net', 'sales', 'of', '265595', 'million']
    >>> tokenize("265,595", figures=False)
    ['265', '595']
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"text is {quoted(text)}; want a str")
    folded = text.lower() if text.isascii() else _folded(text)
    is_special = not folded.isascii() and _special().search(folded) is not None
    pattern = _pattern(is_special=is_special, figures=figures)
    if not figures:
        return pattern.findall(folded)
    found: list[str] = []
    sections = {match.start(1) for match in _SECTION.finditer(folded)} if "§" in folded else ()
    for match in pattern.finditer(folded):
        term, kind = match[0], match.lastgroup
        if match.start() in sections and (number := re.match(r"\d+", term)):
            found.append(f"§{number[0]}")
        if kind in ("rest", "decimal"):
            found.append(term)
        elif kind == "thousands":
            found.append(term.replace(",", ""))
        else:
            if kind == "clause" or any(map(str.isdigit, term)) or _TICKER.fullmatch(term):
                found.append(term)
            found += _pattern(is_special=is_special, figures=False).findall(term)
    return found


def _folded(text: str) -> str:
    """Fold case and compatibility characters; normalise twice, since case folding can undo the normal form."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
