"""What an erasure leaves in places where rows were, or are copied to, is removed or named; and a move keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from carag.audit import Verdict, verify_receipt
from carag.engine import sharing as moving
from carag.engine.migration import copy_backend, switch_backend
from tests.backends.in_memory import MemoryBackend, Store
from tests.engine.documents import document
from tests.engine.test_backend import REVIEW, found, opened
from tests.remains import as_stored, remains

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sharing import SharedServer

WHO = {"basis": "GDPR_17_1", "by": "dpo", "approver": "cco"}


class Kept(MemoryBackend):
    """Rows that stay when a command has closed what it opened."""

    def __init__(self, store: Store, collection: str) -> None:
        super().__init__(store)
        self._collection = collection

    def vectors(self) -> set[bytes]:
        return {version[1].tobytes() for version in self.store.versions.values()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with opened(tmp_path / "store") as engine:
        engine.add([document(number) for number in range(6)])
    return tmp_path / "store"


def vectors(home: Path, backend: Any, name: str) -> set[bytes]:
    with opened(home, backend) as engine:
        labels = engine._collection.store.labels
        return {one for row in labels.rows(labels.of_document(name))[1] for one in as_stored(row)}


def erase(home: Path, backend: Any, name: str) -> tuple[str, ...]:
    with opened(home, backend) as engine:
        return engine.erase([name], **WHO).beyond


def test_files_of_rows_that_are_not_searched_are_removed(home: Path) -> None:
    """A copy, and the index from before the rows were in a backend, hold vectors; the store makes both again."""
    there = Kept(Store(), "one")
    wanted = vectors(home, "native", "d/1")
    copy_backend(home, "native", there)
    switch_backend(home, there)
    copy_backend(home, there, "native")
    for name in ("index.carag", "index.copy"):
        assert remains(wanted, home / name)
    assert "backend-copy" not in erase(home, there, "d/1")
    assert not remains(wanted, home)
    assert not wanted & there.vectors()
    assert not {"index.carag", "index.copy"} & {one.name for one in home.iterdir()}
    copy_backend(home, there, "native")
    switch_backend(home, "native")
    with opened(home, "native") as engine:
        engine._collection.check()


@pytest.mark.parametrize("is_removed_first", [False, True])
def test_a_copy_in_a_backend_is_named_and_holds_nothing_once_it_is_searched(
    home: Path, is_removed_first: bool
) -> None:
    """An erasure cannot reach it without its address: the record says so, and the way back takes it out."""
    there = Kept(Store(), "one")
    wanted = vectors(home, "native", "d/1")
    copy_backend(home, "native", there)
    if is_removed_first:
        with opened(home) as engine:
            engine.remove(["d/1"])
        copy_backend(home, "native", there)  # which has it as a version that ended
    assert "backend-copy" in erase(home, "native", "d/1")
    assert wanted & there.vectors()
    if not is_removed_first:
        copy_backend(home, "native", there)
    switch_backend(home, there)
    with opened(home, there) as engine:
        assert len(found(engine, REVIEW)) == 5
    assert not wanted & there.vectors()


def test_a_backend_that_is_searched_again_is_purged(home: Path) -> None:
    """It was filled, then left for the native index, and something was erased meanwhile."""
    there = Kept(Store(), "one")
    with opened(home, there):
        pass
    wanted = vectors(home, "native", "d/1")
    assert "backend-copy" in erase(home, "native", "d/1")
    assert wanted & there.vectors()
    with opened(home, there):
        pass
    assert not wanted & there.vectors()


def test_a_store_with_erased_documents_moves_to_a_server(
    home: Path, tmp_path: Path, sharing: SharedServer
) -> None:
    """What is known about them moves along: answers about the past verify, and the next erasure knows the first."""
    with opened(home) as engine:
        before = engine.retrieve("When do branches report?", REVIEW, 50)
        asked = before.receipt
        done = engine.erase(["d/1"], **WHO).receipts[0].seq
        digests = [one.digest for one in engine.log.record(asked.seq).hits]
        known = engine._collection.store.erasures.of_digests(digests)
        root = engine._collection.state.root
    assert {one.record for one in known.values()} == {done}
    schema = sharing.a_schema()
    moving.move(home, tmp_path / "new", sharing.address(schema), admin=sharing.url)
    with opened(tmp_path / "new") as engine:
        store = engine._collection.store
        assert store.erasures.of_digests(digests) == known
        assert (store.erasures.last(), engine._collection.state.root) == (done, root)
        engine._collection.check()
        assert verify_receipt(asked.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        engine.erase(["d/2"], admin=sharing.url, **WHO)
        assert len(found(engine, REVIEW)) == 4
