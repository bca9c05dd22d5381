"""The benchmark through backends: what differs is counted, what is unsound is said, and the page is of the results."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from bench.edgar import backends
from carag.evaluation.row import read_rows

HOME = Path(__file__).parents[2] / "bench" / "edgar"
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


@pytest.fixture(scope="module")
def rows():
    """Some rows of the committed run, attacks among them."""
    kept = [row for row in read_rows(HOME / "paper" / "rows.jsonl.gz") if row.system in backends._SYSTEMS]
    attacked = [row for row in kept if row.canaries_planted][:30]
    return [row for row in kept[::50] if row not in attacked] + attacked


def kept():
    return [json.loads(line) for line in backends.RESULTS.read_text("utf-8").splitlines()]


def test_rows_are_compared_in_all_but_their_times(rows):
    """Another time is the same row; another order of ids, a missing row and one too many are not."""
    later = [dataclasses.replace(row, latency_ms=dict.fromkeys(row.latency_ms, 1.0)) for row in rows]
    assert {"compared": len(rows), "differing": 0} == backends.compared(rows, later)
    at = next(i for i, row in enumerate(rows) if len(row.retrieved) > 1)
    turned = dataclasses.replace(
        rows[at],
        retrieved=rows[at].retrieved[::-1],
        retrieved_admissible=rows[at].retrieved_admissible[::-1],
    )
    assert 1 == backends.compared(rows, [*rows[:at], turned, *rows[at + 1 :]])["differing"]
    assert (
        1 == backends.compared(rows, rows[1:])["differing"] == backends.compared(rows[1:], rows)["differing"]
    )


def test_what_a_system_may_not_do_is_counted(rows):
    """A passage that is not admissible, and a canary that is given away."""
    told = backends.judged(rows)
    assert (0, 0, 0) == (told["violating"], told["canaries_disclosed"], told["errors"])
    ours = [(i, row) for i, row in enumerate(rows) if row.system == "carag-auto"]
    at = next(i for i, row in ours if row.retrieved and row.retrieved[0] not in row.gold)
    bad = dataclasses.replace(
        rows[at], retrieved_admissible=(False, *rows[at].retrieved_admissible[1:]), touched=()
    )
    assert 1 == backends.judged([*rows[:at], bad, *rows[at + 1 :]])["violating"]
    at = next(i for i, row in ours if row.canaries_planted)
    bad = dataclasses.replace(rows[at], canaries_disclosed=rows[at].canaries_planted)
    assert 1 == backends.judged([*rows[:at], bad, *rows[at + 1 :]])["canaries_disclosed"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("violating", 1),
        ("differing", 1),
        ("asked_differing", 1),
        ("canaries_disclosed", 1),
        ("canaries_planted", 0),
        ("worlds_differing", 1),
        ("receipts_naming", 299),
        ("receipts_by_script", 299),
    ],
)
def test_a_result_that_is_unsound_says_so(name, value):
    """Of the committed ones each is sound, and with one figure changed it is not."""
    for one in kept():
        assert backends._is_sound(one) is True is one["is_sound"]
        if name in one:
            assert not backends._is_sound({**one, name: value})


def test_the_page_says_what_the_results_say():
    """Written by ``python -m bench.edgar.backends --page``: the index, PostgreSQL and Milvus."""
    made = backends.section(kept())
    assert f"{backends.BEGIN}\n\n{made}\n\n{backends.END}" in PAGE.read_text("utf-8")
    assert [place for place in backends._SERVERS if place in {one["place"] for one in kept()}] == [
        one["place"] for one in kept()
    ]
