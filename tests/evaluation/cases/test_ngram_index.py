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


BEFORE, AFTER = "one two three four five six seven eight nine", "ten eleven twelve a b c d e f"
HIDDEN = f"{BEFORE} {AFTER}"


def test_two_admissible_quotations_side_by_side_disclose_nothing() -> None:
    """Though a hidden passage has the same words in a row."""
    index, is_open = NgramIndex([BEFORE, AFTER, HIDDEN]), np.array([True, True, False])
    assert index.hidden_share([BEFORE, AFTER], is_open) == 0
    assert index.hidden_share(f"{BEFORE} {AFTER}", is_open) == 7 / 11


def test_a_hidden_passage_is_seen_on_either_side_of_a_citation() -> None:
    """A mark put into the midst of hidden words hides no more than its neighbours, were those admissible."""
    index = NgramIndex([BEFORE, AFTER, HIDDEN])
    for is_open in ([True, False, False], [False, True, False], [False, False, False]):
        assert index.hidden_share([BEFORE, AFTER], np.array(is_open)) > 7 / 11
    # Too few words to tell where they come from: the seven across the end count.
    assert index.hidden_share([BEFORE, "ten eleven twelve"], np.array([True, True, False])) == 3 / 5


@given(
    st.lists(st.lists(WORD, max_size=20), max_size=5),
    st.lists(st.lists(WORD, max_size=12), max_size=4),
    st.data(),
)
def test_marks_between_quotations_lower_the_share_and_never_raise_it(
    texts: list[list[str]], said: list[list[str]], draw: st.DataObject
) -> None:
    flags = np.array(draw.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), bool)
    index = NgramIndex([" ".join(text) for text in texts])
    quotations = [" ".join(words) for words in said]
    assert index.hidden_share(quotations, flags) <= index.hidden_share(" ".join(quotations), flags)
