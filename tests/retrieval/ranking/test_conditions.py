"""The conditions under which a fused answer is certified, those that the index of words does not meet for it.

Of the index alone they are stated in ``tests/index/test_text_index.py``. That an answer is that of a store without what
is hidden (1), and that the past has the statistics of then (9), are the laws beside this file.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.index import TextIndex
from carag.policy import QUARANTINE, Decision, Mask, Policy, policy_word
from carag.retrieval import Evidence
from carag.retrieval.public_names import PublicNames
from carag.retrieval.ranking import SIMILARITY, WORDS, Question
from carag.retrieval.reading import Lexicon
from tests.retrieval.ranking.worlds import (
    AS_OF,
    DIM,
    MATERIAL,
    Document,
    Label,
    Said,
    Text,
    World,
    draw_world,
    said_of,
)
from tests.sizes import examples

seeds = st.integers(0, 2**32 - 1)
OPEN, HIDDEN = Label(int(policy_word(1))), Label(int(policy_word(1)) | QUARANTINE)
ALL = Decision("role", "purpose", Policy(Mask()), AS_OF, None, False, "")
TABLE = PublicNames.parse(
    b'{"cik": 5, "name": "Amcor plc", "tickers": ["AMCR"]}\n{"cik": 9, "name": "Pfizer Inc", "tickers": ["PFE"]}'
)


def vector(cosine: float) -> tuple[float, ...]:
    """A unit vector of this cosine to the query."""
    return (cosine, float(np.sqrt(1 - cosine**2)), *[0.0] * (DIM - 2))


def a_world(*texts: tuple[str, float], question: str = "What of royalty?", k: int = 8, **more: Any) -> World:
    """A document of passages under the keys 0, 1, ..., with their words and their cosines to the query."""
    passages = tuple(
        Text(tuple(words.split()), vector(cosine), {key: OPEN}) for key, (words, cosine) in enumerate(texts)
    )
    document = Document("d", "Amcor plc", 5, "10-K", "", "2020-12-31", passages)
    return replace(World("edgar", (document,), question, ALL, vector(1.0), k), **more)


def scores(said: Said) -> list[float]:
    return np.frombuffer(said.scores).tolist()


@given(seeds)
@settings(max_examples=examples(40), deadline=None)
def test_2_the_order_in_which_documents_came_matters_to_nothing(seed: int) -> None:
    """Neither that of passages nor that of documents, in which names, kinds and newest reports are looked for."""
    rng = np.random.default_rng(seed)
    world = draw_world(rng)
    documents = [
        replace(one, texts=one.texts[::-1])
        for one in (world.documents[at] for at in rng.permutation(len(world.documents)))
    ]
    assert said_of(world) == said_of(replace(world, documents=tuple(documents)))


@given(seeds)
@settings(max_examples=examples(40), deadline=None)
def test_3_a_word_that_only_hidden_text_has_is_one_that_nobody_wrote(seed: int) -> None:
    """Together with others: the same scores and the same share, to the last bit."""
    world = draw_world(np.random.default_rng(seed))
    asked = world.question.removesuffix("?")
    hidden = Document("h", "", 0, "8-K", "", None, (Text(("xylograph",), world.query, {9_999: HIDDEN}),))
    both = replace(world, documents=(*world.documents, hidden))
    known, unknown = (
        said_of(replace(both, question=f"{asked} of {word}?")) for word in ("xylograph", "qwertzuiop")
    )
    assert known == unknown


def test_4_and_6_a_score_is_in_units_of_the_best_admissible_one() -> None:
    """The best by words has the full weight of words, even if a hidden passage would have more."""
    plain = a_world(("royalty", 0.5), ("royalty sales sales sales sales", 0.5), ("sales", 0.5))
    hidden = Document(
        "h", "Amcor plc", 5, "10-K", "", None, (Text(("royalty",) * 50, vector(1.0), {9: HIDDEN}),)
    )
    for world in (plain, replace(plain, documents=(hidden, *plain.documents))):
        said = said_of(world)
        assert said.keys == (0, 1, 2)
        assert scores(said)[0] == SIMILARITY * 0.5 + WORDS
        assert scores(said)[2] == SIMILARITY * 0.5


def test_5_ties_go_to_the_smaller_key_and_rows_without_a_word_fill_up() -> None:
    """As many as are wanted, also where nothing holds a term or all are alike."""
    alike = a_world(*[("sales", 0.5)] * 6, k=4)
    assert said_of(alike).keys == (0, 1, 2, 3)
    assert said_of(replace(alike, question="What of sales?")).keys == (0, 1, 2, 3)
    assert len(said_of(replace(alike, k=60)).keys) == 6
    assert float.fromhex(said_of(alike).share) == 0


def test_5_ties_of_two_searches_go_to_the_smaller_key() -> None:
    """What cooled down and what never had to are searched apart, and are one order."""
    alike = a_world(*[("sales", 0.5)] * 4, decision=replace(ALL, cooling=10))
    document = alike.documents[0]
    for material in ({0}, {1}, {0, 3}, {1, 2}):
        texts = tuple(
            replace(text, labels={key: OPEN._replace(word=OPEN.word | (MATERIAL if key in material else 0))})
            for key, text in enumerate(document.texts)
        )
        world = replace(alike, documents=(replace(document, texts=texts),))
        for k in (1, 2, 3, 4):
            assert said_of(replace(world, k=k)).keys == tuple(range(k))


def test_5_a_row_is_not_missed_for_being_far_and_outside_of_the_best_by_words() -> None:
    """Its words and its cosine are each below the k best of either; together they are the best there is."""
    near = [("sales", 0.9)] * 10
    wordy = [("royalty royalty royalty", -0.9)] * 10
    said = said_of(a_world(*near, *wordy, ("royalty royalty", 0.85), k=1))
    assert said.keys == (20,)


def test_5_both_ways_of_finding_the_rest_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mostly the k best by words are enough; where they are not, the rest above a floor are asked for."""
    floors: list[float] = []
    search = TextIndex.search

    def seen(self: TextIndex, *given: Any, **named: Any) -> Any:
        if "floor" in named:
            floors.append(named["floor"])
        return search(self, *given, **named)

    monkeypatch.setattr(TextIndex, "search", seen)
    asked = 80
    for seed in range(asked):
        said_of(draw_world(np.random.default_rng(seed)))
    assert 0 < len(floors) < asked / 2
    assert any(floors)


