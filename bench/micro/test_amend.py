"""What it costs to learn that a filing was amended: rows touched and time, in the store and in the index.

The store has five hundred companies of two filings and forty passages each; every round amends the report of another.

::

    pytest bench/micro/test_amend.py --benchmark-only -o testpaths=bench
"""

from __future__ import annotations

from datetime import date
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from carag.engine.collection import Collection, no_progress
from carag.engine.state import StoreState
from carag.index import Index
from carag.policy import VERSION_WORD, as_of_minutes
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.metadata_only import histories
from carag.store.store import CorpusStore
from carag.store.values import StoredChunk, StoredFiling

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPANIES: Final = 500
PASSAGES: Final = 20
DIM: Final = 256
START: Final = as_of_minutes(date(2024, 3, 1))


class _Vectors:
    """Stands where the embedder does; nothing is embedded here."""

    name, dim, fingerprint, remote = "none", DIM, "none", False

    def embed_documents(self, texts: Any) -> Any:
        raise NotImplementedError

    def embed_query(self, text: Any) -> Any:
        raise NotImplementedError


def _put(store: CorpusStore, cik: int, form: str, minute: int, rng: np.random.Generator) -> Any:
    base = form.removesuffix("/A")
    facts = FilingFacts(
        accession_number=f"{cik:010}-{form}",
        form=base,
        is_amendment=form.endswith("/A"),
        ciks=(cik,),
        period=date(2023, 12, 31),
        since=minute,
        public_at=minute,
        statements=True,
        certified=form.endswith("/A"),
    )
    filing = StoredFiling(
        accession_number=facts.accession_number,
        form=form,
        company=f"Company {cik}",
        filed="2024-03-01",
        content_hash=form,
        facts=facts.to_json(),
        causes={},
        public_at_source="acceptance",
        ciks=(cik,),
    )
    chunk = StoredChunk(
        document=form,
        start=0,
        end=900,
        text="x" * 900,
        word=VERSION_WORD | 1,
        public_at=minute,
        subjects=(cik,),
    )
    vectors = rng.standard_normal((PASSAGES, DIM)).astype(np.float32)
    with store.writing() as transaction:
        transaction.put([(filing, [chunk] * PASSAGES)], vectors)
        return transaction.relabel(histories(transaction.facts()))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CorpusStore, Collection]]:
    """Build a store and its index, before any amendment."""
    home: Path = tmp_path_factory.mktemp("amend")
    rng = np.random.default_rng(0)
    with CorpusStore.open(home / "corpus.db") as store:
        for cik in range(1, COMPANIES + 1):
            for form in ("10-K", "8-K"):
                _put(store, cik, form, START, rng)
        collection = Collection(store, _Vectors(), home / "index.carag")
        yield store, collection
        collection.close()


_next_company: Final = count(1)


def test_amend_in_the_store(benchmark: Any, world: tuple[CorpusStore, Collection]) -> None:
    """One transaction, synced: the amendment's twenty passages, and two labels for one of its predecessor's twenty."""
    store, _ = world
    rng = np.random.default_rng(1)
    changes: list[Any] = []

    def amend() -> None:
        changes.append(_put(store, next(_next_company), "10-K/A", START + 1440, rng))

    benchmark.pedantic(amend, rounds=50)
    touched = {(change.closed, change.opened, change.relabelled) for change in changes}
    assert touched == {(PASSAGES, 3 * PASSAGES, PASSAGES)}
    benchmark.extra_info["rows closed, opened"] = (PASSAGES, 3 * PASSAGES)


def test_amend_in_the_index(benchmark: Any, world: tuple[CorpusStore, Collection]) -> None:
    """The same in the live index: twenty rows deleted and sixty added among forty thousand; its file comes later."""
    store, collection = world
    rng = np.random.default_rng(2)
    collection.refresh(no_progress)

    def learn() -> None:
        _put(store, next(_next_company), "10-K/A", START + 1440, rng)

    def follow() -> None:
        # Without the snapshot, which every run takes once.
        collection._follow(store.known(), no_progress)  # noqa: SLF001

    benchmark.pedantic(follow, setup=learn, rounds=50)
    assert isinstance(collection.index, Index)
    assert collection.index.keys().tolist() == store.open_labels().tolist()


def test_snapshot(benchmark: Any, world: tuple[CorpusStore, Collection]) -> None:
    """The index state after one more filing: its own rows' paths, among forty thousand."""
    store, collection = world
    rng = np.random.default_rng(3)
    collection.state.refresh()

    def learn() -> None:
        _put(store, next(_next_company), "10-K/A", START + 1440, rng)

    benchmark.pedantic(collection.state.refresh, setup=learn, rounds=50)
    assert collection.state.known_at == store.known()


def test_snapshot_anew(benchmark: Any, world: tuple[CorpusStore, Collection], tmp_path: Path) -> None:
    """The same from nothing, as when its file was deleted: this alone grows with the store."""
    store, collection = world
    made: list[StoreState] = []

    def build() -> None:
        made.append(StoreState(store, tmp_path / f"{len(made)}.state"))
        made[-1].refresh()

    benchmark.pedantic(build, rounds=3)
    collection.state.refresh()
    assert {one.root for one in made} == {collection.state.root}
