"""What every backend that takes loads must do: rows written block by block become visible all at once, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import LoadingBackend, NativeBackend, Rows, StateRoot, copy_rows, load_rows, state_root
from carag.backends.compiled import admitted_at
from carag.errors import BackendFault, InvalidArgument
from carag.index import Plan
from carag.policy import policy_word
from tests.backends.worlds import EVERYTHING, plain_rows
from tests.warm import Child

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.backends import VectorBackend

DIM, BLOCK = 8, 40
ROWS = plain_rows(200, DIM, bits=1 + np.arange(200) % 3)._replace(
    entities=np.arange(200, dtype=np.uint32) % 7, public_at=np.arange(200, dtype=np.uint32)
)
KEYS = ROWS.keys.tolist()


def part(rows: Rows, begin: int, end: int) -> Rows:
    return Rows(*(column[begin:end] for column in rows))


def blocks(rows: Rows = ROWS, size: int = BLOCK) -> Iterator[Rows]:
    return (part(rows, begin, begin + size) for begin in range(0, len(rows.keys), size))


def seen(backend: VectorBackend) -> set[int]:
    """The keys that a reader finds by search, count, key and state, which must agree."""
    state = backend.state()
    admitted = admitted_at(state.words, EVERYTHING, 1_000, None)
    rows = sum(shard.rows for shard in state.shards)
    read = set(backend.get(range(1_000)).keys.tolist())
    if admitted is None:
        assert (0, set()) == (rows, read)
        return set()
    query = np.full((1, DIM), DIM**-0.5, np.float32)
    found = backend.search(query, 1_000, admitted, plan=Plan.EXACT)
    assert read == set(found.keys[found.keys >= 0].tolist())
    assert len(read) == rows == found.admissible == backend.count(admitted)
    return read


WRITER = """
import sys
from carag.backends import backend_by_url, load_rows
from tests.backends.loads import stream
load_rows(backend_by_url(sys.argv[1]), stream(), batch="load", progress=lambda *done: print(*done, flush=True))
"""
MANY, AT_ONCE = 4_000, 200
"""Rows that a writer in another process loads, and rows per block."""


def stream() -> Iterator[Rows]:
    """Yield many rows, the same each time."""
    return (plain_rows(AT_ONCE, 16, seed=begin, first=begin) for begin in range(0, MANY, AT_ONCE))


def killed_writers(url: str, reader: LoadingBackend, lines: Iterable[int]) -> None:
    """Kill writers of one load, each some blocks after those that it found written, and let the last one finish."""
    positions = [0]
    for blocks_more in lines:
        with Child(WRITER, url) as writer:
            while positions[-1] >= int(writer.stdout.readline().split()[1]):
                pass
            for _ in range(blocks_more):
                writer.stdout.readline()
            writer.kill()
        assert 0 == reader.state().epoch == sum(shard.rows for shard in reader.state().shards)
        positions.append(reader.loaded("load"))
    assert positions == sorted(set(positions))
    assert 1 < positions[-1] < MANY
    with Child(WRITER, url) as writer:
        for _ in writer.stdout:
            pass
        assert 0 == writer.wait()
    root = StateRoot()
    for block in stream():
        root.add(block)
    assert root.hex() == state_root(reader, range(MANY))
    assert (1, MANY) == (reader.state().epoch, sum(shard.rows for shard in reader.state().shards))


class Loads:
    """Derive from it, and define how to make an empty collection, and to connect to it again."""

    def make(self) -> LoadingBackend:
        raise NotImplementedError

    def connect(self, backend: LoadingBackend) -> LoadingBackend:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _closing(self):
        self.made: list[LoadingBackend] = []
        yield
        for one in self.made:
            one.close()

    def new(self) -> LoadingBackend:
        self.made.append(self.make())
        return self.made[-1]

    def another(self, backend: LoadingBackend) -> LoadingBackend:
        self.made.append(self.connect(backend))
        return self.made[-1]

    def begun(self, many: int) -> LoadingBackend:
        """Make a collection with three rows, and a load of which some rows are written."""
        backend = self.new()
        backend.add(plain_rows(3, DIM, first=900), batch="first")
        for begin in range(0, many, BLOCK):
            backend.load(part(ROWS, begin, begin + BLOCK), batch="load", begin=begin, end=begin + BLOCK)
        return backend

    def test_rows_are_seen_all_at_once(self):
        """Not while they are written, but when they are published, at one epoch and by every reader."""
        backend = self.begun(200)
        before, reader = backend.state(), self.another(backend)
        assert ({900, 901, 902}, {900, 901, 902}) == (seen(backend), seen(reader))
        assert 200 == backend.count_loaded("load")
        state = backend.publish("load")
        assert before.epoch + 1 == state.epoch == reader.state().epoch
        assert {*KEYS, 900, 901, 902} == seen(backend) == seen(reader)
        assert sorted({policy_word(bits) for bits in (1, 2, 3)}) == list(state.words)

    def test_rows_of_a_load_are_read_by_their_key_alone(self):
        """To the last bit, without live rows."""
        backend = self.begun(80)
        read = backend.get_loaded([*KEYS, 900], batch="load")
        order = np.argsort(read.keys)
        for given, got in zip(part(ROWS, 0, 80), read, strict=True):
            assert given.tobytes() == got[order].tobytes()

    def test_a_load_goes_on_from_what_is_written_over_another_connection(self):
        """Written rows are not written again; a gap and a partial overlap are refused."""
        backend = self.another(self.begun(80))
        assert 80 == backend.loaded("load")
        backend.load(part(ROWS, 40, 80), batch="load", begin=40, end=80)
        assert (80, 80) == (backend.loaded("load"), backend.count_loaded("load"))
        for begin, end in ((120, 160), (60, 100), (0, 120)):
            with pytest.raises(InvalidArgument, match="80 rows of the load are written"):
                backend.load(part(ROWS, begin, end), batch="load", begin=begin, end=end)
        load_rows(backend, blocks(), batch="load")
        assert {*KEYS, 900, 901, 902} == seen(backend)

    def test_nothing_else_changes_a_collection_meanwhile(self):
        """Neither another load nor a batch can, until the load is published."""
        backend = self.begun(40)
        changes = (
            lambda: backend.add(plain_rows(1, DIM, first=950), batch="more"),
            lambda: backend.relabel([900], [policy_word(2)], batch="word"),
            lambda: backend.delete([901], batch="gone"),
        )
        others = (
            lambda: backend.loaded("other"),
            lambda: backend.load(part(ROWS, 40, 80), batch="other", begin=0, end=40),
            lambda: backend.add(plain_rows(1, DIM, first=950), batch="load"),
        )
        for change in (*changes, *others):
            with pytest.raises(InvalidArgument, match="a load of this collection is open"):
                change()
        assert 40 == backend.loaded("load")
        load_rows(backend, blocks(), batch="load")
        for change in changes:
            change()
        assert {*KEYS, 900, 902, 950} == seen(backend)

    def test_a_discarded_load_leaves_nothing(self):
        """Its name can be used again; later writes to it are refused; discarding again does nothing."""
        backend = self.begun(80)
        backend.unload()
        backend.unload()
        assert {900, 901, 902} == seen(backend)
        for late in (
            lambda: backend.load(part(ROWS, 80, 120), batch="load", begin=80, end=120),
            lambda: backend.publish("load"),
            lambda: backend.count_loaded("load"),
            lambda: backend.get_loaded([1], batch="load"),
        ):
            with pytest.raises(InvalidArgument, match="no load of this name is open"):
                late()
        assert 0 == backend.loaded("load")
        load_rows(backend, blocks(), batch="load")
        assert {*KEYS, 900, 901, 902} == seen(backend)

    def test_a_load_that_is_published_is_done(self):
        """Repeating it on another connection writes nothing, and requests no block."""
        backend = self.begun(200)
        state = backend.publish("load")
        other = self.another(backend)
        assert other.loaded("load") is None
        other.load(part(ROWS, 0, 40), batch="load", begin=0, end=40)
        assert state == other.publish("load") == load_rows(other, iter(()), batch="load")

    def test_a_key_in_use_is_refused(self):
        """Even if the rest of the block is new."""
        backend = self.begun(0)
        with pytest.raises(InvalidArgument, match="in use"):
            load_rows(backend, [plain_rows(3, DIM, first=899)], batch="load")
        backend.unload()
        assert {900, 901, 902} == seen(backend)

    def test_a_key_that_comes_twice_in_a_stream_is_never_published(self):
        """It is refused when it is seen, or when rows are counted at the end."""
        backend = self.new()
        with pytest.raises(
            (InvalidArgument, BackendFault), match=r"in use|came twice|a duplicate|fewer rows"
        ):
            load_rows(backend, [part(ROWS, 0, 40), part(ROWS, 39, 80)], batch="load")
        assert set() == seen(backend)

    def test_a_copy_and_the_copy_of_it_have_one_state_root(self):
        """From the native index and back."""
        source, target, back = NativeBackend(DIM), self.new(), NativeBackend(DIM)
        source.add(ROWS, batch="first")
        there, here = copy_rows(source, target, KEYS), copy_rows(target, back, KEYS[::-1])
        assert state_root(source, KEYS) == there.root == here.root == state_root(back, KEYS)
        assert set(KEYS) == seen(target) == seen(back)
        assert there == copy_rows(source, target, KEYS)
