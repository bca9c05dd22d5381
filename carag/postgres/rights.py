"""Give an application's account its rights in a schema, and revoke all other rights from it and from PUBLIC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def grant(db: Any, schema: str, role: str, rights: Mapping[str, str]) -> None:
    """Grant rights by table or view, as the owner of the schema; the names have been checked."""
    db.execute(f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {role}")
    db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    for table, granted in rights.items():
        db.execute(f"REVOKE ALL ON {schema}.{table} FROM PUBLIC, {role}")
        db.execute(f"GRANT {granted} ON {schema}.{table} TO {role}")
