"""Streams and copies: a killed run leaves nothing visible, the next one continues, and the state root is equal."""

from __future__ import annotations

import hashlib
import struct
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.backends import (
    NativeBackend,
    PostgresBackend,
    Rows,
    StateRoot,
    copy_rows,
    load_rows,
    rows_of,
    state_root,
)
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.policy import policy_word
from tests.backends.in_memory import MemoryBackend, Store
from tests.backends.loads import DIM, KEYS, ROWS, blocks, killed_writers, part, seen
from tests.backends.worlds import drawn_world
from tests.sizes import SIZE

FEW = part(ROWS, 0, 12)


def filled(rows: Rows = ROWS) -> NativeBackend:
    backend = NativeBackend(rows.vectors.shape[1])
    backend.add(rows, batch="first")
    return backend


# -- the state root


def test_the_state_root_is_the_documented_one():
    """Written by hand: a prefix, then key, word, times, entity, length and coordinates, all big-endian."""
    word = policy_word(5)
    rows = rows_of(
        [[0, -1], [1, 0]], [word, word], [7, 2], public_at=[3, 4], expires_at=[8, 9], entities=[1, 0]
    )
    text = b"carag rows 1\n" + b"".join(
        bytes.fromhex(one)
        for one in (
            f"{2:016x} {word:08x} {4:08x} {9:08x} {0:08x} {2:08x} 3f800000 00000000",
            f"{7:016x} {word:08x} {3:08x} {8:08x} {1:08x} {2:08x} 00000000 bf800000",
        )
    )
    assert hashlib.sha256(text).hexdigest() == state_root(filled(rows), [2, 7])


def read_back(text, dim):
    """Read what a state root hashes, after its prefix: key, four numbers, audience and vector of each row."""
    at, found = len(b"carag rows 1\n"), []
    while at < len(text):
        *fixed, length = struct.unpack_from(">Q5I", text, at)
        at += struct.calcsize(">Q5I")
        (audience,) = struct.unpack_from(">I", text, at) if length >> 31 else (0,)
        at += 4 * (length >> 31)
        assert (length & ~(1 << 31)) == dim
        found.append((*fixed, audience, text[at : at + 4 * dim]))
        at += 4 * dim
    return found


@pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")
@given(st.integers(0, 2**32))
def test_what_a_state_root_hashes_can_be_read_in_one_way(seed):
    """Every row comes back, whatever its audience; only a row that is not for everybody has one in the text."""
    rows, root = drawn_world(np.random.default_rng(seed)).rows, StateRoot()
    root._hash = Heard()
    root.add(rows)
    keys, vectors, *others = (column[np.argsort(rows.keys)] for column in rows)
    columns = (keys, *others, vectors.astype(">f4"))
    expected = [(*map(int, numbers), vector.tobytes()) for *numbers, vector in zip(*columns, strict=True)]
    assert read_back(root._hash.text, rows.vectors.shape[1]) == expected


class Heard:
    """Keeps what it should hash."""

    def __init__(self):
        self.text = b"carag rows 1\n"

    def update(self, more):
        self.text += more


@pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")
@given(st.integers(0, 2**32), st.integers(1, 50), st.integers(1, 50))
def test_the_state_root_depends_on_the_rows_alone(seed, size, other):
    """Not on the order within a block, or the size of blocks."""
    rng = np.random.default_rng(seed)
    rows = drawn_world(rng).rows
    order = np.argsort(rows.keys)
    roots = set()
    for step in (size, other):
        root = StateRoot()
        for begin in range(0, len(order), step):
            some = rng.permutation(order[begin : begin + step])
            root.add(Rows(*(column[some] for column in rows)))
        roots.add(root.hex())
    assert {state_root(filled(rows), rows.keys)} == roots


@pytest.mark.parametrize("column", Rows._fields)
def test_any_change_changes_the_root(column):
    """A key, one bit of a vector, a word, a time, an entity, an audience."""
    changed = {name: values.copy() for name, values in FEW._asdict().items()}
    bits = changed[column].view(np.uint32) if column == "vectors" else changed[column]
    bits[-1] ^= 1 if column != "keys" else 1 << 40
    roots = []
    for rows in (FEW, Rows(**changed)):
        root = StateRoot()
        root.add(rows)
        roots.append(root.hex())
    assert roots[0] != roots[1]


