"""PostgreSQL with pgvector as a backend: it conforms, and what can only go wrong here does not."""

from __future__ import annotations

import contextlib
import traceback
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest

from carag.backends import PostgresBackend, Rows, backend_by_url
from carag.backends.compiled import admitted_at
from carag.backends.postgres import backend as backend_module
from carag.backends.postgres import statements
from carag.backends.postgres.place import check_version
from carag.backends.postgres.schema import graph_name
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import BackendUnavailable, InvalidArgument, StoreLocked
from carag.index import Plan
from carag.policy import Mask, policy_word
from carag.postgres import pool as pool_module
from tests.backends.conformance import Conformance
from tests.backends.conftest import NUMBERS, Graphed
from tests.backends.postgres_servers import psycopg_or_skip
from tests.backends.worlds import EVERYTHING, plain_rows
from tests.remains import remains_in_database
from tests.sizes import examples

psycopg = psycopg_or_skip()

HOSTILE = """c{} '"; DROP TABLE live; -- %s %(x)s $1 \\ é漢"""


class TestPostgres(Conformance):
    """One database, with a graph, which no exact plan may use."""

    lies, graph_rows = examples(400), 3_000

    @pytest.fixture(autouse=True)
    def _with(self, servers):
        self.server = servers[0]
        yield
        self.server.start()

    def new(self, dim):
        return Graphed(self.server.url, collection=HOSTILE.format(next(NUMBERS)))

    def another(self, backend):
        return PostgresBackend(self.server.url, collection=backend.state().collection)

    def stop(self, backend):
        self.server.kill()

    def stored(self, backend, wanted):
        with self.server.connect() as db:
            db.execute("ANALYZE")  # which samples vectors
            return remains_in_database(wanted, db)


def test_a_command_builds_the_graph(servers, name, capsys):
    """It reports the number of rows; another kind of backend is bad input, and no address is shown."""
    url = f"{servers[0].url}&collection={quote(name)}"
    command = ["backend", "graph", "--backend", url, "--memory-mb", "64"]
    assert Exit.BAD_INPUT == run(command)
    assert "no rows" in capsys.readouterr().err
    with contextlib.closing(backend_by_url(url)) as backend:
        backend.add(plain_rows(60, 8), batch="first")
        assert backend.capabilities.recall is None
    assert Exit.OK == run(command)
    assert (
        f"60 rows have a graph with a declared recall of {backend_module.RECALL}\n" == capsys.readouterr().out
    )
    with contextlib.closing(backend_by_url(url)) as backend:
        assert backend_module.RECALL == backend.capabilities.recall
    assert Exit.BAD_INPUT == run(["backend", "graph", "--backend", "native://somewhere"])
    assert "somewhere" not in capsys.readouterr().err


# -- plans


def explained(backend, statement, queries, admitted, **settings):
    """Return the server's plan for a statement of the backend."""
    bound = statements.parameters(backend._place.id, backend.state().epoch, admitted)

    def work(db):
        if settings:
            db.execute(*statements.graph_settings(**settings))
        found = db.execute(f"EXPLAIN {statement}", {**bound, "q": queries[0], "k": 26})
        return "\n".join(line for (line,) in found.fetchall())

    return backend._link.read(work)


@pytest.fixture
def graphed(servers, name):
    """A collection with a graph, in which two of three words are admitted."""
    backend = Graphed(servers[0].url, collection=name)
    rows = plain_rows(800, 16, bits=np.random.default_rng(0).integers(1, 4, 800))
    backend.add(rows, batch="first")
    backend._link.write(lambda db: db.execute("ANALYZE carag_vectors.live"))
    yield backend
    backend.close()


QUERY = np.full((1, 16), 0.25, np.float32)
SOME = admitted_at((policy_word(1), policy_word(3)), EVERYTHING, 0, None)


def test_an_exact_statement_never_uses_the_graph(graphed):
    """Not even with settings that make the planner prefer it: its order is not that of the graph's index."""
    graph = f"using {graph_name(graphed._place.id)}"
    statement = statements.exact(SOME)
    assert graph not in explained(graphed, statement, QUERY, SOME)
    assert graph not in explained(graphed, statement, QUERY, SOME, width=400)
    plain = "SELECT key FROM live WHERE collection = %(c)s ORDER BY {} LIMIT %(k)s"
    for order, uses_it in (
        ("v::public.vector(16) <#> %(q)s, key", True),
        ("(v::public.vector(16) <#> %(q)s) + 0, key", False),
    ):
        assert uses_it == (graph in explained(graphed, plain.format(order), QUERY, SOME, width=400))


