"""Keep a source's rows in a temporary file until all are read, because a document's rows may be anywhere among them.

Only then does anything reach a store, and a row that is there twice is known.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np

from carag.adopting.mapping import arguments_of
from carag.errors import InvalidArgument
from carag.labelling.document import Document
from carag.labelling.labelled import NotMade
from carag.limits import quoted
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from carag.adopting.mapping import Mapping
    from carag.adopting.sources import Row, Source


_TABLE: Final = (
    "CREATE TABLE rows (id TEXT PRIMARY KEY, document TEXT, place, text TEXT, vector BLOB, stated TEXT, "
    "times INTEGER NOT NULL DEFAULT 1)"
)
_PUT: Final = (
    "INSERT INTO rows (id, document, place, text, vector, stated) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET times = times + 1"
)
_READ: Final = "SELECT document, id, text, vector, stated, times FROM rows ORDER BY document, place, id"


@contextmanager
def spooled(source: Source, mapping: Mapping) -> Iterator[Spool]:
    """Read a source to its end, and lend its rows."""
    with closing(sqlite3.connect("")) as sql:  # a temporary file, which is deleted when it is closed
        sql.execute(_TABLE)
        spool = Spool(sql, source.name)
        spool.take(source, mapping)
        yield spool


class Spool:
    """The rows of a source; made by :func:`spooled`."""

    def __init__(self, sql: sqlite3.Connection, name: str) -> None:
        self._sql = sql
        self.name = name
        self.rows = 0
        """How many were read, those included that cannot be used."""
        self.dim = 0
        """The number of components of the first vector; 0 without any."""
        self.problems: list[str] = []
        """Rows that cannot be used, and why."""
        self._unusable: set[str] | None = set()
        """The documents of such rows; None if a row does not say its own."""

    def take(self, source: Source, mapping: Mapping) -> None:
        """Keep every row that can be used."""
        self._sql.executemany(_PUT, self._checked(source, mapping))

    def _checked(self, source: Source, mapping: Mapping) -> Iterator[tuple[Any, ...]]:
        for row in source.rows:
            self.rows += 1
            document: Any = None
            try:
                id_ = _name("its id", row.id)
                document, place = mapping.place_of(row, id_)
                document = _name("its document", document)
                vector = self._vector(row)
                stated = json.dumps(mapping.stated(row.metadata))
                yield id_, document, place, _text(row.text), vector.tobytes(), stated
            except InvalidArgument as error:
                self.problems.append(visible_line(f"row {self.rows}, {quoted(row.id)}: {error}"))
                if not isinstance(document, str):
                    self._unusable = None
                elif self._unusable is not None:
                    self._unusable.add(document)

    def _vector(self, row: Row) -> NDArray[np.float32]:
        try:
            with np.errstate(over="ignore"):
                vector = np.asarray(row.vector, np.float32)
        except (ValueError, TypeError):
            vector = np.empty(0, np.float32)
        if vector.ndim != 1 or not len(vector):
            raise InvalidArgument(f"its vector is {quoted(row.vector)}; want a list of numbers")
        if not (np.isfinite(vector).all() and vector.any()):
            raise InvalidArgument("its vector is zero or not finite, and cannot be compared; embed it again")
        self.dim = self.dim or len(vector)
        if len(vector) != self.dim:
            raise InvalidArgument(f"its vector has {len(vector)} components, and the first row's {self.dim}")
        return vector

    def names(self) -> set[str] | None:
        """Return the ids of all documents in the source; None if a row does not say its own."""
        if self._unusable is None:
            return None
        return {id_ for (id_,) in self._sql.execute("SELECT DISTINCT document FROM rows")} | self._unusable

    def documents(self, model: str) -> Iterator[Document | NotMade]:
        """Yield documents whose vectors a model made, and problems: first those of rows.

        A document whose rows disagree, are there twice or state what cannot be read is shared with no one, so that no
        earlier label of it stays open.
        """
        yield from map(NotMade, self.problems)
        for id_, several in groupby(self._sql.execute(_READ), key=lambda row: str(row[0])):
            yield from self._made(id_, [row[1:] for row in several], model)

    def _made(
        self, id_: str, rows: Sequence[tuple[str, str, bytes, str, int]], model: str
    ) -> Iterator[Document | NotMade]:
        ids, texts, bytes_, stated, times = zip(*rows, strict=True)
        vectors = np.frombuffer(b"".join(bytes_), np.float32).reshape(len(texts), -1)
        own: dict[str, Any] = {"id": id_, "read_by": self.name}
        try:
            yield Document.of_passages(
                texts, vectors, model, **arguments_of(_agreed(ids, stated, times)), **own
            )
        except InvalidArgument as error:
            yield NotMade(visible_line(f"document {quoted(id_)}: {error}"))
            try:
                yield Document.of_passages(texts, vectors, model, facts={}, allow=(), **own)
            except InvalidArgument:
                return  # not even its id or its texts can be stored, nor ever were


def _name(what: str, name: object) -> str:
    if isinstance(name, str | int | UUID) and not isinstance(name, bool) and str(name):
        return str(name)
    raise InvalidArgument(f"{what} is {quoted(name)}; want text or a number")


def _agreed(ids: Iterable[str], stated: Iterable[str], times: Iterable[int]) -> dict[str, Any]:
    """Return what all rows of a document state; InvalidArgument if one row is there twice, or they differ."""
    if twice := [(one, count) for one, count in zip(ids, times, strict=True) if count > 1]:
        raise InvalidArgument(
            f"row {quoted(twice[0][0])} is there {twice[0][1]} times, so no one may see it; want each id once"
        )
    first, *others = set(stated)
    if others:
        raise InvalidArgument(
            "its rows state different things about it, so no one may see it; map only fields that are the same in all"
        )
    found: dict[str, Any] = json.loads(first)
    return found


def _text(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument("it has no text; want the text that its vector stands for")
    return text
