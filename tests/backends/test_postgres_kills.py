"""Servers killed at any moment: an answer is whole or refused, and a repeated batch is there once."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from carag.backends.compiled import admitted_at
from carag.errors import BackendUnavailable
from carag.index import Plan
from carag.policy import policy_word
from tests.backends.conftest import Graphed
from tests.backends.postgres_servers import postgres_servers
from tests.backends.worlds import EVERYTHING, plain_rows

ONE, TWO = policy_word(1), policy_word(2)
QUERY = np.full((1, 8), 8**-0.5, np.float32)
BATCH = 40
"""Rows per batch."""
FIRST = 120
"""Rows of every store at first; nine of them are flipped."""

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def server():
    """A server of our own, to be killed."""
    with postgres_servers(1) as running:
        yield running[0]


def connected(server, name, **more):
    return Graphed(server.url, collection=name, **more)


def admitted():
    return admitted_at((ONE, TWO), EVERYTHING, 0, None)


def answer(backend):
    """Return the epoch and the words of all rows, by one search whose length and count must agree."""
    found = backend.search(QUERY, 4_000, admitted(), plan=Plan.EXACT)
    keys = found.keys[0][found.keys[0] >= 0]
    assert found.admissible == keys.size == np.unique(keys).size
    words = zip(found.rows.keys.tolist(), found.rows.words.tolist(), strict=True)
    return found.state.epoch, dict(words)


def changes():
    """Yield batches without end: rows are added, nine flipped, rows deleted."""
    for number in itertools.count():
        first = FIRST + number * BATCH
        rows = plain_rows(BATCH, 8, seed=number + 1, first=first)
        word = (TWO, ONE)[number % 2]
        yield (
            f"add {number}",
            lambda backend, batch, rows=rows: backend.add(rows, batch=batch),
            lambda words, rows=rows: {**words, **dict.fromkeys(rows.keys.tolist(), ONE)},
        )
        yield (
            f"flip {number}",
            lambda backend, batch, word=word: backend.relabel(range(9), [word] * 9, batch=batch),
            lambda words, word=word: {**words, **dict.fromkeys(range(9), word)},
        )
        gone = range(first, first + BATCH, 2)
        yield (
            f"drop {number}",
            lambda backend, batch, gone=gone: backend.delete(gone, batch=batch),
            lambda words, gone=gone: {key: word for key, word in words.items() if key not in gone},
        )


def repeated(call):
    """Repeat a call until the servers are back."""
    until = time.monotonic() + 60
    while True:
        try:
            return call()
        except BackendUnavailable:
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=pytest.mark.full)])
def test_a_killed_server_never_gives_a_part(server, name, rounds):
    """Once a round, at a random moment, while reading and writing go on."""
    rng = np.random.default_rng(rounds)
    backend, stream = connected(server, name, timeout=20), changes()
    backend.add(plain_rows(FIRST, 8), batch="first")
    reader = connected(server, name)
    contents = [{}, dict.fromkeys(range(FIRST), ONE)]
    told = Counter()

    def reading(done, seen):
        while not done.is_set():
            try:
                seen.append(answer(reader))
            except BackendUnavailable:
                told["refused"] += 1

    with ThreadPoolExecutor(1) as threads:
        for _ in range(rounds):
            done, seen = threading.Event(), []
            readings = threads.submit(reading, done, seen)
            timer = threading.Timer(float(rng.uniform(0.05, 0.8)), server.kill)
            timer.start()
            for batch, change, words in stream:
                contents.append(words(contents[-1]))
                try:
                    change(backend, batch)
                except BackendUnavailable:
                    told["interrupted"] += 1
                    break
            timer.join()
            server.start()
            repeated(lambda: change(backend, batch))  # noqa: B023 - at once
            assert repeated(lambda: answer(backend)) == (len(contents) - 1, contents[-1])
            done.set()
            readings.result()
            assert all(words == contents[epoch] for epoch, words in seen)
            told["whole"] += len(seen)
    assert told["whole"] > rounds / 2
    assert told["interrupted"] == rounds
    assert told["refused"] > 0
    backend.close()
    reader.close()


def test_a_server_that_hangs_is_reported(server, name):
    """The client has a time limit of its own: a server that is stopped does not keep its limit."""
    import psutil

    backend = connected(server, name, timeout=1.0)
    backend.add(plain_rows(20, 8), batch="first")
    processes = [psutil.Process(server.process.pid)]
    processes += processes[0].children(recursive=True)
    for one in processes:
        one.suspend()
    try:
        with pytest.raises(BackendUnavailable, match="did not answer"):
            backend.count(admitted())
    finally:
        for one in reversed(processes):
            one.resume()
    assert 20 == repeated(lambda: backend.count(admitted()))
    backend.close()
