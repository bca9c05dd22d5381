"""What the index state costs at 20,000, 200,000 and 1,000,000 labels: opening, one filing, one relabel, eight proofs.

``pytest bench/micro/test_state.py`` measures the first two sizes, ``CARAG_BENCH_ROWS=1000000`` only that one.
"""

from __future__ import annotations

import hashlib
import os
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

from carag.audit import Label, StateTree, place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY: Final = b"K" * 32
CHUNKS: Final = 40
"""Of one filing."""
SIZES: Final = (
    [int(os.environ["CARAG_BENCH_ROWS"])] if "CARAG_BENCH_ROWS" in os.environ else [20_000, 200_000]
)
_BATCH: Final = 200_000
_next_filing = count(10_000_000)


def _label(number: int, word: int = 1 << 27) -> Label:
    filing, ordinal = divmod(number, CHUNKS)
    text = hashlib.sha256(str(number).encode()).digest()
    return Label(f"{filing:010d}-26-000001:{ordinal:05d}", text, word, 29_000_000)


def _leaves(numbers: range, word: int = 1 << 27) -> dict[int, bytes | None]:
    labels = [_label(number, word) for number in numbers]
    return {place(KEY, label.chunk, label.since): label.leaf(KEY) for label in labels}


@pytest.fixture(scope="module", params=SIZES)
def tree(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StateTree, Path]]:
    """Fill a file with labels."""
    path = tmp_path_factory.mktemp("state") / "index.state"
    made = StateTree(path)
    for start in range(0, request.param, _BATCH):
        made.apply(_leaves(range(start, min(start + _BATCH, request.param))), {})
    yield made, path
    made.close()


def test_one_filing(benchmark: Any, tree: tuple[StateTree, Path]) -> None:
    """Forty labels that were not there."""

    def ingest() -> None:
        first = CHUNKS * next(_next_filing)
        tree[0].apply(_leaves(range(first, first + CHUNKS)), {})

    before = tree[0].view().root
    benchmark.pedantic(ingest, rounds=20)
    assert tree[0].view().root != before


def test_one_relabel(benchmark: Any, tree: tuple[StateTree, Path]) -> None:
    """One label under another word."""
    words = count(1 << 27)
    benchmark.pedantic(lambda: tree[0].apply(_leaves(range(7, 8), next(words)), {}), rounds=50)


def test_eight_proofs(benchmark: Any, tree: tuple[StateTree, Path]) -> None:
    """What a question adds: eight paths, from buckets read and checked."""
    wanted = [place(KEY, label.chunk, label.since) for label in (_label(2_000 * n) for n in range(1, 9))]
    paths = benchmark(lambda: tree[0].view().paths(wanted))
    benchmark.extra_info["hashes"] = sum(len(one.sides) for one in paths) / 8


def test_opening(benchmark: Any, tree: tuple[StateTree, Path]) -> None:
    """Buckets' roots read, and led to the root."""
    benchmark.pedantic(lambda: StateTree(tree[1]).close(), rounds=20)