def test_a_root_needs_ascending_keys_of_all_rows():
    """A repeated or late key, or another number of keys than of rows, is refused."""
    root = StateRoot()
    root.add(part(ROWS, 5, 10))
    for late in (part(ROWS, 9, 12), part(ROWS, 0, 3)):
        with pytest.raises(InvalidArgument, match="ascending"):
            root.add(late)
    with pytest.raises(InvalidArgument, match="holds 200 rows, but 199 keys"):
        state_root(filled(), KEYS[1:])
    with pytest.raises(BackendFault, match="returned 199"):
        state_root(filled(), [*KEYS[1:], 777])


# -- copies that are killed


def killed_at(store: Store, death: float, run) -> bool:
    """Run until the engine dies before a write or, with a half added, after it; return whether it did."""
    store.writes, store.dies_at = 0, death
    try:
        run()
    except BackendUnavailable:
        return True
    finally:
        store.dies_at = None
    return False


def deaths(run_on) -> list[float]:
    store = Store()
    run_on(store)
    if SIZE == "quick":
        return [*range(1, store.writes + 1), store.writes + 0.5]
    return [write + half for write in range(1, store.writes + 1) for half in (0, 0.5)]


def copied(store: Store, rows: Rows = FEW) -> str:
    return copy_rows(filled(rows), MemoryBackend(store), rows.keys).root


def test_a_copy_is_seen_whole_or_not_at_all_wherever_it_is_killed():
    """The next run continues to the same root, without duplicates."""
    root = state_root(filled(FEW), FEW.keys)
    for death in deaths(copied):
        store = Store()
        assert killed_at(store, death, lambda: copied(store))  # noqa: B023 - at once
        assert seen(MemoryBackend(store)) in (set(), {*FEW.keys.tolist()}), death
        assert root == copied(store)
        assert {*FEW.keys.tolist()} == seen(MemoryBackend(store)), death
        assert len(FEW.keys) == len(store.versions)


class Ended(Exception):
    """The stream is cut off, as if its process had ended."""


def cut(at: int):
    """Yield blocks, and end at a number of rows."""
    for number, block in enumerate(blocks()):
        if number * 40 >= at:
            raise Ended
        yield block


def test_a_load_into_a_file_continues_from_its_last_save(tmp_path, monkeypatch):
    """Saved rows are not written again, the file appears with the last row, and a load can be discarded."""
    monkeypatch.setattr("carag.backends.native._SAVE_ROWS", 50)
    path = tmp_path / "index.carag"

    def opened():
        return NativeBackend(DIM, path=path)

    with pytest.raises(Ended):
        load_rows(opened(), cut(160), batch="load")
    assert not path.exists()
    assert 160 == opened().loaded("load")  # four blocks, saved two at a time
    with pytest.raises(InvalidArgument, match="is open"):
        opened().loaded("another")
    load_rows(opened(), blocks(), batch="load")
    assert [path] == [*tmp_path.iterdir()]
    assert state_root(filled(), KEYS) == state_root(opened(), KEYS)
    with pytest.raises(InvalidArgument, match="holds rows"):
        load_rows(opened(), blocks(), batch="other")
    path.unlink()
    with pytest.raises(Ended):
        load_rows(opened(), cut(160), batch="load")
    opened().unload()
    assert [] == [*tmp_path.iterdir()]


def test_the_load_of_a_killed_writer_is_continued(servers, name):
    """SIGKILL within a block, several times: nothing is visible too early, lost or duplicated."""
    reader = PostgresBackend(servers[0].url, collection=name, dim=16)
    killed_writers(f"{servers[0].url}&collection={quote(name)}", reader, (1, 2, 4))
    reader.close()


def test_a_stream_is_read_no_faster_than_it_is_written():
    """A block is requested when the one before is confirmed."""
    backend, asked = MemoryBackend(Store()), []

    def watched():
        for number, block in enumerate(blocks()):
            asked.append(backend.loaded("load"))
            assert number * 40 == asked[-1]
            yield block

    load_rows(backend, watched(), batch="load")
    assert [0, 40, 80, 120, 160] == asked


# -- what is not the same is refused


def test_blocks_of_another_size_continue_a_load():
    """The rest of a partly written block is written."""
    backend = MemoryBackend(Store())
    with pytest.raises(Ended):
        load_rows(backend, cut(80), batch="load")
    load_rows(backend, blocks(size=33), batch="load")
    assert state_root(filled(), KEYS) == state_root(backend, KEYS)


