"""What every backend must do: sixteen claims, which the tests of each backend inherit.

They derive from :class:`Conformance` and define how to make a collection, connect to it again, and take it away. What a
backend does not declare must be refused; nothing is skipped.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import Admitted, Checked, rows_of
from carag.backends.compiled import admitted_at
from carag.errors import BackendFault, BackendUnavailable, CaragError, Incomplete, InvalidArgument
from carag.index import Plan
from carag.policy import QUARANTINE, VERSION_WORD, Mask, Policy, policy_word
from tests.backends.lying import Lie, Lying, Spy
from tests.backends.rows import rows as rows_with
from tests.backends.shared import DIM, shared_worlds
from tests.backends.worlds import (
    EVERYTHING,
    Labels,
    World,
    assert_equal,
    drawn_queries,
    drawn_question,
    drawn_world,
    plain_rows,
)
from tests.remains import as_stored
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.backends import VectorBackend

CLOSED = QUARANTINE | VERSION_WORD
HOSTILE = ["'; DROP TABLE rows; --", '" OR 1=1', "{tag}", "a\\b\n", "%s %(x)s", "é漢\u202e", "$1", "x" * 200]
"""Names of batches that a backend must not interpret."""


class Conformance:
    """Derive from it, and define how backends are made."""

    pytestmark = pytest.mark.filterwarnings(
        "ignore::carag.errors.UnlabelledWarning"
    )  # such rows are among those drawn

    questions, all_questions = examples(400), 10_000
    """Exact questions that are compared with the index: in most runs, and in full."""
    lies, all_lies = examples(2_000), 100_000
    relabels, all_relabels = examples(200), 2_000
    flips, all_flips = examples(60), 500
    rows, graph_rows = examples(1_000, least=300), examples(3_000, least=1_000)
    """Rows that are searched at every selectivity, and by a graph."""
    worlds, all_worlds = examples(50), 500
    """Worlds whose rows are shared with groups."""

    compares_words = True
    """Whether a search compares words with those admitted, whatever their bits."""

    def new(self, dim: int) -> VectorBackend:
        """Make an empty collection."""
        raise NotImplementedError

    def another(self, backend: VectorBackend) -> VectorBackend:
        """Open a second connection to a collection."""
        raise NotImplementedError

    def stop(self, backend: VectorBackend) -> None:
        """Take away what a backend needs to answer."""
        raise NotImplementedError

    def stored(self, backend: VectorBackend, wanted: set[bytes]) -> set[bytes]:
        """Return which of some byte strings are where rows are kept, except what the backend says is beyond it."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self) -> Iterator[list[VectorBackend]]:
        """Backends that are closed after the test."""
        made: list[VectorBackend] = []
        yield made
        for one in made:
            one.close()

    @pytest.fixture
    def build(self, opened):
        """Put a world into a new collection."""

        def build(world: World) -> tuple[VectorBackend, Checked]:
            dim = world.rows.vectors.shape[1]
            backend = self.new(dim)
            opened.append(backend)
            backend.add(world.rows, batch="first")
            return backend, Checked(backend, world.labels, dim)

        return build

    def exact(self, backend: VectorBackend) -> Plan:
        return next(plan for plan in (Plan.EXACT, Plan.CERTIFIED) if plan in backend.capabilities.plans)

    def test_nothing_is_found_without_a_policy_or_a_label(self, build):
        """No policy is refused; an empty one finds nothing; unlabelled, quarantined and deleted rows are hidden."""
        words = [0, 5, QUARANTINE, CLOSED, policy_word(1), policy_word(1)]
        world = World.of(rows_of(np.eye(6), words, range(6)))
        backend, checked = build(world)
        backend.delete([4], batch="delete")
        with pytest.raises(InvalidArgument, match="nothing is searched without one"):
            checked.search(np.ones(6), 9, None)
        assert 0 == checked.search(np.ones(6), 9, Policy()).stats.admissible
        found = checked.search(np.ones(6), 9, EVERYTHING)
        assert ([5], 1) == (found.keys[0, : found.counts[0]].tolist(), found.stats.admissible)

    @pytest.mark.parametrize("k", [1, 10])
    def test_an_exact_plan_is_the_index_at_every_selectivity(self, build, k):
        """With 0, k - 1, k, k + 1 and more rows admissible, up to all."""
        n, dim = self.rows, 16
        sizes = sorted({0, 1, k - 1, k, k + 1, n // 1_000, n // 100, n // 20, n // 5, n // 2, n})
        bits = np.zeros(n, np.int64)
        for bit, size in enumerate(sizes):
            bits[:size] |= 1 << bit
        bits[::2] |= 1 << 26
        world = World.of(plain_rows(n, dim, bits=bits))
        backend, checked = build(world)
        queries = drawn_queries(np.random.default_rng(k), world, 3)
        for bit in range(len(sizes)):
            for policy in (Mask(1 << bit), Mask(1 << bit | 1 << 26), Mask(1 << bit, 1 << 26)):
                expected = world.index.search(queries, k, policy, plan="exact")
                assert_equal(expected, checked.search(queries, k, policy, plan=self.exact(backend)))
                assert expected.stats.admissible == checked.count(policy)

    def _questions(self, build, count: int, seed: int) -> None:
        rng, asked = np.random.default_rng(seed), 0
        while asked < count:
            world = drawn_world(rng)
            backend, checked = build(world)
            for _ in range(50):
                queries, question = drawn_queries(rng, world, 2), drawn_question(rng, world)
                expected = world.index.search(queries, plan="exact", **question)
                got = checked.search(queries, plan=self.exact(backend), **question)
                assert_equal(expected, got)
                assert (np.minimum(question["k"], expected.stats.admissible) == got.counts).all()
                asked += len(queries)
            backend.close()

    def test_an_exact_plan_is_the_index_on_random_questions(self, build):
        """Up to eight mask pairs, control bits, times, allowed and denied entities: equal to the last byte."""
        self._questions(build, self.questions, 1)

    @pytest.mark.full
    def test_an_exact_plan_is_the_index_on_all_random_questions(self, build):
        """10^4 (rows, policy, query)."""
        self._questions(build, self.all_questions, 0)

    def _shared(self, build, place: Path, count: int, seed: int) -> None:
        given_up, found = 0, 0
        for shared in shared_worlds(place, seed, count):
            backend, checked = build(shared.world)
            for policy, expected in shared.sessions:
                for k in (2, 50):
                    got = checked.search(np.ones(DIM), k, policy, plan=self.exact(backend))
                    keys = got.keys[0, : got.counts[0]].tolist()
                    assert {*keys} <= expected
                    assert (min(k, len(expected)), len(expected)) == (len(keys), got.stats.admissible)
                assert checked.count(policy) == len(expected)
                found += len(expected)
            given_up += shared.given_up
            backend.close()
        assert given_up > 0
        assert found > count

    def test_a_session_finds_what_is_shared_with_it(self, build, tmp_path):
        """Groups nest to depth 6, lists deny groups that are not known, and sessions have given principals up."""
        self._shared(build, tmp_path, self.worlds, 10)

    @pytest.mark.full
    @pytest.mark.parametrize("piece", range(10))
    def test_a_session_finds_what_is_shared_with_it_in_all_worlds(self, build, tmp_path, piece):
        """500 worlds for a backend, and 10^5 for the native index."""
        self._shared(build, tmp_path, self.all_worlds // 10, piece)

    @pytest.mark.parametrize("kind", ["clustered", "gaussian", "anti-correlated"])
    def test_a_graph_finds_what_it_declares(self, build, kind):
        """At least the declared recall@10 at every selectivity; without a declared one, the plan is refused."""
        n, dim = self.graph_rows, 32
        rng = np.random.default_rng(5)
        queries = rng.standard_normal((20, dim)).astype(np.float32)
        rows = plain_rows(n, dim, kind="clustered" if kind == "clustered" else "gaussian")
        near = rows.vectors @ queries[0] if kind == "anti-correlated" else rng.standard_normal(n)
        order = np.argsort(near)  # what is admissible first is farthest from the first query
        bits = np.zeros(n, np.int64)
        for bit, size in enumerate((30, 300, n // 2, n)):
            bits[order[:size]] |= 1 << bit
        few = World.of(plain_rows(9, dim))
        backend, checked = build(few)
        if Plan.GRAPH not in backend.capabilities.plans:
            assert backend.capabilities.recall is None
            with pytest.raises(InvalidArgument, match="graph"):
                checked.search(queries, 10, EVERYTHING, plan="graph")
            return
        world = World.of(rows._replace(words=policy_word(bits)))
        backend, checked = build(world)
        asked = queries[:1] if kind == "anti-correlated" else queries
        for bit in range(4):
            expected = world.index.search(asked, 10, Mask(1 << bit), plan="exact")
            found = checked.search(asked, 10, Mask(1 << bit), plan="graph")
            assert expected.counts.tolist() == found.counts.tolist()
            hits = [np.isin(ours, true).mean() for ours, true in zip(found.keys, expected.keys, strict=True)]
            assert np.mean(hits) >= backend.capabilities.recall, (kind, bit)

    def _relabels(self, build, opened, count: int) -> None:
        world = World.of(plain_rows(30, 8))
        backend, checked = build(world)
        other = self.another(backend)
        opened.append(other)
        reader = Checked(other, world.labels, 8)
        assert backend.capabilities.read_your_writes
        for number in range(count):
            key, word = number % 30, policy_word(2 if number % 60 < 30 else 1)
            checked.relabel([key], [word], batch=f"change {number}")
            world.labels[key] = word
            found = reader.search(np.ones(8), 30, Mask(forbidden=2))
            expected = sorted(one for one, its in world.labels.items() if its == policy_word(1))
            assert expected == sorted(found.keys[0, : found.counts[0]].tolist())
            assert 0 == found.stats.lagged

    def test_a_search_sees_a_change_that_was_confirmed(self, build, opened):
        """The next search on another connection is never stale."""
        self._relabels(build, opened, self.relabels)

    @pytest.mark.full
    def test_each_of_many_searches_sees_the_change_before_it(self, build, opened):
        """2,000 of them."""
        self._relabels(build, opened, self.all_relabels)

    def _flips(self, build, opened, count: int) -> None:
        world = World.of(plain_rows(9, 8))
        backend, checked = build(world)
        other = self.another(backend)
        opened.append(other)
        assert backend.capabilities.atomic_batches
        words = [policy_word(1), policy_word(2)]
        # The label store admits both, so that what is seen is the backend's alone.
        reader = Checked(other, Labels(dict.fromkeys(range(9), policy_word(3))), 8)
        seen, failures, done = [], [], threading.Event()

        def look() -> None:
            found = [reader.search(np.ones(8), 9, Policy(Mask(bits))).stats.state.epoch for bits in (1, 2)]
            one = reader.search(np.ones(8), 9, EVERYTHING)
            seen.append((found, one.counts[0]))
            parts = reader.search(np.ones(8), 9, Mask(1), also_hidden=9)
            assert parts.counts[0] in (0, 9), "torn"
            assert parts.wider.counts[0] == 9, "short"

        def read() -> None:
            try:
                while not done.is_set():
                    with suppress(BackendUnavailable):  # every try met a change, so it returns nothing
                        look()
            except BaseException as error:  # noqa: BLE001 - reported below
                failures.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        for number in range(count):
            checked.relabel(range(9), [words[(number + 1) % 2]] * 9, batch=f"flip {number}")
        done.set()
        thread.join()
        assert [] == failures, failures
        assert seen
        assert {9} == {int(many) for _, many in seen}

    def test_no_search_sees_half_of_a_change(self, build, opened):
        """Nine rows change between two words in one batch during reads: no read is torn or short."""
        self._flips(build, opened, self.flips)

    @pytest.mark.full
    def test_no_search_sees_half_of_many_changes(self, build, opened):
        """500 of them."""
        self._flips(build, opened, self.all_flips)

    def test_an_unknown_word_is_closed_and_a_known_one_open(self, build):
        """A policy compiled before a word was added does not admit it; compiled afterwards, it does."""
        world = World.of(plain_rows(5, 8))
        backend, checked = build(world)
        before = backend.state()
        early = admitted_at(before.words, EVERYTHING, 0, None)
        more = plain_rows(3, 8, seed=1, bits=4, first=5)
        after = backend.add(more, batch="more")
        world.labels.update(dict.fromkeys(range(5, 8), policy_word(4)))
        assert after.epoch > before.epoch
        query = np.full((1, 8), 8**-0.5, np.float32)
        plan = self.exact(backend)
        if backend.capabilities.replay_by_epoch:
            found = backend.search(query, 9, early, plan=plan, at=before.epoch)
            assert 5 == found.admissible == backend.count(early, at=before.epoch)
        else:
            with pytest.raises(BackendUnavailable):
                backend.search(query, 9, early, plan=plan, at=before.epoch)
        assert 8 == checked.search(query, 9, EVERYTHING).stats.admissible

    def test_equal_policies_find_the_same(self, build):
        """Mask pairs in any order, split or joined, or with others that admit nothing more."""
        rng = np.random.default_rng(3)
        world = World.of(plain_rows(400, 8, bits=rng.integers(0, 16, 400)))
        backend, checked = build(world)
        ways = [
            Policy(Mask(1), Mask(2)),
            Policy(Mask(2), Mask(1)),
            Policy(Mask(1, 2), Mask(2, 1), Mask(3)),
            Policy(Mask(1), Mask(2), Mask(1, 4), Mask(3 | 8)),
            Policy(Mask(1), Mask(2), deny_entities=[99]),
            Policy(Mask(1), Mask(2), allow_entities=[0]),
        ]
        found = [checked.search(np.ones((2, 8)), 20, way, plan=self.exact(backend)) for way in ways]
        for one in found[1:]:
            assert_equal(found[0], one)

    def test_a_backend_that_is_gone_returns_nothing(self, build):
        """It raises an error of CARAG's own."""
        backend, checked = build(World.of(plain_rows(20, 8)))
        self.stop(backend)
        with pytest.raises((BackendUnavailable, InvalidArgument)):
            checked.search(np.ones(8), 5, EVERYTHING)

    def test_a_batch_that_is_repeated_changes_nothing(self, build):
        """Neither rows nor the epoch, whatever the second one contains; a refused batch leaves nothing behind."""
        world = World.of(plain_rows(4, 8))
        backend, checked = build(world)
        added = backend.add(plain_rows(3, 8, seed=1, first=4), batch="more")
        again = backend.add(plain_rows(3, 8, seed=1, first=4), batch="more")
        assert (added.epoch, added.words) == (again.epoch, again.words)
        changed = backend.relabel([0], [CLOSED], batch="close")
        assert changed.epoch == backend.relabel([0], [CLOSED], batch="close").epoch
        backend.delete([1], batch="drop")
        backend.delete([1], batch="drop")
        with pytest.raises(InvalidArgument):
            backend.add(plain_rows(3, 8, seed=1, first=6), batch="one key is in use")
        with pytest.raises(InvalidArgument):
            backend.relabel([2, 99], [CLOSED, CLOSED], batch="one key is unknown")
        with pytest.raises(InvalidArgument):
            backend.delete([2, 1], batch="one key is deleted")
        world.labels.update({4: policy_word(1), 5: policy_word(1), 6: policy_word(1)})
        found = checked.search(np.ones(8), 9, EVERYTHING)
        assert [2, 3, 4, 5, 6] == sorted(found.keys[0, : found.counts[0]].tolist())
        assert 6 == len(checked)

    def _lies(self, build, count: int, seed: int) -> None:
        rng, told, refused = np.random.default_rng(seed), dict.fromkeys(Lie, 0), dict.fromkeys(Lie, 0)
        while sum(told.values()) < count:
            world = drawn_world(rng)
            backend, _ = build(world)
            plan = self.exact(backend)
            for _ in range(25):
                queries, question = drawn_queries(rng, world, 2), drawn_question(rng, world)
                expected = world.index.search(queries, plan="exact", **question)
                for lie in Lie:
                    liar = Lying(backend, lie, rng, world.rows)
                    try:
                        got = Checked(liar, world.labels, 8).search(queries, plan=plan, **question)
                    except (BackendFault, Incomplete):
                        refused[lie] += 1
                        assert liar.told
                    else:  # there was nothing to lie about, or what was untrue was dropped
                        assert expected.keys.tolist() == got.keys.tolist()
                        assert expected.similarities.tobytes() == got.similarities.tobytes()
                        lagged = got.stats.lagged
                        assert expected.stats.admissible == got.stats.admissible + lagged
                    told[lie] += liar.told > 0
            backend.close()
        assert all(refused[lie] > count / 100 for lie in Lie), refused

    def test_no_lie_is_believed(self, build):
        """With eight kinds of lies: the answer is refused, or right."""
        self._lies(build, self.lies, 1)

    @pytest.mark.full
    def test_none_of_many_lies_is_believed(self, build):
        """10^5 of them."""
        self._lies(build, self.all_lies, 0)

    def test_an_epoch_is_asked_again_or_refused(self, build):
        """A recorded epoch returns the same ids if replay is declared, and is refused otherwise."""
        world = World.of(plain_rows(40, 8))
        backend, checked = build(world)
        query = np.full((1, 8), 8**-0.5, np.float32)
        first = checked.search(query, 10, EVERYTHING, plan=self.exact(backend))
        then = first.stats.state
        checked.relabel(range(5), [CLOSED] * 5, batch="close")
        checked.delete(range(5, 9), batch="drop")
        admitted = admitted_at(then.words, EVERYTHING, 0, None)
        if backend.capabilities.replay_by_epoch:
            again = backend.search(query, 10, admitted, plan=self.exact(backend), at=then.epoch)
            assert first.keys.tolist() == again.keys.tolist()
            assert then.dictionary == again.state.dictionary
            assert 40 == again.admissible == backend.count(admitted, at=then.epoch)
        else:
            with pytest.raises(BackendUnavailable):
                backend.search(query, 10, admitted, plan=self.exact(backend), at=then.epoch)
        with pytest.raises(CaragError):
            backend.search(query, 10, admitted, plan=self.exact(backend), at=backend.state().epoch + 1)

    def test_a_certified_answer_does_not_depend_on_hidden_rows(self, build):
        """It is equal to the last byte after inadmissible rows change; without the plan it is refused."""
        rng = np.random.default_rng(8)
        rows = plain_rows(300, 8, bits=rng.integers(1, 3, 300))
        world = World.of(rows)
        backend, checked = build(world)
        query = np.full((1, 8), 8**-0.5, np.float32)
        admitted = admitted_at(backend.state().words, Mask(1), 0, None)
        if Plan.CERTIFIED not in backend.capabilities.plans:
            with pytest.raises(InvalidArgument):
                backend.search(query, 5, admitted, plan=Plan.CERTIFIED)
            found = checked.search(query, 5, Mask(1), plan="certified")
            assert Plan.EXACT is found.stats.plans[0]
            return
        first = checked.search(query, 20, Mask(1), plan="certified")
        assert Plan.CERTIFIED is first.stats.plans[0]
        hidden = rows.keys[rows.words == policy_word(2)]
        checked.delete(hidden[:50].tolist(), batch="delete")
        checked.relabel(hidden[50:].tolist(), [policy_word(6)] * len(hidden[50:]), batch="other words")
        others = plain_rows(80, 8, seed=9, bits=2, first=1_000)
        checked.add(others, batch="others")
        assert_equal(first, checked.search(query, 20, Mask(1), plan="certified"))

    def test_an_empty_list_is_never_sent(self, build):
        """If no word or no entity is admitted, no backend is asked."""
        world = World.of(plain_rows(10, 8))
        backend, _ = build(world)
        spy = Spy(backend)
        checked = Checked(spy, world.labels, 8)
        for policy in (Policy(), Mask(1 << 20), Policy(Mask(), allow_entities=[])):
            found = checked.search(np.ones(8), 5, policy, also_hidden=0)
            assert ([[-1] * 5], 0) == (found.keys.tolist(), found.stats.admissible)
            assert 0 == checked.count(policy)
        assert [] == spy.asked
        checked.search(np.ones(8), 5, EVERYTHING)
        assert spy.asked
        assert all(one.words and one.allow_entities != () for one in spy.asked)

    def test_hostile_batch_names_are_not_interpreted(self, build):
        """Rows of a batch named like a statement are added once, and nothing else happens."""
        world = World.of(plain_rows(2, 8))
        backend, checked = build(world)
        for number, name in enumerate(HOSTILE, start=2):
            for _ in range(2):
                backend.add(plain_rows(1, 8, seed=number, first=number), batch=name)
            world.labels[number] = policy_word(1)
        found = checked.search(np.ones(8), 50, EVERYTHING)
        assert 2 + len(HOSTILE) == found.stats.admissible == len(checked)

    def test_rows_are_read_by_key(self, build):
        """Vectors and similarities of any rows equal the index's; an unknown key is refused, or left out."""
        world = World.of(plain_rows(50, 8))
        _, checked = build(world)
        keys = [7, 3, 49]
        query = np.arange(1, 9)
        assert world.index.vectors(keys).tobytes() == checked.vectors(keys).tobytes()
        assert world.index.similarities(query, keys).tobytes() == checked.similarities(query, keys).tobytes()
        assert {3: policy_word(1)} == checked.words([3, 1_000])
        with pytest.raises(InvalidArgument):
            checked.vectors([3, 1_000])
        with pytest.raises(InvalidArgument):
            checked.similarities(query, [3, 1_000])

    def test_hidden_rows_are_found_in_a_second_search(self, build):
        """The wider search is separate, at the same epoch."""
        rng = np.random.default_rng(2)
        world = World.of(plain_rows(200, 8, bits=rng.integers(1, 3, 200)))
        backend, checked = build(world)
        plan = self.exact(backend)
        both = checked.search(np.ones(8), 5, Mask(1), plan=plan, also_hidden=7)
        assert_equal(world.index.search(np.ones(8), 5, Mask(1), plan="exact"), both)
        assert_equal(world.index.search(np.ones(8), 7, Mask(), plan="exact"), both.wider)

    def test_the_greatest_numbers_come_back_as_they_were_given(self, opened):
        """Every bit of keys, words, entities, times and vectors, and filters compare them exactly."""
        last = 2**32 - 1
        words = [0, 1, 0x7FFF_FFFF, 0x8000_0000, last - 1, last]
        if not self.compares_words:
            words = [0, *(VERSION_WORD | bits for bits in (0, 1, 2, 4, 8))]
        keys = [0, 1, 2**31, 2**53 + 1, 2**63 - 2, 2**63 - 1]
        given = rows_with(keys, words)._replace(
            public_at=np.array([0, 1, 2, 3, last - 2, last - 1], np.uint32),
            entities=np.array([0, 1, 2, last - 2, last - 1, last], np.uint32),
        )
        backend = self.new(4)
        opened.append(backend)
        assert tuple(words) == backend.add(given, batch="first").words
        read = backend.get(keys)
        order = np.argsort(read.keys)
        for before, after in zip(given, read, strict=True):
            assert (before.dtype, before.tobytes()) == (after.dtype, after[order].tobytes())
        if not self.compares_words:
            return
        everything = Admitted(tuple(words), last - 1, last - 1, None, (), (0,), EVERYTHING)
        assert 4 == backend.count(everything._replace(as_of=last - 3))
        for word, key, entity in zip(words, keys, given.entities.tolist(), strict=True):
            asked = everything._replace(words=(word,), allow_entities=(entity,))
            found = backend.search(given.vectors[given.keys == key], 9, asked, plan=self.exact(backend))
            assert ([key], 1) == (found.keys[found.keys >= 0].tolist(), found.admissible)
            assert 5 == backend.count(everything._replace(deny_entities=(entity,)))

    def test_a_purge_leaves_no_byte_of_deleted_rows(self, build):
        """In single or half precision, nor an earlier epoch; what is live stays, and changes go on."""
        # No other test's, and each as long as a random vector must be so that no server's compression shortens it.
        canaries = examples(200, least=20)
        rows = plain_rows(3 * canaries, 32, seed=11)
        world = World.of(rows)
        backend, checked = build(world)
        gone = list(range(0, 3 * canaries, 3))
        single, half = ({as_stored(rows.vectors[key])[at] for key in gone} for at in (0, 1))
        there = self.stored(backend, single | half)
        assert there >= single or there >= half
        checked.relabel(gone, [CLOSED] * len(gone), batch="close")
        before = checked.delete(gone, batch="delete")
        assert self.stored(backend, single | half) == there  # deleting is not enough
        for _ in range(2):
            checked.purge()
            assert self.stored(backend, single | half) == set()
        assert len(set(checked.beyond)) == len(checked.beyond)
        world.index.delete(gone)
        queries = rows.vectors[:5]
        expected = world.index.search(queries, 3 * canaries, EVERYTHING, plan="exact")
        assert_equal(expected, checked.search(queries, 3 * canaries, EVERYTHING, plan=self.exact(backend)))
        early = admitted_at(before.words, EVERYTHING, 0, None)
        with pytest.raises(BackendUnavailable, match="gone"):
            backend.search(queries, 5, early, plan=self.exact(backend), at=before.epoch - 1)
        checked.add(plain_rows(1, 32, seed=1, first=1_000), batch="more")
        world.labels[1_000] = policy_word(1)
        assert checked.search(queries, 3 * canaries, EVERYTHING).stats.admissible == 2 * canaries + 1