def test_a_graph_statement_uses_the_graph(graphed):
    """Even if the planner estimates that scoring all rows costs less."""
    plan = explained(graphed, statements.graph(SOME, 16), QUERY, SOME, width=400)
    assert f"using {graph_name(graphed._place.id)}" in plan
    for policy in (Mask(1), Mask(1, 2), Mask(3)):
        few = admitted_at(graphed.state().words, policy, 0, None)
        assert f"using {graph_name(graphed._place.id)}" in explained(
            graphed, statements.graph(few, 16), QUERY, few, width=400
        )


def test_a_short_list_of_the_graph_is_completed_exactly(graphed, monkeypatch):
    """A graph may have too few links to reach a row."""
    short = statements.graph
    monkeypatch.setattr(statements, "graph", lambda *args: short(*args).replace("LIMIT %(k)s", "LIMIT 3", 1))
    found = graphed.search(QUERY, 10, SOME, plan=Plan.GRAPH)
    exact = graphed.search(QUERY, 10, SOME, plan=Plan.EXACT)
    assert exact.keys.tolist() == found.keys.tolist()


def test_without_a_requested_plan_the_cheaper_one_runs(graphed, monkeypatch):
    """By the number of admissible rows, which is exact."""
    assert Plan.EXACT is graphed.search(QUERY, 10, SOME, plan=Plan.AUTO).plan
    monkeypatch.setattr(backend_module, "_EXACT_ROWS", 100)
    assert Plan.GRAPH is graphed.search(QUERY, 10, SOME, plan=Plan.AUTO).plan


def test_a_graph_is_not_walked_if_few_rows_are_admissible(servers, name):
    """Its walk would end far from them: with a tenth it is walked, with one row less all are scored."""
    backend = Graphed(servers[0].url, collection=name)
    rows = plain_rows(500, 16)
    words = np.where(
        np.arange(500) < 50, policy_word(1), np.where(np.arange(500) < 99, policy_word(2), 1 << 27)
    )
    backend.add(rows._replace(words=words.astype(np.uint32)), batch="first")
    for bit, count, plan in ((1, 50, Plan.GRAPH), (2, 49, Plan.EXACT)):
        few = admitted_at(backend.state().words, Mask(bit), 0, None)
        found = backend.search(QUERY, 10, few, plan=Plan.GRAPH)
        assert (plan, count) == (found.plan, found.admissible)
    exact = backend.search(QUERY, 10, few, plan=Plan.EXACT)
    assert exact.keys.tolist() == found.keys.tolist()
    backend.close()


def test_a_graph_knows_rows_that_ended_since(graphed):
    """An earlier epoch has what was relabelled and deleted afterwards."""
    then = graphed.search(QUERY, 20, SOME, plan=Plan.GRAPH)
    best = then.keys[0, :5].tolist()
    graphed.relabel(best[:3], [0] * 3, batch="close")
    graphed.delete(best[3:], batch="drop")
    again = graphed.search(QUERY, 20, SOME, plan=Plan.GRAPH, at=1)
    assert then.keys.tolist() == again.keys.tolist()
    now = graphed.search(QUERY, 20, SOME, plan=Plan.GRAPH)
    assert set() == set(best) & set(now.keys[0].tolist())
    assert then.admissible == again.admissible == now.admissible + 5


# -- the form of rows


def test_many_rows_come_in_blocks(servers, name):
    """More rows than fit in one block of the copy, and none."""
    backend = PostgresBackend(servers[0].url, collection=name)
    rows = plain_rows(9_000, 4)
    assert 9_000 == backend.add(rows, batch="many").shards[0].rows
    nothing = Rows(*(column[:0] for column in rows))
    assert 2 == backend.add(nothing, batch="none").epoch
    assert rows.vectors[[0, 4095, 4096, 8999]].tolist() == backend.get([0, 4095, 4096, 8999]).vectors.tolist()
    backend.close()