def test_5_as_many_rows_of_a_kind_as_are_wanted_leave_room_for_words() -> None:
    """Only rows about the entity named come before all others; rows of a kind that is named need not."""
    of_kind = a_world(("sales", 0.2), ("sales", 0.2), question="What royalty do annual reports state?", k=2)
    texts = tuple(Text(("royalty",), vector(0.0), {key: OPEN}) for key in (8, 9))
    other = Document("o", "Target Corp", 7, "8-K", "", None, texts)
    said = said_of(replace(of_kind, documents=(other, *of_kind.documents)))
    assert (said.keys, said.about) == ((8, 9), None)
    assert scores(said) == [WORDS, WORDS]


@pytest.mark.parametrize("cosine", [-1.0, -0.2, 0.0])
def test_what_is_named_comes_before_what_is_close(cosine: float) -> None:
    """Also where a passage of somebody else says the question word for word: then it is shown to no generator."""
    named = a_world(("sales", cosine), question="What royalty does Amcor pay?")
    other = Document(
        "o", "Target Corp", 7, "10-K", "", None, (Text(("royalty", "pay"), vector(1.0), {9: OPEN}),)
    )
    said = said_of(replace(named, documents=(other, *named.documents)))
    assert (said.keys, said.about) == ((0, 9), frozenset({0}))


def test_7_names_of_a_public_table_are_known_whether_or_not_documents_are_hidden() -> None:
    """A company that the table names is read alike whether its documents are hidden or absent."""
    asked = "What royalty does Pfizer pay?"
    world = a_world(("royalty", 0.5), question=asked)
    hidden = Document("h", "Pfizer Inc", 9, "10-K", "", None, (Text(("royalty",), vector(0.9), {9: HIDDEN}),))
    absent, concealed = (
        said_of(one, TABLE) for one in (world, replace(world, documents=(hidden, *world.documents)))
    )
    assert absent == concealed
    assert absent.topic == ("Pfizer", "Pfizer", "")
    assert said_of(world).topic != absent.topic  # not named: then it is an unheard word, as hidden as absent
    assert said_of(world) == said_of(replace(world, documents=(hidden, *world.documents)))


def test_a_question_is_searched_by_the_lexicon_that_is_asked() -> None:
    """What is kept for a second ranking is not taken for another profile's."""
    question = Question("What was capex?", np.array(vector(1.0), np.float32))
    plain, lexicon = Lexicon(), Lexicon("capex\tpurchases of property")
    for _ in range(2):
        assert question.terms(plain) == ["what", "was", "capex"]
        assert question.terms(lexicon) == ["what", "was", "capex", "purchases", "of", "property"]


def test_8_what_a_session_gets_has_no_number_of_work() -> None:
    """What was read, skipped or scored moves with hidden text; evidence has no place for it."""
    assert {one.name for one in fields(Evidence)} == {
        *(
            "passages",
            "withheld",
            "plan",
            "admissible",
            "known_at",
            "topic",
            "words",
            "nearest",
            "about",
            "lenders",
            "backend",  # what was searched; the record takes no number of rows of it
            "respelt",
            "audiences",  # of what is found, which proofs need
        )
    }
