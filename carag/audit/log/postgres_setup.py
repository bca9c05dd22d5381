"""Set up the evidence in PostgreSQL."""

from __future__ import annotations

from carag.audit._postgres import Place, connected, talking
from carag.audit.log.postgres_tables import make_tables

__all__ = ["set_up"]


def set_up(admin: str, evidence: str) -> None:
    """Create role, schema, tables, triggers and grants for a log, as an administrator, who owns the tables.

    ``evidence`` is the URL that the log is opened with: it names role and schema. Existing tables are kept, triggers
    and grants are created again. The role can log in but has no password: give it one, or another way to authenticate.

    Raises InvalidArgument if ``evidence`` is not such a URL; AuditUnavailable if the server refuses; MissingExtra if
    psycopg is not installed.
    """
    place = Place.parse(evidence)
    with talking(admin), connected(admin, autocommit=False) as db:
        make_tables(db, place.schema, place.role)
