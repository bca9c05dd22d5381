"""What the store of a log's records does: ``audit.db``."""

from __future__ import annotations

import threading

import pytest

from carag.audit import Batch, Checkpoint, Note, SigningKey
from carag.audit._sqlite import SqliteLink
from carag.audit.log.sqlite import RECORD_TABLES, SqliteBackend
from carag.audit.tlog.merkle import EMPTY_ROOT, Frontier, leaf_hash, stored_hash_index
from carag.errors import AuditUnavailable, CorruptFile

KEY = SigningKey("audit.example/evidence", b"k" * 32)
EMPTY = KEY.sign(Checkpoint(KEY.name, 0, EMPTY_ROOT).to_text()).to_text()


@pytest.fixture
def opener(tmp_path):
    def opened(create, empty):
        first = [("INSERT INTO cp VALUES (0, ?)", (empty,))]
        return SqliteBackend(SqliteLink(tmp_path / "audit.db", RECORD_TABLES, create=create, first=first))

    return opened


@pytest.fixture
def store(opener):
    opened = opener(True, EMPTY)
    yield opened
    opened.close()


class Tree:
    """Makes the batches of a log that grows."""

    def __init__(self):
        self.frontier, self.nodes, self.bodies = Frontier(), [], []

    def batch(self, count, **more):
        first, completed = self.frontier.size, []
        bodies = [b"record %d" % (first + n) for n in range(count)]
        for body in bodies:
            completed += self.frontier.append(leaf_hash(body))
        self.nodes += completed
        self.bodies += bodies
        note = KEY.sign(Checkpoint(KEY.name, self.frontier.size, self.frontier.root()).to_text()).to_text()
        return Batch(first, bodies, completed, note, **more)


def everything(store):
    return (
        store.size(),
        list(store.bodies(0)),
        list(store.nodes(0)),
        store.newest(),
        store.unended(),
    )


def test_a_new_store_is_empty_and_keeps_its_first_checkpoint(opener):
    """It is founded once; the second opening finds what the first one wrote."""
    store = opener(True, EMPTY)
    assert everything(store) == (0, [], [], EMPTY, ())
    store.close()
    store.close()
    store = opener(False, "never written")
    assert everything(store) == (0, [], [], EMPTY, ())
    store.close()


def test_what_is_not_there_is_never_founded_again(opener):
    """Evidence that is gone is corruption, not a new log."""
    with pytest.raises(CorruptFile):
        opener(False, EMPTY)


@pytest.mark.parametrize("counts", [[1], [1, 1, 1], [5, 1, 8], [513], [130, 3, 257]], ids=str)
def test_batches_come_back_whole(opener, counts):
    """Bodies, nodes and the newest checkpoint, also after reopening; ranges are half open."""
    store, tree = opener(True, EMPTY), Tree()
    for count in counts:
        batch = tree.batch(count)
        store.append(batch)
        assert (store.size(), store.newest()) == (batch.size, batch.note)
    for _ in range(2):
        assert list(store.bodies(0)) == list(enumerate(tree.bodies))
        assert list(store.nodes(0)) == [(stored_hash_index(n.level, n.n), n.hash) for n in tree.nodes]
        assert [store.node(n.level, n.n) for n in tree.nodes] == [n.hash for n in tree.nodes]
        assert [store.body(seq) for seq in range(store.size())] == tree.bodies
        assert list(store.bodies(1, 3)) == list(enumerate(tree.bodies))[1:3]
        assert list(store.nodes(1, 3)) == list(store.nodes(0))[1:3]
        assert list(store.bodies(store.size())) == []
        store.close()
        store = opener(False, EMPTY)
    Note.parse(store.newest())
    store.close()


@pytest.mark.parametrize("ask", [lambda s: s.body(3), lambda s: s.node(0, 3), lambda s: s.node(2, 0)])
def test_what_is_missing_is_corruption(store, ask):
    """A look-up by number never returns nothing."""
    store.append(Tree().batch(3))
    with pytest.raises(CorruptFile):
        ask(store)


@pytest.mark.parametrize("behind", [True, False])
def test_a_batch_fits_the_end_or_is_refused(store, behind):
    """A writer with another idea of where the log ends changes nothing; the right one goes on."""
    tree = Tree()
    store.append(tree.batch(3))
    before = everything(store)
    with pytest.raises(AuditUnavailable, match="no longer ends"):
        store.append(Tree().batch(2) if behind else Batch(7, [b"x"], [], EMPTY))
    assert everything(store) == before
    store.append(tree.batch(2))
    assert store.size() == 5


def test_a_batch_that_fails_in_the_middle_changes_nothing(store):
    """A node that cannot be stored takes the records and the checkpoint with it."""
    tree = Tree()
    store.append(tree.batch(3))
    before, bad = everything(store), tree.batch(2)
    bad = Batch(bad.first, bad.bodies, [bad.nodes[0]._replace(hash=None), *bad.nodes[1:]], bad.note)
    with pytest.raises(AuditUnavailable):
        store.append(bad)
    assert everything(store) == before


def test_begins_are_kept_until_they_end(opener):
    """Open begins survive a reopening; one that begins and ends in a batch was never open."""
    store, tree = opener(True, EMPTY), Tree()
    store.append(tree.batch(4, begun=[0, 2, 3], ended=[2]))
    assert store.unended() == (0, 3)
    store.close()
    store = opener(False, EMPTY)
    assert store.unended() == (0, 3)
    store.append(tree.batch(1, ended=[0, 3]))
    assert store.unended() == ()
    store.close()


def test_readers_see_whole_batches_only(store):
    """Whatever other threads read while batches are written is a state between two of them."""
    tree, stop, wrong = Tree(), threading.Event(), []

    def read():
        while not stop.is_set():
            size = Checkpoint.parse(Note.parse(store.newest()).text).size
            if size % 7 or len(list(store.bodies(0, size))) != size or store.size() < size:
                wrong.append(size)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(30):
        store.append(tree.batch(7))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_closed_store_is_unavailable(store):
    """Nothing is written or read after the end, and the error says so in the room's own words."""
    store.close()
    for use in (store.size, store.newest, lambda: store.append(Tree().batch(1))):
        with pytest.raises(AuditUnavailable):
            use()


def test_it_says_where_it_is(store):
    """Messages can name the place."""
    assert store.where
