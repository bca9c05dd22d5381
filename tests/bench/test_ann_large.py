"""Rows from a stream, drawn in parts, built in batches, mapped and searched."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.ann.large import sizes

STREAM = "stream-20k-96"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where data, graphs and truth are kept."""
    return tmp_path_factory.mktemp("cache")


def test_a_stream_is_the_same_however_often_it_is_drawn(bench, cache, tmp_path):
    """Unit rows by seed, in a file and not in memory; no query is among them."""
    datasets = bench("datasets")
    first, again = (datasets.load(STREAM, home) for home in (cache, tmp_path))
    assert isinstance(first.vectors, np.memmap)
    assert ((20_000, 96), np.float32) == (first.vectors.shape, first.vectors.dtype)
    assert np.array_equal(first.vectors, again.vectors)
    assert np.array_equal(first.queries, again.queries)
    assert np.allclose(1, np.linalg.norm(first.vectors, axis=1), atol=1e-5)
    assert (first.queries @ first.vectors.T).max() < 1 - 1e-4


def test_batches_are_the_rows_of_the_file(bench, cache):
    """One after another, of the sizes asked for."""
    datasets = bench("datasets")
    rows = datasets.load(STREAM, cache).vectors
    read = list(datasets.batches(datasets.vectors_file(STREAM, cache), (7, 12_993, 7_000)))
    assert [7, 12_993, 7_000] == [len(batch) for batch in read]
    assert np.array_equal(rows, np.concatenate(read))


@given(rows=st.integers(4, 10**8))
def test_each_batch_is_as_large_as_all_before_it(rows):
    """So each is linked by building the whole graph; and none is more than half of the rows."""
    cut = sizes(rows)
    assert rows == sum(cut)
    assert all(size >= sum(cut[:at]) for at, size in enumerate(cut))
    assert max(cut) <= (rows + 1) // 2


@pytest.mark.release
def test_a_large_index_is_built_mapped_and_searched(bench, cache, tmp_path, capsys):
    """In every cell, what it took beside it; a second run finds the index, and both make a report."""
    main, out = bench("__main__").main, tmp_path / "rows.jsonl"
    command = ["large", "--sets", STREAM, "--variants", "word", "--dtypes", "float16", "--queries", "20"]
    command += ["--rounds", "2", "--seconds", "0.05", "--cache", str(cache), "--out", str(out)]
    assert 0 == main(command)
    assert 0 == main(command)
    capsys.readouterr()
    records = [json.loads(line) for line in out.read_text().splitlines()]
    built, again = (record for record in records if record["kind"] == "large build")
    assert built == again
    assert [5_000, 5_000, 10_000] == built["batches"]
    assert built["bytes_per_row_resident"] < built["peak_bytes"] / built["rows"]
    cells = [record for record in records if record["kind"] == "large"]
    assert {1.0, 0.5, 0.01, 0.0} <= {cell["share"] for cell in cells}
    assert {"neutral", "anti", "corr"} == {cell["correlation"] for cell in cells}
    assert {(0, 0)} == {(cell["short"], cell["violations"]) for cell in cells}
    assert min(cell["recall"] for cell in cells) >= 0.99


def test_a_large_index_knows_words_alone(bench, cache, tmp_path, capsys):
    """Sessions would need what the stream has not; the message says what to ask for."""
    command = ["large", "--sets", STREAM, "--cache", str(cache), "--out", str(tmp_path / "rows.jsonl")]
    assert 64 == bench("__main__").main(command)
    assert "--variants word" in capsys.readouterr().err
