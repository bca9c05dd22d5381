"""Read tables from patterns to what they ask for: terms of the search by words, or kinds of documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self

from carag.errors import InvalidArgument
from carag.limits import check_label, check_text, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


_MAX_LINES: Final = 10_000
"""The most lines of a table, comments included."""


class Lexicon:
    r"""Patterns, and the terms that each asks for, from lines of ``pattern<TAB>term, term``.

    Empty lines and those that begin with ``#`` are ignored. A pattern is a Python regular expression, and ignores case.
    InvalidArgument if it is invalid, matches the empty text or appears twice, or has no term.

    Examples
    --------
    >>> Lexicon("\\bcap(?:ital )?ex\\b\tcapital expenditures, purchases of property", "mine").expand("CapEx of 2022?")
    ('capital expenditures', 'purchases of property')
    """

    def __init__(self, text: str = "", name: str = "lexicon") -> None:
        check_text(name, text)
        lines = text.splitlines()
        if len(lines) > _MAX_LINES:
            raise InvalidArgument(f"{name} has {len(lines)} lines; want at most {_MAX_LINES}")
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
                    f"{where} is {quoted(line)}; want a pattern, a tab, and terms separated by commas"
                )
            if (before := seen.setdefault(pattern, number)) != number:
                raise InvalidArgument(f"{where} repeats the pattern of line {before}; remove one of them")
            self._rules.append((_pattern(where, pattern), terms))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a table from a UTF-8 file; InvalidArgument if that is not possible."""
        try:
            return cls(path.read_text("utf-8"), path.name)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(
                f"{path} cannot be read ({error}); want a table of patterns in UTF-8"
            ) from error

    @classmethod
    def of_values(cls, values: Iterable[str]) -> Self:
        """Make a table in which each value, a printable text of 1 to 200 characters, asks for itself.

        The values must be declared by a profile, or come from documents that the session admits: a value that only a
        hidden document has would change how a question is read.
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
        """Return the terms that a question asks for, each once, in the order of the table."""
        return tuple(
            dict.fromkeys(
                term for pattern, terms in self._rules if pattern.search(question) for term in terms
            )
        )

    def without(self, question: str) -> str:
        r"""Return a question in which everything that a pattern matches is blanked, each character by ``\1``."""
        for pattern, _ in self._rules:
            question = pattern.sub(lambda match: "\1" * len(match[0]), question)
        return question


def _pattern(where: str, text: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise InvalidArgument(f"{where}: {quoted(text)} is not a regular expression: {error}") from error
    if compiled.search(""):
        raise InvalidArgument(f"{where}: {quoted(text)} matches every question; make it more specific")
    return compiled
