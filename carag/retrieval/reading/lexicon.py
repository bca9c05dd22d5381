"""Read tables of patterns and what they ask for: words for the lexical query, or kinds of documents.

A table is data of a profile: a line has a regular expression, a tab, and terms separated by commas. Its terms may be
added to a query by words, where they can only change an order; nothing here narrows or widens what may be found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self

from carag.errors import InvalidArgument
from carag.limits import check_label, check_text, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Lexicon"]

_MAX_LINES: Final = 10_000
"""Greatest number of lines of a table, comments included."""


class Lexicon:
    r"""Patterns, and the terms that each asks for.

    Parameters
    ----------
    text : str
        Lines of ``pattern<TAB>term, term``; empty lines and those that begin with ``#`` say nothing. A pattern is a
        regular expression of Python, whose case is ignored.
    name : str
        How messages call the table.

    Raises
    ------
    InvalidArgument
        If a line has no pattern, no term, a pattern that is no regular expression or matches the empty text, or stands
        twice; the message names the line.

    Examples
    --------
    >>> Lexicon("\\bcap(?:ital )?ex\\b\tcapital expenditures, purchases of property", "mine").expand("CapEx of 2022?")
    ('capital expenditures', 'purchases of property')
    """

    def __init__(self, text: str = "", name: str = "lexicon") -> None:
        check_text(name, text)
        lines = text.splitlines()
        if len(lines) > _MAX_LINES:
            raise InvalidArgument(f"{name} has {len(lines)} lines; want {_MAX_LINES} at most")
        self._rules: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
        seen: dict[str, int] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            where = f"{name}, line {number}"
            pattern, tab, after = line.partition("\t")
            terms = tuple(dict.fromkeys(" ".join(one.split()) for one in after.split(",") if one.strip()))
            if not (tab and pattern.strip() and terms):
                raise InvalidArgument(
                    f"{where} is {quoted(line)}; want a pattern, a tab, and terms with commas"
                )
            if (before := seen.setdefault(pattern, number)) != number:
                raise InvalidArgument(f"{where} has the pattern of line {before}; want each once")
            self._rules.append((_pattern(where, pattern), terms))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a table from a UTF-8 file.

        Raises
        ------
        InvalidArgument
            If there is no such file, it is no UTF-8, or it breaks the rules of a table.
        """
        try:
            return cls(path.read_text("utf-8"), path.name)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(
                f"{path} cannot be read ({error}); want a table of patterns in UTF-8"
            ) from error

    @classmethod
    def of_values(cls, values: Iterable[str]) -> Self:
        """Make a table in which each value asks for itself, as a field of metadata that names kinds has them.

        The values must be those that a profile declares, or those of documents that the session admits: a value that
        only a hidden document has would change how a question is read.

        Raises
        ------
        InvalidArgument
            If a value is no printable text of 1 to 200 characters.

        Examples
        --------
        >>> Lexicon.of_values(["memo", "Service contract"]).expand("Which service  contracts, and which MEMO?")
        ('Service contract', 'memo')
        """
        made = cls()
        for value in sorted(set(values)):
            check_label("a kind of document", value)
            words = r"\s+".join(re.escape(word) for word in value.split())
            made._rules.append((re.compile(rf"(?<!\w){words}(?:e?s)?(?!\w)", re.IGNORECASE), (value,)))
        return made

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self._rules)

    def expand(self, question: str) -> tuple[str, ...]:
        """Return the terms that a question asks for: each once, in the order of the table."""
        return tuple(
            dict.fromkeys(
                term for pattern, terms in self._rules if pattern.search(question) for term in terms
            )
        )


def _pattern(where: str, text: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise InvalidArgument(f"{where}: {quoted(text)} is no regular expression: {error}") from error
    if compiled.search(""):
        raise InvalidArgument(
            f"{where}: {quoted(text)} matches every question; want one that says what is asked"
        )
    return compiled
