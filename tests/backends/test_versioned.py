"""Epochs on an engine without transactions: it conforms; what a killed writer leaves, what is swept and refused."""

from __future__ import annotations

import time
from itertools import count, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.backends import Admitted, NativeBackend
from carag.backends.versioned import NEVER
from carag.backends.versioned.register import Register, Sweep
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.policy import Mask, Policy, policy_word
from tests.backends.conformance import Conformance
from tests.backends.in_memory import MemoryBackend, Store
from tests.backends.rows import rows
from tests.sizes import SIZE, examples

ANY = Policy(Mask())
ONE, TWO, THREE = (policy_word(bits) for bits in (1, 2, 4))


def admitted(*words: int) -> Admitted:
    return Admitted(tuple(sorted(words)), 0, 0, None, (), (0,), ANY)


def seen(backend: MemoryBackend, at: int | None = None) -> dict[int, int]:
    """Return what a reader finds by search, count and key, which must agree."""
    state = backend.state()
    epoch = state.epoch if at is None else at
    query = np.full((1, 4), 0.5, np.float32)
    found = backend.search(query, 99, admitted(ONE, TWO, THREE), plan=Plan.AUTO, at=epoch)
    words = dict(zip(found.rows.keys.tolist(), found.rows.words.tolist(), strict=True))
    assert sorted(words) == sorted(found.keys[found.keys >= 0].tolist())
    assert len(words) == found.admissible == backend.count(admitted(ONE, TWO, THREE), at=epoch)
    read = backend.get(range(100), at=epoch)
    assert words == dict(zip(read.keys.tolist(), read.words.tolist(), strict=True))
    if at is None:
        assert tuple(sorted(set(words.values()))) == state.words
        assert len(words) == sum(shard.rows for shard in state.shards)
    return words


def filled(store: Store) -> MemoryBackend:
    backend = MemoryBackend(store)
    backend.add(rows(range(4), ONE), batch="first")
    backend.relabel([0], [TWO], batch="second")
    return backend


CHANGES = {
    "add": lambda one: one.add(rows([7, 8], THREE), batch="x"),
    "relabel": lambda one: one.relabel([0, 1, 2], [THREE, TWO, THREE], batch="x"),
    "delete": lambda one: one.delete([0, 3], batch="x"),
}
BEFORE = {0: TWO, 1: ONE, 2: ONE, 3: ONE}
AFTER = {
    "add": BEFORE | {7: THREE, 8: THREE},
    "relabel": {0: THREE, 1: TWO, 2: THREE, 3: ONE},
    "delete": {1: ONE, 2: ONE},
}


def deaths(change: str) -> list[float]:
    """Return every point at which a change can be killed: before each write and after the last.

    For a release, after each.
    """
    store = Store()
    before = filled(store).store.writes
    CHANGES[change](MemoryBackend(store))
    last = store.writes - before
    if SIZE == "quick":
        return [*range(1, last + 1), last + 0.5]
    return [write + half for write in range(1, last + 1) for half in (0, 0.5)]


def killed(change: str, death: float) -> tuple[Store, bool]:
    """Return a store whose writer was killed, and whether the last write of the change had been made."""
    store = Store()
    writer = filled(store)
    store.writes, store.dies_at = 0, death
    with pytest.raises(BackendUnavailable):
        CHANGES[change](writer)
    store.dies_at = None
    return store, death == deaths(change)[-1]


