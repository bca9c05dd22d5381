"""The bench of searches by words: a small one runs, and what hidden rows move is what the report says."""

from __future__ import annotations

import numpy as np
import pytest

from bench.text import __main__ as bench
from bench.text.worlds import SHARES, drawn


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
