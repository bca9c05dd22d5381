"""Every fault of a table is found within the default bounds, by the check that looks for it."""

from __future__ import annotations

from typing import Any

import pytest

from carag.evaluation.attack import CHECKS, attack
from tests.attack.oracle import Oracle
from tests.sizes import SIZE

FAULTS: dict[str, list[tuple[Any, ...]]] = {
    "closed": [
        ("no filter",),
        ("filter by substring",),
        ("filter by prefix",),
        ("filter by suffix",),
        ("filter by shorter names",),
        ("filter ignores case",),
        ("no label is open",),
        ("label is a pattern",),
        ("fails open",),
        ("skips rows", 7),
        ("unfiltered after", 40),
        ("large k is open", 50),
        ("one word is open",),
    ],
    "forgotten": [("None sees all",), ("empty sees all",), ("last reader stays",)],
    "unknown": [
        ("anyone",),
        ("quotes escape", "'"),
        ("quotes escape", '"'),
        ("pattern", "*"),
        ("pattern", "%"),
        ("pattern", ".*"),
        ("pattern", "_"),
        ("spaces are cut",),
        ("case is folded",),
        ("list of names", ","),
        ("bars are or",),
    ],
    "overridden": [("where replaces",), ("where is or",), ("where names the reader",)],
    "inverted": [("where replaces",), ("negation replaces",), ("negation is or",), ("negation covers all",)],
    "fewer": [
        *(("filters afterwards", factor) for factor in (1, 2, 4, 10)),
        *(("filters a fixed number", rows) for rows in (20, 50)),
        ("raises if the best is hidden", "closed"),
    ],
    "count": [("counts all",), ("counts all", "by tens")],
    "score": [("score of the best of all",), ("score by rank in all",), ("score shares of all",)],
    "order": [("order by id",), ("drops what is like hidden ones", 1), ("drops what is like hidden ones", 3)],
    "error": [("raises if the best is hidden", "closed"), ("raises if the best is hidden", "")],
    "suggestion": [("suggests from all",), ("facets",)],
    "statistics": [("idf of all",), ("lengths of all",), ("size of all",)],
    "stale": [
        ("stale cache",),
        ("relabel is late", 2),
        ("relabel is late", 4),
        ("relabel does nothing",),
        ("relabel only adds",),
    ],
    "replaced": [("upsert joins labels",), ("upsert keeps the label",), ("upsert keeps the old row",)],
    "deleted": [
        ("delete does nothing",),
        ("delete skips", 2),
        ("delete is shallow",),
        ("delete leaves the cache",),
    ],
    "added again": [("re-adding keeps the label",)],
    "files": [("bytes remain", "utf-8"), ("bytes remain", "utf-16-le"), ("bytes remain", "vectors")],
    "fetched": [("get is open",), ("get says forbidden",), ("get says when",)],
    "told": [("answers from all",), ("cites hidden",)],
    "instructed": [("obeys",)],
    "cited": [("marks are copied",), ("cites what is named",)],
    "time": [
        ("slow for each hidden", 1e-5),
        ("slow if the best is hidden", 2e-4),
        ("fast if there are hidden", 2e-4),
    ],
}
TABLE = [(check, *fault) for check, faults in FAULTS.items() for fault in faults]
BY_NAME = {one.__name__.replace("_", " "): one for one in CHECKS}


def test_there_are_sixty_faults_and_every_check_has_one() -> None:
    assert len(TABLE) >= 60
    assert FAULTS.keys() == BY_NAME.keys()


@pytest.mark.parametrize("fault", TABLE, ids=lambda fault: " ".join(map(str, fault)))
def test_a_fault_is_found(fault: tuple[Any, ...]) -> None:
    """Quick runs make the one check that looks for it; others make all, so that none hides it from the next."""
    check, *broken = fault
    target = Oracle(*broken, scoring="words" if check == "statistics" else "vector")
    checks = (BY_NAME[check],) if SIZE == "quick" else CHECKS
    report = attack(target, check, clock=target.clock, checks=checks)
    found = {one.check for one in report.outcomes if one.findings}
    assert check in found, [(one.check, one.state, one.not_tried) for one in report.outcomes]
    assert report.exit_code == 1