class TestMemory(Conformance):
    """Every epoch is kept; a second connection is a second backend over the store."""

    rows, questions, lies, relabels, flips = 300, examples(400), examples(400), examples(60), examples(20)

    def new(self, dim):
        return MemoryBackend(Store())

    def another(self, backend):
        return MemoryBackend(backend.store)

    def stop(self, backend):
        backend.close()

    def stored(self, backend, wanted):
        return wanted & {version[1].tobytes() for version in backend.store.versions.values()}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_whole_or_not_at_all_wherever_it_is_killed(change):
    """Repeated with the same name, it is made once."""
    for death in deaths(change):
        store, is_there = killed(change, death)
        assert (AFTER[change] if is_there else BEFORE) == seen(MemoryBackend(store)), death
        state = CHANGES[change](MemoryBackend(store))
        assert AFTER[change] == seen(MemoryBackend(store)), death
        assert 3 == state.epoch
        assert state == CHANGES[change](MemoryBackend(store))


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_batch_removes_what_a_killed_writer_left(change):
    """Its versions, the ends that it set, and its name, so that its change can still be made."""
    for death in deaths(change):
        store, is_there = killed(change, death)
        MemoryBackend(store).add(rows([50], ONE), batch="another")
        expected = AFTER[change] if is_there else BEFORE
        assert expected | {50: ONE} == seen(MemoryBackend(store)), death
        CHANGES[change](MemoryBackend(store))
        assert AFTER[change] | {50: ONE} == seen(MemoryBackend(store)), death


def test_the_removal_can_be_killed_too():
    """At any point: the batch after that removes the rest."""
    places = deaths("relabel")
    for death, second in product(places, range(1, 2 * len(places))):
        store, is_there = killed("relabel", death)
        store.writes, store.dies_at = 0, second
        try:
            MemoryBackend(store).add(rows([50], ONE), batch="another")
        except BackendUnavailable:
            store.dies_at = None
            MemoryBackend(store).add(rows([50], ONE), batch="another")
        store.dies_at = None
        expected = AFTER["relabel"] if is_there else BEFORE
        assert expected | {50: ONE} == seen(MemoryBackend(store))


def test_a_purge_can_be_killed_at_any_point():
    """No reader of the last epoch notices; the next purge, or batch, removes the rest."""
    for purges in count(2):
        store = Store()
        writer = filled(store)
        writer.delete([0], batch="gone")
        before = seen(writer)
        store.writes, store.dies_at = 0, purges / 2
        try:
            MemoryBackend(store).purge()
        except BackendUnavailable:
            store.dies_at = None
        else:
            break
        assert before == seen(MemoryBackend(store)), purges
        MemoryBackend(store).add(rows([50], ONE), batch="another")
        MemoryBackend(store).purge()
        assert all(version[8] == NEVER for version in store.versions.values())
        assert before | {50: ONE} == seen(MemoryBackend(store))
    assert purges > 8


def test_a_purge_waits_for_no_load():
    """A load's rows are of the next epoch, so it must end first."""
    backend = filled(Store())
    backend.load(rows([50], ONE), batch="load", begin=0, end=1)
    with pytest.raises(InvalidArgument, match="load"):
        backend.purge()


def test_a_register_that_is_written_too_early_would_be_noticed(monkeypatch):
    """The check can fail: if the register is written before the rows, half a batch is seen."""
    store = Store()
    writer = filled(store)
    put = MemoryBackend._put

    def late(self, versions):
        self._keep_texts({"now": Register.read(store.texts["now"])._replace(epoch=3).text()})
        put(self, versions)

    monkeypatch.setattr(MemoryBackend, "_put", late)
    store.writes, store.dies_at = 0, 4
    with pytest.raises(BackendUnavailable):
        writer.add(rows([7, 8], THREE), batch="x")
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        seen(MemoryBackend(store))


KEYS = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "relabel", "delete"]), KEYS, st.sampled_from([ONE, TWO, THREE]))
)


@given(STEPS, st.randoms(use_true_random=False))
def test_any_changes_are_those_of_the_native_index(steps, random):
    """With writers killed at random: rows, words and refusals, and every epoch again."""
    store, native, history = Store(), NativeBackend(4), {0: {}}
    for number, (kind, keys, word) in enumerate(steps):
        change = {
            "add": lambda one, name, keys=keys, word=word: one.add(rows(keys, word), batch=name),
            "relabel": lambda one, name, keys=keys, word=word: one.relabel(
                keys, [word] * len(keys), batch=name
            ),
            "delete": lambda one, name, keys=keys: one.delete(keys, batch=name),
        }[kind]
        try:
            change(native, str(number))
        except InvalidArgument:
            with pytest.raises(InvalidArgument):
                change(MemoryBackend(store), str(number))
            continue
        store.writes, store.dies_at = 0, random.choice([None, *range(1, 12)])
        try:
            change(MemoryBackend(store), str(number))
        except BackendUnavailable:
            store.dies_at = None
            change(MemoryBackend(store), str(number))
        store.dies_at = None
        read = native.get(range(10))
        history[native.state().epoch] = dict(zip(read.keys.tolist(), read.words.tolist(), strict=True))
        assert native.state().words == MemoryBackend(store).state().words
    for epoch, expected in history.items():
        assert expected == seen(MemoryBackend(store), epoch)
    native.close()


