"""The report on circulars judges passages by one rule, splits by circular, and is what the kept rows make."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bench.circulars.gates import KEPT, PAGE, Run, calibrations, gold_of, judged, page, read_run
from bench.circulars.gold import Asked, families, holds, is_held_out, read_questions
from bench.circulars.selective import Row, measured_over, share_interval, splits
from carag.policy import Profile
from carag.retrieval import calibrations_of


@pytest.mark.parametrize(
    ("passage", "is_held"),
    [
        (("a", 100, 200), True),
        (("a", 50, 150), True),  # half of the clause
        (("a", 50, 149), False),
        (("a", 0, 900), True),  # all of the clause, a little of the passage
        (("a", 180, 220), True),  # half of the passage, a fifth of the clause
        (("a", 181, 221), False),
        (("b", 100, 200), False),
        (("b", 0, 10), True),  # the twin
    ],
)
def test_a_passage_holds_a_clause_if_they_share_half_of_either(
    passage: tuple[str, int, int], is_held: bool
) -> None:
    assert holds(passage, [("a", 100, 200), ("b", 0, 10)]) is is_held
    assert not holds(passage, [])


def asked(name: str, *circulars: str) -> Asked:
    gold = tuple((one, 0, 10) for one in circulars)
    kind = "on" if circulars else "near"
    return Asked(name, kind, "?", circulars[0] if circulars else None, gold, ("x",) if circulars else ())


def test_no_split_and_no_half_shares_a_circular() -> None:
    """Questions that share a circular by way of others form one family, and a family stays on one side."""
    some = [asked("1", "a", "b"), asked("2", "c"), asked("3", "b", "c"), asked("4", "d"), asked("5")]
    assert families(some) == families(some[::-1]) == {"1": "a", "2": "a", "3": "a", "4": "d", "5": "5"}
    questions = [one for one in read_questions() if one.gold]
    family = families(questions)
    circulars = [{circular for circular, _, _ in one.gold} for one in questions]
    of = [family[one.id] for one in questions]
    for half in [*splits(of, 20), np.array([is_held_out(one) for one in of])]:
        sides = [[at for at, is_in in enumerate(half.tolist()) if is_in is side] for side in (True, False)]
        one, other = ({name for at in side for name in circulars[at]} for side in sides)
        assert not one & other
        assert all(len(side) > len(of) / 5 for side in sides)


def row(family: str, score: float, *, right: bool, answered: bool = True) -> Row:
    return Row(family, score, answered, right, found=right)


def test_a_score_that_knows_keeps_its_promise_and_one_that_does_not_answers_nothing() -> None:
    """What the generator declines does not count as a wrong answer."""
    knows = [row(str(number), 0.9 - 0.5 * (number % 2), right=number % 2 == 0) for number in range(200)]
    found = measured_over(knows, Fraction(1, 10))
    assert (found.found, found.empty, found.over_refusal) == (200, 0, 0)
    assert found.wrong is not None
    assert found.wrong <= 0.11
    assert 0.45 < found.coverage < 0.55
    blind = [one._replace(score=0.5) for one in knows]
    assert measured_over(blind, Fraction(1, 10)) == (0, None, 0.0, 1.0, 0)
    silent = [one._replace(answered=one.right) for one in blind]
    assert measured_over(silent, Fraction(1, 10)).wrong == 0


def test_an_interval_is_drawn_over_families_and_not_over_questions() -> None:
    apart = share_interval({str(number): [number % 2 == 0] for number in range(100)})
    together = share_interval({str(number): [number % 2 == 0] * 25 for number in range(4)})
    assert apart[0] == together[0] == 0.5
    assert together[2] - together[1] > 2 * (apart[2] - apart[1])


def test_an_answer_is_right_only_by_a_passage_that_it_cites() -> None:
    question = asked("1", "a")
    run = Run({"1": question}, families([question]), ["z", "a"], {}, {})
    given = {"id": "1", "top": [[0, 0, 10], [1, 0, 10]], "code": "ANSWERED", "cited": [0], "nearest": 0.5}
    assert gold_of(run, given) == [False, True]
    assert judged(run, given) == Row("a", 0.5, True, right=False, found=True)
    assert judged(run, {**given, "cited": [0, 1]}).right
    assert not judged(run, {**given, "code": "BELOW_GATE", "cited": []}).answered


@pytest.mark.release
def test_the_page_is_what_the_kept_rows_make() -> None:
    assert page(read_run(KEPT, read_questions())) == PAGE.read_text("utf-8")


def test_the_gate_that_the_profile_ships_is_what_the_kept_rows_make() -> None:
    """Every question was asked in every system, and the rows hold no text."""
    run = read_run(KEPT, read_questions())
    shipped = calibrations_of(Profile.open("circulars"))
    assert {name: one for name, (one, _) in calibrations(run).items()} == shipped
    assert len(run.rows) == 4
    for rows in run.rows.values():
        assert rows.keys() == run.questions.keys()
        for one in rows.values():
            assert all(
                name in ("system", "id", "code") or not isinstance(value, str) for name, value in one.items()
            )
