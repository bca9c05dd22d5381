"""What an engine must do when one of its machines is killed: during questions, batches and the move of the epoch."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import Checked
from carag.errors import BackendUnavailable
from carag.policy import policy_word
from tests.backends.worlds import EVERYTHING, Labels, plain_rows

if TYPE_CHECKING:
    from carag.backends.versioned import VersionedBackend

QUERY = np.ones(16, np.float32)


class Kills:
    """Derive from it, and define how to open a collection, and how to kill and restart a machine."""

    rounds = 1
    all_rounds = 15
    patience = 60.0
    """Seconds in which an engine must answer again after a restart."""

    def open(self, collection: str) -> VersionedBackend:
        raise NotImplementedError

    def fresh(self) -> str:
        """Return the name of a new collection."""
        raise NotImplementedError

    def kill(self, round_: int) -> None:
        raise NotImplementedError

    def restart(self, round_: int) -> None:
        raise NotImplementedError

    def _again(self, collection: str) -> Checked:
        """Open the collection as soon as possible."""
        until = time.monotonic() + self.patience
        while True:
            try:
                backend = self.open(collection)
                backend.search(QUERY[None] / 4, 1, self._everything(backend), plan="exact")
            except BackendUnavailable:
                assert time.monotonic() < until
                time.sleep(0.1)
            else:
                return Checked(backend, self.labels, 16)

    def _everything(self, backend: VersionedBackend):
        from carag.backends.compiled import admitted_at

        return admitted_at(backend.state().words, EVERYTHING, 0, None)

    def _filled(self) -> tuple[str, VersionedBackend]:
        collection = self.fresh()
        backend = self.open(collection)
        backend.add(plain_rows(300, 16), batch="first")
        self.labels = Labels(dict.fromkeys(range(10_000), policy_word(1)))
        return collection, backend

    def _under_questions(self, round_: int) -> None:
        collection, backend = self._filled()
        expected = Checked(backend, self.labels, 16).search(QUERY, 20, EVERYTHING).keys.tolist()
        reader = Checked(self.open(collection), self.labels, 16)
        answers, refusals, failures, done = [], [], [], threading.Event()

        def ask() -> None:
            while not done.is_set():
                try:
                    answers.append(reader.search(QUERY, 20, EVERYTHING).keys.tolist())
                except BackendUnavailable as error:
                    refusals.append(error)
                except BaseException as error:  # noqa: BLE001 - reported below
                    failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            while len(answers) < 3:
                time.sleep(0.01)
            self.kill(round_)
            while not (refusals or failures):
                time.sleep(0.01)
            self.restart(round_)
            self._again(collection)
            before = len(answers)
            until = time.monotonic() + self.patience
            while len(answers) == before and not failures:
                assert time.monotonic() < until
                time.sleep(0.01)
        finally:  # else a failing test never ends
            done.set()
            thread.join()
        assert [] == failures
        assert all(one == expected for one in answers)

    def _in_a_batch(self, round_: int) -> None:
        collection, backend = self._filled()
        more = plain_rows(3_000, 16, seed=1, first=300)
        threading.Timer(0.02 + 0.05 * (round_ % 9), self.kill, (round_,)).start()
        try:
            backend.add(more, batch="more")
            is_there = True
        except BackendUnavailable:
            is_there = False
        time.sleep(0.1 + 0.05 * (round_ % 9))
        self.restart(round_)
        checked = self._again(collection)
        count = checked.count(EVERYTHING)
        assert count in ({3_300} if is_there else {300, 3_300})
        again = self.open(collection)
        again.add(more, batch="more")
        assert 3_300 == checked.count(EVERYTHING) == len(again.get(range(4_000)).keys)
        again.relabel(range(3_300), [policy_word(2)] * 3_300, batch="all")
        assert (policy_word(2),) == again.state().words
        assert 3_300 == checked.count(EVERYTHING)

    def _where_the_epoch_moves(self, round_: int, *, is_written: bool) -> None:
        collection, backend = self._filled()
        write = backend._keep_texts

        def killed(texts: dict[str, str]) -> None:
            if "now" not in texts:
                return write(texts)
            if is_written:
                write(texts)
            self.kill(round_)
            if not is_written:
                write(texts)
            raise BackendUnavailable("killed after the write")

        backend._keep_texts = killed
        with contextlib.suppress(BackendUnavailable):
            backend.relabel(range(9), [policy_word(2)] * 9, batch="flip")
        self.restart(round_)
        self._again(collection)
        again = self.open(collection)
        seen = {int(word) for word in again.get(range(9)).words}
        assert 1 == len(seen), "torn"
        if is_written:
            assert {policy_word(2)} == seen
        again.relabel(range(9), [policy_word(2)] * 9, batch="flip")
        assert {policy_word(2)} == {int(word) for word in again.get(range(9)).words}
        assert 300 == len(again.get(range(300)).keys)

    def _round(self, round_: int) -> None:
        self._under_questions(round_)
        self._in_a_batch(round_ + 1)
        for is_written in (False, True):
            self._where_the_epoch_moves(round_ + is_written, is_written=is_written)

    def test_what_is_killed_answers_wholly_or_not_at_all(self):
        """After a restart nothing is lost, torn or duplicated."""
        for round_ in range(self.rounds):
            self._round(round_)

    @pytest.mark.full
    def test_what_is_killed_often_answers_wholly_or_not_at_all(self):
        """In more rounds."""
        for round_ in range(self.all_rounds):
            self._round(round_)