# ------------------------------------------------------------ sweeping


def test_a_replaced_epoch_is_kept_for_a_while_and_then_swept(monkeypatch):
    """Nothing is removed until it is too old; then it is refused, and some time later removed from the engine."""
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    store = Store()
    backend = MemoryBackend(store, keep=60)
    backend.add(rows(range(4), ONE), batch="first")
    backend.delete([0], batch="second")
    assert {0: ONE, 1: ONE, 2: ONE, 3: ONE} == seen(backend, 1)
    for batch in range(4):
        clock[0] += 61
        assert (0, 1) in store.versions
        backend.relabel([1], [TWO], batch=f"a minute later {batch}")
        with pytest.raises(BackendUnavailable, match="epoch 0 is gone"):
            backend.get([1], at=0)
    with pytest.raises(BackendUnavailable, match="epoch 1 is gone"):
        backend.get([1], at=1)
    assert (0, 1) not in store.versions
    assert {1: TWO, 2: ONE, 3: ONE} == seen(backend)
    assert "epoch/1" not in store.texts
    assert not backend.capabilities.replay_by_epoch


def test_an_epoch_grows_old_only_once_it_is_replaced(monkeypatch):
    """However long it was the last one."""
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    backend = MemoryBackend(Store(), keep=60)
    backend.add(rows(range(4), ONE), batch="first")
    for batch in range(10):
        clock[0] += 1000
        before = seen(backend)
        backend.relabel([1], [TWO if batch % 2 else THREE], batch=f"much later {batch}")
        assert before == seen(backend, batch + 1)


@given(st.lists(st.floats(0, 200)), st.floats(1, 100))
def test_no_epoch_is_removed_under_a_reader(pauses, keep):
    """What may be removed has been refused for as long as a reader may take, and was replaced as long before."""
    sweep, now, told, ended = Sweep(0, 0, 0, 0, 0.0), 1000.0, {0: 0.0}, {}
    for epoch, pause in enumerate(pauses, start=1):
        now += pause
        ended[epoch - 1] = now
        sweep = sweep.moved(epoch, now, keep)
        told.setdefault(sweep.earliest, now)
        assert sweep.swept <= sweep.removable <= sweep.earliest <= sweep.mark <= epoch
        assert sweep.removable == 0 or now - told[sweep.removable] >= keep
        assert all(now - ended[gone] >= keep for gone in range(sweep.earliest) if gone in ended)


