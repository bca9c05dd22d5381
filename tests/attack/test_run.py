"""What an attack is bounded by, what it leaves behind, and how it says what it could not test."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from carag.evaluation.attack import CHECKS, Bounds, Found, attack, page, rows
from tests.attack.oracle import FakeClock, Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.evaluation.attack import Document


def test_what_was_planted_is_removed_at_the_end() -> None:
    target = Oracle()
    assert attack(target, "it").left == ""
    assert {} == target.rows


def test_it_is_removed_after_an_error_and_an_interrupt() -> None:
    target = Oracle()

    def interrupted(*_: object) -> Any:
        target.search = searched  # type: ignore[method-assign]
        raise KeyboardInterrupt

    searched, target.search = target.search, interrupted  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        attack(target, "it")
    assert {} == target.rows


def test_an_add_that_fails_in_part_leaves_nothing() -> None:
    class Partial(Oracle):
        def add(self, documents: Sequence[Document]) -> None:
            super().add(documents[:1])
            raise OSError("full")

    target = Partial()
    report = attack(target, "it")
    assert {} == target.rows
    assert 2 == report.exit_code


def test_what_cannot_be_removed_is_said() -> None:
    target = Oracle()
    target.delete = None  # type: ignore[method-assign, assignment]
    report = attack(target, "it", checks=(rows.closed,))
    assert re.match(r"\d+ planted documents remain: NotTried: .+`delete`", report.left)
    assert report.left in page.as_text(report)
    assert report.left in page.as_markdown(report)


@pytest.mark.parametrize("most", [1, 10, 100])
def test_it_makes_no_more_requests_than_it_may(most: int) -> None:
    asked = 0

    class Counting(Oracle):
        def search(self, query: str, k: int, as_whom: str | None) -> Any:
            nonlocal asked
            asked += 1
            return super().search(query, k, as_whom)

    report = attack(Counting(), "it", Bounds(requests=most))
    assert asked < report.requests <= most
    assert f"the limit of {most} requests was reached" == report.outcomes[-1].not_tried


def test_it_ends_in_time() -> None:
    target = Oracle(delay=1.0)
    report = attack(target, "it", Bounds(seconds=20), clock=target.clock)
    assert 20 < report.seconds < 23
    assert "the limit of 20 s was reached" == report.outcomes[-1].not_tried


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("rows", "hits is 'rows'"),
        (7, "hits is 7"),
        ([("a",)], "a hit is"),
        ([(1, 0.5)], "a hit is"),
        ([("a", "much")], "could not convert"),
        (Found(None), "hits is"),  # type: ignore[arg-type]
    ],
)
def test_a_malformed_reply_means_that_it_could_not_be_tested(reply: Any, said: str) -> None:
    target = Oracle()
    target.search = lambda *_: reply  # type: ignore[method-assign, assignment]
    report = attack(target, "it")
    assert 2 == report.exit_code
    assert said in report.outcomes[0].not_tried
    assert "not tested" in page.badge(report)


def test_a_target_that_finds_nothing_passes_nothing() -> None:
    """What returns no row to those who may see it leaks none either."""
    target = Oracle()
    target.search = lambda *_: []  # type: ignore[method-assign, assignment]
    report = attack(target, "it", clock=FakeClock())
    assert 2 == report.exit_code
    passed = [one.check for one in report.outcomes if one.state == "nothing found"]
    assert set(passed) <= {"fetched", "files", "told", "instructed", "cited"}  # which do not search


def test_a_missing_method_is_not_tried_and_never_passed() -> None:
    class Bare:
        def __init__(self) -> None:
            self.add, self.search = (oracle := Oracle()).add, oracle.search

    report = attack(Bare(), "it", clock=FakeClock())
    said = {one.check: one.not_tried for one in report.outcomes if one.not_tried}
    needed = {
        **dict.fromkeys(("overridden", "inverted"), "search_where"),
        **dict.fromkeys(("told", "instructed", "cited"), "ask"),
        **dict.fromkeys(("deleted", "added again"), "delete"),
        "fetched": "get",
        "stale": "relabel",
        "files": "files",
    }
    assert {check: f"the target has no `{name}`" for check, name in needed.items()} == said


def test_the_same_seed_asks_the_same() -> None:
    """And another one asks otherwise."""

    def questions(seed: int) -> list[str]:
        target, asked = Oracle(), []
        searched = target.search
        target.search = lambda *one: (asked.append(one[0]), searched(*one))[1]  # type: ignore[method-assign]
        attack(target, "it", seed=seed, clock=target.clock, checks=CHECKS[:3])
        return asked

    assert questions(1) == questions(1) != questions(2)


def test_a_report_says_the_same_in_each_form() -> None:
    report = attack(Oracle("no filter"), "a|b", checks=CHECKS[:8])
    value = json.loads(json.dumps(page.as_value(report)))
    assert 1 == value["exit_code"]
    for one, stated in zip(report.outcomes, value["outcomes"], strict=True):
        assert (one.check, one.state) == (stated["check"], stated["state"])
        assert f"{one.state:<14}{one.check}:" in page.as_text(report)
        assert f"| {one.check} | {one.state} |" in page.as_markdown(report)
    for found in report.findings:
        for said in (found.question, found.came, found.right, found.sure):
            assert said in page.as_text(report)
    tried = sum(not one.not_tried for one in report.outcomes)
    found_by = sum(bool(one.findings) for one in report.outcomes)
    assert f"{found_by} of {tried} checks found a leak" in page.badge(report)
