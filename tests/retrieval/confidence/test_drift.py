"""Drift of questions is detected; without it a false alarm ever has the stated probability at most."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

from carag.retrieval import Drift
from carag.retrieval.confidence import calibration
from tests.sizes import examples

STREAMS = examples(400, least=150)
LENGTH = 150


def continuous(chance: random.Random) -> int:
    return round(chance.gauss(600_000, 80_000))


def tied(chance: random.Random) -> int:
    return chance.randrange(4) * 100_000


def moved(chance: random.Random) -> int:
    """Another kind of question: none is as close as the ordinary ones."""
    return round(chance.gauss(250_000, 50_000))


def alarms(watch: Any, draw: Any, n: int) -> int:
    """Count the streams, each like its calibration on n questions, that ever raise an alarm."""
    count = 0
    for number in range(STREAMS):
        chance = random.Random(f"{draw.__name__} {n} {number}")  # noqa: S311 - a simulation
        drift = watch([draw(chance) for _ in range(n)])
        count += any(drift.sees(draw(chance)) for _ in range(LENGTH))
    return count


def is_kept(count: int, share: float) -> bool:
    """Tell whether a count of streams is the share or less, within four standard errors."""
    return count <= STREAMS * share + 4 * math.sqrt(STREAMS * share * (1 - share))


@pytest.mark.parametrize("n", [5, 20, 100])
@pytest.mark.parametrize("draw", [continuous, tied])
def test_a_false_alarm_is_as_rare_as_stated(draw: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stated as one in five here, which this number of streams can measure."""
    monkeypatch.setattr(calibration, "_FALSE_ALARM", Fraction(1, 5))
    assert is_kept(alarms(Drift, draw, n), 1 / 5)


class Unfair(Drift):
    """Breaks ties for the alarm: of two equal scores the later one counts as less."""

    def __init__(self, calibrated: list[int]) -> None:
        super().__init__([one * 1000 for one in calibrated])

    def sees(self, score: int) -> bool:
        return super().sees(score * 1000 - self._count)


class TooBold(Drift):
    """Puts all of its capital on every score."""

    def sees(self, score: int) -> bool:
        self._bet = max(self._bet, 1.0)
        return super().sees(score)


@pytest.mark.parametrize(("watch", "draw"), [(Unfair, tied), (TooBold, continuous)])
def test_a_wrong_martingale_breaks_the_law(watch: Any, draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_FALSE_ALARM", Fraction(1, 5))
    assert not is_kept(alarms(watch, draw, 20), 1 / 5)


@pytest.mark.parametrize(
    ("n", "before", "within"), [(30, 0, 60), (100, 0, 20), (100, 500, 20), (1000, 900, 12)]
)
def test_drift_is_noticed_soon_also_after_a_long_good_time(n: int, before: int, within: int) -> None:
    chance = random.Random(f"{n} {before}")  # noqa: S311 - a simulation
    for _ in range(examples(50)):
        drift = Drift([continuous(chance) for _ in range(n)])
        assert not any(drift.sees(continuous(chance)) for _ in range(before))
        assert any(drift.sees(moved(chance)) for _ in range(within))


def test_closer_questions_are_no_drift() -> None:
    chance = random.Random(1)  # noqa: S311 - a simulation
    drift = Drift([moved(chance) for _ in range(100)])
    assert not any(drift.sees(continuous(chance)) for _ in range(1000))


def test_one_question_asked_again_and_again_is_weaker_evidence_than_as_many_others() -> None:
    """Its repetitions tie with each other; of a small calibration they raise no alarm at all."""
    again = Drift(range(400_000, 400_020))
    assert not any(again.sees(100_000) for _ in range(500))
    others = Drift(range(400_000, 400_020))
    assert any(others.sees(100_000 - number) for number in range(20))
