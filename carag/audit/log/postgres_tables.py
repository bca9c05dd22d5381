"""Create the tables of a log in PostgreSQL, and find what is wrong with them, their triggers and grants.

Nothing in these tables may be updated or deleted. Roles other than the owner lack the privilege; the owner and every
superuser are stopped by a trigger ``ENABLE ALWAYS``, which also fires under ``session_replication_role = replica``.
:func:`wrong_with` finds a dropped trigger, and everything else that could make an INSERT do something different: other
triggers, rules, row security, inheritance, and tables that are not crash-safe.

The view ``requests`` shows the records of requests as columns, for questions in SQL. CARAG reads nothing from the view:
what is proved is the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.audit.records.access import Access
from carag.postgres.rights import grant

if TYPE_CHECKING:
    from collections.abc import Iterator


TABLES: Final = {
    "record": {"seq": "bigint", "body": "bytea"},
    "node": {"i": "bigint", "hash": "bytea"},
    "checkpoint": {"size": "bigint", "note": "text"},
    "begun": {"seq": "bigint", "process": "integer"},
    "ended": {"seq": "bigint"},
}
"""Columns and types of each table; the first is its key."""
_KINDS: Final = ", ".join(f"'{kind.value}'" for kind in Access.KINDS)
_REQUESTS: Final = f"""
    SELECT seq,
        'epoch'::timestamptz + (said ->> 'tc')::bigint * interval '1 microsecond' AS at,
        said ->> 'kind' AS kind, said ->> 'outcome' AS outcome, said ->> 'why' AS code,
        said ->> 'role' AS role, said ->> 'purpose' AS purpose,
        ((said ->> 't1')::bigint - (said ->> 't0')::bigint) / 1000 AS milliseconds,
        ARRAY(
            SELECT (hit ->> 2)::integer FROM json_array_elements(said -> 'hits') WITH ORDINALITY AS t (hit, place)
            ORDER BY place
        ) AS scores
    FROM {{schema}}.record CROSS JOIN LATERAL (SELECT convert_from(body, 'UTF8')::json AS said) AS one
    WHERE said ->> 'kind' IN ({_KINDS})
"""  # noqa: S608 - constants
"""Requests, and how similar their passages are, in millionths, best first."""
_TRIGGER: Final = "carag_append_only"
"""Name of each table's trigger and of the function that the trigger calls."""
_SOURCE: Final = "BEGIN RAISE EXCEPTION 'the evidence of CARAG is append-only'; END"
_TRIGGER_TYPE: Final = 2 | 8 | 16 | 32
"""``pg_trigger.tgtype``: before, delete, update, truncate; for each statement (src/include/catalog/pg_trigger.h)."""


