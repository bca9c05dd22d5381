"""A percentile is a time that was measured, between two that were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carag.evaluation.statistics.estimate import NotMeasured
from carag.evaluation.statistics.latency import Percentile, latencies, percentile
from tests.evaluation.rows import row

times = st.lists(st.integers(1, 10_000).map(lambda ms: ms / 100), min_size=1, max_size=300)


@given(times, st.sampled_from([50, 95, 99]))
def test_it_is_the_smallest_that_enough_do_not_exceed(ms: list[float], percent: int) -> None:
    found = percentile(ms, percent)
    assert isinstance(found, Percentile)
    assert found.ms in ms
    assert 100 * sum(one <= found.ms for one in ms) >= percent * len(ms)
    assert 100 * sum(one < found.ms for one in ms) < percent * len(ms)
    assert found.low is None or found.low <= found.ms
    assert found.high is None or found.ms <= found.high


def test_few_rows_have_no_upper_bound() -> None:
    found = percentile([1.0] * 20, 99)
    assert isinstance(found, Percentile)
    assert found.high is None


def test_a_stage_without_times_is_not_measured() -> None:
    timed = latencies([row(latency_ms=dict.fromkeys(("embed", "retrieve", "generate", "total")))])
    assert all(isinstance(p, NotMeasured) for stage in timed["vanilla"].values() for p in stage.values())
    assert latencies([]) == {}
