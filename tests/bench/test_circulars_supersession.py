"""A statement counts as read right only if act and other are the marked ones."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.circulars.supersession import Marked, is_right, wilson
from carag.labelling.document import ActKind
from carag.profiles.circulars.references import Reference
from carag.profiles.circulars.supersession import Statement

NUMBER, DAY = "DOR.REC.5/21.04.048/2024-25", date(2024, 4, 1)


def marked(act: str = "replaces", number: str | None = NUMBER, title: str | None = None) -> Marked:
    return Marked("c", 10, 20, act, number, title, DAY if number else None, None)


def read(kind: ActKind = ActKind.REPLACES, **other: object) -> Statement:
    named = Reference(10, 20, **{"numbers": (NUMBER,), **other})  # type: ignore[arg-type]
    return Statement(kind, 10, 20, named)


def test_the_same_act_on_the_same_number_is_right_however_it_is_spelt() -> None:
    assert is_right(marked(), read(numbers=("DoR. REC.No.05/21.04.048/2024-2025",)))


@pytest.mark.parametrize(
    "wrong",
    [
        read(ActKind.WITHDRAWS),
        read(numbers=("DOR.REC.6/21.04.048/2024-25",), date=DAY),
        Statement(ActKind.REPLACES, 10, 20, None),
    ],
)
def test_another_act_number_or_nobody_is_wrong(wrong: Statement) -> None:
    assert not is_right(marked(), wrong)


def test_without_a_number_the_title_decides_and_without_either_the_place() -> None:
    by_title = marked(number=None, title="Master Direction - Interest Rate on Dep")
    assert is_right(by_title, read(numbers=(), title="Interest Rate on Deposits Directions, 2016"))
    assert not is_right(by_title, read(numbers=(), title="Interest on Advances Directions, 2016"))
    assert is_right(marked(number=None), Statement(ActKind.REPLACES, 15, 30, None))
    assert not is_right(marked(number=None), Statement(ActKind.REPLACES, 20, 30, None))


@given(st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_stays_within_0_and_1(counts: tuple[int, int]) -> None:
    low, high = wilson(*counts)
    assert -1e-12 <= low <= counts[0] / counts[1] + 1e-12
    assert counts[0] / counts[1] - 1e-12 <= high <= 1 + 1e-12
