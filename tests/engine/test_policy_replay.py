"""Records of the engine replay, and records with another mask, hit or refusal do not."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import (
    Access,
    Hit,
    IndexState,
    Outcome,
    PolicyApplied,
    Record,
    RecordKind,
    Recovery,
    SessionSource,
)
from carag.engine.recorder import _applied
from carag.engine.what_if.replay import ReplayVerdict, replay, replay_all
from carag.errors import InvalidArgument, Refused
from carag.policy import (
    VERSION_WORD,
    DealWindow,
    Decision,
    Intent,
    PolicyBit,
    PolicyTable,
    Session,
    as_of_minutes,
    infer,
)
from tests.policy.test_own_profile import FIRM

HERE, ABROAD, *_, TENDER = FIRM.vocabulary.flags
TEXT = files("carag").joinpath("profiles/edgar/roles.toml").read_text("utf-8")
TABLE = PolicyTable.from_toml(TEXT)
OTHER = PolicyTable.from_toml(f"{TEXT}\n# another text, another hash\n")
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PLACES = [bit for bit in PolicyBit if bit.name.startswith("J_")]
COMPANIES = st.frozensets(st.integers(1, 9), max_size=3)
SESSIONS = st.builds(
    lambda cell, **rest: Session(role=cell.role, purpose=cell.purpose, **rest),
    cell=st.sampled_from(TABLE.cells),
    residency=st.frozensets(st.sampled_from(PLACES), max_size=2),
    eu_transfer_basis=st.sampled_from([None, True, False]),
    intents=st.lists(st.sampled_from(Intent), max_size=3).map(tuple),
    allow_entities=st.none() | st.frozensets(st.integers(1, 9), min_size=1, max_size=3),
    restricted=COMPANIES,
    watched=COMPANIES,
    deals=st.none()
    | st.lists(
        st.builds(DealWindow, st.integers(1, 9), st.just(NOW), st.just(NOW + timedelta(1))), max_size=2
    ),
    cooling=st.none() | st.integers(1, 10_000).map(lambda minutes: timedelta(minutes=minutes)),
    as_of=st.none() | st.just(NOW - timedelta(days=3)),
    known_at=st.none() | st.just(NOW - timedelta(days=2)),
)
HANGING = {"CONFLICT", "TOO_MANY_MASKS", "PAST_NOT_GRANTED"}
"""Refusals for what no record holds."""


def admitted(decision: Decision) -> Hit | None:
    """Make a hit with the barest word that the first mask admits."""
    masks = [mask for policy in decision.policies for mask in policy.masks]
    return Hit(b"h" * 20, 1, VERSION_WORD | masks[0].required, cited=False) if masks else None


def recorded(
    session: Session,
    *,
    outcome: Outcome = Outcome.DECLINE,
    why: str = "BELOW_GATE",
    table: PolicyTable = TABLE,
    intents: tuple[str, ...] = (),
) -> Record:
    """Record a session as the recorder does, refused by the table or not."""
    try:
        decision = infer(session, table, now=NOW, intents=intents)
    except Refused as refusal:
        decision, outcome, why = None, Outcome.REFUSE, refusal.code
    hit = None if decision is None else admitted(decision)
    event = Access(
        kind=RecordKind.QUERY,
        started=int(NOW.timestamp() * 1_000_000),
        ended=int(NOW.timestamp() * 1_000_000),
        role=session.role if session.role in table.roles else None,
        purpose=session.purpose if session.purpose in table.purposes else None,
        source=SessionSource.ASSERTED,
        as_of=as_of_minutes(session.as_of or NOW) if decision is None else decision.as_of,
        policy=_applied(bytes.fromhex(table.sha256), decision),
        index=None if decision is None else IndexState(b"S" * 32, 5, "certified"),
        outcome=outcome,
        why=why,
        intents=() if decision is None else decision.intents,
    )
    return Record("log.example", 0, bytes(16), 0, event, hits=() if hit is None else (hit,))


@given(SESSIONS)
def test_what_was_inferred_replays(session: Session) -> None:
    """Any session of any cell: the same masks come out, and the kinds withheld with them."""
    record = recorded(session)
    found = replay(record, TABLE)
    if record.event.why in HANGING:  # type: ignore[union-attr]
        assert found.verdict in {ReplayVerdict.UNDECIDED, ReplayVerdict.MATCHES}
        return
    assert found.verdict is ReplayVerdict.MATCHES, found.reason
    if record.event.outcome is not Outcome.REFUSE:  # type: ignore[union-attr]
        wanted = [kind.code for kind in infer(session, TABLE, now=NOW).withheld]
        assert list(found.withheld) == wanted


def _changed(record: Record, policy: PolicyApplied) -> Record:
    return dataclasses.replace(record, event=dataclasses.replace(record.event, policy=policy))  # type: ignore[type-var]


@given(SESSIONS, st.data())
def test_a_mask_with_a_bit_less_or_more_does_not_replay(session: Session, data: st.DataObject) -> None:
    """A forbidden bit dropped from one mask, or a bit required that no session can ask for: it differs."""
    record = recorded(session)
    policy = record.event.policy  # type: ignore[union-attr]
    if not policy.masks:
        return
    at = data.draw(st.integers(0, len(policy.masks) - 1))
    required, forbidden = policy.masks[at]
    places = sum(PLACES)
    dropped = [bit.value for bit in PolicyBit if forbidden & bit.value & ~places]
    asked = [bit.value for bit in PolicyBit if not (required | forbidden) & bit.value]
    lies = [(required, forbidden & ~flag) for flag in dropped] + [
        (required | flag, forbidden) for flag in asked
    ]
    if lies:
        lie = data.draw(st.sampled_from(lies))
        masks = (*policy.masks[:at], lie, *policy.masks[at + 1 :])
        wide = _changed(record, dataclasses.replace(policy, masks=masks))
        assert replay(wide, TABLE).verdict is ReplayVerdict.DIFFERS


INVEST = Session(role="buy_side", purpose="invest")


def test_a_hit_outside_the_table_does_not_replay() -> None:
    """Masks in order and a word that they do not admit: unlabelled, quarantined, deleted or forbidden."""
    record = recorded(INVEST)
    forbidden = record.event.policy.masks[0][1]  # type: ignore[union-attr]
    for word in (
        0,
        1 << 30 | VERSION_WORD,
        1 << 31 | VERSION_WORD,
        2 << 27,
        VERSION_WORD | forbidden & -forbidden,
    ):
        wrong = dataclasses.replace(record, hits=(Hit(b"h" * 20, 1, word, cited=False),))
        found = replay(wrong, TABLE)
        assert (found.verdict, "does not admit" in found.reason) == (ReplayVerdict.DIFFERS, True)


def test_masks_of_another_purpose_do_not_replay() -> None:
    """The record says invest and holds what surveil may see."""
    other = recorded(Session(role="compliance", purpose="surveil")).event.policy  # type: ignore[union-attr]
    assert replay(_changed(recorded(INVEST), other), TABLE).verdict is ReplayVerdict.DIFFERS


def test_a_cooling_time_that_the_purpose_has_not_differs() -> None:
    """Surveillance does not wait for news to cool."""
    record = recorded(Session(role="compliance", purpose="surveil"))
    policy = dataclasses.replace(record.event.policy, cooling=60)  # type: ignore[union-attr]
    assert replay(_changed(record, policy), TABLE).verdict is ReplayVerdict.DIFFERS


def test_an_answer_to_whom_the_table_refuses_differs() -> None:
    """An unknown role, a missing cell, a missing allow-list: with masks on record or without."""
    for role, purpose in ((None, "invest"), ("buy_side", None), ("buy_side", "surveil"), ("dpo", "dsar")):
        event = dataclasses.replace(recorded(INVEST).event, role=role, purpose=purpose)  # type: ignore[type-var]
        found = replay(dataclasses.replace(recorded(INVEST), event=event), TABLE)
        assert (found.verdict, "the table refuses" in found.reason) == (ReplayVerdict.DIFFERS, True)


@pytest.mark.parametrize(
    ("role", "purpose", "why"),
    [
        ("wizard", "invest", "UNKNOWN_ROLE"),
        ("buy_side", "gossip", "UNKNOWN_PURPOSE"),
        ("buy_side", "surveil", "NO_SUCH_CELL"),
        ("dpo", "dsar", "ALLOW_LIST_REQUIRED"),
    ],
)
def test_a_refusal_replays_with_its_reason(role: str, purpose: str, why: str) -> None:
    """The table refuses again, and with the same code; with another code the record is wrong."""
    record = recorded(Session(role=role, purpose=purpose))
    assert (record.event.why, replay(record, TABLE).verdict) == (why, ReplayVerdict.MATCHES)
    other = dataclasses.replace(record.event, why="OTHER")  # type: ignore[type-var]
    assert replay(dataclasses.replace(record, event=other), TABLE).verdict is ReplayVerdict.DIFFERS


def test_a_refusal_without_reason_differs() -> None:
    """Refused, though the table has the cell."""
    record = recorded(INVEST)
    refused = dataclasses.replace(
        record.event,  # type: ignore[type-var]
        outcome=Outcome.REFUSE,
        why="NO_SUCH_CELL",
        index=None,
        policy=PolicyApplied(bytes.fromhex(TABLE.sha256)),
    )
    found = replay(dataclasses.replace(record, event=refused, hits=()), TABLE)
    assert (found.verdict, "allows" in found.reason) == (ReplayVerdict.DIFFERS, True)
    basis = dataclasses.replace(refused, why="NO_LEGAL_BASIS")
    assert replay(dataclasses.replace(record, event=basis, hits=()), TABLE).verdict is ReplayVerdict.UNDECIDED


@given(
    st.sampled_from(FIRM.table.cells),
    st.frozensets(st.sampled_from([HERE, ABROAD])),
    st.sampled_from([(), ("OLD",)]),
    st.sampled_from([None, True, False]),
    st.none() | st.just(timedelta(minutes=30)),
    st.none() | st.just(()),
)
def test_what_was_inferred_under_another_profile_replays(cell, residency, intents, basis, cooling, deals):
    """Its places, and the intents that a question had; a bit less or another profile's table does not match."""
    session = Session(
        role=cell.role,
        purpose=cell.purpose,
        residency=residency,
        eu_transfer_basis=basis,
        cooling=cooling,
        deals=deals,
    )
    record = recorded(session, table=FIRM.table, intents=intents)
    assert replay(record, FIRM.table).verdict is ReplayVerdict.MATCHES
    assert replay(record, TABLE).verdict is ReplayVerdict.UNDECIDED
    policy = record.event.policy
    (required, forbidden), *rest = policy.masks
    altered = _changed(
        record, dataclasses.replace(policy, masks=((required, forbidden & ~TENDER.value), *rest))
    )
    assert replay(altered, FIRM.table).verdict is ReplayVerdict.DIFFERS


