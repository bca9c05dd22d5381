"""The tables of a log in PostgreSQL: append-only, checked at each opening, and shown as requests in a view."""

from __future__ import annotations

import contextlib
import sys
from datetime import UTC, datetime, timedelta

import pytest

from carag.audit import AuditLog
from carag.audit._notes import SHARED_AT, remembered
from carag.audit.log.postgres_tables import TABLES
from carag.engine.sharing import share
from carag.errors import AuditUnavailable, CorruptFile, MissingExtra
from carag.postgres import connection
from tests.sharing import ROLE

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")


class Log:
    """The directory of a shared log, and what the server's administrator can do to its tables."""

    def __init__(self, sharing, home, build):
        self.sharing, self.home, self.build = sharing, home, build
        self.schema = f"{sharing.shared(home)}_log"
        with self.open() as log:
            build.ask(log)

    def open(self):
        return self.build.open_log(self.home)

    def alter(self, *statements):
        return self.sharing.alter(f"SET search_path TO {self.schema}", *statements)


@pytest.fixture
def shared(sharing, tmp_path, build):
    return Log(sharing, tmp_path / "one", build)


# -- append-only


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {0} SET {1} = {1}",
        "DELETE FROM {0}",
        "TRUNCATE {0}",
        "DROP TABLE {0}",
        "ALTER TABLE {0} ADD x int",
    ],
)
def test_the_applications_role_can_alter_nothing(shared, table, statement):
    """Insert and read is all that is granted."""
    with shared.sharing.connect() as db:
        db.execute(f"SET search_path TO {shared.schema}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(statement.format(table, next(iter(TABLES[table]))))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0}"])
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_the_trigger_stops_the_owner_and_the_superuser(shared, table, statement, role):
    """Also where ordinary triggers are off, as on a replica."""
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        shared.alter(
            f"SET session_replication_role TO {role}", statement.format(table, next(iter(TABLES[table])))
        )


SPOILED = {
    "DROP TRIGGER carag_append_only ON record": "the trigger that keeps record append-only was dropped",
    "ALTER TABLE record DISABLE TRIGGER ALL": "the trigger that keeps record append-only was disabled",
    "ALTER TABLE record ENABLE TRIGGER carag_append_only": "the trigger that keeps record append-only was disabled",
    "CREATE OR REPLACE FUNCTION carag_append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'": (
        "was disabled or altered"
    ),
    "DROP TRIGGER carag_append_only ON record; CREATE TRIGGER carag_append_only BEFORE UPDATE ON record "
    "FOR EACH STATEMENT EXECUTE FUNCTION carag_append_only()": "was disabled or altered",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER t BEFORE INSERT "
    "ON node FOR EACH ROW EXECUTE FUNCTION f()": "node has a trigger t",
    f"GRANT UPDATE ON ended TO {ROLE}": f"{ROLE} may UPDATE in ended",
    "GRANT UPDATE (body) ON record TO PUBLIC": "everybody may UPDATE in record",
    "GRANT DELETE ON checkpoint TO PUBLIC": "everybody may DELETE in checkpoint",
    "GRANT INSERT ON record TO PUBLIC": "several roles may INSERT in record",
    f"DO $$ BEGIN EXECUTE format('GRANT CREATE ON SCHEMA %I TO {ROLE}', current_schema()); END $$": (
        f"{ROLE} may CREATE in the schema"
    ),
    "CREATE RULE r AS ON INSERT TO begun DO INSTEAD NOTHING": "begun is not an ordinary table",
    "ALTER TABLE node ENABLE ROW LEVEL SECURITY": "node is not an ordinary table",
    "ALTER TABLE ended SET UNLOGGED": "ended is not an ordinary table",
    "CREATE TABLE heir () INHERITS (record)": "record is not an ordinary table",
    "ALTER TABLE begun DROP process": "table begun is missing or has other columns",
    "DROP TABLE node": "table node is missing or has other columns",
}


@pytest.mark.parametrize("statement", SPOILED)
def test_what_is_lifted_or_granted_keeps_the_log_shut(shared, statement):
    """At the next opening, and at the next connection of a log that is open."""
    with shared.open() as log:
        shared.alter(
            statement,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # noqa: S608
            f"WHERE usename = '{ROLE}' AND datname = current_database()",
        )
        for _ in range(2):
            with pytest.raises(AuditUnavailable):
                shared.build.ask(log)
    with pytest.raises(AuditUnavailable, match=f"{SPOILED[statement]}.*carag share --admin"):
        shared.open()


@pytest.mark.parametrize("who", ["postgres", "carag_member"])
def test_an_owner_cannot_be_the_application(shared, who):
    """A superuser, or a member of the role that owns the tables, could lift what stops it."""
    with contextlib.suppress(psycopg.Error):
        shared.alter("CREATE ROLE carag_member LOGIN NOINHERIT", "GRANT postgres TO carag_member")
    note = shared.home / SHARED_AT
    note.write_text(note.read_text().replace(f"//{ROLE}@", f"//{who}@"))
    with pytest.raises(AuditUnavailable, match=f"role {who} is an owner or superuser"):
        shared.open()


