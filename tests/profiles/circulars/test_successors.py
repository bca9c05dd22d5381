"""What has happened to a circular since the day in the question: who is told, and that it is on record."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Session
from carag.audit import Verdict, verify_receipt
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.labelling.document import Act, ActKind
from carag.policy import Profile
from tests.profiles.circulars import conftest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag import Engine
    from carag.engine import Answer

PURPOSE = {"branch": "operate", "public": "public_qa", "analyst": "research", "compliance": "surveil"}
QUESTION = "What fee may a bank charge for a lost passbook"
BANKS, NBFCS = "All Commercial Banks", "All Non-Banking Financial Companies"


def row(number: int, day: str, does: str = "", *, to: str = BANKS, **more: Any) -> dict[str, Any]:
    return {
        "id": f"fee-{number}",
        "circular_number": f"BAE/2020-21/{number}",
        "title": f"Fees for Passbooks {number}",
        "date": day,
        "meant_for": to,
        "doc_type": "circular",
        "text": f"1. A bank may charge a fee of {number}00 crowns for a lost passbook.\n\n2. {does}",
        **more,
    }


def acting(verb: str, number: int) -> str:
    return f"The circular BAE/2020-21/{number} {verb}."


FIRST = row(1, "2021-01-04")
SECOND = row(2, "2022-01-04", acting("stands superseded", 1))
THIRD = row(3, "2023-01-04", acting("stands superseded", 2))


def opened(home: Path, *rows: dict[str, Any]) -> Engine:
    (home / "in").mkdir(parents=True)
    (home / "in" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    engine = conftest.opened(home / "store")
    report = engine.ingest(home / "in")
    assert (report.added, report.problems, report.quarantined) == (len(rows), [], {})
    return engine


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A circular and the one that replaced it."""
    with opened(tmp_path_factory.mktemp("replaced"), FIRST, SECOND) as engine:
        yield engine


def ask(engine: Engine, role: str = "branch", day: str = "1 June 2021", **more: Any) -> Answer:
    return engine.ask(f"{QUESTION} on {day}?", Session(role=role, purpose=PURPOSE[role], **more))


def news(answer: Answer) -> list[tuple[str, str, str]]:
    return [(one.act, one.cited.accession_number, one.by.accession_number) for one in answer.superseded]


@pytest.mark.parametrize(
    ("verb", "act"),
    [
        ("stands superseded", "replaces"),
        ("stands withdrawn", "withdraws"),
        ("stands amended as follows: the fee shall be paid in advance", "amends"),
    ],
)
def test_what_was_done_to_a_circular_since_is_told_with_the_circular_that_did_it(
    tmp_path: Path, verb: str, act: str
) -> None:
    with opened(tmp_path, FIRST, row(2, "2022-01-04", acting(verb, 1))) as engine:
        answer = ask(engine)
        assert news(answer) == [(act, "fee-1", "fee-2")]
        [one] = answer.superseded
        assert "BAE/2020-21/2" in one.described()
        assert one.by.number == len(answer.citations) + 1
        assert answer.to_json()["superseded"][0]["by"]["accession_number"] == "fee-2"


def test_of_a_chain_the_one_that_may_be_used_today_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, FIRST, SECOND, THIRD) as engine:
        assert news(ask(engine)) == [("replaces", "fee-1", "fee-3")]
        assert news(ask(engine, day="1 June 2022")) == [("replaces", "fee-2", "fee-3")]
        assert news(ask(engine, day="1 June 2023")) == []


def test_of_today_and_where_the_past_is_not_open_nothing_is_told(replaced: Engine) -> None:
    for who, day in (("public", "1 June 2021"), ("branch", "1 June 2024"), ("branch", "1 June 2031")):
        answer = ask(replaced, who, day)
        assert (answer.superseded, answer.follows, answer.to_json()["follows"]) == ((), None, None)


def test_an_instant_that_the_session_states_is_followed_too(replaced: Engine) -> None:
    session = Session(role="branch", purpose="operate", as_of=date(2021, 6, 1))
    assert news(replaced.ask(f"{QUESTION}?", session)) == [("replaces", "fee-1", "fee-2")]