@pytest.mark.parametrize("code", ["FOREIGN_RESIDENCY", "UNKNOWN_INTENT"])
def test_a_refusal_for_what_a_session_brought_of_another_profile_is_undecided(code):
    """The record holds neither its places nor its intents."""
    asked = {"residency": PolicyBit.J_EU} if code == "FOREIGN_RESIDENCY" else {"intents": ["LATEST"]}
    record = recorded(Session(role="clerk", purpose="sell", **asked), table=FIRM.table)
    assert record.event.why == code
    assert replay(record, FIRM.table).verdict is ReplayVerdict.UNDECIDED


def test_records_replay_by_the_table_they_name() -> None:
    """Among several tables the one that was in force, else nothing is decided; other kinds pass."""
    record = recorded(INVEST)
    assert replay(record, OTHER).verdict is ReplayVerdict.UNDECIDED
    recovery = Record("log.example", 1, bytes(16), 0, Recovery("DRILL"))
    found = [one.verdict for one in replay_all([record, recovery], [OTHER, TABLE])]
    assert found == [ReplayVerdict.MATCHES, ReplayVerdict.NOTHING]
    assert [one.verdict for one in replay_all([record], [OTHER])] == [ReplayVerdict.UNDECIDED]
    with pytest.raises(InvalidArgument, match="no table"):
        list(replay_all([record], []))