def make_tables(db: Any, schema: str, role: str) -> None:
    """Create any missing schema, tables, view, triggers and grants; run by an administrator, who owns them."""
    if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
        db.execute(f"CREATE ROLE {role} LOGIN")
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    db.execute(
        f"CREATE OR REPLACE FUNCTION {schema}.{_TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS '"
        + _SOURCE.replace("'", "''")
        + "'"
    )
    for table, columns in TABLES.items():
        name, (key, kind), *rest = f"{schema}.{table}", *columns.items()
        more = "".join(f", {one} {of} NOT NULL" for one, of in rest)
        db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({key} {kind} PRIMARY KEY{more})")
        db.execute(f"DROP TRIGGER IF EXISTS {_TRIGGER} ON {name}")
        db.execute(
            f"CREATE TRIGGER {_TRIGGER} BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {schema}.{_TRIGGER}()"
        )
        db.execute(f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {_TRIGGER}")
    db.execute(f"CREATE OR REPLACE VIEW {schema}.requests AS {_REQUESTS.format(schema=schema)}")
    grant(db, schema, role, {**dict.fromkeys(TABLES, "SELECT, INSERT"), "requests": "SELECT"})


def wrong_with(db: Any, schema: str) -> Iterator[str]:
    """Yield whatever differs from what :func:`make_tables` created, and who may do more than insert and read."""
    found = _columns(db, schema)
    if not found:
        yield "there are no tables"
        return
    for table, columns in TABLES.items():
        if found.get(table) != columns:
            yield f"table {table} is missing or has other columns"
    yield from _triggers(db, schema)
    yield from _grants(db, schema)
    query = (
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND "
        "c.relname = ANY(%s) AND (c.relkind <> 'r' OR c.relpersistence <> 'p' OR c.relrowsecurity OR c.relispartition "
        "OR EXISTS (SELECT 1 FROM pg_rewrite w WHERE w.ev_class = c.oid) "
        "OR EXISTS (SELECT 1 FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid)))"
    )
    for (table,) in db.execute(query, (schema, list(TABLES))).fetchall():
        yield f"{table} is not an ordinary table: it is unlogged, or has rules, row security or child tables"


def _columns(db: Any, schema: str) -> dict[str, dict[str, str]]:
    query = (
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE n.nspname = %s AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in db.execute(query, (schema,)).fetchall():
        found.setdefault(table, {})[column] = kind
    return found


def _triggers(db: Any, schema: str) -> Iterator[str]:
    query = (
        "SELECT c.relname, t.tgname, t.tgtype, t.tgenabled = 'A', t.tgqual IS NULL AND cardinality(t.tgattr) = 0 "
        "AND l.lanname = 'plpgsql' AND p.proowner = c.relowner, p.prosrc FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang "
        "WHERE n.nspname = %s AND NOT t.tgisinternal ORDER BY c.relname, t.tgname"
    )
    rows = db.execute(query, (schema,)).fetchall()
    for table in TABLES:
        mine = {name: rest for one, name, *rest in rows if one == table}
        ours = mine.pop(_TRIGGER, None)
        if ours is None:
            yield f"the trigger that keeps {table} append-only was dropped"
        elif ours != [_TRIGGER_TYPE, True, True, _SOURCE]:
            yield f"the trigger that keeps {table} append-only was disabled or altered"
        for name in mine:
            yield f"{table} has a trigger {name}, which is not CARAG's"


def _grants(db: Any, schema: str) -> Iterator[str]:
    privileges = (
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "{more} CROSS JOIN LATERAL aclexplode({acl}) a "
        "WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s) AND a.grantee <> c.relowner"
    )
    of = "SELECT c.relname, COALESCE((SELECT rolname FROM pg_roles WHERE oid = a.grantee), 'everybody'), "
    query = (
        f"{of} a.privilege_type "  # noqa: S608 - put together of constants
        f"{privileges.format(more='', acl='c.relacl')}"
        f" UNION {of} a.privilege_type "
        f"{privileges.format(more='JOIN pg_attribute t ON t.attrelid = c.oid', acl='t.attacl')}"
        f" UNION SELECT 'the schema', COALESCE((SELECT rolname FROM pg_roles WHERE oid = a.grantee), 'everybody'), "
        "a.privilege_type FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a "
        "WHERE n.nspname = %(schema)s AND a.grantee <> n.nspowner AND a.privilege_type <> 'USAGE' ORDER BY 1, 2, 3"
    )
    writers: dict[str, set[str]] = {}
    for table, role, privilege in db.execute(query, {"schema": schema, "tables": list(TABLES)}).fetchall():
        if privilege == "INSERT":
            writers.setdefault(table, set()).add(role)
        elif privilege != "SELECT":
            yield f"{role} may {privilege} in {table}"
    for table, roles in writers.items():
        if len(roles) > 1:
            yield f"several roles may INSERT in {table}: {', '.join(sorted(roles))}"
    query = (
        "SELECT DISTINCT current_user FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = ANY(%s) AND pg_has_role(current_user, c.relowner, 'MEMBER')"
    )
    for (role,) in db.execute(query, (schema, list(TABLES))).fetchall():
        yield f"role {role} is an owner or superuser, who may alter and delete"