def test_an_act_that_is_not_yet_in_force_is_no_news(tmp_path: Path) -> None:
    later = row(2, "2026-10-01", acting("stands superseded", 1) + " It comes into force on 1 January 2027.")
    later["effective_date"] = "2027-01-01"
    with opened(tmp_path, FIRST, later) as engine:
        assert news(ask(engine)) == []


@pytest.mark.parametrize(
    ("hidden", "rest"),
    [({"internal": True}, ()), ({"internal": True}, (THIRD,)), ({"meant_for": ""}, ())],
    ids=["internal", "internal, in a chain", "addressees unknown"],
)
def test_a_successor_that_the_session_may_not_use_shows_in_nothing(
    tmp_path: Path, hidden: dict[str, Any], rest: tuple[dict[str, Any], ...]
) -> None:
    """Neither directly, nor through a circular that replaced it in turn."""
    with (
        opened(tmp_path / "with", FIRST, SECOND | hidden, *rest) as first,
        opened(tmp_path / "without", FIRST, *rest) as second,
    ):
        # All that is printed, the numbers of the records included: none is written that would tell.
        views = [ask(engine, "analyst").to_json() for engine in (first, second)]
        assert views[0] == views[1]
        assert views[0]["outcome"] == "answer"
        assert (views[0]["superseded"], views[0]["follows"]) == ([], None)
        assert news(ask(first, "compliance")) != []


def test_a_second_successor_is_named_whatever_the_first_is(tmp_path: Path) -> None:
    """Of two that replace the same circular, the earlier hidden one does not hide the later."""
    again = row(4, "2022-06-01", acting("stands superseded", 1))
    for number, rows in enumerate([(FIRST, again), (FIRST, SECOND | {"internal": True}, again)]):
        with opened(tmp_path / str(number), *rows) as engine:
            assert news(ask(engine, "analyst")) == [("replaces", "fee-1", "fee-4")]


def test_a_narrowed_question_is_told_of_nothing_outside(replaced: Engine) -> None:
    session, where = Session(role="branch", purpose="operate"), {"issued": {"lte": "2021-12-31"}}
    assert news(replaced.ask(f"{QUESTION} on 1 June 2021?", session, where=where)) == []


def test_what_is_told_is_on_record_with_its_proof_and_names_the_answer_s_record(replaced: Engine) -> None:
    answer = ask(replaced, subject="A. Person")
    assert answer.follows is not None
    checked, own = (verify_receipt(one.to_bytes(), replaced.vkey) for one in (answer.follows, answer.receipt))
    assert (checked.verdict, checked.unproved, own.verdict) == (Verdict.VERIFIED, (), Verdict.VERIFIED)
    assert checked.record is not None
    event = checked.record.event.to_json()
    assert (event["why"], event["role"]) == ("SUCCESSORS", "branch")
    assert event["models"]["prompt"].startswith(f"record {answer.receipt.seq} ")
    assert [chunk for chunk, _ in checked.passages if chunk] == [answer.superseded[0].by.chunk_id]
    assert "200 crowns" in checked.passages[0][1]
    assert replay(checked.record, Profile.open("circulars").table).verdict is ReplayVerdict.MATCHES
    assert all("fee-2" not in str(one) for one in own.passages)


def test_a_store_whose_profile_reads_no_days_tells_nothing(tmp_path: Path) -> None:
    old = Document(id="a", text="The fee is 1 crown.", bits=(), public_at=date(2021, 1, 4))
    acts = [Act(ActKind.REPLACES, "a")]
    new = Document(id="b", text="The fee is 2 crowns.", bits=(), public_at=date(2022, 1, 4), acts=acts)
    with conftest.opened(tmp_path, "generic") as engine:
        engine.add([old, new])
        cell = next(c for c in engine.profile.table.cells if "as_of" in c.past and c.allow_list == "none")
        session = Session(role=cell.role, purpose=cell.purpose, as_of=date(2021, 6, 1))
        answer = engine.ask("What is the fee?", session)
        assert (answer.outcome.value, answer.superseded, answer.follows) == ("answer", (), None)
