"""A corpus in PostgreSQL: the laws of a store hold there, too (``conftest.py``), and several processes may write."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag.errors import BackendUnavailable, CaragError, CorruptFile, InvalidArgument
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement
from carag.store.postgres import PostgresStore, set_up
from tests.sharing import ROLE, SharedServer
from tests.store.filings import a_filing, contents, put, some_chunks, some_vectors
from tests.store.test_store_file import LATER

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path("here/shared.url")


@pytest.fixture
def schema(sharing: SharedServer) -> str:
    return sharing.a_corpus()


@pytest.fixture
def two(sharing: SharedServer, schema: str) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """One store, opened twice, as by two processes."""
    with sharing.opened(schema, HERE, own="one") as one, sharing.opened(schema, HERE, own="two") as other:
        yield one, other


def test_what_one_writes_the_other_reads_next(two: tuple[PostgresStore, PostgresStore]) -> None:
    """A label that is closed is closed for the next statement of every reader."""
    one, other = two
    for n in range(50):
        writer, reader = (one, other) if n % 2 else (other, one)
        (key,) = put(writer, a_filing(content_hash=f"{n}"), f"text {n}")
        assert reader.known() == writer.known()
        assert reader.labels.open().tolist() == [key]
        assert [chunk.text for chunk in reader.chunks([key])] == [f"text {n}"]


@pytest.mark.parametrize("version", [3, 4])
def test_setting_up_again_adds_what_a_store_of_an_earlier_schema_lacks(
    sharing: SharedServer, schema: str, version: int
) -> None:
    """What it holds stays, it does not open before, and its account may still delete nothing."""
    with sharing.opened(schema, HERE) as store:
        put(store, a_filing(), "text")
        was = contents(store)
    lacking = LATER if version == 3 else ("erased", "erased_labels")
    dropped = ", ".join(f"{schema}.{table}" for table in lacking)
    sharing.alter(
        f"DROP TABLE {dropped}", f"COMMENT ON SCHEMA {schema} IS 'corpus of CARAG, schema {version}'"
    )
    with pytest.raises(CorruptFile, match="carag share --admin"):
        sharing.opened(schema, HERE)
    with sharing.admin() as db:
        set_up(db, schema, ROLE)
    with sharing.opened(schema, HERE) as store:
        assert contents(store) == was
        store.groups.import_(GroupImport([GroupStatement("group:a", {"user:ana": ALWAYS})]))
        assert store.groups.held_by(["user:ana"], 0) == {"user:ana", "group:a"}
        assert store.erasures.last() == -1
        with pytest.raises(InvalidArgument, match="may not erase"), store.administered(None):
            pass


def test_groups_that_one_imports_hold_for_the_other_at_once(two: tuple[PostgresStore, PostgresStore]) -> None:
    """In both directions; nothing cached outlives an import."""
    one, other = two
    for n in range(6):
        writer, reader = (one, other) if n % 2 else (other, one)
        writer.groups.import_(GroupImport([GroupStatement("group:a", {f"user:{n}": ALWAYS})]))
        for m in range(n + 1):
            assert ("group:a" in reader.groups.held_by([f"user:{m}"], 0)) == (m == n)


def test_many_writers_lose_nothing(two: tuple[PostgresStore, PostgresStore]) -> None:
    """Each filing has its passages, keys are given once, and no two changes are known at one instant."""

    def write(store: PostgresStore, name: str) -> None:
        for n in range(20):
            put(store, a_filing(f"{name}-{n}"), "first", "second")

    threads = [
        threading.Thread(target=write, args=(store, f"{at}{twin}"))
        for at, store in enumerate(two)
        for twin in "ab"
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert two[0].documents.counts().filings == 80
    assert two[1].labels.open().tolist() == list(range(160))
    assert two[0].epoch == 80


def test_a_reader_does_not_wait_for_a_writer(two: tuple[PostgresStore, PostgresStore]) -> None:
    """It sees what was there before, and all of the transaction once that has ended."""
    one, other = two
    put(one, a_filing("one"), "first")
    with one.writing() as transaction:
        transaction.put([(a_filing("two"), some_chunks("second"))], some_vectors(1))
        transaction.relabel()
        assert other.documents.counts().filings == 1
        found: list[int] = []
        reader = threading.Thread(target=lambda: found.append(one.documents.counts().filings))
        reader.start()
        reader.join(10)
        assert found == [1]  # another thread of the writer's own process
        assert one.documents.counts().filings == 2
    assert other.documents.counts().filings == 2


def test_notes_of_a_process_s_own_files_are_its_own(two: tuple[PostgresStore, PostgresStore]) -> None:
    """The others are for all."""
    one, other = two
    one.meta_update({one.own_note("index_header"): "ab", "embedder": "wordllama"})
    assert other.meta_get(other.own_note("index_header")) is None
    assert (other.meta_get("embedder"), one.meta_get(one.own_note("index_header"))) == ("wordllama", "ab")


def test_a_turn_is_one_process_s(two: tuple[PostgresStore, PostgresStore]) -> None:
    """The second process waits until the first is done, and a thread may take its own turn again."""
    one, other = two
    said: list[str] = []

    def second() -> None:
        with other.turn():
            said.append("second")

    waiting = threading.Thread(target=second)
    with one.turn(), one.turn():
        waiting.start()
        waiting.join(0.3)
        said.append("first")
    waiting.join(10)
    assert said == ["first", "second"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM labels",
        "UPDATE chunks SET text = ''",
        "UPDATE labels SET word = 0",
        "DELETE FROM meta",
        "INSERT INTO erased VALUES (1, '', 1, '', 1)",
        "DELETE FROM erased_labels",
        "DROP TABLE vectors",
        "TRUNCATE changes",
    ],
)
def test_the_account_can_destroy_nothing(sharing: SharedServer, schema: str, statement: str) -> None:
    """Not even with statements of its own."""
    import psycopg

    with sharing.connect() as db:
        db.execute(f"SET search_path TO {schema}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(statement)


@pytest.mark.parametrize("change", ["GRANT DELETE ON {}.labels TO {}", "ALTER TABLE {}.chunks OWNER TO {}"])
def test_an_account_that_could_is_refused(sharing: SharedServer, schema: str, change: str) -> None:
    """Closed by default: it is not trusted not to."""
    sharing.alter(change.format(schema, ROLE))
    with pytest.raises(CaragError, match="may delete or alter what is in"):
        sharing.opened(schema, HERE)


def test_what_is_no_store_is_refused(sharing: SharedServer) -> None:
    """A schema that is not there, and another's."""
    with pytest.raises(CorruptFile, match="holds 'nothing'"):
        sharing.opened("nowhere", HERE)
    with sharing.admin() as db, pytest.raises(CorruptFile, match="name another"):
        set_up(db, "public", ROLE)


def test_a_lost_server_is_told_and_found_again(sharing: SharedServer, schema: str) -> None:
    """A query meanwhile gets an error that says so, and nothing partial."""
    with sharing.opened(schema, HERE) as store:
        put(store, a_filing("one"), "first")
        end = (
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE usename = 'carag_app' AND datname = current_database()"
        )
        assert sharing.alter(end)
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            store.documents.counts()
        assert store.documents.counts().filings == 1
        assert sharing.alter(end)
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            put(store, a_filing("two"), "second")
        put(store, a_filing("two"), "second")
        assert store.documents.counts().filings == 2
    with pytest.raises(CaragError, match="is closed"):
        store.documents.counts()
