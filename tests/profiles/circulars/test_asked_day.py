"""A day in a question over circulars selects the text in force then, for roles to which the past is open."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from carag import Session
from carag.audit import Verdict, verify_receipt
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.policy import DayUse, Profile

if TYPE_CHECKING:
    from carag import Engine
    from carag.engine import Answer

RULE = "What balance may a small wallet have at most"
OLD, NEW = "wallets-2022.txt", "wallets-2024.txt"
PURPOSE = {"branch": "operate", "public": "public_qa", "analyst": "research", "compliance": "surveil"}
TABLE = Profile.open("circulars").table


def ask(engine: Engine, role: str, when: str, **more: Any) -> Answer:
    return engine.ask(f"{RULE} {when}?", Session(role=role, purpose=PURPOSE[role], **more))


def cited(answer: Answer) -> set[str]:
    return {one.accession_number for one in answer.citations} & {OLD, NEW}


@pytest.mark.parametrize(
    ("role", "when", "used", "then"),
    [
        ("analyst", "on 1 March 2024", DayUse.USED, OLD),
        ("branch", "as on 31.3.2024", DayUse.USED, OLD),
        ("compliance", "as on 1 April 2024", DayUse.USED, NEW),
        ("branch", "as of March 31, 2024", DayUse.USED, OLD),
        ("analyst", "as at 2025-01-15", DayUse.USED, NEW),
        ("public", "on 1 March 2024", DayUse.NO_RIGHT, NEW),
        ("branch", "as on 31.02.2024", DayUse.UNREADABLE, NEW),
        ("branch", "as on 1/3/2024", DayUse.UNREADABLE, NEW),
        ("branch", "on 1 March 2024 and on 1 May 2023", DayUse.SEVERAL, NEW),
        ("branch", "on 1 March 2031", DayUse.NOT_OVER, NEW),
        ("branch", "under the circular issued on 12 February 2024", None, NEW),
    ],
)
def test_the_answer_is_from_the_text_that_was_in_force_on_a_day_that_may_be_used(
    engine: Engine, role: str, when: str, used: DayUse | None, then: str
) -> None:
    """Otherwise it is from today's text, and says so; no day is guessed."""
    answer = ask(engine, role, when)
    assert (answer.asked_day and answer.asked_day.use, cited(answer)) == (used, {then})
    said = answer.to_json()["asked_day"]
    assert (said is None) is (used is None)
    assert used is not DayUse.NO_RIGHT or "as of today" in said["said"]


def test_the_session_s_own_instant_counts_and_the_difference_is_said(engine: Engine) -> None:
    answer = ask(engine, "branch", "on 1 May 2024", as_of=date(2024, 3, 1))
    assert answer.asked_day is not None
    assert (answer.asked_day.use, cited(answer)) == (DayUse.STATED, {OLD})
    assert "the session states another" in answer.asked_day.described()


@pytest.mark.parametrize("form", ["on 1 March 2024", "as on 1.3.2024", "on 2024-03-01"])
def test_a_day_in_the_question_excludes_pending_texts_for_every_role(engine: Engine, form: str) -> None:
    found = engine.retrieve(f"{RULE} {form}?", Session(role="analyst", purpose="research"), 50)
    assert OLD in {one.accession_number for one in found.passages}
    assert NEW not in {one.accession_number for one in found.passages}


def test_a_day_that_the_session_states_shows_what_was_pending_then(engine: Engine) -> None:
    session = Session(role="analyst", purpose="research", as_of=date(2024, 3, 1))
    found = {one.accession_number for one in engine.retrieve("small wallets", session, 50).passages}
    assert {OLD, NEW} <= found
    found = {one.accession_number for one in engine.retrieve("small wallets in force", session, 50).passages}
    assert OLD in found
    assert NEW not in found


def test_what_was_used_is_on_record_as_if_the_session_had_stated_it(engine: Engine) -> None:
    asked = ask(engine, "branch", "on 1 March 2024")
    stated = engine.ask(f"{RULE}?", Session(role="branch", purpose="operate", as_of=date(2024, 3, 1)))
    records = [verify_receipt(one.receipt.to_bytes(), engine.vkey) for one in (asked, stated)]
    assert {one.verdict for one in records} == {Verdict.VERIFIED}
    first, second = (one.record.event.to_json() for one in records if one.record)
    assert (first["day"], first["as_of"]) == ("USED", second["as_of"])
    assert "day" not in second
    for one in records:
        assert one.record is not None
        assert replay(one.record, TABLE).verdict is ReplayVerdict.MATCHES
    public = verify_receipt(ask(engine, "public", "on 1 March 2024").receipt.to_bytes(), engine.vkey).record
    assert public is not None
    assert public.event.to_json()["day"] == "NO_RIGHT"
