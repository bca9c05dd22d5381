"""Every connection to PostgreSQL that the project opens verifies its server: one rule, which two rooms hold."""

from __future__ import annotations

import ast
from collections import Counter
from itertools import product

import pytest

from tests.test_package import ROOT

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")

from bench.service.shared import _one_backend  # noqa: E402 - what follows imports psycopg
from carag.audit._postgres import SHARED_AT, Place, remember, security_of  # noqa: E402
from carag.audit._shared import LOG, SharedLink, reading  # noqa: E402
from carag.backends import PostgresBackend, PostgresEpochs  # noqa: E402
from carag.backends.postgres.link import PostgresLink  # noqa: E402
from carag.engine.sharing import open_corpus, share  # noqa: E402
from carag.errors import CaragError  # noqa: E402

RULED = {"carag/audit/_postgres.py", "carag/backends/postgres/link.py"}
"""Modules that connect to PostgreSQL, each in one place."""
OTHERS = {"carag/retrieval/model_server.py", "carag/service/owner.py"}
"""Modules that connect to something else: over HTTP, over a local socket."""
NAMES = {"connect", "connect_async", "Connection", "AsyncConnection"}
"""Names by which psycopg connects."""


def _shared(url, home):
    remember(home, Place.parse(url), SHARED_AT)
    open_corpus(home)


DOORS = {
    "a shared store": _shared,
    "a shared store, set up": lambda url, home: share(home, "postgresql://carag_app@/b", admin=url),
    "a shared log": lambda url, _: SharedLink(Place.parse(url), lambda *_: None),
    "a shared log, read": lambda url, _: reading(Place.parse(url), LOG, "SELECT 1"),
    "rows": lambda url, _: PostgresBackend(url),
    "epochs": lambda url, _: PostgresEpochs(url).bind(()),
    "the benchmark of sharing": lambda url, _: _one_backend(url),
}
"""Each way in which a connection is opened, given an address and an empty directory."""


@pytest.fixture
def asked(monkeypatch):
    """What each connection asked for, as libpq gets it; none is made."""
    found = []

    def refused(conninfo="", **fields):
        texts = {name: value for name, value in fields.items() if name in {"sslmode", "connect_timeout"}}
        found.append(psycopg.conninfo.conninfo_to_dict(conninfo, **texts))
        raise psycopg.OperationalError("connection failed: refused")

    monkeypatch.setattr(psycopg, "connect", refused)
    monkeypatch.setattr(psycopg.Connection, "connect", refused)
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("more", "mode"), [("", "verify-full"), ("?sslmode=require", "require"), ("?hostaddr=127.0.0.1", None)]
)
def test_a_server_on_another_machine_has_to_prove_itself(door, more, mode, asked, tmp_path):
    """Unless the address says otherwise; this machine need not. An administrator's connection has to, too."""
    with pytest.raises((CaragError, psycopg.Error)):
        DOORS[door](f"postgresql://a@db.example/b{more}", tmp_path)
    assert asked
    assert {mode} == {one.get("sslmode") for one in asked}
    assert all(int(one["connect_timeout"]) <= 10 for one in asked)


@pytest.mark.parametrize(
    ("name", "value", "url", "mode"),
    [
        ("PGHOST", "db.example", "postgresql://a@/b", "verify-full"),
        ("PGHOSTADDR", "10.0.0.1", "postgresql://a@localhost/b", "verify-full"),
        ("PGSERVICE", "theirs", "postgresql://a@localhost/b", "verify-full"),
        ("PGHOST", "/run/postgresql", "postgresql://a@/b", None),
        ("PGUSER", "a", "postgresql://a@/b?service=theirs", "verify-full"),
        ("PGSSLMODE", "verify-ca", "postgresql://a@db.example/b", None),  # libpq takes it from there
    ],
)
def test_the_environment_may_name_another_machine(name, value, url, mode, asked, tmp_path, monkeypatch):
    """A service file, which is not read here, could ask for less; an address must say so itself."""
    monkeypatch.setenv(name, value)
    for door in ("rows", "a shared store, set up"):
        with pytest.raises(CaragError):
            DOORS[door](url, tmp_path)
    assert {mode} == {one.get("sslmode") for one in asked}


def test_both_rooms_hold_one_rule(asked, monkeypatch):
    """Neither room may import the other, so each has the rule; both answer the same for every address."""
    hosts = ("", "localhost", "127.0.0.1", "db.example", "localhost,db.example", "%2Frun", "10.0.0.1")
    more = ("", "?sslmode=disable", "?hostaddr=10.0.0.1", "?hostaddr=::1", "?service=x", "?host=@here")
    environment = ({}, {"PGHOST": "db.example"}, {"PGHOSTADDR": "10.0.0.1"}, {"PGSSLMODE": "require"})
    for its in environment:
        with monkeypatch.context() as set_so:
            for name, value in its.items():
                set_so.setenv(name, value)
            for host, rest in product(hosts, more):
                url = f"postgresql://a@{host}/b{rest}"
                fields = psycopg.conninfo.conninfo_to_dict(url, **security_of(url))
                assert fields.get("sslmode") == PostgresLink(url, "s")._fields.get("sslmode"), (its, url)


def connecting(source: str) -> int:
    """Count where a module connects to something that is not SQLite, or takes from psycopg what does."""
    count = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in {"connect", "connect_async"}:
            count += ast.unparse(node.value) != "sqlite3"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("psycopg"):
            count += bool(NAMES & {one.name for one in node.names})
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            count += any(isinstance(one, ast.Constant) and one.value in NAMES for one in node.args)
    return count


def test_nothing_else_connects():
    """A module that opens a connection calls one of the two functions, or stands on a list here."""
    found = Counter()
    for room in ("carag", "bench", "scripts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            found[str(path.relative_to(ROOT))] += connecting(path.read_text())
    assert dict.fromkeys(sorted(RULED | OTHERS), 1) == dict(sorted((+found).items()))


@pytest.mark.parametrize(
    "source",
    [
        "import psycopg\npsycopg.connect(url)",
        "import psycopg as driver\nmade = driver.Connection.connect(url)",
        "psycopg_driver().connect(url, autocommit=True)",
        "from functools import partial\nopen_it = partial(driver().connect, url)",
        "from psycopg import connect as made\nmade(url)",
        "from psycopg.connection import Connection",
        "getattr(driver(), 'connect')(url)",
    ],
)
def test_a_call_that_goes_past_the_rule_is_found(source):
    """However it is spelt."""
    assert 1 == connecting(source)
