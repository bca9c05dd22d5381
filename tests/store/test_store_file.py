"""The store's file: private, whole after any kill, closed to other files, and shared by threads and readers."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.errors import CaragError, CorruptFile, InvalidArgument, StoreLocked
from carag.policy import Mask, Policy, Where
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement
from carag.store._entity_sets import FIRST_SET
from carag.store._schema import PAGE_BYTES
from carag.store.store import CorpusStore
from tests.store.filings import DIM, a_filing, contents, put, some_chunks, some_vectors
from tests.warm import Child

if TYPE_CHECKING:
    from pathlib import Path


def test_the_file_is_private(store: CorpusStore) -> None:
    """Only the owner may read text, log and shared memory."""
    put(store, a_filing(), "text")
    modes = {name.name: stat.S_IMODE(name.stat().st_mode) for name in store.path.parent.iterdir()}
    assert {"corpus.db": 0o600, "corpus.db-wal": 0o600, "corpus.db-shm": 0o600} == modes


def test_a_store_opens_again(tmp_path: Path) -> None:
    """Closing twice is fine, a closed store refuses, and the next opening finds everything."""
    path = tmp_path / "a ?#% store.db"
    store = CorpusStore.open(path)
    put(store, a_filing(), "text")
    store.close()
    store.close()
    for read in (
        lambda: store.epoch,
        store.labels.open,
        lambda: store.labels.rows([0]),
        lambda: put(store, a_filing()),
    ):
        with pytest.raises(InvalidArgument, match="closed"):
            read()
    with CorpusStore.open(path, create=False) as again:
        assert (1, DIM) == (again.epoch, again.dim)
        assert "text" == again.chunks([0])[0].text


def test_a_missing_store_is_not_made_unasked(tmp_path: Path) -> None:
    """Reading the wrong path does not leave an empty store there."""
    with pytest.raises(InvalidArgument, match="no store"):
        CorpusStore.open(tmp_path / "corpus.db", create=False)
    with pytest.raises(CaragError, match="cannot open"):
        CorpusStore.open(tmp_path / "missing" / "corpus.db")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(84), os.urandom(5000)])
def test_no_other_file_is_taken_for_a_store(tmp_path: Path, content: bytes) -> None:
    """Short, empty and random files are refused and left alone."""
    path = tmp_path / "corpus.db"
    path.write_bytes(content)
    with pytest.raises(CorruptFile):
        CorpusStore.open(path, create=False)
    assert content == path.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 6",
        "CREATE TABLE extra (x)",
        "CREATE TRIGGER spy AFTER INSERT ON labels BEGIN UPDATE labels SET word = 0; END",
        "DROP VIEW current_filings",
        "DROP INDEX one_current_version",
    ],
)
def test_a_file_that_is_not_exactly_a_store_is_refused(tmp_path: Path, change: str) -> None:
    """Another program's file, another version, a missing table or an added trigger."""
    path = tmp_path / "corpus.db"
    CorpusStore.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(CorruptFile):
        CorpusStore.open(path)


LATER = (
    *("erased_labels", "erased"),
    *("label_audiences", "document_audiences", "principals", "audiences"),
    *("memberships", "groups", "group_changes"),
)
"""Tables that a store of version 3 does not have."""
WITHOUT_GROUPS = [f"DROP TABLE {table}" for table in LATER]
VERSION_1 = """
    CREATE TABLE entity_sets (
        number INTEGER PRIMARY KEY CHECK (number BETWEEN 0x80000000 AND 0xFFFFFFFF),
        ciks TEXT NOT NULL UNIQUE           -- JSON, ascending; no row is ever changed or deleted
    ) STRICT"""


