"""The state kept up to date by changes equals the state built from the whole store, and proves every label."""

from __future__ import annotations

import random
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from carag.audit import Label
from carag.audit.tlog.merkle import EMPTY_ROOT
from carag.engine.collection import Collection
from carag.engine.state import StoreState
from carag.errors import CorruptFile
from carag.retrieval import embedder_by_name
from carag.store.store import CorpusStore
from tests.engine.filings import ingest_filings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Clock:
    """Counts up, so that instants can be named."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> tuple[Path, dict[int, bytes]]:
    """Grow a store portion by portion, some of them twice and amended; keep the root of every instant."""
    home = tmp_path_factory.mktemp("store")
    files = sorted(small_corpus.glob("*.txt"))
    random.Random(7).shuffle(files)  # noqa: S311
    roots: dict[int, bytes] = {}
    with CorpusStore.open(home / "corpus.db", clock=Clock()) as store:
        collection = Collection(store, embedder_by_name("wordllama"), home / "index.carag")
        for n in range(6):
            portion = home / f"portion-{n}"
            portion.mkdir()
            for file in files[n::6]:
                shutil.copy(file, portion)
            if n:  # a filing of an earlier portion, changed: its labels close
                changed = next((home / "portion-0").glob("*.txt")).name
                text = (
                    (home / "portion-0" / changed)
                    .read_text("utf-8")
                    .replace("</TEXT>", f"Note {n}.\n</TEXT>")
                )
                (portion / changed).write_text(text, "utf-8")
            ingest_filings(collection, portion)
            roots[store.known()] = collection.state.root
        collection.close()
    return home, roots


@pytest.fixture
def store(grown: tuple[Path, dict[int, bytes]], tmp_path: Path) -> Iterator[CorpusStore]:
    for name in ("corpus.db", "index.state"):
        shutil.copy(grown[0] / name, tmp_path)
    with CorpusStore.open(tmp_path / "corpus.db") as opened:
        yield opened


def refreshed(store: CorpusStore, path: Path) -> StoreState:
    snapshot = StoreState(store, path)
    snapshot.refresh()
    return snapshot


def test_step_by_step_is_the_same_as_all_at_once(
    store: CorpusStore, grown: tuple[Path, dict[int, bytes]], tmp_path: Path
) -> None:
    """Six runs with changed filings end in the state that one pass over the store gives."""
    roots = list(grown[1].values())
    assert len(set(roots)) == 6
    built = refreshed(store, tmp_path / "again.state")
    kept = refreshed(store, tmp_path / "index.state")
    assert built.root == kept.root == roots[-1]
    built.close()
    kept.close()


def test_every_past_state_comes_back(
    store: CorpusStore, grown: tuple[Path, dict[int, bytes]], tmp_path: Path
) -> None:
    """At each instant, in any order, the root is the one that was named then; in between it is the one before."""
    snapshot = refreshed(store, tmp_path / "index.state")
    instants = list(grown[1])
    for known in random.Random(3).sample(instants, len(instants)):  # noqa: S311
        assert snapshot.root_at(known) == grown[1][known]
        assert snapshot.root_at(known + 1) == grown[1][known]
    assert snapshot.root_at(instants[0] - 1_000_000_000) == EMPTY_ROOT
    snapshot.close()


def test_every_label_is_proved_at_every_instant(
    store: CorpusStore, grown: tuple[Path, dict[int, bytes]], tmp_path: Path
) -> None:
    """A proof of each label that was open then leads to the root of then; closed ones have none."""
    snapshot = refreshed(store, tmp_path / "index.state")
    rows = {known: {Label(*row) for row in store.labels.snapshot(known_at=known)} for known in grown[1]}
    for known, labels in rows.items():
        root, proofs = snapshot.prove(labels, known)
        assert root == grown[1][known]
        assert len(proofs) == len(labels) > 0
        for label, proof in zip(labels, proofs, strict=True):
            assert proof.root(label.chunk, label.text_hash, label.word) == root
            assert (proof.since, proof.until.value) == (label.since, str(label.until))  # type: ignore[union-attr]
    first, *_, last = rows
    closed = rows[first] - rows[last]
    assert closed
    for label in closed:
        with pytest.raises(CorruptFile):
            snapshot.prove([label], last)
    snapshot.close()


def test_a_file_behind_catches_up(
    store: CorpusStore, grown: tuple[Path, dict[int, bytes]], tmp_path: Path
) -> None:
    """Wherever it stands, what changed since is all it takes."""
    start, end = list(grown[1])[2], list(grown[1])[-1]
    changes = [*store.labels.changes(start, end)]
    opened, closed = ({row[1:7] for row in changes if row[0] == is_open} for is_open in (1, 0))
    then, now = (set(store.labels.snapshot(known_at=known)) for known in (start, end))
    assert (opened, closed) == (now - then, then - now)
    assert closed


SPOILT = {
    "its key is another's": "UPDATE note SET value = 'aa' WHERE name = 'placed_by'",
    "it was killed half-way": "UPDATE note SET value = '' WHERE name = 'placed_by'",
    "it names an instant unknown to the store": "UPDATE note SET value = '1700000000000001' WHERE name = 'known'",
    "it is ahead of the store": "UPDATE note SET value = '1900000000000000' WHERE name = 'known'",
}


@pytest.mark.parametrize("statement", SPOILT.values(), ids=SPOILT)
def test_a_file_of_another_store_is_built_again(
    store: CorpusStore, grown: tuple[Path, dict[int, bytes]], tmp_path: Path, statement: str
) -> None:
    """What does not belong to this store and instant is not trusted."""
    with sqlite3.connect(tmp_path / "index.state") as connection:
        connection.execute(statement)
    connection.close()
    snapshot = refreshed(store, tmp_path / "index.state")
    assert snapshot.root == list(grown[1].values())[-1]
    snapshot.close()


def test_each_store_has_its_own_key(grown: tuple[Path, dict[int, bytes]], tmp_path: Path) -> None:
    """The same labels in another store are another state: no one can compare or guess from outside."""
    shutil.copy(grown[0] / "corpus.db", tmp_path)
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        store.meta_set("state_key", "00" * 32)
        snapshot = refreshed(store, tmp_path / "index.state")
        assert snapshot.root not in set(grown[1].values())
        snapshot.close()


def test_a_label_that_differs_from_the_store_s_is_not_proved(store: CorpusStore, tmp_path: Path) -> None:
    """Where search and state disagree about word or text, nothing is proved and so nothing returned."""
    snapshot = refreshed(store, tmp_path / "index.state")
    row = next(iter(store.labels.snapshot()))
    for label in (Label(row[0], row[1], row[2] ^ 1, *row[3:]), Label(row[0], bytes(32), *row[2:])):
        with pytest.raises(CorruptFile, match="another label"):
            snapshot.prove([label], store.known())
    snapshot.close()
