"""Sessions with lists, cooling times and intents: what comes out, what is recorded, and what explain tells."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Outcome, Session
from carag.audit import ListKind, Record, Verdict, verify_receipt
from carag.policy import DealWindow, PolicyBit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.audit import Access
    from carag.engine import Retrieval

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
BRANDRETH = 9_990_000_913  # sells shares of Oakmere Foods, by Form 144
COMPLIANCE = Session(role="compliance", purpose="surveil")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, ingested: Path) -> Iterator[Engine]:
    with Engine.open(shutil.copytree(ingested, tmp_path_factory.mktemp("sessions") / "store")) as opened:
        yield opened


def companies_of(engine: Engine, found: Retrieval) -> set[int]:
    return {
        cik for p in found.passages for cik in engine._collection.store.chunk(p.chunk_id).subjects or (0,)
    }


def event_of(receipt: object) -> Access:
    return Record.parse(receipt.record).event  # type: ignore[attr-defined, return-value]


def test_a_denied_company_is_not_found_and_not_named(engine: Engine) -> None:
    """Nor in the record, nor in the receipt that the asker holds."""
    listed = frozenset(sorted(companies_of(engine, engine.retrieve(QUESTION, COMPLIANCE, 400)))[:2])
    assert len(listed) == 2
    session = Session(role="compliance", purpose="surveil", restricted=listed)
    found = engine.retrieve(QUESTION, session, 400)
    assert found.passages
    assert not companies_of(engine, found) & {0, *listed}
    rule = event_of(found.receipt).policy.entities
    assert rule is not None
    assert (rule.kind, rule.count) == (ListKind.DENY, len(listed) + 1)
    checked = verify_receipt(found.receipt.to_bytes(), engine.vkey)
    assert (checked.verdict, checked.undisclosed) == (Verdict.VERIFIED, ("entities",))
    opening = engine._log._private.openings(found.receipt.seq)["entities"]
    assert json.loads(opening.value) == [{"deny": [0, *sorted(listed)]}]


def test_material_news_waits_and_everything_else_does_not(engine: Engine) -> None:
    """The record says for how long; the plan that ran is on record too."""
    invest = {"role": "buy_side", "purpose": "invest", "as_of": date(2025, 1, 1)}
    plain = engine.retrieve(QUESTION, Session(**invest), 400)  # type: ignore[arg-type]
    cooled = engine.retrieve(QUESTION, Session(**invest, cooling=timedelta(days=360)), 400)  # type: ignore[arg-type]
    fresh = {
        p.chunk_id
        for p in plain.passages
        if p.word & PolicyBit.MATERIAL
        and engine._collection.store.chunk(p.chunk_id).public_at + 360 * 1440 > event_of(plain.receipt).as_of
    }
    assert fresh
    assert {p.chunk_id for p in plain.passages} - {p.chunk_id for p in cooled.passages} == fresh
    assert event_of(cooled.receipt).policy.cooling == 360 * 1440
    assert cooled.withheld is not None
    assert "COOLING:MATERIAL" in {kind.code for kind in cooled.withheld.kinds}
    assert verify_receipt(cooled.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED


def test_a_reopened_cell_is_on_record(engine: Engine) -> None:
    """Its pairs and its list stand apart from the others."""
    deals = (DealWindow(320_193, date(2020, 1, 1), date(2020, 1, 11)),)
    found = engine.retrieve(QUESTION, Session(role="sell_side", purpose="publish", deals=deals), 400)
    policy = event_of(found.receipt).policy
    assert policy.reopened == ((0x1000100, 0x019C000),)
    assert policy.reopened_entities is not None
    assert (policy.entities, policy.reopened_entities.count) == (None, 2)
    assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED


def test_the_words_of_a_question_only_tighten(engine: Engine) -> None:
    """Which ones did is on record; the same question without them finds more."""
    latest = engine.retrieve(f"latest: {QUESTION}", COMPLIANCE, 400)
    assert event_of(latest.receipt).intents == ("LATEST",)
    assert all(not p.word & PolicyBit.NOT_LATEST for p in latest.passages)
    plain = engine.retrieve(QUESTION, COMPLIANCE, 400)
    assert event_of(plain.receipt).intents == ()
    assert b"intents" not in plain.receipt.record
    assert {p.chunk_id for p in latest.passages} < {p.chunk_id for p in plain.passages}


def test_intents_can_be_switched_off(tmp_path: Path, small_corpus: Path) -> None:
    """For callers that read questions in another way; a session's own intents still hold."""
    with Engine.open(tmp_path / "store", embedder="wordllama", intents=False) as engine:
        asked = engine.retrieve(f"latest: {QUESTION}", COMPLIANCE)
        assert event_of(asked.receipt).intents == ()
        own = engine.retrieve(QUESTION, Session(role="compliance", purpose="surveil", intents=("LATEST",)))  # type: ignore[arg-type]
        assert event_of(own.receipt).intents == ("LATEST",)


def test_explain_names_bit_rule_regulation_cause_and_remedy(engine: Engine) -> None:
    """For a role that may know."""
    hidden = engine.retrieve("board diversity matrix", COMPLIANCE).withheld.hidden[0].chunk_id  # type: ignore[union-attr]
    told = engine.explain(hidden, COMPLIANCE)
    (reason,) = told.to_json()["reasons"]
    assert (reason["code"], reason["rule"], reason["bits"]) == (
        "FORBIDDEN:PD_SPECIAL",
        "FORBIDDEN",
        ["PD_SPECIAL"],
    )
    assert "GDPR Art. 9" in reason["regulation"]
    assert "access request" in reason["lift"]
    assert any(cause.startswith("PD_SPECIAL: ") for cause in told.causes)
    assert any(cause.startswith("public at: ") for cause in told.causes)
    assert told.regulation == "Exchange Act 15(g); MAR Art. 16; GDPR Art. 9"


def test_explain_of_a_denied_company_names_the_list_only_to_whom_it_may(engine: Engine) -> None:
    """Everyone else hears what is said of a passage that does not exist."""
    chunk = engine.retrieve(QUESTION, COMPLIANCE).passages[0].chunk_id
    (entity,) = engine._collection.store.chunk(chunk).subjects
    knowing = engine.explain(
        chunk, Session(role="compliance", purpose="surveil", watched=frozenset({entity}))
    )
    assert (knowing.outcome, knowing.why) == (Outcome.ANSWER, "HIDDEN")
    assert [one.reason.code for one in knowing.reasons] == ["ENTITY_DENIED"]
    blind = Session(role="buy_side", purpose="invest", watched=frozenset({entity}))
    real, none = (engine.explain(one, blind) for one in (chunk, "9999999999-99-999999:00000"))
    assert (real.outcome, real.why, real.reasons, real.causes) == (none.outcome, none.why, (), ())
    assert real.text.replace(chunk, "X") == none.text.replace("9999999999-99-999999:00000", "X")


def test_a_past_that_is_not_granted_is_refused_on_record_before_any_search(engine: Engine) -> None:
    """What was withdrawn since comes back to no role but those whose cell says so, by no way of asking."""
    session = Session(role="buy_side", purpose="invest", known_at=datetime(2026, 1, 1, tzinfo=UTC))
    for result in (
        engine.ask(QUESTION, session),
        engine.retrieve(QUESTION, session),
        engine.explain("9990000102-24-000005:00000", session),
    ):
        assert (result.outcome, result.why) == (Outcome.REFUSE, "PAST_NOT_GRANTED")
        event = event_of(result.receipt)
        assert (event.why, event.index, event.policy.masks) == ("PAST_NOT_GRANTED", None, ())
