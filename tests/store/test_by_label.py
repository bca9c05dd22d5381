"""Passages and labels in one statement are those of two, and no text is read of what is only labelled."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from carag.errors import CorruptFile, InvalidArgument
from tests.store.test_label_history import DAY, START, facts, put

if TYPE_CHECKING:
    from carag.store.store import CorpusStore


@pytest.fixture
def keys(store: CorpusStore) -> list[int]:
    """Labels of many passages, some closed since the first filing was known."""
    put(store, facts("a", "10-K", 0), passages=300)
    put(store, facts("b", "10-K/A", 50, certified=True), passages=3)
    return [*range(store.labels.count_by(store.known()))]


@pytest.mark.parametrize("count", [0, 1, 8, 255, 256, 257, 300])
def test_what_is_read_at_once_is_what_two_readings_give(
    store: CorpusStore, keys: list[int], count: int
) -> None:
    """However many passages, of the present and the past, at minutes before, between and after events."""
    some, others = keys[:count], keys[count : count + 300]
    known_at = store.known()
    for closed_by in (None, known_at):
        for day in (-1, 10, 60):
            minute = START + day * DAY
            chunks, labels = store.chunks_and_labels(
                some, others, minute, closed_by=closed_by, known_at=known_at
            )
            assert chunks == store.chunks(some, known_at=closed_by)
            assert list(labels.values()) == store.labels.as_of(others, minute, known_at=known_at)
            assert list(labels) == others


def test_a_key_that_is_not_there_is_refused(store: CorpusStore, keys: list[int]) -> None:
    """On either side."""
    known_at = store.known()
    for some, others in (([10**9], [keys[0]]), ([keys[0]], [10**9])):
        with pytest.raises(InvalidArgument, match="no label has key 1000000000"):
            store.chunks_and_labels(some, others, START, closed_by=None, known_at=known_at)


def test_a_text_is_read_of_passages_alone(store: CorpusStore, keys: list[int]) -> None:
    """A text altered by another program fails its readers, but not a query for its label."""
    with sqlite3.connect(store.path) as sql:
        sql.execute("UPDATE chunks SET text = 'altered' WHERE key = 1")
    sql.close()
    known_at, (first, second) = store.known(), keys[:2]
    chunks, labels = store.chunks_and_labels([first], [second], START, closed_by=None, known_at=known_at)
    assert (1, [second]) == (len(chunks), list(labels))
    with pytest.raises(CorruptFile, match="was changed by another program"):
        store.chunks_and_labels([second], [first], START, closed_by=None, known_at=known_at)


def test_both_are_one_statement(store: CorpusStore, keys: list[int]) -> None:
    """Seen by the database itself."""
    said: list[str] = []
    assert store._connection is not None
    store._connection.set_trace_callback(said.append)
    store.chunks_and_labels(keys[:8], keys[8:20], START, closed_by=None, known_at=store.known())
    assert 1 == sum("text" in one for one in said)
    assert 2 == len(said)  # and that of `known`
