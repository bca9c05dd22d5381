"""The index of n-grams counts as sets of them do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from carag.evaluation.cases.gold import ngrams
from carag.evaluation.cases.ngram_index import NGRAM_SIZE, NgramIndex
from tests.evaluation.cases.words import WORD


@given(st.lists(st.lists(WORD, max_size=20), max_size=6), st.lists(WORD, max_size=30), st.data())
def test_the_gram_index_counts_as_sets_do(
    texts: list[list[str]], said: list[str], draw: st.DataObject
) -> None:
    flags = draw.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    spoken = ngrams(" ".join(said), NGRAM_SIZE)
    held = [ngrams(" ".join(text), NGRAM_SIZE) for text in texts]
    hidden = {
        gram
        for gram in spoken
        if any(gram in one for one in held)
        and not any(gram in one for one, is_open in zip(held, flags, strict=True) if is_open)
    }
    index = NgramIndex([" ".join(text) for text in texts])
    share = index.hidden_share(" ".join(said), np.array(flags, bool))
    assert share == (len(hidden) / len(spoken) if spoken else 0.0)
    assert index.hidden_share(" ".join(said), np.array(flags, bool), known=" ".join(said)) == 0.0
