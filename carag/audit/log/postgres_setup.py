"""Set up the evidence in PostgreSQL, and note in a log's directory where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit._files import write_atomically
from carag.audit._postgres import Place, psycopg_driver, talking
from carag.audit.log.postgres_tables import make_tables
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["REMEMBERED", "SHARED_AT", "remember", "remembered", "set_up"]

REMEMBERED: Final = "evidence.url"
"""Name of the file in a log's directory that holds the URL of the server with its evidence."""
SHARED_AT: Final = "shared.url"
"""The same of the server that has the log itself, which other processes write, too."""


def set_up(admin: str, evidence: str) -> None:
    """Make role, schema, tables, triggers and grants for a log, as an administrator.

    What is there is kept; triggers and grants are made anew. The role is able to log in and without a password: give
    it one, or another way to authenticate.

    Parameters
    ----------
    admin : str
        ``postgresql://...`` as an administrator, who owns the tables and is not the role of the application.
    evidence : str
        The URL that the log is opened with; it names role and schema.

    Raises
    ------
    InvalidArgument
        If the second is no such URL.
    AuditUnavailable
        If the server refuses.
    MissingExtra
        If psycopg is not installed.
    """
    place, driver = Place.parse(evidence), psycopg_driver()
    with talking(admin), driver.connect(admin, connect_timeout=10) as db:
        make_tables(db, place.schema, place.role)


def remember(directory: Path, place: Place, name: str = REMEMBERED) -> None:
    """Note where a log has its evidence, so that it is never opened without."""
    write_atomically(directory / name, f"{place}\n".encode())


def remembered(directory: Path, name: str = REMEMBERED) -> Place | None:
    """Return where a log has its evidence; None if it has it in files alone. Or, by name of the file, the log itself.

    Raises
    ------
    CorruptFile
        If the note is malformed.
    """
    note = directory / name
    if not note.exists():
        return None
    try:
        (line,) = note.read_text("utf-8").splitlines()
        return Place.parse(line)
    except (ValueError, InvalidArgument) as error:
        raise CorruptFile(
            f"{note} does not name a server; write it again: carag "
            f"{'share' if name == SHARED_AT else 'audit postgres'} --store {directory}"
        ) from error