def test_another_stream_of_the_same_name_is_refused():
    """One that is shorter than what is written, has other rows, or is empty."""
    backend = MemoryBackend(Store())
    with pytest.raises(Ended):
        load_rows(backend, cut(80), batch="load")
    with pytest.raises(InvalidArgument, match="ended after 40 rows, but 80 of it were written"):
        load_rows(backend, [part(ROWS, 0, 40)], batch="load")
    with pytest.raises(BackendFault, match="8 of 8 rows read back"):
        load_rows(backend, [part(ROWS, 100, 140)], batch="load")
    with pytest.raises(InvalidArgument, match="no rows"):
        load_rows(MemoryBackend(Store()), iter(()), batch="load")
    assert set() == seen(backend)


class Losing(MemoryBackend):
    """Damages what is stored once all rows are written."""

    def __init__(self, store, harm):
        super().__init__(store)
        self.harm = harm

    def count_loaded(self, batch):
        self.harm(self.store.versions)
        return super().count_loaded(batch)


def _lost(versions):
    versions.pop(next(iter(versions)), None)


def _other_word(versions):
    at = next(iter(versions))
    versions[at] = (*versions[at][:2], policy_word(77), *versions[at][3:])


def _turned(versions):
    at = next(iter(versions))
    versions[at] = (versions[at][0], -versions[at][1], *versions[at][2:])


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_lost, "11 of 12 written rows"),
        (_other_word, "of 12 written rows|1 of 12 rows"),
        (_turned, "1 of 12 rows"),
    ],
)
def test_a_target_that_lost_or_changed_a_row_is_never_published(harm, said):
    """Nor when it is tried again; a restart repairs it."""
    store, source = Store(), filled(FEW)
    for _ in range(2):
        with pytest.raises(BackendFault, match=said):
            copy_rows(source, Losing(store, harm), FEW.keys)
        harm = lambda _: None  # noqa: E731 - the harm is done
        assert set() == seen(MemoryBackend(store))
    copy = copy_rows(source, MemoryBackend(store), FEW.keys, restart=True)
    assert state_root(source, FEW.keys) == copy.root


@pytest.mark.parametrize(
    ("harm", "said"), [(_other_word, "1 of 12"), (_turned, "1 of 12"), (_lost, "returned|differ")]
)
def test_a_copy_that_was_changed_since_is_noticed(harm, said):
    """It is not overwritten, nor is a collection that holds other rows."""
    store, source = Store(), filled(FEW)
    copy_rows(source, MemoryBackend(store), FEW.keys)
    harm(store.versions)
    with pytest.raises(BackendFault, match=said):
        copy_rows(source, MemoryBackend(store), FEW.keys)
    with pytest.raises(InvalidArgument, match="holds 200 rows, but 12"):
        copy_rows(source, filled(), FEW.keys)


def test_keys_that_are_not_all_of_the_source_are_refused():
    """Rows would be left behind."""
    target = NativeBackend(DIM)
    with pytest.raises(InvalidArgument, match="holds 200 rows, but 199 keys"):
        copy_rows(filled(), target, KEYS[1:])
    with pytest.raises(BackendFault, match="returned 199"):
        copy_rows(filled(), target, [*KEYS[1:], 500])
    assert set() == seen(target)


def test_a_copy_of_an_earlier_epoch_is_discarded_only_on_request():
    """It contains other rows than the source holds now."""
    source, store = filled(FEW), Store()
    assert killed_at(store, 9, lambda: copy_rows(source, MemoryBackend(store), FEW.keys))
    source.relabel([3], [policy_word(9)], batch="later")
    with pytest.raises(InvalidArgument, match="is open"):
        copy_rows(source, MemoryBackend(store), FEW.keys)
    root = copy_rows(source, MemoryBackend(store), FEW.keys, restart=True).root
    assert state_root(source, FEW.keys) == root


class EightMembers:
    """A backend with only the members of the protocol."""

    def __init__(self, backend):
        for name in ("add", "relabel", "delete", "search", "count", "get", "state", "close"):
            setattr(self, name, getattr(backend, name))
        self.capabilities = backend.capabilities


def test_a_backend_without_loads_can_only_be_a_source():
    """Its rows would be visible before all are written."""
    source = EightMembers(filled())
    assert copy_rows(source, NativeBackend(DIM), KEYS).root == state_root(filled(), KEYS)
    with pytest.raises(InvalidArgument, match="takes no loads"):
        copy_rows(filled(), EightMembers(NativeBackend(DIM)), KEYS)
    with pytest.raises(InvalidArgument, match="takes no loads"):
        load_rows(EightMembers(NativeBackend(DIM)), blocks(), batch="load")
