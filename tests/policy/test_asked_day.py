"""The day that a question names grants no right, and no day is guessed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import Refused
from carag.policy import AskedDay, DayUse, PolicyTable, Session, as_of_minutes, infer

TABLE = PolicyTable.shipped("circulars")
ZONE = TABLE.vocabulary.zone
NOW = datetime(2026, 11, 2, tzinfo=UTC)
DAY = date(2024, 3, 1)
ANALYST = Session(role="analyst", purpose="research")
PUBLIC = Session(role="public", purpose="public_qa")


def use(*named: date | None, stated: datetime | date | None = None, may_ask: bool = True) -> DayUse:
    found = AskedDay.of(named, stated=stated, may_ask=may_ask, now=NOW, zone=ZONE)
    assert found is not None
    return found.use


def test_one_day_that_is_over_is_the_decisions_instant_until_its_end() -> None:
    decision = infer(ANALYST, TABLE, now=NOW, days=[DAY])
    assert decision.as_of == as_of_minutes(DAY, ZoneInfo("Asia/Kolkata")) == as_of_minutes(DAY, ZONE)
    assert decision == infer(ANALYST, TABLE, now=NOW, days=[DAY, DAY])


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ([DAY, date(2024, 4, 1)], DayUse.SEVERAL),
        ([None], DayUse.UNREADABLE),
        ([DAY, None], DayUse.UNREADABLE),
        ([date(1969, 12, 31)], DayUse.UNREADABLE),
        ([date(2027, 1, 1)], DayUse.NOT_OVER),
        ([date(2026, 11, 2)], DayUse.NOT_OVER),
        ([date(2026, 11, 1)], DayUse.USED),
    ],
)
def test_what_is_not_one_day_that_is_over_is_not_used(named: list[date | None], expected: DayUse) -> None:
    decision = infer(ANALYST, TABLE, now=NOW, days=named)
    assert decision.asked_day is not None
    assert decision.asked_day.use is expected
    assert (decision.as_of < as_of_minutes(NOW)) is (expected is DayUse.USED)


def test_words_give_no_right_that_the_cell_lacks() -> None:
    decision = infer(PUBLIC, TABLE, now=NOW, days=[DAY])
    assert decision.asked_day is not None
    assert (decision.asked_day.use, decision.as_of) == (DayUse.NO_RIGHT, as_of_minutes(NOW))
    with pytest.raises(Refused, match="no right to ask as_of"):
        infer(Session(role="public", purpose="public_qa", as_of=DAY), TABLE, now=NOW, days=[DAY])


def test_what_the_session_states_counts_and_is_said_where_it_differs() -> None:
    stated = date(2023, 1, 1)
    decision = infer(Session(role="analyst", purpose="research", as_of=stated), TABLE, now=NOW, days=[DAY])
    assert decision.as_of == as_of_minutes(stated, ZONE)
    assert decision.asked_day == (DayUse.STATED, (DAY,))
    assert use(DAY, stated=DAY) is DayUse.USED
    assert use(DAY, date(2024, 4, 1), stated=DAY) is use(None, stated=DAY) is DayUse.STATED


@given(
    st.lists(st.none() | st.dates(date(1900, 1, 1), date(2099, 12, 31)), max_size=3),
    st.none() | st.dates(date(1970, 1, 2), date(2099, 12, 31)),
    st.booleans(),
)
def test_a_day_is_used_only_if_it_is_one_over_and_granted_and_every_use_is_said(
    named: list[date | None], stated: date | None, may_ask: bool
) -> None:
    found = AskedDay.of(named, stated=stated, may_ask=may_ask, now=NOW, zone=ZONE)
    assert (found is None) is (not named)
    if found is None:
        return
    assert found.described().endswith(".")
    assert "{" not in found.described()
    if found.day is not None:
        assert may_ask
        assert set(named) == {found.day}
        assert stated in (None, found.day)
        assert datetime.combine(found.day, datetime.min.time(), ZONE) + timedelta(hours=23, minutes=59) < NOW