def test_numbers_beyond_any_calendar_are_no_error() -> None:
    """A record may hold any integer; a replay says what it makes of it."""
    record = recorded(Session(role="buy_side", purpose="invest", cooling=timedelta(minutes=5)))
    policy = dataclasses.replace(record.event.policy, cooling=2**53 - 1)  # type: ignore[union-attr]
    assert replay(_changed(record, policy), TABLE).verdict is ReplayVerdict.DIFFERS
    late = dataclasses.replace(record.event, as_of=2**32 - 1, started=2**53 - 1)  # type: ignore[type-var]
    assert replay(dataclasses.replace(record, event=late), TABLE).verdict is ReplayVerdict.MATCHES


def test_an_intent_that_is_none_does_not_replay() -> None:
    """A code that no version of this knows names no mask."""
    event = dataclasses.replace(recorded(INVEST).event, intents=("WISHFUL",))  # type: ignore[type-var]
    record = dataclasses.replace(recorded(INVEST), event=event)
    assert replay(record, TABLE).verdict is ReplayVerdict.DIFFERS


NONE_OF_THE_PAST = PolicyTable.from_toml(TEXT.replace('past = "as_of"', 'past = "none"'))
BEFORE = dataclasses.replace(INVEST, as_of=NOW - timedelta(days=3))


def test_a_record_is_judged_by_the_past_that_its_own_table_grants() -> None:
    """What was answered under a table that lets the cell ask stays right, and contradicts one that does not."""
    answered = recorded(BEFORE)
    assert replay(answered, TABLE).verdict is ReplayVerdict.MATCHES
    policy = dataclasses.replace(answered.event.policy, table=bytes.fromhex(NONE_OF_THE_PAST.sha256))  # type: ignore[union-attr]
    found = replay(_changed(answered, policy), NONE_OF_THE_PAST)
    assert (found.verdict, "PAST_NOT_GRANTED" in found.reason) == (ReplayVerdict.DIFFERS, True)


def test_a_refused_past_replays_as_far_as_the_record_tells_of_it() -> None:
    """The day asked about is on record, the instant of knowledge is not; who may ask everything is never refused."""
    known = {"known_at": NOW - timedelta(days=3)}
    refused = recorded(BEFORE, table=NONE_OF_THE_PAST)
    assert refused.event.why == "PAST_NOT_GRANTED"  # type: ignore[union-attr]
    assert replay(refused, NONE_OF_THE_PAST).verdict is ReplayVerdict.MATCHES
    unknown = recorded(dataclasses.replace(INVEST, **known))
    assert unknown.event.why == "PAST_NOT_GRANTED"  # type: ignore[union-attr]
    assert replay(unknown, TABLE).verdict is ReplayVerdict.UNDECIDED
    granted = dataclasses.replace(unknown.event, role="auditor", purpose="assure")  # type: ignore[type-var]
    assert replay(dataclasses.replace(unknown, event=granted), TABLE).verdict is ReplayVerdict.DIFFERS
