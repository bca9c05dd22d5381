"""Questions about a day over circulars are answered from the text then in force, and from no other version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bench.circulars.asof import _MANY, constructed, judged, opened, real

if TYPE_CHECKING:
    from pathlib import Path

FEWEST = 4
"""Questions of each case at least."""


def test_the_invented_circulars_are_of_every_case_and_each_question_is_asked_once() -> None:
    rows, asked = constructed()
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({one.question for one in asked}) == len(asked)
    cases = Counter(one.case for one in asked)
    assert set(cases) == {"once", "chain", "same day", "amended", "withdrawn", "pending"}
    assert min(cases.values()) >= FEWEST
    assert {one.role for one in asked} == {"compliance", "analyst", "branch"}
    assert all(one.then not in one.never and one.never for one in asked)


@pytest.mark.release
def test_every_question_on_invented_circulars_is_answered_from_the_text_then_in_force(tmp_path: Path) -> None:
    rows, asked = constructed()
    with opened(tmp_path, rows) as engine:
        assert {one.id: said for one in asked if (said := judged(engine, one))} == {}


@pytest.mark.release
def test_a_store_that_is_not_told_of_the_successors_fails(tmp_path: Path) -> None:
    """What is counted can fail: without what one circular does to another, old and new stand side by side."""
    rows, asked = constructed()
    told = [{**row, "text": row["text"].replace(" stands ", " is older, and not ")} for row in rows]
    with opened(tmp_path, told) as engine:
        assert len([one for one in asked if judged(engine, one)]) > len(asked) / 2


@pytest.mark.release
def test_the_real_pairs_have_texts_and_are_enough_for_a_hundred_questions(shared_data: Path) -> None:
    rows, asked = real(shared_data)
    texts = {row["id"]: row["text"] for row in rows}
    assert len({one.question for one in asked}) == len(asked)
    assert all(texts[one.then] and all(texts[id_] for id_ in one.never) for one in asked if one.then)
    assert len(asked) + len(constructed()[1]) >= _MANY