def test_a_reader_that_takes_longer_than_an_epoch_is_kept_is_refused(monkeypatch):
    """What it found may be partly swept."""
    backend = MemoryBackend(Store(), keep=60)
    backend.add(rows(range(4), ONE), batch="first")
    clock = iter([0.0, 59.0, 100.0, 160.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert 4 == backend.count(admitted(ONE))
    with pytest.raises(BackendUnavailable, match="took longer than the 60 s"):
        backend.count(admitted(ONE))


# ------------------------------------------------------------ what is refused, and what is asked


def test_an_engine_that_goes_back_is_refused():
    """Such as after the takeover by a replica that lacks confirmed changes."""
    store = Store()
    backend = filled(store)
    before = dict(store.texts)
    backend.delete([3], batch="lost")
    store.texts = before
    with pytest.raises(BackendFault, match="went back from epoch 3 to 2"):
        backend.state()


@pytest.mark.parametrize(
    "text",
    ["{}", "[1]", "[2,1,2,[1],{},[]]", '[2,"a",2,[1],[],[0,0,0,0,0]]', "[1,1,[1],[],[0,0,0,0,0]]", "\x00"],
)
def test_an_invalid_register_is_refused(text):
    """Whatever the text is."""
    store = Store()
    store.texts["now"] = text
    with pytest.raises(BackendFault):
        MemoryBackend(store).state()


def test_a_count_is_asked_once_per_epoch_and_policy(monkeypatch):
    """It cannot change; another epoch, time or list is another question."""
    store = Store()
    backend = filled(store)
    asked = []
    counted = MemoryBackend._counted
    monkeypatch.setattr(MemoryBackend, "_counted", lambda *it: asked.append(it) or counted(*it))
    questions = [
        admitted(ONE),
        admitted(ONE)._replace(as_of=5, alive_at=5),
        admitted(ONE)._replace(deny_entities=(3,)),
    ]
    for question in questions * 2:
        backend.count(question)
    assert 3 == len(asked)
    backend.relabel([1], [TWO], batch="third")
    assert [2, 2, 2] == [backend.count(question) for question in questions]
    assert 6 == len(asked)


def test_a_known_epoch_is_not_read_again():
    """A search at an epoch that was just read asks the engine once less."""
    backend = filled(Store())
    state = backend.state()
    asked = backend.asked
    backend.count(admitted(ONE), at=state.epoch)
    assert asked == backend.asked
    backend.count(admitted(ONE))
    assert asked + 1 == backend.asked


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda it: it.count(admitted()), "an empty list admits nothing"),
        (lambda it: it.count(admitted(ONE)._replace(allow_entities=())), "an empty list admits nothing"),
        (
            lambda it: it.count(admitted(*range(65))),
            "the policy admits 65 distinct policy words; memory 1 can search for 64 at most",
        ),
        (lambda it: it.search(np.ones((1, 3), np.float32), 1, admitted(ONE), plan=Plan.AUTO), "want .nq, 4."),
        (lambda it: it.search(np.ones((1, 4), np.float32), 0, admitted(ONE), plan=Plan.AUTO), "k is 0"),
        (
            lambda it: it.search(np.ones((1, 4), np.float32), 1, admitted(ONE), plan=Plan.GRAPH),
            "runs only the exact plan",
        ),
        (lambda it: it.get([1], at=9), "epoch 9 does not exist yet"),
        (lambda it: it.get([-1]), "a key is negative"),
        (lambda it: it.add(rows([1], ONE), batch="x"), "rows 1 exist already"),
        (lambda it: it.add(rows([9], ONE), batch=""), "batch is ''"),
        (lambda it: it.add(rows([9], ONE, dim=5), batch="x"), "vectors have 5 coordinates; want 4"),
        (lambda it: it.add(rows([9, 9], ONE), batch="x"), "1 keys are duplicates"),
        (
            lambda it: it.add(rows([9], ONE)._replace(vectors=np.ones((1, 4), np.float32)), batch="x"),
            "unit length",
        ),
        (
            lambda it: it.add(
                rows([9], ONE)._replace(vectors=np.full((1, 4), np.nan, np.float32)), batch="x"
            ),
            "not finite",
        ),
        (
            lambda it: it.add(rows([9], ONE)._replace(words=np.array([1])), batch="x"),
            "words must be an array of 1 uint32",
        ),
        (lambda it: it.add(rows(range(100, 170), range(70)), batch="x"), "distinct policy words"),
        (lambda it: it.relabel([1, 1], [ONE, TWO], batch="x"), "1 keys are duplicates"),
        (lambda it: it.relabel([1], [ONE, TWO], batch="x"), "1 keys and 2 words"),
        (lambda it: it.relabel([1], [2**32], batch="x"), "32 bits"),
        (lambda it: it.delete([1, 77, 78], batch="x"), "rows 77, 78 do not exist"),
        (lambda it: MemoryBackend(it.store, keep=0), "more than 0 seconds"),
        (lambda it: MemoryBackend(it.store, keep=float("nan")), "more than 0 seconds"),
    ],
)
def test_wrong_arguments_are_refused_and_change_nothing(call, said):
    """The error says what came and what was wanted."""
    store = Store()
    backend = filled(store)
    before = store.writes
    with pytest.raises(InvalidArgument, match=said):
        call(backend)
    assert before == store.writes
