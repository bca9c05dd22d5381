"""Servers killed at any moment: an answer is whole or refused, and a repeated batch is there once."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from carag.errors import BackendUnavailable
from carag.index import Plan
from tests.backends.conftest import Sharded
from tests.backends.postgres_servers import postgres_servers
from tests.backends.test_sharded import ONE, QUERY, TWO, admitted
from tests.backends.worlds import plain_rows

BATCH = 40
"""Rows per batch."""
FIRST = 120
"""Rows of every store at first; nine of them are flipped."""

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def servers():
    """Four servers: three shards, and one that keeps their epochs."""
    with postgres_servers(4) as running:
        yield running


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
def test_killed_nodes_never_give_a_part(servers, name, rounds):
    """One of four servers per round, also that of the epochs, at a random moment, while reading and writing go on."""
    rng = np.random.default_rng(rounds)
    backend, stream = Sharded(servers, name, timeout=20), changes()
    backend.add(plain_rows(FIRST, 8), batch="first")
    reader = backend.again()
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
            done, seen, killed = threading.Event(), [], servers[int(rng.integers(4))]
            readings = threads.submit(reading, done, seen)
            timer = threading.Timer(float(rng.uniform(0.05, 0.8)), killed.kill)
            timer.start()
            for batch, change, words in stream:
                contents.append(words(contents[-1]))
                try:
                    change(backend, batch)
                except BackendUnavailable:
                    told["interrupted"] += 1
                    break
            timer.join()
            killed.start()
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


def test_a_server_that_hangs_is_reported(servers, name):
    """The client has a time limit of its own: a server that is stopped does not keep its limit."""
    import psutil

    backend = Sharded(servers, name, timeout=1.0)
    backend.add(plain_rows(20, 8), batch="first")
    processes = [psutil.Process(servers[1].process.pid)]
    processes += processes[0].children(recursive=True)
    for one in processes:
        one.suspend()
    try:
        with pytest.raises(BackendUnavailable, match="shard 1 of 3"):
            backend.count(admitted())
    finally:
        for one in reversed(processes):
            one.resume()
    assert 20 == repeated(lambda: backend.count(admitted()))
    backend.close()
