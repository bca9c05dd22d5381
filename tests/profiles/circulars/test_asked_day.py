"""A day in a question over circulars: the text then in force, for whom the past is open, on record."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine, Session
from carag.audit import Verdict, verify_receipt
from carag.engine.policy_replay import ReplayVerdict, replay
from carag.policy import DayUse, Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.engine import Answer

DATA = Path(__file__).parents[3] / "data" / "circulars"
NOW = datetime(2026, 11, 2, tzinfo=UTC)
RULE = "What balance may a small wallet have at most"
OLD, NEW = "wallets-2022.txt", "wallets-2024.txt"
PURPOSE = {"branch": "operate", "public": "public_qa", "analyst": "research", "compliance": "surveil"}
TABLE = Profile.open("circulars").table


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    home = tmp_path_factory.mktemp("asked")
    with Engine.open(home, profile="circulars", embedder="wordllama", clock=lambda: NOW) as engine:
        engine.ingest(DATA)
        yield engine


def ask(engine: Engine, role: str, when: str, **more: Any) -> Answer:
    return engine.ask(f"{RULE} {when}?", Session(role=role, purpose=PURPOSE[role], **more))


def cited(answer: Answer) -> set[str]:
    return {one.accession_number for one in answer.citations} & {OLD, NEW}


def use(answer: Answer) -> DayUse | None:
    return answer.asked_day and answer.asked_day.use


@pytest.mark.parametrize("role", ["analyst", "branch", "compliance"])
@pytest.mark.parametrize(
    ("when", "then"),
    [
        ("on 1 March 2024", OLD),
        ("as on 31.3.2024", OLD),
        ("as on 1 April 2024", NEW),
        ("as of March 31, 2024", OLD),
        ("as at 2025-01-15", NEW),
    ],
)
def test_the_answer_is_from_the_text_that_was_in_force_that_day(
    engine: Engine, role: str, when: str, then: str
) -> None:
    answer = ask(engine, role, when)
    assert (use(answer), cited(answer)) == (DayUse.USED, {then})


def test_the_public_is_answered_as_of_today_and_told_so(engine: Engine) -> None:
    answer = ask(engine, "public", "on 1 March 2024")
    assert (use(answer), cited(answer)) == (DayUse.NO_RIGHT, {NEW})
    assert "as of today" in answer.to_json()["asked_day"]["said"]


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("as on 31.02.2024", DayUse.UNREADABLE),
        ("as on 1/3/2024", DayUse.UNREADABLE),
        ("on 1 March 2024 and on 1 May 2023", DayUse.SEVERAL),
        ("on 1 March 2031", DayUse.NOT_OVER),
    ],
)
def test_no_day_is_guessed(engine: Engine, when: str, why: DayUse) -> None:
    answer = ask(engine, "branch", when)
    assert (use(answer), cited(answer)) == (why, {NEW})


def test_the_session_s_own_instant_counts_and_the_difference_is_said(engine: Engine) -> None:
    answer = ask(engine, "branch", "on 1 May 2024", as_of=date(2024, 3, 1))
    assert (use(answer), cited(answer)) == (DayUse.STATED, {OLD})
    assert "the session states another" in answer.asked_day.described()  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["on 1 March 2024", "as on 1.3.2024", "on 2024-03-01"])
def test_who_may_know_of_pending_texts_gets_none_for_a_day_in_the_question(engine: Engine, form: str) -> None:
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


def test_a_question_without_a_day_says_nothing_of_one(engine: Engine) -> None:
    answer = ask(engine, "branch", "under the circular issued on 12 February 2024")
    assert (answer.asked_day, answer.to_json()["asked_day"], cited(answer)) == (None, None, {NEW})
