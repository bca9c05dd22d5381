"""Sound targets give no false alarm: the oracle in many variations, and our own index."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from carag.evaluation.attack import Bounds, attack
from carag.evaluation.attack.timing import p_value
from tests.attack.oracle import FakeClock, Oracle
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.evaluation.attack import Report

RUNS = examples(25, least=20)  # 5 runs of each of 20 targets at the full size
SMALL = Bounds(hidden=30, repeats=3)


def varied(**changes: Any) -> Oracle:
    """Return an oracle with other attributes; None takes a method away."""
    target = Oracle(scoring=changes.pop("scoring", "vector"), delay=changes.pop("delay", 0.001))
    for name, value in changes.items():
        setattr(target, name, value)
    return target


def by_id_downwards(hits: Any) -> Any:
    return sorted(hits, key=lambda hit: (-hit[1], [-ord(one) for one in hit[0]]))


def shuffled(hits: Any) -> Any:
    """Order rows of equal rounded scores by chance."""
    return sorted(hits, key=lambda hit: (-round(hit[1], 1), random.random()))  # noqa: S311


class Refusing(Oracle):
    """Raises where no one is named, and for names that no document has."""

    def search(self, query: str, k: int, as_whom: str | None) -> Any:
        if not as_whom or not self.known(as_whom):
            raise PermissionError("no reader")
        return super().search(query, k, as_whom)


class Pairs(Oracle):
    """Returns bare pairs, in lists."""

    def search(self, query: str, k: int, as_whom: str | None) -> Any:
        return [[*hit] for hit in super().search(query, k, as_whom).hits]


class Padded(Oracle):
    """Holds documents of its own, which every reader may see and which come last."""

    def search(self, query: str, k: int, as_whom: str | None) -> Any:
        found = super().search(query, k, as_whom)
        own = [(f"own-{number}", 0.0) for number in range(k)] if as_whom and self.known(as_whom) else []
        return found._replace(hits=[*found.hits, *own][:k])


class Plain(Oracle):
    """Answers with a bare text."""

    def ask(self, question: str, as_whom: str) -> Any:
        return super().ask(question, as_whom).text


def our_index() -> Any:
    from bench.attack.targets.carag_index import target

    return target()


SOUND: dict[str, Callable[[], Any]] = {
    "vectors": Oracle,
    "words": lambda: Oracle(scoring="words"),
    "scores of 3 digits": lambda: varied(digits=3),
    "words, scores of 1 digit": lambda: varied(digits=1, scoring="words"),
    "no scores": lambda: varied(digits=-1),
    "ties by id downwards": lambda: varied(order=by_id_downwards),
    "ties by chance": lambda: varied(order=shuffled, digits=1),
    "slow": lambda: varied(delay=0.05),
    "of noisy time": lambda: varied(clock=FakeClock(noise=0.01)),
    "words, of noisy time": lambda: varied(clock=FakeClock(noise=0.3), scoring="words"),
    "refusing": Refusing,
    "pairs": Pairs,
    "padded": Padded,
    "plain answers": Plain,
    "readers of its own": lambda: varied(people=("ann", "bob")),
    "no delete": lambda: varied(delete=None),
    "no relabel, get or ask": lambda: varied(relabel=None, get=None, ask=None),
    "add and search alone": lambda: varied(
        delete=None, relabel=None, get=None, ask=None, files=None, search_where=None, close=None
    ),
    "no filters": lambda: varied(search_where=None),
    "our index": our_index,
}


def attacked(name: str, seed: int) -> Report:
    target = SOUND[name]()
    # Our index is timed by a clock that stands still: how fast the machine is must not decide a test.
    return attack(target, name, SMALL, seed=seed, clock=getattr(target, "clock", FakeClock()))


def test_there_are_twenty() -> None:
    assert len(SOUND) == 20


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found(name: str) -> None:
    """Nor in other draws, of which the full size makes a hundred in all."""
    for seed in range(max(1, RUNS // 50)):
        report = attacked(name, seed)
        assert () == report.findings
        assert report.exit_code == 0
        left = len(report.outcomes) if name in ("no delete", "add and search alone") else 0
        assert bool(left) == bool(report.left)


@pytest.mark.parametrize("shift", [0.0, 0.0002])
def test_the_time_of_a_sound_target_is_as_rarely_alarming_as_the_p_value_says(shift: float) -> None:
    """Drawn differences without an effect exceed a p-value of 0.05 as often as it says; planted ones always."""
    drawn = random.Random(7)  # noqa: S311 - a test
    runs = examples(400)
    alarms = sum(p_value([shift + drawn.gauss(0, 0.0001) for _ in range(12)]) <= 0.05 for _ in range(runs))
    assert alarms == runs if shift else alarms <= 0.05 * runs + 4 * (0.05 * 0.95 * runs) ** 0.5
