"""How the project reaches PostgreSQL: every connection verifies its server, and addresses, pools and locks are one."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from tests.test_package import ROOT

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install carag-engine[postgres]")

from bench.service.shared import _one_backend  # noqa: E402 - what follows imports psycopg
from carag.audit._notes import SHARED_AT, remember  # noqa: E402
from carag.audit._shared import LOG, SharedLink, Snapshot  # noqa: E402
from carag.backends import PostgresBackend  # noqa: E402
from carag.engine.sharing import open_corpus, share  # noqa: E402
from carag.errors import CaragError, InvalidArgument  # noqa: E402
from carag.postgres.address import Address, fields_of  # noqa: E402
from carag.postgres.locks import lock, try_lock, unlock  # noqa: E402
from carag.postgres.pool import Pool  # noqa: E402

RULED = {"carag/postgres/connection.py"}
"""The module that connects to PostgreSQL, in one place."""
OTHERS = {
    "carag/service/owner.py": 1,
    "carag/adopting/sources.py": 1,
    "bench/adopting/peers.py": 3,
    "bench/ranking/peers.py": 1,
    "bench/ann/peers/lists.py": 3,
    "bench/attack/targets/lancedb_rows.py": 1,
    "bench/attack/targets/pgvector.py": 2,
    "bench/erasing/files.py": 1,
    "bench/erasing/peers.py": 2,
}
"""Modules that connect to something else, and how often: a local socket, LanceDB's folder, a benchmark's server."""
NAMES = {"connect", "connect_async", "Connection", "AsyncConnection"}
"""Names by which psycopg connects."""


def _shared(url, home):
    remember(home, Address.parse(url), SHARED_AT)
    open_corpus(home)


DOORS = {
    "a shared store": _shared,
    "a shared store, set up": lambda url, home: share(home, "postgresql://carag_app@/b", admin=url),
    "a shared log": lambda url, _: SharedLink(Address.parse(url), lambda *_: None),
    "a shared log, read": lambda url, _: Snapshot(Address.parse(url), LOG, "SELECT 1"),
    "rows": lambda url, _: PostgresBackend(url),
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


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://a@db.example/d", "verify-full"),
        ("postgresql://a@localhost,db.example/d", "verify-full"),
        ("postgresql://a@localhost/d?hostaddr=10.0.0.1", "verify-full"),
        ("postgresql://a@db.example/d?hostaddr=::1", None),
        ("postgresql://a@localhost/d?service=x", "verify-full"),
        ("postgresql://a@db.example/d?sslmode=require", "require"),
        ("postgresql://a@localhost/d", None),
        ("postgresql:///d?host=/var/run", None),
        ("postgresql:///d?host=@here", None),
    ],
)
def test_no_text_crosses_a_network_in_clear(url, mode, asked):
    """Unless the address says so; a socket and this machine need no certificate."""
    assert mode == fields_of(url).get("sslmode")


def test_a_pool_uses_a_server_that_accepts_writes(monkeypatch):
    """A standby may be behind; and a server that was named to answer in time is not waited for longer."""
    given = []

    def refused(**fields):
        given.append(fields)
        raise psycopg.OperationalError("connection failed: refused")

    monkeypatch.setattr(psycopg.Connection, "connect", refused)
    with pytest.raises(psycopg.Error):
        Pool("postgresql://a@localhost/b?connect_timeout=3", {}).new()
    assert [("read-write", "3")] == [(one["target_session_attrs"], one["connect_timeout"]) for one in given]


def test_a_pool_that_is_all_lent_says_so_and_goes_on_when_one_comes_back(sharing):
    """The server is not blamed, and the caller is not tried again."""
    pool = Pool(sharing.url, {"application_name": "one"}, timeout=0.01, most=1)
    with pool.lent() as db:
        assert ("one",) == db.execute("SHOW application_name").fetchone()
        with pytest.raises(psycopg.errors.TooManyConnections, match="all connections have been in use"):
            pool.query("SELECT 1")
    assert (1,) == pool.query("SELECT 1").fetchone()
    pool.close()
    with pytest.raises(psycopg.OperationalError, match="open it again"):
        pool.query("SELECT 1")


@pytest.mark.parametrize("session", [False, True])
def test_a_lock_keeps_others_out_until_its_holder_ends(sharing, session):
    """A transaction's until that ends, a session's until it is released; a shared one only against exclusive ones."""
    with sharing.admin() as one, sharing.admin() as other:
        with one.transaction():
            lock(one, "a name", 1, session=session)
            assert not try_lock(other, "a name", 1)
            assert not try_lock(other, "a name", 1, shared=True)
            assert try_lock(other, "a name", 2)
            assert try_lock(other, "another", 1)
        assert session != try_lock(other, "a name", 1)
        if session:
            unlock(one, "a name", 1)
        assert try_lock(other, "a name", 1, session=True, shared=True)
        assert try_lock(one, "a name", 1, session=True, shared=True)
        assert not try_lock(one, "a name", 1)


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
def test_what_is_not_a_url_or_holds_a_password_is_refused(url):
    """Before anything is connected to, and without repeating a password."""
    with pytest.raises(InvalidArgument) as refused:
        Address.parse(url)
    assert "pw" not in re.sub("password|pgpass|'pw;drop'", "", str(refused.value))


@pytest.mark.parametrize(
    "text", ["postgresql://a@b/c", "postgresql://a@b/c?schema=s", "postgresql://a@/c?host=%2Ft&schema=s"]
)
def test_a_url_is_written_as_it_is_read(text):
    """The schema apart from what libpq knows."""
    address = Address.parse(text)
    assert Address.parse(str(address)) == address
    assert "schema" not in address.url
    assert address.schema == ("s" if "schema" in text else "carag")


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
    """A module that opens a connection calls that function, or stands on a list here."""
    found = Counter()
    for room in ("carag", "bench", "scripts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            found[str(path.relative_to(ROOT))] += connecting(path.read_text())
    assert dict(sorted((dict.fromkeys(RULED, 1) | OTHERS).items())) == dict(sorted((+found).items()))


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
