"""Three backends as one: it conforms with PostgreSQL shards, and no change is ever partly visible."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest

from carag.backends import (
    MemoryEpochs,
    NativeBackend,
    PostgresBackend,
    PostgresEpochs,
    ShardedBackend,
    backend_by_url,
)
from carag.backends.compiled import admitted_at
from carag.backends.epochs import Published
from carag.backends.postgres.backend import RECALL
from carag.backends.sharded import shard_of
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.policy import policy_word
from tests.backends.conformance import Conformance
from tests.backends.conftest import NUMBERS, Sharded
from tests.backends.in_memory import MemoryBackend, Store
from tests.backends.worlds import EVERYTHING, plain_rows
from tests.sizes import examples

ONE, TWO = policy_word(1), policy_word(2)
QUERY = np.full((1, 8), 8**-0.5, np.float32)


class TestThreeShards(Conformance):
    """Three databases, with their epochs in a fourth; to take the backend away, one shard is taken away."""

    questions, lies, relabels, rows = examples(100), examples(200), examples(60), 300

    @pytest.fixture(autouse=True)
    def _with(self, servers):
        self.servers = servers
        yield
        servers[2].start()

    def new(self, dim):
        return Sharded(self.servers, f"sharded {next(NUMBERS)}")

    def another(self, backend):
        return backend.again()

    def stop(self, backend):
        self.servers[2].kill()


def memory_shards():
    """Make three shards in this process."""
    return [MemoryBackend(Store(), collection=f"part{number}") for number in range(3)]


# -- the graphs of shards


def test_a_command_builds_the_graph_of_all_shards(servers, name, capsys):
    """It reports the number of rows; another kind of backend is bad input, and no address is shown."""
    urls = " ".join(f"{one.url}&collection={quote(name)}" for one in servers[:2])
    command = ["backend", "graph", "--backend", urls, "--memory-mb", "64"]
    assert Exit.BAD_INPUT == run(command)
    assert "no rows" in capsys.readouterr().err
    with contextlib.closing(backend_by_url(urls)) as shards:
        shards.add(plain_rows(60, 8), batch="first")
        assert shards.capabilities.recall is None
    assert Exit.OK == run(command)
    assert f"60 rows have a graph with a declared recall of {RECALL}\n" == capsys.readouterr().out
    with contextlib.closing(backend_by_url(urls)) as shards:
        assert RECALL == shards.capabilities.recall
    assert Exit.BAD_INPUT == run(["backend", "graph", "--backend", "native://somewhere"])
    assert "somewhere" not in capsys.readouterr().err


def test_shards_that_cannot_build_a_graph_are_refused(servers, name):
    """If one cannot, none is built."""
    able = PostgresBackend(servers[0].url, collection=name, dim=8)
    epochs = PostgresEpochs(servers[3].url, collection=name)
    with contextlib.closing(ShardedBackend([able, MemoryBackend(Store())], epochs)) as shards:
        shards.add(plain_rows(30, 8), batch="first")
        with pytest.raises(InvalidArgument, match="cannot build a graph"):
            shards.build_graph()
        assert able.capabilities.recall is None


# -- no change is partly visible


def seen_under_flips(read, flip, rounds):
    """Flip nine rows between two words while two threads read them; return the numbers of reads and of torn ones."""
    seen, failures, done = [], [], threading.Event()

    def reading():
        try:
            while not done.is_set():
                seen.append(read())
        except BaseException as error:
            failures.append(error)
            raise

    with ThreadPoolExecutor(2) as readers:
        for _ in range(2):
            readers.submit(reading)
        try:
            for number in range(rounds):
                flip(number)
        finally:
            done.set()
    assert [] == failures
    return len(seen), sum(len(set(words)) > 1 for words in seen)


def admitted():
    return admitted_at((ONE, TWO), EVERYTHING, 0, None)


@pytest.mark.full
@pytest.mark.parametrize("flips", [500])
def test_nine_rows_on_three_shards_are_never_seen_in_part(servers, name, flips):
    """No read is torn: readers ask for what was published."""
    writer = Sharded(servers, name)
    reader = writer.again()
    writer.add(plain_rows(9, 8), batch="first")

    def read():
        return reader.search(QUERY, 9, admitted(), plan=Plan.EXACT).rows.words.tolist()

    def flip(number):
        writer.relabel(range(9), [(TWO, ONE)[number % 2]] * 9, batch=f"flip {number}")

    reads, torn = seen_under_flips(read, flip, flips)
    assert reads > flips / 4
    assert 0 == torn
    writer.close()
    reader.close()


@pytest.mark.release
def test_atomic_commit_alone_is_partly_visible(servers, name):
    """Flips by PREPARE and COMMIT PREPARED on every shard are torn for readers that ask each for its last state."""
    import psycopg

    shards = [PostgresBackend(one.url, collection=name) for one in servers[:3]]
    rows, owner = plain_rows(9, 8), shard_of(range(9), 3)
    for number, shard in enumerate(shards):
        shard.add(type(rows)(*(column[owner == number] for column in rows)), batch="first")
    writers = [psycopg.connect(one.url) for one in servers[:3]]

    def flip(number):
        for own, writer in enumerate(writers):
            writer.tpc_begin(writer.xid(1, f"{name} {number} {own}", ""))
            writer.execute(
                "UPDATE carag_vectors.live SET word = %s WHERE key = ANY(%s) AND collection = "
                "(SELECT id FROM carag_vectors.collection WHERE name = %s)",
                ((TWO, ONE)[number % 2], np.flatnonzero(owner == own).tolist(), name),
            )
            writer.tpc_prepare()
        for writer in writers:
            writer.tpc_commit()

    with ThreadPoolExecutor(6) as pool:

        def read():
            asked = [pool.submit(one.search, QUERY, 9, admitted(), plan=Plan.EXACT) for one in shards]
            return [word for one in asked for word in one.result().rows.words.tolist()]

        torn = reads = 0
        for _ in range(10):  # one is enough
            more, torn = seen_under_flips(read, flip, 60)
            reads += more
            if torn:
                break
    assert torn > 0, reads
    for one in (*shards, *writers):
        one.close()


# -- a writer that ends in between


class Killed(BaseException):
    """Stands for the end of a process."""


class Dying:
    """Ends the writer before or after its n-th change."""

    def __init__(self, after):
        self.left = after
        self.is_over = False

    def __call__(self, call, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            self.is_over = True
            raise Killed
        made = call(*args, **kwargs)
        self.left -= 1
        if self.left < 0:
            self.is_over = True
            raise Killed
        return made


class DyingShard:
    """A shard with a writer that dies."""

    def __init__(self, shard, dying):
        self._shard, self._dying = shard, dying

    def __getattr__(self, name):
        found = getattr(self._shard, name)
        if name in {"add", "relabel", "delete"}:
            return lambda *args, **kwargs: self._dying(found, *args, **kwargs)
        return found


class DyingEpochs(MemoryEpochs):
    """Epochs with a writer that dies."""

    dying = staticmethod(lambda call, *args: call(*args))

    def intend(self, *args):
        return self.dying(super().intend, *args)

    def publish(self, *args):
        return self.dying(super().publish, *args)


def content(backend, at=None):
    """Return the keys and words of all rows at an epoch, by the exact plan and the count."""
    found = backend.search(QUERY, 100, admitted(), plan=Plan.EXACT, at=at)
    assert found.admissible == len(found.rows.keys) == backend.count(admitted(), at=at)
    return sorted(zip(found.rows.keys.tolist(), found.rows.words.tolist(), strict=True))


CHANGES = {
    "add": lambda backend: backend.add(plain_rows(6, 8, first=20), batch="change"),
    "relabel": lambda backend: backend.relabel(range(9), [TWO] * 9, batch="change"),
    "delete": lambda backend: backend.delete(range(9), batch="change"),
}
AFTER = {
    "add": [(key, ONE) for key in (*range(12), *range(20, 26))],
    "relabel": [(key, TWO if key < 9 else ONE) for key in range(12)],
    "delete": [(key, ONE) for key in range(9, 12)],
}


@pytest.mark.parametrize("is_repeated", [True, False], ids=["repeated", "left"])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_writer_that_ends_leaves_nothing_in_part(kind, is_repeated):
    """Wherever it ends, the next writer settles what it left, and a repeated batch is made once."""
    before = [(key, ONE) for key in range(12)]
    for calls in range(20):
        shards, epochs, dying = memory_shards(), DyingEpochs(), Dying(calls)
        calm = ShardedBackend(shards, epochs)
        calm.add(plain_rows(12, 8), batch="first")
        doomed = ShardedBackend([DyingShard(one, dying) for one in shards], epochs)
        epochs.dying = dying
        with contextlib.suppress(Killed):
            CHANGES[kind](doomed)
        epochs.dying = DyingEpochs.dying
        assert content(calm) in (before, AFTER[kind])
        assert content(calm, at=1) == before
        if is_repeated:
            CHANGES[kind](calm)
        else:
            calm.relabel([11], [ONE], batch="another")
        # An addition that is not repeated is removed, a label or deletion completed.
        assert content(calm) == AFTER[kind] if is_repeated else content(calm) in (before, AFTER[kind])
        assert content(calm, at=1) == before
        CHANGES[kind](calm)
        assert content(calm) == AFTER[kind]
        assert calm.state() == CHANGES[kind](calm)  # and once only
        calm.close()
        if not dying.is_over:
            break
    assert calls > 6
    assert not dying.is_over


def test_what_a_lost_writer_sends_late_changes_nothing():
    """Its names were used up when its batch was settled."""
    shards, epochs = memory_shards(), MemoryEpochs()
    backend = ShardedBackend(shards, epochs)
    backend.add(plain_rows(3, 8), batch="first")
    with epochs.turn() as turn:
        lost = turn.intend("add", "lost", tuple(range(20, 26)), ())
    backend.add(plain_rows(6, 8, first=20), batch="next")
    late = plain_rows(6, 8, first=20)
    owner = shard_of(late.keys, 3)
    for number, shard in enumerate(shards):
        own = type(late)(*(column[owner == number] for column in late))
        shard.add(own, batch=lost.name)
        shard.delete(own.keys.tolist(), batch=f"{lost.name} undone")
    assert [(key, ONE) for key in (0, 1, 2, *range(20, 26))] == content(backend)
    backend.relabel([0], [ONE], batch="third")
    assert [(key, ONE) for key in (0, 1, 2, *range(20, 26))] == content(backend)
    backend.close()


def test_writers_of_shards_take_turns(servers, name):
    """Each has connections of its own; every batch is an epoch, and none is lost."""
    writers = [Sharded(servers, name) for _ in range(3)]

    def write(number):
        for one in range(4):
            writers[number].add(plain_rows(5, 8, first=100 * number + 10 * one), batch=f"{number} {one}")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(write, range(3)))
    assert (12, 60) == (writers[0].state().epoch, sum(part.rows for part in writers[1].state().shards))
    assert 60 == len(content(writers[2]))
    for one in writers:
        one.close()


# -- what is refused


def test_shards_are_those_of_the_collection_in_their_order(servers, name):
    """Other shards, another order, rows that no epoch covers, and no shards are refused."""
    backend = Sharded(servers, name)
    shards, epochs = backend.shards, backend._epochs
    with pytest.raises(InvalidArgument, match="in another order"):
        ShardedBackend(shards[::-1], epochs)
    with pytest.raises(InvalidArgument, match="not the 3 of the collection"):
        ShardedBackend(shards[:2], epochs)
    with pytest.raises(InvalidArgument, match="no shards"):
        ShardedBackend([], epochs)
    with pytest.raises(InvalidArgument, match="earlier epoch"):
        ShardedBackend([NativeBackend(8)], MemoryEpochs())
    shards[0].add(plain_rows(1, 8), batch="apart")
    with pytest.raises(InvalidArgument, match="no epoch covers"):
        ShardedBackend(shards, MemoryEpochs())
    backend.close()


def test_shards_that_were_bound_twice_while_empty_are_refused_by_the_second_binding(servers, name):
    """With another order and other epochs, which do not cover the rows that the first binding wrote."""
    backend = Sharded(servers, name)
    for epochs in (MemoryEpochs(), PostgresEpochs(servers[0].url, collection=name)):
        ShardedBackend(backend.shards[::-1], epochs)
        backend.add(plain_rows(9, 8, first=100 * backend.state().epoch), batch=repr(epochs))
        with pytest.raises(InvalidArgument, match="no epoch covers"):
            ShardedBackend(backend.shards[::-1], epochs)
        backend.delete(backend.get(range(200)).keys.tolist(), batch=f"all of {epochs!r}")
        epochs.close()
    backend.close()


class Overtaken(MemoryEpochs):
    """Epochs to which another process publishes just before they are bound."""

    def __init__(self, write):
        super().__init__()
        self.write = write

    def bind(self, shards):
        if self._published:
            self.write()
        return super().bind(shards)


def test_a_shard_that_was_written_to_meanwhile_is_not_behind():
    """Another process publishes while this one opens the same shards."""
    shards = memory_shards()
    epochs = Overtaken(lambda: writer.add(plain_rows(9, 8), batch="meanwhile"))
    writer = ShardedBackend(shards, epochs)
    assert (1, 9) == (ShardedBackend(shards, epochs).state().epoch, len(content(writer)))
    writer.close()


def test_a_shard_that_is_behind_is_refused():
    """Such as one that was restored from an older copy."""
    shards, epochs = memory_shards(), MemoryEpochs()
    ShardedBackend(shards, epochs).add(plain_rows(9, 8), batch="first")
    then = epochs.at(None)
    ahead = Published(1, tuple(part._replace(epoch=part.epoch + 1) for part in then.parts))
    epochs._published.append(ahead)
    with pytest.raises(BackendFault, match="was published; restore it"):
        ShardedBackend(shards, epochs)


def test_without_a_shard_there_is_no_answer():
    """The error names the shard, and nothing of the others is returned."""
    shards = memory_shards()
    backend = ShardedBackend(shards, MemoryEpochs())
    backend.add(plain_rows(9, 8), batch="first")
    shards[1].close()
    with pytest.raises(BackendUnavailable, match="shard 1 of 3"):
        backend.search(QUERY, 9, admitted(), plan=Plan.EXACT)
    with pytest.raises(BackendUnavailable, match="shard 1 of 3"):
        backend.count(admitted())
    backend.close()


def test_a_refused_change_changes_no_shard():
    """Keys in use, unknown or repeated; vectors of another length."""
    shards = memory_shards()
    backend = ShardedBackend(shards, MemoryEpochs())
    backend.add(plain_rows(9, 8), batch="first")
    before = [one.state().epoch for one in shards]
    for change in (
        lambda: backend.add(plain_rows(9, 8, first=8), batch="in use"),
        lambda: backend.relabel([0, 99], [TWO, TWO], batch="unknown"),
        lambda: backend.delete([0, 99], batch="unknown, too"),
        lambda: backend.relabel([0, 0], [TWO, TWO], batch="twice"),
        lambda: backend.relabel([0], [TWO, TWO], batch="two words"),
        lambda: backend.relabel([0], [2**32], batch="no word"),
    ):
        with pytest.raises(InvalidArgument):
            change()
    assert before == [one.state().epoch for one in shards]
    with pytest.raises(InvalidArgument, match="16 coordinates"):
        backend.add(plain_rows(9, 16, first=20), batch="longer")
    assert [(key, ONE) for key in range(9)] == content(backend)
    assert 1 == backend.state().epoch
    backend.close()