def as_version_1(path: Path, *more: str) -> None:
    """Put a store back to the tables of release 0.2.0."""
    connection = sqlite3.connect(path)
    sets = connection.execute("SELECT number, ciks FROM entity_sets").fetchall()
    connection.execute("DROP TABLE entity_sets")
    connection.execute(VERSION_1)
    connection.executemany("INSERT INTO entity_sets VALUES (?, ?)", sets)
    for statement in (*WITHOUT_GROUPS, "DROP TABLE embedded", "PRAGMA user_version = 1", *more):
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_store_of_version_1_is_brought_up_with_all_it_holds(tmp_path: Path) -> None:
    """Its sets keep their numbers, and new ones stand beside them."""
    path = tmp_path / "corpus.db"
    denying = Policy(Mask(), deny_entities=[8])
    with CorpusStore.open(path) as store:
        of_two = [replace(one, subjects=(7, 8)) for one in some_chunks("two")]
        store.put(a_filing(), of_two, some_vectors(1))
        before = store.chunk("0000000001-25-000001:00000"), store.expanded(denying, Where())
    as_version_1(path)
    with CorpusStore.open(path) as store:
        assert before == (store.chunk("0000000001-25-000001:00000"), store.expanded(denying, Where()))
        said = [replace(one, subjects=(7, 8), metadata={"year": 2024}) for one in some_chunks("said")]
        store.put(a_filing("a"), said, some_vectors(1))
        numbers = [store.chunk(one).entity for one in ("0000000001-25-000001:00000", "a:00000")]
    assert numbers == [FIRST_SET, FIRST_SET + 1]


def test_a_store_of_version_2_has_no_vector_to_take_until_it_embeds(tmp_path: Path) -> None:
    """The texts of its vectors were not kept, and a heading may have changed since; so none of them is reused."""
    path, hashes = tmp_path / "corpus.db", [bytes([n]) * 32 for n in range(2)]
    with CorpusStore.open(path) as store:
        store.put(a_filing(), some_chunks("one"), some_vectors(1))
    with closing(sqlite3.connect(path)) as connection:
        for statement in (*WITHOUT_GROUPS, "DROP TABLE embedded", "PRAGMA user_version = 2"):
            connection.execute(statement)
    with CorpusStore.open(path) as store:
        assert {} == store.vectors_of(hashes)
        with store.writing() as transaction:
            transaction.put([(a_filing("b"), some_chunks("two"))], some_vectors(1), embedded=hashes[:1])
            transaction.relabel()
        (found,) = store.vectors_of(hashes).items()
        assert found[0] == hashes[0]
        assert np.array_equal(found[1], some_vectors(1)[0])


def test_a_store_of_version_3_has_no_groups_until_they_are_imported(tmp_path: Path) -> None:
    """What it holds stays."""
    path = tmp_path / "corpus.db"
    with CorpusStore.open(path) as store:
        put(store, a_filing(), "text")
        was = contents(store)
    with closing(sqlite3.connect(path)) as connection:
        for statement in (*WITHOUT_GROUPS, "PRAGMA user_version = 3"):
            connection.execute(statement)
    with CorpusStore.open(path) as store:
        assert contents(store) == was
        store.groups.import_(GroupImport([GroupStatement("group:a", {"user:ana": ALWAYS})]))
        assert store.groups.held_by(["user:ana"], 0) == {"user:ana", "group:a"}


def test_a_store_of_version_4_has_erased_nothing_yet(tmp_path: Path) -> None:
    """What it holds stays, and can be erased from then on."""
    path = tmp_path / "corpus.db"
    with CorpusStore.open(path) as store:
        put(store, a_filing(), "text")
        before = contents(store)
    with closing(sqlite3.connect(path)) as connection:
        for statement in ("DROP TABLE erased_labels", "DROP TABLE erased", "PRAGMA user_version = 4"):
            connection.execute(statement)
    with CorpusStore.open(path) as store:
        assert contents(store) == before
        assert store.erasures.last() == -1


