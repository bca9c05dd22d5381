"""The replay program: it finds nothing where nothing is wrong, and something where something is."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        yield importlib.import_module("bench.replay.replay")


QUESTIONS = [f"What does company {n} say of its revenue in year {n}?" for n in range(12)]


def rows() -> list[str]:
    """Six companies: report, amendment, and the report of the next year."""
    found = []
    for cik in range(1, 7):
        for n, (form, filed, period) in enumerate(
            [
                ("10-K", "2022-03-01", "2021-12-31"),
                ("10-K/A", "2022-06-01", "2021-12-31"),
                ("10-K", "2023-03-01", "2022-12-31"),
            ]
        ):
            text = f"Item 1. Company {cik} in {period}.\n\n" + f"Revenue of company {cik} grew. " * (20 + n)
            row = {
                "accession": f"{cik:010}-22-{n:06}",
                "cik": cik,
                "company": f"Company {cik}",
                "form": form,
                "filed": filed,
                "period": period,
                "business_state": "DE",
                "text": text,
            }
            found.append(json.dumps(row) + "\n")
    return found


def test_replays_equal_and_the_affected_are_counted(bench: ModuleType) -> None:
    """Made-up filings, in order of publication; what comes later changes many answers, and no replay."""
    report = bench.replay(bench.by_publication(rows()), QUESTIONS, queries=120, seed=1, early=2, late=2)
    assert (18, 120, 0) == (report.filings, report.queries, report.differences)
    assert report.affected > 30
    assert 0 < report.relabelled <= report.affected
    assert 0 < report.live < 120
    assert report.closed > 0


def test_a_store_that_forgets_is_found_out(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the past is answered from what is known now, there are differences."""
    remembers = CorpusStore.open_labels

    def forgets(store: CorpusStore, **asked: Any) -> NDArray[np.int64]:
        return remembers(store, **{**asked, "known_at": None})

    monkeypatch.setattr(CorpusStore, "open_labels", forgets)
    report = bench.replay(bench.by_publication(rows()), QUESTIONS, queries=60, seed=1, early=2, late=2)
    assert report.differences > 0


def test_real_filings_replay(bench: ModuleType, shared_data: Path) -> None:
    """A few companies of the real data."""
    lines, questions = bench.read_edgar(
        shared_data / "edgar", filings=40, seed=1, pattern="filings-04.jsonl.gz"
    )
    report = bench.replay(lines, questions, queries=100, seed=1, early=2, late=1)
    assert (100, 0) == (report.queries, report.differences)
    assert report.affected > 10
