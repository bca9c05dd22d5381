"""Say what a source of rows is, for the modules that read one."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qs

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


AT_ONCE: Final = 2000
"""Rows asked for at a time."""


class Wanted(NamedTuple):
    """The names of the fields of a row that a source does not keep apart itself."""

    id: str = "id"
    text: str = "text"
    vector: str = "vector"


class Row(NamedTuple):
    """A row as it is; what is missing is None."""

    id: str | int | None
    text: str | None
    vector: Any
    """An array or list of numbers."""
    metadata: dict[str, Any]
    """Every other field, by name."""


class Source(Protocol):
    """Rows that are read once, in any order."""

    @property
    def name(self) -> str:
        """What it is, without its address, such as ``pgvector:public.chunks``."""
        ...

    def rows(self) -> Iterator[Row]:
        """Yield its rows, with a bounded number of them in memory."""
        ...


class Opened(NamedTuple):
    """A source that is open."""

    name: str
    read: Iterator[Row]

    def rows(self) -> Iterator[Row]:
        """Yield its rows."""
        return self.read


def row_of(fields: dict[str, Any], wanted: Wanted) -> Row:
    """Make a row of fields, which are used up."""
    id_, text, vector = (fields.pop(name, None) for name in wanted)
    return Row(id_, text, vector, fields)


def chosen(asked: str, names: Sequence[str]) -> str:
    """Return the collection that ``name=`` in a query names, or the only one; InvalidArgument without either."""
    named = parse_qs(asked).get("name", [])
    found = [one for one in names if one in named or not named]
    if len(found) != 1:
        raise InvalidArgument(
            f"the source holds {', '.join(map(quoted, sorted(names)[:5])) or 'nothing'}; choose one with ?name="
        )
    return found[0]


@contextmanager
def copied(folder: Path) -> Iterator[str]:
    """Lend a copy of a folder, for a client that writes into every folder that it opens."""
    with tempfile.TemporaryDirectory(prefix="carag-adopt-") as place:
        yield str(shutil.copytree(folder, Path(place) / folder.name))
