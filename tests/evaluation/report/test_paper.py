"""What the report says of the paper's table can be computed from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.report.paper import CLAIMED_QUERIES, TABLE_2, common_count, fits
from carag.evaluation.row import SYSTEMS

RATES = [rate for row in TABLE_2 for rate in (row.cvr, row.odr, row.refusal)]


@given(st.integers(1, 1_500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_rate_fits_what_it_was_counted_from(counted: tuple[int, int]) -> None:
    count, of = counted
    assert fits(f"{100 * count / of:.2f}", of)


def test_no_rate_but_zero_fits_the_queries_claimed() -> None:
    assert [rate for rate in RATES if fits(rate, CLAIMED_QUERIES)] == ["0.00"] * 4
    assert common_count() == [249, 498, 747, 996, 1_245]
    assert all(
        fits(rate, 600) == any(f"{100 * count / 600:.2f}" == rate for count in range(601)) for rate in RATES
    )


def test_its_post_filter_beats_it_at_the_same_cvr() -> None:
    by_name = {row.name: row for row in TABLE_2}
    post, carag = by_name["B1 Post-filter"], by_name["CARAG (full)"]
    assert (post.cvr, post.odr) == (carag.cvr, carag.odr) == ("0.00", "0.00")
    assert post.f1 > carag.f1
    assert float(post.refusal) < float(carag.refusal)


def test_every_line_is_read_beside_a_system_of_ours() -> None:
    assert all(row.ours and set(row.ours) <= set(SYSTEMS) for row in TABLE_2)


def test_no_queries_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        fits("0.00", 0)
