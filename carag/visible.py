"""Remove control and invisible characters from untrusted text, for terminals, logs, pages and prompts.

Control characters in a form, a file name or a text can recolour a terminal, set its title, or overwrite lines or
reverse their direction. This is the only module that removes them.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from typing import Final

_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control, format (bidirectional overrides, zero-width, tags), surrogate and private-use characters."""
_VARIATION_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LINE_BREAKS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SEPARATORS: Final = frozenset("\u2028\u2029")


def visible(text: str) -> str:
    r"""Remove the characters that a reader would not see; line breaks become ``\n``, and tabs stay.

    Examples
    --------
    >>> visible("ig\u200bnore\u202e \x1b[31mred\r\nnext")
    'ignore [31mred\nnext'
    """
    lines = _VARIATION_SELECTORS.sub("", _LINE_BREAKS.sub("\n", text))
    return "".join(c for c in lines if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE_CATEGORIES)


def visible_line(text: str) -> str:
    r"""Do as :func:`visible` does, for a text that must stay on one line, so that it cannot forge a line of output.

    Examples
    --------
    >>> visible_line("10-K\x1b[2J\nverified: all")
    '10-K[2J verified: all'
    """
    return visible(text).replace("\n", " ").replace("\t", " ")


def visible_json(value: object, *, indent: int | None = None) -> str:
    r"""Write readable JSON in which invisible characters are escaped, not lost.

    Examples
    --------
    >>> visible_json({"form": "10-K\u202e\x9b31mß"})
    '{"form": "10-K\\u202e\\u009b31mß"}'
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Outside of strings, the only such characters in JSON are the line breaks of the indentation.
    return "".join(c if c == "\n" or not _is_hidden(c) else json.dumps(c)[1:-1] for c in text)


def logger(name: str) -> logging.Logger:
    """Return a module's logger, which writes each message on one line of visible characters."""
    named = logging.getLogger(name)
    named.addFilter(_as_line)  # added once, however often this is called
    return named


def _is_hidden(c: str) -> bool:
    return (
        unicodedata.category(c) in _INVISIBLE_CATEGORIES
        or c in _SEPARATORS
        or _VARIATION_SELECTORS.match(c) is not None
    )


def _as_line(record: logging.LogRecord) -> bool:
    record.msg, record.args = visible_line(record.getMessage()), None
    return True
