"""Every reason names the rules it serves and who could lift it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from carag.policy import (
    Basis,
    DealWindow,
    Intent,
    LawfulBasis,
    LegalBasis,
    PolicyBit,
    PolicyTable,
    Reason,
    Rule,
    Session,
    WallCrossing,
    explained,
    infer,
    meaning,
    policy_word,
)
from carag.policy.remedy import _BASES, _RULES

NOW = datetime(2026, 1, 2, 15, 0, tzinfo=UTC)
TABLE = PolicyTable.shipped()
SURVEIL = infer(Session(role="compliance", purpose="surveil"), TABLE, now=NOW)


def test_no_rule_basis_or_bit_is_left_without_a_remedy() -> None:
    """A new rule, basis or bit needs one."""
    assert set(_RULES) | {Rule.FORBIDDEN} == set(Rule)
    assert set(_BASES) == set(Basis)
    assert all((*_RULES.values(), *_BASES.values()))
    assert all(meaning(bit).document and meaning(bit).regulation and meaning(bit).lift for bit in PolicyBit)


@pytest.mark.parametrize("bit", PolicyBit)
def test_a_forbidden_bit_names_its_own_regulation(bit: PolicyBit) -> None:
    """And who can lift it."""
    said = explained(Reason(Rule.FORBIDDEN, (bit,), "x"), SURVEIL, 0).to_json()
    assert said["bits"] == [bit.name]
    assert said["regulation"]
    assert said["lift"]


@pytest.mark.parametrize(
    ("role", "purpose", "more", "basis"),
    [
        ("buy_side", "invest", {"restricted": {7}}, ["RESTRICTED_LIST"]),
        ("buy_side", "invest", {"restricted": {7}, "watched": {7}}, ["RESTRICTED_LIST", "WATCH_LIST"]),
        (
            "sell_side",
            "publish",
            {"deals": (DealWindow(7, date(2026, 1, 1), date(2026, 1, 9)),)},
            ["QUIET_PERIOD"],
        ),
        ("buy_side", "invest", {"wall_crossings": (WallCrossing(7, "draft"),)}, ["WALL_CROSSED"]),
        (
            "buy_side",
            "invest",
            {"legal_basis": LegalBasis(LawfulBasis.LEGITIMATE_INTERESTS, objections={7})},  # type: ignore[arg-type]
            ["OBJECTION"],
        ),
    ],
)
def test_an_entity_names_its_bases_and_no_other_entitys(
    role: str, purpose: str, more: dict[str, Any], basis: list[str]
) -> None:
    """The lists that it is on, with their regulation."""
    decision = infer(Session(role=role, purpose=purpose, **more), TABLE, now=NOW)
    (reason,) = decision.reasons(policy_word(1), 0, entity=7)
    said = explained(reason, decision, 7)
    assert (list(said.basis), said.reason.code) == (basis, "ENTITY_DENIED")
    assert said.regulation
    assert decision.reasons(policy_word(1), 0, entity=8) == ()
    assert explained(reason, decision, 0).basis == ()


def test_what_only_a_question_forbids_the_asker_can_lift() -> None:
    """By rephrasing the question."""
    decision = infer(Session(role="buy_side", purpose="invest"), TABLE, now=NOW, intents=(Intent.LATEST,))
    (reason,) = decision.reasons(policy_word(PolicyBit.NOT_LATEST), 0)
    assert "LATEST" in explained(reason, decision, 0).lift


def test_a_rule_without_a_regulation_has_that_of_its_cell() -> None:
    """A cell requires bits for its own reasons."""
    decision = infer(Session(role="dpo", purpose="dsar", allow_entities=frozenset({7})), TABLE, now=NOW)
    (reason,) = decision.reasons(policy_word(1), 0, entity=7)
    assert (reason.rule, explained(reason, decision, 7).regulation) == (Rule.REQUIRED, "GDPR Art. 15, 39")
