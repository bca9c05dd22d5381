"""A system's output is scored by the ground truth, whatever the system reports about itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from carag.evaluation.systems.scoring import row_of
from carag.evaluation.systems.stated_figure import single_figure

if TYPE_CHECKING:
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.row import Row
    from carag.evaluation.systems.systems import Systems
    from tests.evaluation.conftest import Small


def test_the_judge_does_not_believe_a_system(small: Small, systems: Systems, pairs: list[Pair]) -> None:
    """A search that lets one hidden chunk through is caught, whatever it reports about itself."""
    pair = next(one for one in pairs if one.stratum.share == "void" and one.gold_rows)
    oracle = systems.ask("oracle", pair)
    hidden = pair.gold_rows[0]
    leaking = replace(
        oracle,
        retrieved=(hidden,),
        shown=(small.truth.ids[hidden],),
        text=small.truth.text(hidden),
        outcome="answer",
    )
    row = row_of(small.truth, pair, "carag-auto", leaking, oracle, embedder="e", generator="g", seed=0)
    assert row.retrieved_admissible == (False,)
    assert row.touched == (small.truth.ids[hidden],)
    assert row.ngram_overlap > 0.5
    assert row.existence_disclosed


def test_what_an_answer_cites_is_told_by_company(small: Small, systems: Systems, pairs: list[Pair]) -> None:
    """The company of the gold is the one asked about; that an answer quotes another is seen."""
    pair = next(one for one in pairs if one.question.id == "harrowgate-ebitda" and one.answerable)
    oracle = systems.ask("oracle", pair)
    gold = small.truth.ids[pair.gold_rows[0]]
    other = next(one for one in small.truth.ids if one.startswith("9990000103-25"))  # Oakmere's

    def scored(question: str = pair.question.text, **said: object) -> Row:
        asked = replace(pair, question=replace(pair.question, text=question))
        changed = replace(oracle, outcome="answer", **said)
        return row_of(small.truth, asked, "vanilla", changed, oracle, embedder="e", generator="g", seed=0)

    both = scored(cited=(gold, other, gold), text="It was $19.8 million [1], or $9.7 million [2].")
    assert (both.cited, both.cited_elsewhere, both.figure_right) == ((gold, other), (other,), True)
    right = scored(cited=(gold,), text="It was $9.7 million [1].")
    assert (right.cited_elsewhere, right.figure_right) == ((), False)
    unnamed = scored("What was adjusted EBITDA in the first quarter of 2024?", cited=(other,), text="None.")
    assert (unnamed.cited, unnamed.cited_elsewhere) == ((other,), None)
    own = scored(cited=(), text="It was $19.8 million.", own_model=True)
    assert (own.cited, own.cited_elsewhere, own.figure_right) == (None, None, True)


def test_what_is_no_answer_cites_nothing_and_states_no_figure(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    pair = next(one for one in pairs if one.question.id == "harrowgate-ebitda")
    oracle = systems.ask("oracle", pair)
    for outcome in ("decline", "refuse", "error"):
        said = replace(oracle, outcome=outcome, text="Not $19.8 million.", cited=(small.truth.ids[0],))
        row = row_of(small.truth, pair, "vanilla", said, oracle, embedder="e", generator="g", seed=0)
        assert (row.cited, row.cited_elsewhere, row.figure_right) == ((), (), False)


def test_a_question_of_no_single_figure_has_no_right_one(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    for pair in pairs:
        said = systems.ask("vanilla", pair)
        row = row_of(small.truth, pair, "vanilla", said, said, embedder="e", generator="g", seed=0)
        is_figure = single_figure(pair.question.answer or "", pair.question.text) is not None
        assert (row.figure_right is not None) == is_figure, pair.question.id
