"""How many filings a second one core labels: from columns of parsed fields, and from filings as the readers give them.

In CPU seconds, which are one core's whatever else the machine does::

    pytest bench/micro/test_labelling.py --benchmark-only -s -o testpaths=bench
"""

from __future__ import annotations

import time
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.fields import (
    Exhibit,
    Fields,
    Mark,
    columns_of,
    form_traits,
    item_mask,
    places,
)
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.rules import words

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing

pytestmark = pytest.mark.benchmark(timer=time.process_time)

MILLION: Final = 1_000_000
SOME: Final = 10_000
WANTED: Final = 100_000
"""Filings a second."""

_FORMS: Final = (
    "10-K",
    "10-Q",
    "8-K",
    "6-K",
    "20-F",
    "DEF 14A",
    "4",
    "SC 13D",
    "S-1",
    "424B5",
    "DRS",
    "UPLOAD",
    "ZZ",
)
_ITEMS: Final = (("2.02", "9.01"), ("5.02",), ("7.01", "9.01"), ("1.01", "2.03", "9.01"), ("8.01",), ())
_PLACES: Final = (("NY",), ("DE",), ("L2",), ("X0", "A6"), ("E9",), ())


@cache
def _columns() -> Fields:
    """Draw a million filings of no company, every field by itself."""
    rng = np.random.default_rng(0)

    def drawn(values: list[int]) -> Any:
        return np.array(values, dtype=np.int64)[rng.integers(0, len(values), MILLION)]

    days = [0, *range(738_000, 739_500)]  # 2021 to 2024
    return Fields(
        traits=drawn([form_traits(form, amends=amends) for form in _FORMS for amends in (False, True)]),
        items=drawn([item_mask(*numbers) for numbers in _ITEMS]),
        places=drawn([places(codes, charter, ()) for codes in _PLACES for charter in (("DE",), ("L2",))]),
        exhibits=rng.integers(0, 2 ** len(Exhibit), MILLION),
        marks=rng.integers(0, 2 ** len(Mark), MILLION),
        filed=drawn(days),
        accepted=drawn(days),
        released=drawn(days),
        period=drawn(days),
        year=drawn([0, *range(2021, 2025)]),
    )


@cache
def _filings() -> list[Filing]:
    """Repeat the shipped filings up to ten thousand."""
    corpus = Path(__file__).parents[2] / "data" / "corpus"
    shipped = [outcome.filing for outcome in read_filings(corpus) if outcome.filing is not None]
    return list(islice(cycle(shipped), SOME))


def _told(benchmark: Any, what: str, count: int) -> None:
    if benchmark.stats is not None:  # --benchmark-disable runs once, untimed
        rate = count / benchmark.stats.stats.median
        benchmark.extra_info["filings/s"] = round(rate)
        print(f"\n{what}: {rate:,.0f} filings/s")
        assert rate >= WANTED or what.startswith("one by one")


def test_words_of_columns(benchmark: Any) -> None:
    """From parsed fields, a million at a time."""
    columns = _columns()
    assert len(benchmark(words, columns)) == MILLION
    _told(benchmark, "columns to words", MILLION)


def test_words_of_filings(benchmark: Any) -> None:
    """From filings: their fields gathered into columns first."""
    filings = _filings()
    assert len(benchmark(lambda: words(columns_of(filings)))) == SOME
    _told(benchmark, "filings to columns to words", SOME)


def test_labels_one_by_one(benchmark: Any) -> None:
    """With causes, time and quarantine, as ingest labels."""
    filings = _filings()
    assert len(benchmark(lambda: [label(filing) for filing in filings])) == SOME
    _told(benchmark, "one by one", SOME)
