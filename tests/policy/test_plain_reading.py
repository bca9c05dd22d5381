"""The compiled policy equals a plain reading of the table: sets of names, without masks, pairs or searches."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import pytest

from carag.errors import Refused
from carag.evaluation.cases.reference_policy import ReferenceLabel, ReferencePolicy
from carag.policy import (
    NEVER,
    QUARANTINE,
    TOMBSTONE,
    VERSION_WORD,
    DealWindow,
    Decision,
    Intent,
    LegalBasis,
    PolicyBit,
    PolicyTable,
    Search,
    Session,
    WallCrossing,
    infer,
)
from tests.sizes import examples

TEXT = files("carag").joinpath("profiles/edgar/roles.toml").read_text()
TABLE = PolicyTable.from_toml(TEXT)
PLAIN = ReferencePolicy(TEXT)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = 10_000
PLACES = ["J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"]
INTENTS = [intent.value for intent in Intent]


def moment(minutes: int) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


def some(rng: random.Random, share: float, options: list[Any]) -> set[Any]:
    return {option for option in options if rng.random() < share}


def a_session(rng: random.Random) -> dict[str, Any]:
    """Draw plain values: times in minutes, companies 1 to 6."""
    role, purpose = (
        rng.choice(list(PLAIN.cells)) if rng.random() < 0.95 else ("public", rng.choice(PLAIN.purposes))
    )
    windows = [
        (rng.randint(1, 6), (start := rng.randint(0, NOW)), start + rng.randint(0, 4_000)) for _ in range(2)
    ]
    legal = rng.choice(
        [("consent", {"invest", "dsar"}), ("legal_obligation", set()), ("legitimate_interests", set())]
    )
    return {
        "role": role,
        "purpose": purpose,
        "as_of": rng.choice([None, rng.randint(0, 2 * NOW)]),
        "allow": some(rng, 0.6, [1, 2, 3, 4, 5, 6]) if rng.random() < 0.5 or purpose == "dsar" else None,
        "clients": some(rng, 0.8, [1, 2, 3, 4, 5, 6]) if rng.random() < 0.1 else None,
        "restricted": some(rng, 0.2, [1, 2, 3, 4, 5, 6]) if rng.random() < 0.3 else set(),
        "watched": some(rng, 0.1, [1, 2, 3, 4, 5, 6]) if rng.random() < 0.2 else set(),
        "deals": None if rng.random() < 0.4 else windows[: rng.randint(0, 2)],
        "crossed": [(rng.randint(1, 6), rng.choice(["draft", "surveil"]))] if rng.random() < 0.3 else [],
        "residency": some(rng, 0.2, PLACES) if rng.random() < 0.3 else set(),
        "transfer": rng.choice([None, True, False]),
        "legal": (*legal, some(rng, 0.2, [1, 2, 3]), some(rng, 0.2, [4, 5, 6]))
        if rng.random() < 0.3
        else None,
        "cooling": rng.choice([None, None, rng.randint(1, NOW)]),
        "intents": some(rng, 0.15, INTENTS),
    }


def a_row(rng: random.Random) -> ReferenceLabel:
    """Draw a word, the names of its bits, its entities, and its window."""
    density = rng.choice([0.02, 0.1, 0.1, 0.3])
    names = some(rng, density, list(PolicyBit.__members__)) | (
        {"OFFERING", "EGC"} if rng.random() < 0.15 else set()
    )
    control = rng.choice([VERSION_WORD] * 12 + [0, VERSION_WORD | QUARANTINE, VERSION_WORD | TOMBSTONE])
    word = sum(PolicyBit[name] for name in names) | control
    ends = NEVER if rng.random() < 0.8 else rng.randint(0, NOW)
    about = {rng.randint(0, 6) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))}
    return ReferenceLabel(
        word, frozenset(names), frozenset(about), rng.choice([0, rng.randint(0, NOW)]), ends
    )


def compiled(said: dict[str, Any]) -> Decision | str:
    """Do what the engine does."""
    legal = said["legal"]
    session = Session(
        role=said["role"],
        purpose=said["purpose"],
        as_of=None if said["as_of"] is None else moment(said["as_of"]),
        allow_entities=said["allow"],
        audit_clients=said["clients"],
        restricted=said["restricted"],
        watched=said["watched"],
        deals=None
        if said["deals"] is None
        else tuple(DealWindow(who, moment(begins), moment(ends)) for who, begins, ends in said["deals"]),
        wall_crossings=tuple(WallCrossing(who, purpose) for who, purpose in said["crossed"]),
        residency=said["residency"],
        eu_transfer_basis=said["transfer"],
        legal_basis=None if legal is None else LegalBasis(*legal),
        cooling=None if said["cooling"] is None else timedelta(minutes=said["cooling"]),
        intents=tuple(Intent(name) for name in said["intents"]),
    )
    try:
        return infer(session, TABLE, now=moment(NOW))
    except Refused as refusal:
        return refusal.code


def is_current(search: Search, public_at: int, expires_at: int) -> bool:
    """Tell whether an index finds a row: public at one instant, and not expired at the other."""
    alive_at = search.as_of if search.alive_at is None else search.alive_at
    return public_at <= search.as_of and alive_at < expires_at


@pytest.mark.parametrize(
    "count",
    [
        examples(5_000),
        pytest.param(50_000, marks=pytest.mark.release),
        pytest.param(1_000_000, marks=pytest.mark.full),
    ],
)
def test_compiled_masks_equal_a_plain_reading_of_the_table(count: int) -> None:
    """For random sessions and rows, refusals, searches and reasons all agree with the table."""
    rng = random.Random(20_261_122)  # noqa: S311 # a seed, not a secret
    seen = dict.fromkeys(["admitted", "hidden", "refused", "cooled", "reopened", "listed", "several"], 0)
    for _ in range(count):
        said, row = a_session(rng), a_row(rng)
        decision = compiled(said)
        if isinstance(decision, str) or PLAIN.refused(said):
            assert PLAIN.refused(said) == decision, said
            seen["refused"] += 1
            continue
        word, _names, entity, public_at, expires_at = row
        seen["several"] += len(entity) > 1
        expected = PLAIN.admits(said, row, now=NOW)
        met = [
            search
            for search in decision.searches
            if search.policy.admits(word, entity) and is_current(search, public_at, expires_at)
        ]
        assert expected == bool(met), (said, row)
        assert len(met) <= 1, (said, row)
        assert expected == (decision.reasons(word, public_at, entity=entity, expires_at=expires_at) == ()), (
            said,
            row,
        )
        seen["admitted" if expected else "hidden"] += 1
        seen["cooled"] += bool(decision.cooling)
        seen["reopened"] += (
            expected and decision.reopened is not None and not decision.policy.admits(word, entity)
        )
        seen["listed"] += bool(decision.grounds)
    assert min(seen.values()) > count // 5_000, seen  # every branch was reached