def test_a_collection_has_vectors_of_one_length(servers, name):
    """Set by its first batch, or when it is opened; it must be one that a graph takes."""
    backend = PostgresBackend(servers[0].url, collection=name, dim=8)
    with pytest.raises(InvalidArgument, match="length 4; those of the collection have 8"):
        backend.add(plain_rows(2, 4), batch="first")
    with pytest.raises(InvalidArgument, match="length 4; those of the collection have 8"):
        backend.search(np.ones((1, 4), np.float32), 1, SOME, plan=Plan.EXACT)
    with pytest.raises(InvalidArgument, match="length 16; those of the collection have 8"):
        PostgresBackend(servers[0].url, collection=name, dim=16)
    assert 0 == backend.state().epoch
    backend.close()
    for dim in (0, 2001):
        with pytest.raises(InvalidArgument, match="want 1 to 2000"):
            PostgresBackend(servers[0].url, collection=f"{name} {dim}", dim=dim)


# -- at the same time


def test_writers_take_turns(servers, name):
    """Each batch is an epoch, and none is lost; the same batch from all writers is one."""
    backend = PostgresBackend(servers[0].url, collection=name)
    backend.add(plain_rows(4, 8), batch="first")

    def write(number):
        made = [
            backend.add(plain_rows(2, 8, first=100 * number + 10 * one), batch=f"{number} {one}").epoch
            for one in range(1, 6)
        ]
        backend.add(plain_rows(1, 8, first=9_999), batch="by all of them")
        return made

    with ThreadPoolExecutor(4) as threads:
        epochs = [epoch for made in threads.map(write, range(4)) for epoch in made]
    assert (22, 45) == (backend.state().epoch, backend.state().shards[0].rows)
    assert 20 == len(set(epochs))
    backend.close()


def test_processes_that_open_at_once_open_the_same(servers, name):
    """Schema, collection and partition are created once."""
    schema = name.replace(" ", "_")

    def opened(_):
        backend = PostgresBackend(servers[0].url, collection=name, schema=schema, dim=8)
        backend.close()
        return backend._place

    with ThreadPoolExecutor(6) as threads:
        assert 1 == len(set(threads.map(opened, range(6))))


# -- tenants


def test_collections_share_nothing(servers):
    """Neither keys, words, batches nor epochs, whatever their names."""
    names = ["tenant", "tenant%", "Tenant", "tenant' OR '1'='1", 'tenant"; DELETE FROM live; --', "é" * 200]
    backends = [PostgresBackend(servers[1].url, collection=one) for one in names]
    for number, backend in enumerate(backends):
        backend.add(plain_rows(number + 1, 8, seed=number), batch="same")
    for number, backend in enumerate(backends):
        state = backend.state()
        assert (names[number], 1, number + 1) == (state.collection, state.epoch, state.shards[0].rows)
        assert list(range(number + 1)) == sorted(backend.get(range(20)).keys.tolist())
        backend.close()


@pytest.mark.parametrize(("memory_mb", "is_on_disk"), [(1, True), (64, False)])
def test_a_graph_is_built_within_its_memory(servers, name, memory_mb, is_on_disk):
    """What does not fit is built on disk, as the server reports; an impossible amount is refused."""
    told = []
    backend = PostgresBackend(servers[0].url, collection=name)
    backend.add(plain_rows(2_000, 64), batch="first")
    for wrong in (0, -1, 1.5, True, "2GB", 2**21):
        with pytest.raises(InvalidArgument, match="megabytes"):
            backend.build_graph(memory_mb=wrong)
    assert backend.capabilities.recall is None
    connected = backend._link._pool.new

    def listening():
        db = connected()
        db.add_notice_handler(lambda notice: told.append(notice.message_primary))
        return db

    backend._link._pool.new = listening
    backend.build_graph(memory_mb=memory_mb)
    assert is_on_disk == any("no longer fits into maintenance_work_mem" in one for one in told)
    assert backend.capabilities.recall is not None
    backend.close()


