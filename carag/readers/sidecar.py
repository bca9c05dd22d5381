"""Read the metadata of a folder's files from its ``metadata.csv`` or ``metadata.jsonl``.

Each row names a file by its path in the column ``file``, or a document by its id in the column ``id``; every other
column is a metadata field. A CSV cell is a text, and an empty cell states nothing. A row that cannot be used or is
duplicated blocks the document that it names. A row whose document is unknown blocks every document without a row of its
own, because it may be about any of those.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile
from carag.limits import quoted
from carag.readers.facts import check_facts, with_id_as_text
from carag.readers.json_rows import lines_of, row_of
from carag.readers.outcome import Problem, ProblemKind, problem_of
from carag.readers.plain import decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.readers.outcome import Fact


SIDECARS: Final = ("metadata.csv", "metadata.jsonl")
MAX_SIDECAR: Final = 1 << 26
"""Greatest number of bytes of a sidecar, which is held in memory."""


@dataclass(slots=True)
class _Row:
    where: str
    stated: dict[str, Fact]


@dataclass(slots=True)
class Sidecar:
    """The metadata in a folder's sidecars."""

    problems: dict[str, list[Problem]] = field(default_factory=dict)
    """The problems by name of the sidecar, in row order."""
    _rows: dict[tuple[str, str], _Row] = field(default_factory=dict)
    """The rows by column (``file`` or ``id``) and value."""
    _matched: set[tuple[str, str]] = field(default_factory=set)
    _closed: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why a document's metadata cannot be used."""
    _unknown: str = ""
    """A row or sidecar that may be about any document."""

    def add(self, name: str, content: bytes) -> None:
        """Read one sidecar; problems are kept in ``problems``."""
        problems = self.problems.setdefault(name, [])
        rows = _csv_rows(content) if name.endswith(".csv") else _json_rows(content)
        try:
            for number, row in rows:
                where = f"{name}:{number}"
                if isinstance(row, CorruptFile):
                    problem: CorruptFile | None = row
                    self._unknown = self._unknown or where
                else:
                    problem = self._add(where, row)
                if problem:
                    problems.append(problem_of(where, problem))
        except CorruptFile as error:
            self.close(name, error)

    def close(self, name: str, error: Exception) -> None:
        """Record that a sidecar, or the rest of it, cannot be read."""
        self.problems.setdefault(name, []).append(problem_of(name, error))
        self._unknown = self._unknown or name

    def of(self, file: str, identity: str) -> list[tuple[str, dict[str, Fact]]]:
        """Return the rows about one document, each with its place.

        Raises ``CorruptFile`` if a row that is about the document, or may be, cannot be used or is duplicated.
        """
        found = []
        for key in (("file", file), ("id", identity)):
            if row := self._rows.get(key):
                self._matched.add(key)
                if key in self._closed:
                    raise CorruptFile(self._closed[key])
                found.append((row.where, row.stated))
        if self._unknown and not found:
            raise CorruptFile(f"{self._unknown} cannot be used and may be about this document; correct it")
        return found

    def unmatched(self, files: Iterable[str]) -> Iterator[Problem]:
        """Yield a problem for each row that matched no document and does not name any of the files."""
        there = set(files)
        for key, row in self._rows.items():
            column, value = key
            if key not in self._matched and value not in there:
                reason = (
                    f"names the {column} {quoted(value)}, which does not exist; correct or remove the row"
                )
                yield Problem(row.where, ProblemKind.BROKEN, reason)

    def _add(self, where: str, row: dict[str, Fact]) -> CorruptFile | None:
        column = "file" if "file" in row else "id"
        value: object = row.get(column)
        value = str(value) if type(value) is int and column == "id" else value
        if not isinstance(value, str) or not value:
            self._unknown = self._unknown or where
            return CorruptFile(f"the column {column!r} names no document; want a path or an id")
        key = (column, value)
        if key in self._rows:
            first = self._rows[key].where
            self._closed[key] = f"both {first} and {where} state its metadata; remove one row"
            return CorruptFile(f"states the metadata of {quoted(value)} again after {first}; remove one row")
        self._rows[key] = _Row(where, {})
        try:
            self._rows[key].stated = with_id_as_text(
                check_facts({name: fact for name, fact in row.items() if name != "file"})
            )
        except CorruptFile as error:
            self._closed[key] = f"its metadata in {where} cannot be used: {error}"
            return error
        return None


def _json_rows(content: bytes) -> Iterator[tuple[int, dict[str, Any] | CorruptFile]]:
    for number, line in lines_of(BytesIO(content)):
        try:
            yield number, row_of(line)
        except CorruptFile as error:
            yield number, error


def _csv_rows(content: bytes) -> Iterator[tuple[int, dict[str, Any] | CorruptFile]]:
    lines = csv.reader(StringIO(decoded(content), newline=""), strict=True)
    try:
        names = next((row for row in lines if row), [])
        if not {"file", "id"} & set(names):
            raise CorruptFile(
                f"the columns are {quoted(names)}; want names separated by commas, one of them file or id"
            )
        if len(set(names)) != len(names) or "" in names:
            raise CorruptFile(f"the columns are {quoted(names)}; want a different name for each")
        start = lines.line_num + 1
        for row in lines:
            if len(row) == len(names):
                yield start, {name: cell for name, cell in zip(names, row, strict=True) if cell}
            elif row:
                yield (
                    start,
                    CorruptFile(f"the row has {len(row)} cells; want {len(names)}, as in the first line"),
                )
            start = lines.line_num + 1
    except csv.Error as error:
        raise CorruptFile(
            f"line {lines.line_num} is not valid CSV, and the rest is not read: {error}"
        ) from None
