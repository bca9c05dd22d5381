"""The bench of searches by words: a small one runs, and what hidden rows move is what the report says."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bench.text import __main__ as bench
from bench.text.worlds import SHARES, drawn, filings
from carag.index.tokens import tokenize


@pytest.fixture(scope="module")
def texts():
    return drawn(chunks=600, questions=12)


def test_the_same_seed_draws_the_same_words(texts):
    """And every share has chunks, documents together."""
    again = drawn(chunks=600, questions=12)
    assert (texts.tokens, texts.questions) == (again.tokens, again.questions)
    assert 600 == len(texts.tokens) == texts.documents.size
    counts = [np.count_nonzero(texts.bits() & bit) for bit in SHARES.values()]
    assert 600 == counts[0] > counts[1] > 0


@pytest.mark.parametrize("package", bench.PEERS)
def test_hidden_rows_move_others_and_not_this(texts, package):
    """The measure can fail: statistics of all rows change what comes first; ours do not."""
    pytest.importorskip(package)
    rows, bit = np.arange(600), SHARES["10 %"]
    assert 0 == bench.moved(bench.Carag, bench.Carag(texts, rows), texts, bit)
    peer = bench.PEERS[package]
    assert 0 < bench.moved(peer, peer(texts, rows), texts, bit)
    assert 0 == bench.moved(peer, peer(texts, rows), texts, SHARES["100 %"])


def test_the_report_is_whole(monkeypatch, capsys):
    """Three shares, each engine in a line, and what was moved."""
    monkeypatch.setattr(sys, "argv", ["bench.text", "--chunks", "300", "--repeats", "1"])
    monkeypatch.setattr(bench, "PEERS", {"sqlite3": bench.Fts5, "no_such_package": bench.Tantivy})
    bench.main()
    said = capsys.readouterr().out
    assert 3 == said.count("% admissible (goal")
    assert 4 == said.count("SQLite FTS5")
    assert "tantivy: not measured, no_such_package is not installed" in said
    assert "carag.TextIndex  0 of 60" in said


def test_filings_are_cut_as_they_are_indexed(tmp_path):
    """Chunks of a shared directory, headings of their own, questions of the benchmark."""
    import gzip
    import json

    (tmp_path / "edgar").mkdir()
    lines = [{"company": "Acme", "form": "10-K", "period": None, "text": "Net sales rose.\n\n" * 300}] * 3
    for name, rows in (("filings-00", lines), ("qa", [{"question": "What are net sales?"}])):
        with gzip.open(tmp_path / "edgar" / f"{name}.jsonl.gz", "wt") as file:
            file.write("\n".join(map(json.dumps, rows)))
    texts = filings(tmp_path, 5)
    assert 5 <= len(texts.tokens) == texts.documents.size
    assert tokenize("Acme 10-K") == texts.headings[0]
    assert [["what", "are", "net", "sales"]] == texts.questions
