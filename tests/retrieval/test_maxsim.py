"""MaxSim compares each token of a question with the nearest token of a passage, on the default embedder's states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval import reranker_by_name
from carag.retrieval.maxsim import MaxSim
from carag.retrieval.minilm import MiniLm
from tests.sizes import examples

FILLER = "The registrant files annual, quarterly and current reports with the Commission. "
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(str.strip)


@pytest.fixture(scope="module")
def maxsim() -> MaxSim:
    return MaxSim(threads=2)


@settings(max_examples=examples(25), deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_scores_lie_in_0_to_1_each_its_own_and_an_identical_text_has_1(
    maxsim: MaxSim, question: str, texts: list[str]
) -> None:
    scores = maxsim.rerank(question, [*texts, question])
    assert all(0 <= score <= 1 for score in scores)
    assert pytest.approx(1, abs=1e-6) == scores[-1]
    assert scores[::-1] == maxsim.rerank(question, [question, *texts[::-1]])
    assert [maxsim.rerank(question, [text])[0] for text in texts] == scores[:-1]


def test_a_score_is_what_a_loop_over_the_tokens_gives(maxsim: MaxSim) -> None:
    states = MiniLm().of_windows(["Who audits it?", "The auditor reviewed it."], lambda hidden: hidden)
    (question,), (text,) = states
    best = [
        max(float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)) for other in text)
        for one in question
    ]
    assert (
        pytest.approx(sum(best) / len(best), abs=1e-6)
        == maxsim.rerank("Who audits it?", ["The auditor reviewed it."])[0]
    )


def test_the_passage_that_answers_comes_first(maxsim: MaxSim) -> None:
    texts = [
        "Snow fell on the mountains.",
        "Our independent auditor reviewed the accounts.",
        "Chess is a game.",
    ]
    assert 1 == int(np.argmax(maxsim.rerank("Who audits the company's accounts?", texts)))


def test_a_statement_in_the_tail_of_a_long_passage_counts(maxsim: MaxSim) -> None:
    """Where a mean over the passage would be drowned, its own tokens are found."""
    fact = "The chief executive was dismissed for insider trading in uranium shares."
    with_fact, without = maxsim.rerank(fact, [FILLER * 40 + fact, FILLER * 41])
    assert with_fact > without + 0.2


def test_it_is_local_named_and_the_same_with_any_threads(maxsim: MaxSim) -> None:
    texts = [FILLER * 30, "Net sales rose.", FILLER]
    made = reranker_by_name("maxsim", {"threads": 1})
    assert ("maxsim", False) == (made.name, made.remote)
    assert MaxSim.fingerprint == made.fingerprint != MiniLm.fingerprint
    assert maxsim.rerank("sales?", texts) == made.rerank("sales?", texts)
    assert [] == made.rerank("sales?", [])


def test_what_has_no_words_is_refused(maxsim: MaxSim) -> None:
    with pytest.raises(InvalidArgument, match="text 0 is empty"):
        maxsim.rerank(" ", ["a"])
    with pytest.raises(InvalidArgument, match="text 1 is empty"):
        maxsim.rerank("a", ["a", ""])
    with pytest.raises(InvalidArgument, match="threads"):
        reranker_by_name("maxsim", {"threads": 0})