def test_an_account_sees_its_collections_and_no_other(servers, name):
    """The server refuses the rest, whatever the statement, and the backend declares it."""
    server, tenant = servers[1], f"{servers[1].name}_tenant"
    mine = PostgresBackend(server.url, collection=name)
    other = PostgresBackend(server.url, collection=f"{name}, of somebody else")
    for one in (mine, other):
        one.add(plain_rows(30, 8), batch="first")
        assert not one.capabilities.server_side_policy
    mine.build_graph()
    with server.connect() as admin:
        admin.execute(f"CREATE ROLE {tenant} LOGIN")
    mine.let_use(tenant)
    fenced = PostgresBackend(server.as_account(tenant), collection=name)
    assert fenced.capabilities.server_side_policy
    fenced.add(plain_rows(5, 8, first=50), batch="second")
    fenced.relabel([50], [policy_word(2)], batch="third")
    fenced.delete([51], batch="fourth")
    assert mine.state() == fenced.state()
    admitted = admitted_at(fenced.state().words, EVERYTHING, 0, None)
    query = np.full((1, 8), 8**-0.5, np.float32)
    for plan in (Plan.EXACT, Plan.GRAPH):
        assert 34 == len(fenced.search(query, 50, admitted, plan=plan).rows.keys)
    with pytest.raises(BackendUnavailable, match="let_use"):
        PostgresBackend(server.as_account(tenant), collection=f"{name}, of somebody else")
    with psycopg.connect(server.as_account(tenant), autocommit=True) as account:
        for table in ("live", "past", "word", "change"):
            seen = account.execute(f"SELECT DISTINCT collection FROM carag_vectors.{table}").fetchall()  # noqa: S608
            assert [(fenced._place.id,)] == seen
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            account.execute(f"SELECT * FROM carag_vectors.live_{other._place.id}")  # noqa: S608
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            account.execute(f"UPDATE carag_vectors.collection SET accounts = '{{{tenant}}}'")  # noqa: S608
        moved = "UPDATE carag_vectors.live SET collection = %s"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            account.execute(moved, (other._place.id,))
    for one in (mine, other, fenced):
        one.close()


def test_an_account_purges_as_far_as_it_may_and_says_so(servers, name):
    """Rows of its own collection; the owner writes pages again; an account from before it could has to be let again."""
    server, tenant = servers[1], f"{servers[1].name}_purger"
    mine, other = (PostgresBackend(server.url, collection=one) for one in (name, f"{name}, of somebody else"))
    with server.connect() as admin:
        admin.execute(f"CREATE ROLE {tenant} LOGIN")
    for one in (mine, other):
        one.add(plain_rows(30, 8), batch="first")
        one.delete(range(10), batch="second")
    mine.let_use(tenant)
    fenced = PostgresBackend(server.as_account(tenant), collection=name)
    assert set(fenced.beyond) - set(mine.beyond) == {"postgresql-pages", "postgresql-statistics"}
    assert {"postgresql-wal", "postgresql-replicas"} == set(mine.beyond)
    rights = f"ON carag_vectors.past {{}} {tenant}"
    with server.connect() as admin:
        admin.execute(f"REVOKE DELETE {rights.format('FROM')}")
        with pytest.raises(BackendUnavailable, match=r"with let_use\(\)"):
            fenced.purge()
        assert len(mine.get(range(10), at=1).keys) == 10
        mine.let_use(tenant)
        fenced.purge()
        ended = admin.execute("SELECT collection, count(*) FROM carag_vectors.past GROUP BY 1").fetchall()
        assert (mine._place.id, 10) not in ended
        assert (other._place.id, 10) in ended
    with pytest.raises(BackendUnavailable, match="epoch 1 is gone"):
        mine.get(range(10), at=1)
    assert len(other.get(range(10), at=1).keys) == 10
    assert mine.state().shards[0].rows == 20
    for one in (mine, other, fenced):
        one.close()


def test_rows_that_a_transaction_can_still_read_are_told_of(servers, name):
    """The purge fails; repeated later, it succeeds."""
    backend = PostgresBackend(servers[1].url, collection=name)
    backend.add(plain_rows(30, 8), batch="first")
    backend.delete(range(10), batch="second")
    with servers[1].connect() as reader:
        with reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1 FROM pg_class LIMIT 1")
            with pytest.raises(StoreLocked, match="an earlier transaction"):
                backend.purge()
        backend.purge()
    backend.close()


# -- the connection


SECRET = "heron-4711"  # noqa: S105 - tests/canary.py listens for it


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://someone:{SECRET}@localhost:1/db",
        f"postgresql://someone:{SECRET}@no.such.host.invalid/db",
        f"postgresql://someone@localhost:1/db?password={SECRET}",
    ],
)
def test_an_unreachable_server_is_reported_without_address_or_secret(dsn):
    """Nor the name of the account, which may be a person's."""
    with pytest.raises(BackendUnavailable) as told:
        PostgresBackend(dsn, timeout=2)
    text = "".join(traceback.format_exception(told.value))
    for word in (SECRET, "someone", "no.such.host", "localhost"):
        assert word not in str(told.value)
        assert word not in text.replace("test_postgres", "")


