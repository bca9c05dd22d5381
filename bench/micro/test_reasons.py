"""What it costs to say why a passage is hidden: at most 50 microseconds, with lists of ten thousand companies too.

::

    pytest bench/micro/test_reasons.py --benchmark-only -o testpaths=bench
"""

from __future__ import annotations

import random
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pytest

from carag.policy import (
    POLICY_BITS,
    DealWindow,
    Decision,
    PolicyTable,
    Session,
    explained,
    infer,
    policy_word,
)

ROWS: Final = 1_000
LIMIT: Final = 50e-6
NOW: Final = datetime(2026, 1, 2, tzinfo=UTC)
TABLE: Final = PolicyTable.shipped()
LISTED: Final = frozenset(range(1, 20_001, 2))
SESSIONS: Final = {
    "plain": Session(role="buy_side", purpose="invest"),
    "retail": Session(role="retail_adviser", purpose="advise"),
    "four pairs": Session(role="dpo", purpose="dsar", allow_entities=LISTED),
    "every term": Session(
        role="sell_side",
        purpose="publish",
        restricted=LISTED,
        deals=(DealWindow(7, date(2026, 1, 1), date(2026, 1, 9)),),
        eu_transfer_basis=False,
        cooling=timedelta(minutes=30),
    ),
}


def _hidden(decision: Decision) -> list[tuple[int, int, int]]:
    rng = random.Random(0)  # noqa: S311 # a seed, no secret
    rows: list[tuple[int, int, int]] = []
    while len(rows) < ROWS:
        word = int(policy_word(rng.getrandbits(27) & rng.getrandbits(27) & POLICY_BITS))
        row = word, rng.randint(0, 2 * decision.as_of), rng.randint(0, 20_000)
        if decision.reasons(row[0], row[1], entity=row[2]):
            rows.append(row)
    return rows


@pytest.mark.benchmark(timer=time.process_time)  # the limit is on work, not on what else the machine does
@pytest.mark.parametrize("name", SESSIONS)
def test_a_reason(benchmark: Any, name: str) -> None:
    """Explain a thousand hidden passages, with regulation and remedy; each stays under the limit."""
    decision = infer(SESSIONS[name], TABLE, now=NOW)
    rows = _hidden(decision)

    def explain_all() -> int:
        said = 0
        for word, public_at, entity in rows:
            for reason in decision.reasons(word, public_at, entity=entity):
                said += bool(explained(reason, decision, entity).lift)
        return said

    assert benchmark(explain_all) >= ROWS
    if benchmark.stats is not None:
        assert benchmark.stats.stats.min / ROWS <= LIMIT  # the least disturbed round


def test_inference(benchmark: Any) -> None:
    """Infer a policy with every term, lists of ten thousand companies among them."""
    assert benchmark(infer, SESSIONS["every term"], TABLE, now=NOW).cooling == 30
