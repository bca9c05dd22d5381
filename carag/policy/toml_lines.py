"""Read TOML so that every refusal names the file, the line and the reason.

``tomllib`` tells no positions, so a text that is refused, and only such a text, is scanned a second time for the line
of every key. The scanner takes TOML that ``tomllib`` has accepted, and decides nothing about what a text means.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from carag.errors import MALFORMED, InvalidArgument
from carag.limits import check_text, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Toml", "a_number", "lines_of"]

Place: TypeAlias = "tuple[str | int, ...]"
"""The keys that lead to a value, and the numbers, from 0, of elements of lists."""
_Model = TypeVar("_Model", bound=BaseModel)

_TOKEN: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}(?!")|\'\'\'.*?\'{3,5}(?!\')|"(?:\\.|[^"\\])*"|'[^']*\''''
    r"""|\#[^\n]*|[\[\]{}=,.\n]|[^\s\[\]{}=,.\#"']+""",
    re.DOTALL,
)
"""A string, a comment, a sign, the end of a line, or a bare word."""
_SHOWN: Final = 5
"""The greatest number of mistakes that one refusal names."""


@dataclass(frozen=True)
class Toml:
    r"""The text of one file, which knows where its values stand.

    Parameters
    ----------
    file : str
        What a refusal calls it.
    text : str
    page : str
        Where its keys are documented.

    Examples
    --------
    >>> with Toml("roles.toml", "schema = 1\n[[cell]]\nrole = 'clerk'").at("cell", 0, "role"):
    ...     raise ValueError("clerk is no role")
    Traceback (most recent call last):
    carag.errors.InvalidArgument: roles.toml, line 3: cell 1 role: clerk is no role
    """

    file: str
    text: str
    page: str = "docs/reference/profile.md"

    def __post_init__(self) -> None:
        """Refuse what is not text."""
        check_text(self.file, self.text)

    def parsed(self) -> dict[str, Any]:
        """Parse the text.

        Raises
        ------
        InvalidArgument
            With the line, if it is no TOML.
        """
        try:
            return tomllib.loads(self.text)
        except (
            MALFORMED
        ) as error:  # a number of 5,000 digits or lists in lists may raise more than TOMLDecodeError
            found = re.search(r"\(at (?:line (\d+), column \d+|end of document)\)$", str(error))
            last = self.text.count("\n") + 1
            line = int(found[1] or last) if found else self._line_of_failure()
            raise InvalidArgument(f"{self.file}, line {line}: it is no TOML: {shown(str(error))}") from error

    def read(self, schema: type[_Model], context: object = None) -> _Model:
        """Parse the text and validate it.

        Raises
        ------
        InvalidArgument
            With the line of each mistake.
        """
        said = self.parsed()
        try:
            return schema.model_validate(said, context=context)
        except ValidationError as error:
            lines = lines_of(self.text)
            known = _known(schema)
            mistakes = sorted((_line(lines, one["loc"]), _told(one, known)) for one in error.errors())
            told = [f"{self.file}, line {line}: {why}; see {self.page}" for line, why in mistakes[:_SHOWN]]
            more = [f"and {len(mistakes) - _SHOWN} mistakes more"] if len(mistakes) > _SHOWN else []
            raise InvalidArgument("\n".join(told + more)) from error

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Give what is refused within the line of a place."""
        try:
            yield
        except MALFORMED as error:
            line = _line(lines_of(self.text), place)
            raise InvalidArgument(f"{self.file}, line {line}: {_named(place)}{error}") from error

    def _line_of_failure(self) -> int:
        """Return the first line with which the parser fails and tells no position."""
        lines = self.text.split("\n")

        def fails(last: int) -> bool:
            try:
                tomllib.loads("\n".join(lines[: last + 1]))
            except tomllib.TOMLDecodeError:  # cut off within a value
                return False
            except MALFORMED:
                return True
            return False

        return bisect_left(range(len(lines) - 1), True, key=fails) + 1


def lines_of(text: str) -> dict[Place, int]:
    r"""Return the line of every key, table and element of a list, from 1.

    Parameters
    ----------
    text : str
        TOML that ``tomllib`` reads.

    Examples
    --------
    >>> lines_of("a.b = 1\n[[c]]\nd = [\n 2,\n]")[("c", 0, "d", 0)]
    4
    """
    return _Scanner(text).lines


class _Scanner:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {}
        self._tokens: list[tuple[str, int]] = []
        line = 1
        for token in _TOKEN.findall(text):
            if not token.startswith("#"):
                self._tokens.append((token, line))
            line += token.count("\n")
        self._tokens.append(("\n", line))
        self._at = 0
        self._tables: dict[Place, int] = {}
        """How many tables an array of tables has so far."""
        table: Place = ()
        while self._at < len(self._tokens):
            if self._skipped("\n"):
                continue
            table = self._header() if self._peek() == "[" else self._pair(table)

    def _header(self) -> Place:
        several = self._tokens[self._at + 1][0] == "["
        self._at += 1 + several
        line = self._tokens[self._at][1]
        place: Place = ()
        *parents, last = self._key()
        for part in parents:
            place = self._newest((*place, part))
        place = (*place, last)
        if several:
            self._note(place, line)
            self._tables[place] = self._tables.get(place, -1) + 1
        place = self._newest(place)
        self._note(place, line)
        self._at += 1 + several
        return place

    def _newest(self, place: Place) -> Place:
        return (*place, self._tables[place]) if place in self._tables else place

    def _pair(self, table: Place) -> Place:
        line = self._tokens[self._at][1]
        place = (*table, *self._key())
        for size in range(len(table) + 1, len(place) + 1):
            self._note(place[:size], line)
        self._at += 1  # =
        self._value(place)
        return table

    def _key(self) -> list[str]:
        parts = [self._word()]
        while self._skipped("."):
            parts.append(self._word())
        return parts

    def _word(self) -> str:
        (word, _), self._at = self._tokens[self._at], self._at + 1
        return next(iter(tomllib.loads(f"{word}=0")))

    def _value(self, place: Place) -> None:
        if self._skipped("["):
            number = 0
            while not self._skipped("]"):
                if self._skipped("\n") or self._skipped(","):
                    continue
                self._note((*place, number), self._tokens[self._at][1])
                self._value((*place, number))
                number += 1
        elif self._skipped("{"):
            while not self._skipped("}"):
                if not (self._skipped(",") or self._skipped("\n")):  # TOML 1.1 has lines within
                    self._pair(place)
        else:
            while self._peek() not in (",", "]", "}", "\n"):  # a number may have a dot, a time a space
                self._at += 1

    def _note(self, place: Place, line: int) -> None:
        self.lines.setdefault(place, line)

    def _peek(self) -> str:
        return self._tokens[self._at][0]

    def _skipped(self, sign: str) -> bool:
        is_there = self._peek() == sign
        self._at += is_there
        return is_there


def _line(lines: dict[Place, int], place: Place) -> int:
    """Return the line of a place, or of the nearest thing that holds it: what is missing has no line of its own."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _named(place: Place) -> str:
    """Name a place as a reader counts, from 1."""
    words = [str(part + 1) if isinstance(part, int) else shown(part) for part in place]
    return f"{' '.join(words)}: " if words else ""


def _known(schema: type[BaseModel]) -> str:
    fields = schema.model_fields.items()
    return ", ".join(field.alias or name for name, field in fields if not field.exclude)


def _told(error: Any, known: str) -> str:
    """Say what a schema has against a value, and what came; ``known`` are the keys of its first level."""
    match error["type"]:
        case "missing":
            why = "is not stated"
        case "extra_forbidden":
            why = f"no such key; want one of {known}" if len(error["loc"]) == 1 else "no such key"
        case "value_error":
            why = str(error["ctx"]["error"])
        case _:
            why = f"is {quoted(error['input'])}; {error['msg']}"
    return f"{_named(error['loc'])}{why}"


def a_number(schema: object) -> object:
    """Refuse ``true`` where ``schema = 1`` is wanted: equal to 1, for Python and for a Literal.

    Raises
    ------
    ValueError
        The one error that pydantic takes from a validator.
    """
    if isinstance(schema, bool):
        raise ValueError(f"{schema!r} is no number; want 1")  # noqa: TRY004 - pydantic takes a ValueError alone
    return schema
