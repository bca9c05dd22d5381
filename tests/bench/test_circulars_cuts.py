"""The count of clauses that are cut in half counts those alone, and by clauses fewer are cut than by passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.circulars.cuts import DEVELOPMENT, located, measured, read_marks, read_texts, shares
from carag.labelling.chunking import chunk
from carag.labelling.clauses import chunk_by_clauses

if TYPE_CHECKING:
    from pathlib import Path


def test_a_clause_is_whole_where_one_chunk_holds_it_and_halved_where_two_share_it() -> None:
    cut = measured(
        "a", lambda _: [(0, 5), (4, 10)], {"c": "0123456789"}, {"c": [(0, 5), (4, 9), (3, 6), (0, 10)]}
    )
    assert (cut.halved, cut.lengths) == ({"c": (2, 4)}, [5, 6])


def test_pieces_are_found_in_order_where_they_repeat_and_overlap() -> None:
    assert located("ab ab abc", ["ab", "ab", "b abc"]) == [(0, 2), (3, 5), (4, 9)]
    with pytest.raises(ValueError, match="not found"):
        located("ab", ["ab", "ab"])


def test_shares_are_of_all_clauses_and_of_the_circulars() -> None:
    pooled, mean = shares([(1, 2), (0, 6)])
    assert pooled.startswith("12.5 %")
    assert mean.startswith("25.0 %")
    assert shares([(1, 4)] * 3) == ("25.0 % (25.0 to 25.0)",) * 2


@pytest.mark.parametrize("sizes", [(1000, 1500), (2000, 2000)])
def test_by_clauses_less_than_half_as_many_clauses_are_cut_in_half_as_by_passages(
    shared_data: Path, sizes: tuple[int, int]
) -> None:
    """On the circulars on which the chunker was not made."""
    marks = dict(list(read_marks().items())[DEVELOPMENT:])
    texts, (target, limit) = read_texts(shared_data, marks), sizes
    halved = [
        sum(number for number, _ in measured("", cutter, texts, marks).halved.values())
        for cutter in (
            lambda text: [(c.start, c.end) for c in chunk_by_clauses(text, target=target, limit=limit)],
            lambda text: [(c.start, c.end) for c in chunk(text, target=target, limit=limit)],
        )
    ]
    assert 0 < halved[0] < halved[1] / 2
