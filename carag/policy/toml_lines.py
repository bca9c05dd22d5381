"""Read TOML so that every error names file, line and reason; only a text that was refused is scanned for lines."""

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


KeyPath: TypeAlias = "tuple[str | int, ...]"
"""The keys that lead to a value, and the positions, from 0, of list elements."""
_Model = TypeVar("_Model", bound=BaseModel)

_TOKEN: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}(?!")|\'\'\'.*?\'{3,5}(?!\')|"(?:\\.|[^"\\])*"|'[^']*\''''
    r"""|\#[^\n]*|[\[\]{}=,.\n]|[^\s\[\]{}=,.\#"']+""",
    re.DOTALL,
)
"""A string, a comment, a punctuation mark, the end of a line, or a bare word."""
_SHOWN: Final = 5
"""Greatest number of mistakes that one error names."""


@dataclass(frozen=True)
class Toml:
    r"""The text of one file, with the lines of its values; ``page`` is where its keys are documented."""

    file: str
    text: str
    page: str = "docs/reference/profile.md"

    def __post_init__(self) -> None:
        check_text(self.file, self.text)

    def parsed(self) -> dict[str, Any]:
        """Parse the text; InvalidArgument with the line if it is not TOML."""
        try:
            return tomllib.loads(self.text)
        except (
            MALFORMED
        ) as error:  # a number of 5,000 digits or deeply nested lists raise other errors than TOMLDecodeError
            found = re.search(r"\(at (?:line (\d+), column \d+|end of document)\)$", str(error))
            last = self.text.count("\n") + 1
            line = int(found[1] or last) if found else self._line_of_failure()
            raise InvalidArgument(f"{self.file}, line {line}: not valid TOML: {shown(str(error))}") from error

    def read(self, schema: type[_Model], context: object = None) -> _Model:
        """Parse the text and validate it; InvalidArgument with the line of each mistake."""
        said = self.parsed()
        try:
            return schema.model_validate(said, context=context)
        except ValidationError as error:
            lines = lines_of(self.text)
            known = _known(schema)
            mistakes = sorted((_line(lines, one["loc"]), _told(one, known)) for one in error.errors())
            told = [f"{self.file}, line {line}: {why}; see {self.page}" for line, why in mistakes[:_SHOWN]]
            more = [f"and {len(mistakes) - _SHOWN} more mistakes"] if len(mistakes) > _SHOWN else []
            raise InvalidArgument("\n".join(told + more)) from error

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Prefix an error raised in the block with the line of a place."""
        try:
            yield
        except MALFORMED as error:
            line = _line(lines_of(self.text), place)
            raise InvalidArgument(f"{self.file}, line {line}: {_named(place)}{error}") from error

    def _line_of_failure(self) -> int:
        """Return the first line at which the parser fails without giving a position."""
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


def lines_of(text: str) -> dict[KeyPath, int]:
    r"""Return the line, counted from 1, of every key, table and list element in TOML that ``tomllib`` reads."""
    return _Scanner(text).lines


class _Scanner:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens: list[tuple[str, int]] = []
        line = 1
        for token in _TOKEN.findall(text):
            if not token.startswith("#"):
                self._tokens.append((token, line))
            line += token.count("\n")
        self._tokens.append(("\n", line))
        self._at = 0
        self._tables: dict[KeyPath, int] = {}
        """How many tables each array of tables has so far."""
        table: KeyPath = ()
        while self._at < len(self._tokens):
            if self._skipped("\n"):
                continue
            table = self._header() if self._peek() == "[" else self._pair(table)

    def _header(self) -> KeyPath:
        several = self._tokens[self._at + 1][0] == "["
        self._at += 1 + several
        line = self._tokens[self._at][1]
        place: KeyPath = ()
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

    def _newest(self, place: KeyPath) -> KeyPath:
        return (*place, self._tables[place]) if place in self._tables else place

    def _pair(self, table: KeyPath) -> KeyPath:
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

    def _value(self, place: KeyPath) -> None:
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

    def _note(self, place: KeyPath, line: int) -> None:
        self.lines.setdefault(place, line)

    def _peek(self) -> str:
        return self._tokens[self._at][0]

    def _skipped(self, sign: str) -> bool:
        is_there = self._peek() == sign
        self._at += is_there
        return is_there


def _line(lines: dict[KeyPath, int], place: KeyPath) -> int:
    """Return the line of a place, or of the nearest one that contains it, since a missing key has no line."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _named(place: KeyPath) -> str:
    """Name a place with positions counted from 1."""
    words = [str(part + 1) if isinstance(part, int) else shown(part) for part in place]
    return f"{' '.join(words)}: " if words else ""


def _known(schema: type[BaseModel]) -> str:
    fields = schema.model_fields.items()
    return ", ".join(field.alias or name for name, field in fields if not field.exclude)


def _told(error: Any, known: str) -> str:
    """Describe a validation error and the value given; ``known`` are the keys of the top level."""
    match error["type"]:
        case "missing":
            why = "is missing"
        case "extra_forbidden":
            why = f"no such key; want one of {known}" if len(error["loc"]) == 1 else "no such key"
        case "value_error":
            why = str(error["ctx"]["error"])
        case _:
            why = f"is {quoted(error['input'])}; {error['msg']}"
    return f"{_named(error['loc'])}{why}"


def a_number(schema: object) -> object:
    """Refuse ``true`` where ``schema = 1`` is wanted, because it equals 1 in Python and in a Literal."""
    if isinstance(schema, bool):
        raise ValueError(f"{schema!r} is not a number; want 1")  # noqa: TRY004 - pydantic takes a ValueError alone
    return schema