def test_setting_up_again_mends_triggers_and_grants_and_keeps_the_rows(shared):
    """As the message says."""
    shared.alter("DROP TRIGGER carag_append_only ON record", f"GRANT ALL ON node TO {ROLE}")
    share(shared.home, (shared.home / SHARED_AT).read_text().strip(), admin=shared.sharing.url)
    with shared.open() as log:
        assert shared.build.ask(log).seq == 1
        assert log.verify().size == 2


# -- the view of requests


def test_every_request_is_a_row_of_the_view_and_nothing_else_is(shared):
    """Answers and refusals; the account that reads them may see nothing of questions, answers or persons."""
    with shared.open() as log:
        log.append(shared.build.ingest())
        log.append(shared.build.refusal(), secrets={"query": "Who?", "conversation": "c-7"})
        committed = [log.record(seq).committed for seq in (0, 2)]
    with shared.sharing.connect() as db:
        db.execute(f"SET search_path TO {shared.schema}")
        rows = db.execute("SELECT * FROM requests ORDER BY seq").fetchall()
    at = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=one) for one in committed]
    assert rows == [
        (0, at[0], "query", "answer", "OK", "buy_side", "invest", 1222, [750_000, 734_375]),
        (2, at[1], "query", "refuse", "UNKNOWN_ROLE", None, "invest", 1222, []),
    ]


def test_an_analyst_may_read_the_view_alone(shared):
    """Granted to another role, it opens neither records nor values, and the log still opens."""
    with contextlib.suppress(psycopg.Error):
        shared.alter("CREATE ROLE carag_analyst LOGIN")
    shared.alter(
        f"GRANT USAGE ON SCHEMA {shared.schema} TO carag_analyst", "GRANT SELECT ON requests TO carag_analyst"
    )
    shared.open().close()
    with psycopg.connect(shared.sharing.database.as_account("carag_analyst"), autocommit=True) as db:
        assert db.execute(f"SELECT count(*) FROM {shared.schema}.requests").fetchone() == (1,)  # noqa: S608
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"SELECT FROM {shared.schema}.record")


# -- what is refused, and how


def test_a_server_that_does_not_wait_for_its_disk_is_refused(shared, monkeypatch):
    """The settings are asked for, not believed."""
    monkeypatch.setitem(connection.DURABLE, "wal_level", "none")
    with pytest.raises(AuditUnavailable, match=r"wal_level = replica.*want wal_level = none"):
        shared.open()


def test_a_role_that_turned_waiting_off_waits(shared):
    """``synchronous_commit`` is set for the connection that writes, whatever the role's default is."""
    shared.alter(f"ALTER ROLE {ROLE} SET synchronous_commit TO off")
    try:
        with shared.open() as log, log._backend.link.turn() as db:
            assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
    finally:
        shared.alter(f"ALTER ROLE {ROLE} RESET synchronous_commit")


def test_no_tables_and_no_server_say_what_to_do(sharing, tmp_path):
    """Nothing is founded that would be opened without."""
    for address, said in (
        (sharing.address("nowhere"), r"there are no tables.*carag share --admin"),
        ("postgresql://carag_app@127.0.0.1:1/nothing", "PostgreSQL cannot be used for the audit log"),
    ):
        share(tmp_path, address)
        with pytest.raises(AuditUnavailable, match=said):
            AuditLog.open(tmp_path)
        assert not (tmp_path / "vkey").exists()
        (tmp_path / SHARED_AT).unlink()


@pytest.mark.parametrize("spoiled", ["", "one\ntwo\n", "no url\n", "postgresql://x@y/z?schema=No\n"])
def test_a_note_that_names_no_server_is_refused(tmp_path, spoiled):
    """A log is never opened without its server."""
    (tmp_path / SHARED_AT).write_text(spoiled)
    with pytest.raises(CorruptFile, match="write it again: carag share URL"):
        AuditLog.open(tmp_path)


def test_an_early_note_without_a_schema_means_the_one_that_was_left_out(tmp_path):
    """Notes of versions up to 0.3 say nothing of the schema carag_audit."""
    (tmp_path / SHARED_AT).write_text("postgresql://a@b/c\n")
    assert remembered(tmp_path, SHARED_AT).schema == "carag_audit"


def test_without_the_driver_the_message_names_the_extra(tmp_path, monkeypatch):
    """An optional package that is absent."""
    (tmp_path / SHARED_AT).write_text("postgresql://a@b/c\n")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"carag-engine\[postgres\]"):
        AuditLog.open(tmp_path)
