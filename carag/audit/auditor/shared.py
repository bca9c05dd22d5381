"""Read a log that several processes write, as of one moment: a LogReader's statements, on a PostgreSQL server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.audit._shared import LOG, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.postgres.address import Address

__all__ = ["SharedRecords"]

_ROWS: Final = 500
"""Rows fetched at a time."""
_SAID: Final = (
    (" rec ", " record "),
    (" cp ", " checkpoint "),
    ('instr(body, CAST(\'"kind":"key"\' AS BLOB))', 'position(\'"kind":"key"\'::bytea IN body) > 0'),
)
"""Names and forms of a LogReader's statements that differ on the server."""


class SharedRecords(Snapshot):
    """A connection that runs a LogReader's statements."""

    def __init__(self, address: Address) -> None:
        super().__init__(address, LOG, "SELECT FROM checkpoint LIMIT 1")
        self._streams = 0

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        """Run one of them; if it reads everything, the rows are fetched as they are used."""
        said = f"{statement} "
        for form, ours in _SAID:
            said = said.replace(form, ours)
        if not parameters and " LIMIT " not in said:
            return self._streamed(said)
        return super().execute(said, parameters)

    def _streamed(self, said: str) -> Iterator[Any]:
        self._streams += 1  # several may be read in turn
        with self._talking(), self._db.cursor(f"stream_{self._streams}") as stream:
            stream.itersize = _ROWS
            stream.execute(said)
            yield from stream
