"""The report on circulars judges passages by one rule, splits by circular, and is what the rows that are kept make."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.circulars.asking import RANKERS, ask_all, done, mmr
from bench.circulars.gates import calibrations
from bench.circulars.gold import Asked, families, holds, is_held_out, read_questions
from bench.circulars.kept import KEPT, OWN, SCORES, Run, gold_of, judged, read_run
from bench.circulars.lengths import cut_to
from bench.circulars.report import PAGE, page
from bench.circulars.selective import (
    Row,
    measured_over,
    risk_coverage,
    share_interval,
    splits,
)
from carag.policy import Profile
from carag.retrieval import calibrations_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize(
    ("passage", "is_held"),
    [
        (("a", 100, 200), True),
        (("a", 50, 150), True),  # half of the clause
        (("a", 50, 149), False),
        (("a", 0, 900), True),  # all of the clause, a little of the passage
        (("a", 180, 220), True),  # half of the passage, a fifth of the clause
        (("a", 181, 221), False),
        (("a", 200, 300), False),
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


def test_questions_that_share_a_circular_by_way_of_others_are_one_family() -> None:
    some = [asked("1", "a", "b"), asked("2", "c"), asked("3", "b", "c"), asked("4", "d"), asked("5")]
    assert families(some) == {"1": "a", "2": "a", "3": "a", "4": "d", "5": "5"}
    assert families(some) == families(some[::-1])


def test_no_split_and_no_half_shares_a_circular() -> None:
    questions = [one for one in read_questions() if one.gold]
    family = families(questions)
    circulars = {one.id: {circular for circular, _, _ in one.gold} for one in questions}

    def apart(some: list[str], others: list[str]) -> bool:
        return not (
            set().union(*(circulars[one] for one in some)) & set().union(*(circulars[one] for one in others))
        )

    ids = list(family)
    drawn = list(splits([family[one] for one in ids], 20))
    assert len({tuple(one) for one in drawn}) == 20
    for calibrates in [*drawn, np.array([is_held_out(family[one]) for one in ids])]:
        sides = [
            [one for one, is_in in zip(ids, calibrates.tolist(), strict=True) if is_in is side]
            for side in (True, False)
        ]
        assert all(len(side) > len(ids) / 5 for side in sides)
        assert apart(*sides)


def test_the_curve_takes_equal_scores_together() -> None:
    scores, right = [0.2, 0.9, 0.5, 0.5], [False, True, True, False]
    assert risk_coverage(scores, right, 8) == [(1 / 8, 0), (3 / 8, 1 / 3), (4 / 8, 2 / 4)]


def row(family: str, score: float, *, right: bool, answered: bool = True) -> Row:
    return Row(family, score, answered, right, found=right)


def test_a_score_that_knows_keeps_its_promise_and_one_that_does_not_answers_nothing() -> None:
    knows = [row(str(number), 0.9 - 0.5 * (number % 2), right=number % 2 == 0) for number in range(200)]
    found = measured_over(knows, Fraction(1, 10))
    assert (found.found, found.empty) == (200, 0)
    assert found.wrong is not None
    assert found.wrong <= 0.11
    assert 0.45 < found.coverage < 0.55
    assert found.over_refusal == 0

    blind = [one._replace(score=0.5) for one in knows]
    assert measured_over(blind, Fraction(1, 10)) == (0, None, 0.0, 1.0, 0)


def test_what_the_generator_declines_is_no_wrong_answer() -> None:
    rows = [row(str(number), 0.5, right=number % 2 == 0, answered=number % 2 == 0) for number in range(100)]
    found = measured_over(rows, Fraction(1, 10))
    assert (found.wrong, found.over_refusal) == (0, 0)
    assert 0.4 < found.coverage < 0.6


def test_an_interval_is_of_families_and_not_of_questions() -> None:
    apart = share_interval({str(number): [number % 2 == 0] for number in range(100)})
    together = share_interval({str(number): [number % 2 == 0] * 25 for number in range(4)})
    assert apart[0] == together[0] == 0.5
    assert together[2] - together[1] > 2 * (apart[2] - apart[1])


CIRCULARS = [
    {
        "id": f"bae:{number}",
        "text": f"{title}\n1. {text}\n2. This circular is addressed to all commercial banks.",
        "title": title,
        "date": "2024-03-0" + str(number),
        "circular_number": f"BAE/2023-24/{number}",
        "meant_for": "All Commercial Banks",
        "department": "Department of Regulation",
    }
    for number, (title, text) in enumerate(
        [
            ("Small wallets", "The balance of a small wallet shall not exceed 10,000 crowns."),
            ("Gold loans", "A gold loan shall be repaid within twelve months of its grant."),
        ],
        1,
    )
] + [{"id": "bae:3", "text": "", "title": "A scan", "date": "2024-03-03"}]


@pytest.mark.release
def test_every_system_is_asked_and_rows_say_what_it_found_and_how_often_a_model_ran(tmp_path: Path) -> None:
    pytest.importorskip("langchain_text_splitters")
    (tmp_path / "rbi").mkdir()
    lines = "".join(json.dumps(one) + "\n" for one in CIRCULARS)
    (tmp_path / "rbi" / "circulars.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    at = CIRCULARS[0]["text"].index("The balance")
    questions = [
        Asked(
            "1",
            "on",
            "What balance may a small wallet have at most?",
            "bae:1",
            (("bae:1", at, at + 61),),
            ("10,000 crowns", "20,000"),
        ),
        Asked("2", "off", "Who won the regatta on the lake of Geneva?", None, (), ()),
    ]
    ask_all(tmp_path, questions, tmp_path, tmp_path / "work", ["wordllama"])
    run = read_run(tmp_path, questions)
    assert run.ids == ["bae:1", "bae:2", "bae:3"]
    assert run.ingest["not stored"] == ["bae:3"]
    assert "empty" in run.ingest["problems"][0]
    assert run.ingest["hidden"] == {"analyst": [], "compliance": []}
    assert len(run.rows) == 2 * (len(RANKERS) + 1) + 2 * 3
    for system, rows in run.rows.items():
        if not system.startswith("gated"):
            assert gold_of(run, rows["1"])[0], system
            assert rows["1"]["facts"][0] == [0], system
            assert not any(gold_of(run, rows["2"])), system
    for cell in ("analyst", "compliance"):
        answered = run.rows[f"carag wordllama {cell} {OWN}"]["1"]
        assert (answered["code"], answered["calls"], answered["said"]) == ("ANSWERED", 1, [0])
        gated = run.rows[f"gated wordllama {cell}"]
        assert [gated[one]["calls"] for one in ("1", "2")] == [1, 0]
        assert gated["2"]["code"] == "BELOW_GATE"


def test_mmr_is_the_formula() -> None:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(12, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = vectors[4]
    assert mmr(vectors, query, 1.0, 12) == np.argsort(-(vectors @ query), kind="stable").tolist()
    for weight, k in product((0.0, 0.3, 0.5), (1, 6, 12)):
        chosen = mmr(vectors, query, weight, k)
        assert len(set(chosen)) == k
        for at in range(1, k):
            before = chosen[:at]
            merit = {
                one: weight * vectors[one] @ query
                - (1 - weight) * max(vectors[one] @ vectors[two] for two in before)
                for one in range(12)
                if one not in before
            }
            assert merit[chosen[at]] == pytest.approx(max(merit.values()), abs=1e-6)


def test_an_answer_is_right_only_by_a_passage_that_it_cites() -> None:
    question = asked("1", "a")
    run = Run({"1": question}, families([question]), ["z", "a"], {}, {})
    given = {
        "id": "1", "top": [[0, 0, 10], [1, 0, 10]], "code": "ANSWERED", "cited": [0], "nearest": 0.5, "words": 0.5,
        "scores": [0.75, 0.25],
    }  # fmt: skip
    score = SCORES["margin"]
    assert gold_of(run, given) == [False, True]
    assert judged(run, given, score) == Row("a", 0.5, True, right=False, found=True)
    assert judged(run, {**given, "cited": [0, 1]}, score).right
    assert not judged(run, {**given, "code": "BELOW_GATE", "cited": []}, score).answered


def test_the_page_is_what_the_kept_rows_make() -> None:
    run = read_run(KEPT, read_questions())
    assert page(run) == PAGE.read_text("utf-8")


def test_the_gate_that_the_profile_ships_is_what_the_kept_rows_make() -> None:
    run = read_run(KEPT, read_questions())
    assert {name: one for name, (one, _) in calibrations(run).items()} == calibrations_of(
        Profile.open("circulars")
    )


def test_a_run_that_was_stopped_asks_only_what_is_left(tmp_path: Path) -> None:
    part, asked = tmp_path / "new" / "part.jsonl", []

    def rows(fails: bool) -> Iterator[dict[str, int]]:
        for number in range(3):
            asked.append(number)
            if fails and number == 1:
                raise KeyboardInterrupt
            yield {"id": number}

    with pytest.raises(KeyboardInterrupt):
        done(part, lambda: rows(fails=True))
    assert not part.exists()
    for _ in range(2):
        assert done(part, lambda: rows(fails=False)) == part
    assert part.read_text("utf-8") == '{"id":0}\n{"id":1}\n{"id":2}\n'
    assert asked == [0, 1, 0, 1, 2]


def test_lengths_are_compared_in_a_profile_that_differs_in_nothing_else(tmp_path: Path) -> None:
    own, cut = Profile.open("circulars"), Profile.open(cut_to(tmp_path, 1200, 1700, 2200))
    assert (cut.texts[1], cut.reading) == (own.texts[1], own.reading)
    changed = set(cut.texts[0].splitlines()) - set(own.texts[0].splitlines())
    assert changed == {"target = 1200", "limit = 1700", "whole = 2200"}


def test_every_system_was_asked_every_question_and_rows_hold_no_text() -> None:
    run = read_run(KEPT, read_questions())
    assert {name.split()[1] for name in run.rows} == {"minilm", "wordllama"}
    assert len(run.rows) == 2 * (2 * 4 + 2 + 2 * 3)
    for rows in run.rows.values():
        assert rows.keys() == run.questions.keys()
        for one in rows.values():
            assert all(
                isinstance(value, int | float | bool | list) or name in ("system", "id", "code")
                for name, value in one.items()
            )
            assert not any(
                isinstance(part, str) for value in one.values() if isinstance(value, list) for part in value
            )
