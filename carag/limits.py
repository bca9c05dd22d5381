"""Check ids, names, forms, times, texts and questions from outside against fixed limits.

Every limit is defined here, once. Readers, the public API and the record writer apply the same checks, so that nothing
accepted can fail later. Each check returns nothing and raises InvalidArgument with a bounded, printable quotation of
the value.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

from carag.errors import InvalidArgument

__all__ = [
    "INT64",
    "MAX_ID",
    "MAX_LABEL",
    "MAX_MINUTE",
    "MAX_QUESTION",
    "MAX_TEXT",
    "check_form",
    "check_id",
    "check_label",
    "check_minutes",
    "check_name",
    "check_question",
    "check_text",
    "document_of_chunk",
    "quoted",
    "shown",
]

INT64: Final = 1 << 63
"""Whole numbers are in ``range(-INT64, INT64)``, which every JSON reader and database can hold. Python cannot compare
an integer of more than 308 digits with a float.
"""
MAX_LABEL: Final = 200
"""Greatest length of a name in a record (of a passage, subject, log or model), in characters."""
ERASED: Final = "erased:"
"""The beginning of the id of whatever was erased from a store."""
MAX_ID: Final = MAX_LABEL - len(".v:") - 2 * 19
"""Greatest length of a filing's id, in characters. A passage's id adds a version and a number, ``.v2:00000``, of at
most 19 digits each, so that a record can hold the id of every passage of every version that a store can count to.
"""
MAX_FORM: Final = 40
"""Greatest length of a form or document type, in characters. The longest of 79,000 real ones has 20."""
MAX_TEXT: Final = 1 << 25
"""Greatest length of one document's text, in characters: 23 times the longest of 4,758 real ones (1,435,726)."""
MAX_QUESTION: Final = 8192
"""Greatest length of a question, in characters: far more than people type, and too short to smuggle in a document."""
MAX_MINUTE: Final = (1 << 32) - 1
"""The last minute since 1970 that 32 bits hold, in the year 10136."""

_VERSIONED: Final = re.compile(r"\.v\d+$")
_FORM: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9 ./&()_-]{{0,{MAX_FORM - 1}}}", re.ASCII)
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")
_QUOTED: Final = 80
"""Greatest number of characters in a text that a message quotes in full; for other values, twice as many."""
_SHOWN: Final = 1000
"""Greatest number of characters in a text that a message shows unquoted."""


def check_id(name: str, value: object) -> None:
    """Check a filing's id: 1 to 159 printable characters, not ending in a version such as ``.v2``.

    Examples
    --------
    >>> check_id("accession", "0009999999-24-000007")
    >>> check_id("accession", "a" * 160)
    Traceback (most recent call last):
    carag.errors.InvalidArgument: accession is 'aaaa...aaaa' (160 characters); want 1 to 159 printable characters
    """
    _check_printable(name, value, MAX_ID)
    if str(value).startswith(ERASED):
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want another beginning than that of what was erased"
        )
    if _VERSIONED.search(str(value)):
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want an id that does not end in a version, which would make passages ambiguous"
        )


def document_of_chunk(chunk_id: str) -> tuple[str, int]:
    """Return the id of a passage's document, and the version of its text that the passage comes from.

    No document's id ends in a version, so the two can be told apart.

    Examples
    --------
    >>> document_of_chunk("memo:1/7:00003"), document_of_chunk("memo/7.v2:00000")
    (('memo:1/7', 1), ('memo/7', 2))
    """
    document = chunk_id.rpartition(":")[0] or chunk_id
    version = _VERSIONED.search(document)
    return (document, 1) if version is None else (document[: version.start()], int(version[0][2:]))


def check_label(name: str, value: object) -> None:
    """Check a name in a record: 1 to 200 printable characters, so no control or bidirectional characters."""
    _check_printable(name, value, MAX_LABEL)


def check_name(name: str, value: object) -> None:
    """Check a company's name: up to 200 printable characters and spaces of any width; it may be empty.

    Examples
    --------
    >>> check_name("company", "Example\N{NO-BREAK SPACE}Holdings plc")
    """
    if not (
        isinstance(value, str)
        and len(value) <= MAX_LABEL
        and (
            value.isprintable()  # nearly all names are printable, and one call says so
            or all(character.isprintable() or category(character) == "Zs" for character in value)
        )
    ):
        raise InvalidArgument(f"{name} is {quoted(value)}; want up to {MAX_LABEL} printable characters")


def check_form(name: str, value: object) -> None:
    """Check a form or a document type, known or not: it must look like one of EDGAR's.

    Examples
    --------
    >>> check_form("form", "SC 13D/A"), check_form("document type", "EX-99.1")
    (None, None)
    """
    if not (isinstance(value, str) and _FORM.fullmatch(value)):
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want up to {MAX_FORM} letters, digits, spaces and ./&()_-, as in 10-K/A"
        )


def check_minutes(name: str, value: object) -> None:
    """Check a time: whole minutes since 1970 that fit in 32 bits."""
    if type(value) is not int or not 0 <= value <= MAX_MINUTE:
        raise InvalidArgument(f"{name} is {quoted(value)}; want minutes since 1970, 0 <= m < 2**32")


def check_text(name: str, value: object, most: int = MAX_TEXT) -> None:
    """Check a text that UTF-8 and every database can hold: no lone surrogates and no NUL."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is a {type(value).__name__}; want text")
    if len(value) > most:
        raise InvalidArgument(f"{name} has {len(value)} characters; want {most} at most")
    if found := _UNFIT.search(value):
        what = "a NUL" if found[0] == "\0" else "half of a surrogate pair"
        raise InvalidArgument(f"{name} holds {what} at character {found.start()}; remove it")


def check_question(name: str, value: object) -> None:
    r"""Check a question: a text of up to 8,192 characters that are not all white space; it may have many lines.

    Examples
    --------
    >>> check_question("question", "Who sold?\n\tAnd when?")
    """
    check_text(name, value, MAX_QUESTION)
    if not str(value).strip():
        raise InvalidArgument(f"{name} is empty; want text")


def quoted(value: object) -> str:
    r"""Quote any value from outside in printable characters, on one line and of bounded length.

    Examples
    --------
    >>> print(quoted("10-K\x1b[31m"))
    '10-K\x1b[31m'
    """
    if isinstance(value, str) and len(value) > _QUOTED:
        half = _QUOTED // 2
        return f"{value[:half] + '...' + value[-half:]!r} ({len(value)} characters)"
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # an integer too long to be written, a list too deep
        return f"a {type(value).__name__} too long to show"
    return shown if len(shown) <= 2 * _QUOTED else f"{shown[: 2 * _QUOTED]}..."


def shown(text: str) -> str:
    r"""Return a text from outside for a message: unchanged, or quoted if it is long or not printable.

    Examples
    --------
    >>> shown("a.txt"), shown("a\x1b[31m.txt")
    ('a.txt', "'a\\x1b[31m.txt'")
    """
    return text if text.isprintable() and len(text) <= _SHOWN else quoted(text)


def _check_printable(name: str, value: object, most: int) -> None:
    if not (isinstance(value, str) and 0 < len(value) <= most and value.isprintable()):
        raise InvalidArgument(f"{name} is {quoted(value)}; want 1 to {most} printable characters")
