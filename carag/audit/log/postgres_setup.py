"""Set up the evidence in PostgreSQL, and note in a log's directory where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit._files import write_atomically
from carag.audit.log.postgres import Place, psycopg_driver, talking
from carag.audit.log.postgres_tables import make_tables
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["REMEMBERED", "remember", "remembered", "set_up"]

REMEMBERED: Final = "evidence.url"
"""Name of the file in a log's directory that holds the server's URL."""


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


def remember(directory: Path, place: Place) -> None:
    """Note where a log has its evidence, so that it is never opened without."""
    write_atomically(directory / REMEMBERED, f"{place}\n".encode())


def remembered(directory: Path) -> Place | None:
    """Return where a log has its evidence; None if it has it in files alone.

    Raises
    ------
    CorruptFile
        If the note is malformed.
    """
    note = directory / REMEMBERED
    if not note.exists():
        return None
    try:
        (line,) = note.read_text("utf-8").splitlines()
        return Place.parse(line)
    except (ValueError, InvalidArgument) as error:
        raise CorruptFile(
            f"{note} does not name a server; write it again: carag audit postgres --store {directory}"
        ) from error
