"""Read a log that several processes write, as of one moment: a LogReader's statements, on a PostgreSQL server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.audit._postgres import talking
from carag.audit._shared import LOG, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit._postgres import Place

__all__ = ["SharedRecords"]

_ROWS: Final = 500
"""Records fetched at a time."""
_SAID: Final = (
    (" rec ", " record "),
    (" cp ", " checkpoint "),
    ("?", "%s"),
    ('instr(body, CAST(\'"kind":"key"\' AS BLOB))', 'position(\'"kind":"key"\'::bytea IN body) > 0'),
)
"""How SQLite's statements are spelled on the server."""


class SharedRecords:
    """A connection that runs a LogReader's statements; it needs only the SELECT privilege.

    Raises AuditUnavailable if the server cannot be reached, or has no such log.
    """

    def __init__(self, place: Place) -> None:
        self.where = f"PostgreSQL, schema {place.schema}"
        self._place, self._streams = place, 0
        with talking(place.url, self.where):
            self._db = reading(place, LOG, "SELECT FROM checkpoint LIMIT 1")

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        """Run a LogReader's statement; if it reads everything, the rows are fetched as they are used."""
        said = f"{statement} "
        for form, ours in _SAID:
            said = said.replace(form, ours)
        if not parameters and " LIMIT " not in said:
            return self._streamed(said)
        with talking(self._place.url, self.where):
            return self._db.execute(said, parameters or None, binary=True)

    def _streamed(self, said: str) -> Iterator[Any]:
        self._streams += 1  # several may be read in turn
        with talking(self._place.url, self.where), self._db.cursor(f"stream_{self._streams}") as stream:
            stream.itersize = _ROWS
            stream.execute(said)
            yield from stream

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._db.close()
