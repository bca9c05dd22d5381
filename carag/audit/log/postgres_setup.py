"""Set up the evidence in PostgreSQL."""

from __future__ import annotations

from carag.audit._postgres import Place, connected, talking
from carag.audit.log.postgres_tables import make_tables

__all__ = ["set_up"]


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
    place = Place.parse(evidence)
    with talking(admin), connected(admin, autocommit=False) as db:
        make_tables(db, place.schema, place.role)
