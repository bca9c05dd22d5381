"""The reference policy admits exactly what the engine hands out."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.evaluation.cases.pairs import CELLS
from carag.policy import Session

if TYPE_CHECKING:
    from carag.evaluation.systems.systems import Systems
    from tests.evaluation.conftest import Small

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"

DAYS = [None, date(2023, 6, 1), date(2024, 5, 1), date(2025, 4, 1)]


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_the_plain_reading_admits_exactly_what_the_engine_hands_out(
    small: Small, systems: Systems, day: date | None
) -> None:
    """Every chunk, every cell: neither misses one, neither adds one."""
    seen = set()
    for role, purpose in CELLS:
        about = frozenset(small.truth.filers) - {0} if purpose == "dsar" else None
        session = Session(role=role, purpose=purpose, as_of=day, allow_entities=about)
        mask = small.truth.admissible(session, QUESTION)
        assert mask is not None
        handed = {one.chunk_id for one in systems.engine.retrieve(QUESTION, session, k=400).passages}
        assert handed == {small.truth.ids[row] for row in np.flatnonzero(mask)}
        seen.add(len(handed))
    assert len(seen) > 3  # sessions that all see the same would prove little


def test_the_questions_words_tighten_the_judges_reading_too(small: Small, systems: Systems) -> None:
    session = Session(role="buy_side", purpose="invest")
    for question in ("What do audited statements say?", "What is the latest report?"):
        mask = small.truth.admissible(session, question)
        plain = small.truth.admissible(session, "What is said?")
        assert mask is not None
        assert plain is not None
        assert mask.sum() < plain.sum()
        assert not (mask & ~plain).any()
        handed = systems.engine.retrieve(question, session, k=400).passages
        assert {one.chunk_id for one in handed} == {small.truth.ids[row] for row in np.flatnonzero(mask)}