@pytest.mark.parametrize(
    "dsn",
    [f"postgresql://a:{SECRET}@h/d?no_such=1", f"http://{SECRET}@h", f"host=h password={SECRET}", None, 7],
)
def test_an_invalid_address_is_refused_without_being_quoted(dsn):
    """It may contain a password."""
    with pytest.raises(InvalidArgument, match="not the address") as told:
        PostgresBackend(dsn)
    assert SECRET not in str(told.value)


def test_a_backend_does_not_show_its_address(servers, name):
    """In a repr, a state, or the error of a statement."""
    backend = PostgresBackend(servers[0].url, collection=name)
    shown = [repr(backend), repr(backend._link), repr(backend.state())]
    with pytest.raises(BackendUnavailable) as told:
        backend._link.read(lambda db: db.execute("SELECT no_such_column"))
    assert all(str(servers[0].directory) not in one for one in [*shown, str(told.value)])
    backend.close()


def test_lost_connections_are_replaced(servers, name):
    """All at once, as after a restart of the server; the caller does not notice."""
    backend = PostgresBackend(servers[0].url, collection=name)
    backend.add(plain_rows(3, 8), batch="first")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: backend.state(), range(50)))
    servers[0].kill()
    servers[0].start()
    assert 1 == backend.state().epoch
    backend.close()


def test_a_batch_that_is_ended_before_its_commit_is_repeated(servers, name):
    """The second try makes it, once."""
    backend = PostgresBackend(servers[0].url, collection=name)
    original, tries = backend._copy, []

    def ended(db, *args):
        original(db, *args)
        tries.append(1)
        if len(tries) < 2:
            with servers[0].connect() as admin:
                admin.execute("SELECT pg_terminate_backend(%s)", (db.info.backend_pid,))

    backend._copy = ended
    assert (1, 9) == (backend.add(plain_rows(9, 8), batch="first").epoch, backend.state().shards[0].rows)
    assert 2 == len(tries)
    backend.close()


def test_an_unreachable_server_is_left_alone(servers, name, monkeypatch):
    """After three failures in a row callers are refused at once; after a pause one of them tries."""
    backend = PostgresBackend(servers[0].url, collection=name)
    asked = []
    now = [1000.0]

    def connected():
        asked.append(now[0])
        raise psycopg.OperationalError("connection failed: no")

    pool = backend._link._pool
    pool._give_up()
    monkeypatch.setattr(pool_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(pool_module.time, "sleep", lambda _: None)
    with monkeypatch.context() as away:
        away.setattr(pool, "new", connected)
        for _ in range(5):
            with pytest.raises(BackendUnavailable):
                backend.state()
        before = len(asked)
        assert 3 <= before <= 4
        now[0] += 1.5
        with pytest.raises(BackendUnavailable):
            backend.state()
        assert before + 1 == len(asked)
    now[0] += 1.5
    assert 0 == backend.state().epoch
    backend.close()


def test_names_and_schemas_are_checked(servers, name):
    """A schema of others, an impossible name, and a second collection are refused; an address may name its own."""
    url = servers[0].url
    with servers[0].connect() as admin:
        admin.execute("CREATE SCHEMA somebody")
    with pytest.raises(BackendUnavailable, match="name another schema"):
        PostgresBackend(url, schema="somebody")
    with pytest.raises(InvalidArgument, match="schema"):
        PostgresBackend(url, schema='"; DROP SCHEMA public; --')
    for wrong in ("a\0b", "a\nb", "x" * 201, 7):
        with pytest.raises(InvalidArgument, match="collection"):
            PostgresBackend(url, collection=wrong)
    backend = PostgresBackend(f"{url}&collection={quote(name)}")
    assert name == backend.state().collection
    backend.close()
    with pytest.raises(InvalidArgument, match="the address names the collection"):
        PostgresBackend(f"{url}&collection={quote(name)}", collection="another")


@pytest.mark.parametrize(
    ("version", "is_warned"),
    [("0.8.0", True), ("0.8.6", True), ("0.8.7", False), ("0.8.10", False), ("0.9", False)],
)
def test_a_version_with_a_known_vulnerability_is_warned_of(version, is_warned, caplog):
    """pgvector before 0.8.7 can write beyond a buffer while building an index; before 0.8 it is refused."""
    check_version(version)
    assert is_warned == any(version in record.getMessage() for record in caplog.records)
    with pytest.raises(BackendUnavailable, match="want 0"):
        check_version("0.7.4")
