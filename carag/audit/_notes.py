"""Record in a log's directory which PostgreSQL server holds the log, or to which server the log was moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit._files import write_atomically
from carag.errors import CorruptFile, InvalidArgument
from carag.postgres.address import Address

if TYPE_CHECKING:
    from pathlib import Path


SHARED_AT: Final = "shared.url"
"""File with the URL of the server that holds the log itself, for several processes."""
MOVED_TO: Final = "moved.url"
"""File with the URL of the server that a log was moved to: the log must not continue in this directory."""
_UNNAMED: Final = "carag_audit"
"""The schema that versions up to 0.3 left out of the notes that they wrote."""


def remember(directory: Path, address: Address, name: str) -> None:
    """Record a server in a file in a log's directory."""
    write_atomically(directory / name, f"{address}\n".encode())


def remembered(directory: Path, name: str) -> Address | None:
    """Return the server recorded in a file in a log's directory, or None.

    Raises CorruptFile if the note is malformed.
    """
    note = directory / name
    if not note.exists():
        return None
    try:
        (line,) = note.read_text("utf-8").splitlines()
        return Address.parse(line, schema=_UNNAMED)
    except (ValueError, InvalidArgument) as error:
        raise CorruptFile(
            f"{note} does not name a server; write it again: carag share URL --store {directory}"
        ) from error