def test_a_store_of_version_1_with_tables_of_its_own_stays_as_it_is(tmp_path: Path) -> None:
    """No version has a trigger: nothing is upgraded."""
    path = tmp_path / "corpus.db"
    CorpusStore.open(path).close()
    as_version_1(path, "CREATE TRIGGER spy AFTER INSERT ON labels BEGIN UPDATE labels SET word = 0; END")
    for _ in range(2):
        with pytest.raises(CorruptFile, match="triggers that do not belong"):
            CorpusStore.open(path)
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE chunks SET text = 'forged'",
        "UPDATE chunks SET text_sha256 = x'00'",
        "UPDATE chunks SET text = CAST(x'ff' AS TEXT)",
        "UPDATE filings SET facts = '{'",
        "UPDATE vectors SET vector = x'000000' WHERE key = 1",
        "UPDATE labels SET causes = '['",
    ],
)
def test_a_change_behind_our_back_is_noticed(store: CorpusStore, change: str) -> None:
    """Text is checked against its hash before it is returned; JSON and vectors against their form."""
    put(store, a_filing("one"), "text", "more")
    connection = sqlite3.connect(store.path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(CorruptFile):
        _ = store.chunks([0]), store.documents.document("one"), store.labels.rows([0, 1])


def test_a_damaged_page_is_reported(tmp_path: Path) -> None:
    """Zeroes in the middle of the file are damage, not data."""
    path = tmp_path / "corpus.db"
    with CorpusStore.open(path) as store:
        put(store, a_filing(), *["x" * 900] * 90)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(bytes(size - PAGE_BYTES))
    with pytest.raises(CorruptFile), CorpusStore.open(path) as damaged:
        damaged.chunks(range(90))


def test_two_writers_exclude_each_other(store: CorpusStore) -> None:
    """While one transaction is open another writer is told so; readers are not disturbed."""
    put(store, a_filing("one"), "text")
    with CorpusStore.open(store.path, timeout=0) as other, store._writing():
        with pytest.raises(StoreLocked):
            put(other, a_filing("two"), "text")
        assert "text" == other.chunk("one:00000").text


def test_a_stream_is_not_disturbed_by_writes(store: CorpusStore) -> None:
    """A long read sees the store as it was when it began."""
    put(store, a_filing("one"), "a", "b", "c")
    stream = store.labels.snapshot()
    first = next(stream)
    put(store, a_filing("one"), "d")
    assert ["one:00000", "one:00001", "one:00002"] == [first[0], *(row[0] for row in stream)]
    assert ["one.v2:00000"] == [row[0] for row in store.labels.snapshot()]
    assert 3 == len(list(store.labels.snapshot(known_at=store.known() - 1)))


def test_threads_may_share_a_store(store: CorpusStore) -> None:
    """Concurrent puts and reads lose nothing."""

    def work(n: int) -> None:
        for m in range(10):
            put(store, a_filing(f"{n}-{m}"), "a", "b")
            store.labels.rows(store.labels.open())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (40, 80) == (store.documents.counts().filings, store.documents.counts().chunks)
    assert list(range(80)) == store.labels.open().tolist()


WRITER = """
import sys
from carag.store.store import CorpusStore
from tests.store.filings import a_filing, some_chunks, some_vectors

with CorpusStore.open(sys.argv[1]) as store:
    first = store.epoch
    for n in range(first, first + 10_000):
        filing = a_filing(f"f{n % 50}", content_hash=str(n))
        store.put(filing, some_chunks(*["x" * 900] * 20), some_vectors(20, 64))
        print(n, flush=True)
"""


def test_a_kill_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """After SIGKILL in the middle of puts: every acknowledged filing is whole, and no other is half there."""
    path = tmp_path / "corpus.db"
    for killed_after in (1, 7, 60, 3):
        with Child(WRITER, path) as writer:
            for _ in range(killed_after):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            rest = writer.stdout.read().split()
        acknowledged = max([acknowledged, *map(int, rest)])
        with CorpusStore.open(path, create=False) as store:
            assert store.epoch - 1 in (acknowledged, acknowledged + 1)
            assert store.documents.content_hash(f"f{(store.epoch - 1) % 50}") == str(store.epoch - 1)
            assert store.epoch * 20 == len(store.labels.rows(np.arange(store.epoch * 20))[1])
            assert len(store.labels.open()) == store.documents.counts().chunks
            assert store.documents.counts().chunks == 20 * min(store.epoch, 50)
