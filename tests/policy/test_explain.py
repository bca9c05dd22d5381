"""Explanations agree with the test that hides, and the description of a policy depends on the policy alone."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import (
    NEVER,
    POLICY_BITS,
    QUARANTINE,
    TOMBSTONE,
    VERSION_WORD,
    Decision,
    Mask,
    Policy,
    PolicyBit,
    Rule,
    policy_word,
    reasons,
    withheld_kinds,
)
from carag.policy.explain import cooling_reason

vectors = st.integers(0, POLICY_BITS)
minutes = st.integers(0, NEVER)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    pairs = draw(st.lists(st.tuples(vectors, vectors), max_size=8))
    return Policy(*(Mask(required, forbidden & ~required) for required, forbidden in pairs))


@given(vectors, policies())
def test_each_forbidden_reason_names_a_bit_the_word_has(bits: int, policy: Policy) -> None:
    """A required reason names only bits that the word lacks."""
    for reason in reasons(policy_word(bits), 0, policy, 0):
        held = [bool(bits & bit) for bit in reason.bits]
        assert all(held) if reason.rule is Rule.FORBIDDEN else not any(held)


def test_the_nearest_mask_is_explained() -> None:
    """Of several masks, reasons are given for the one that comes closest to admitting."""
    policy = Policy(Mask(0, 0b111), Mask(0, 0b100))
    assert [r.code for r in reasons(policy_word(0b111), 0, policy, 0)] == ["FORBIDDEN:J_UK"]


def test_control_bits_hide_everything_else() -> None:
    """Nothing is said about the policy bits of a deleted or quarantined passage."""
    policy = Policy(Mask(0, POLICY_BITS))
    for word, rule in [
        (VERSION_WORD | 1 | TOMBSTONE, Rule.TOMBSTONE),
        (VERSION_WORD | 1 | QUARANTINE, Rule.QUARANTINE),
        (1, Rule.UNLABELLED),
    ]:
        assert [rule] == [r.rule for r in reasons(word, NEVER, policy, 0)]


def test_time_and_policy_are_both_named() -> None:
    """Worked example: a draft registration before its release, asked by research."""
    found = reasons(0x0900_8101, 100, Policy(Mask(0, 0x19C100)), 99)
    assert [r.code for r in found] == ["NOT_YET_PUBLIC", "FORBIDDEN:OFFERING", "FORBIDDEN:PRIV2PUB"]


@given(policies())
def test_kinds_name_every_bit_a_policy_looks_at(policy: Policy) -> None:
    """Everything that can hide a document is named."""
    named = {bit for kind in withheld_kinds(policy) for bit in kind.bits}
    always_required = all(mask.required for mask in policy.masks)
    for mask in policy.masks:
        looked_at = mask.forbidden | (mask.required if always_required else 0)
        assert {bit for bit in PolicyBit if looked_at & bit} <= named


@given(policies())
def test_codes_of_any_policy_fit_a_record(policy: Policy) -> None:
    """Short, distinct, plain letters and digits, as the audit record requires."""
    codes = [kind.code for kind in withheld_kinds(policy)]
    assert all(re.fullmatch(r"[A-Z][A-Za-z0-9_:]{0,63}", code) for code in codes)
    assert len(codes) == len(set(codes))


def test_the_dsar_policy_names_what_it_requires() -> None:
    """Several bits have one code, with their mask."""
    policy = Policy(*(Mask(required, 0x10000) for required in (0x800, 0x1000, 0x2000, 0x4000)))
    assert "REQUIRED:0x7800" in [kind.code for kind in withheld_kinds(policy)]


def test_an_empty_policy_says_that_it_admits_nothing() -> None:
    """It must not read as if it hides nothing."""
    assert "admits nothing" in withheld_kinds(Policy())[0].text
    assert "admits nothing" in reasons(VERSION_WORD, 0, Policy(), 0)[0].text


entities = st.integers(0, 5)
lists = st.fixed_dictionaries(
    {}, optional={"allow_entities": st.sets(entities), "deny_entities": st.sets(entities)}
)


@given(
    vectors.map(policy_word) | st.integers(0, 2**32 - 1),
    minutes,
    minutes,
    entities,
    policies(),
    lists,
    st.integers(0, NEVER - 1),
)
def test_no_reason_exactly_when_admissible_by_every_term(
    word: int,
    public_at: int,
    expires_at: int,
    entity: int,
    masks: Policy,
    listed: dict[str, set[int]],
    as_of: int,
) -> None:
    """For every word, window, entity and policy."""
    policy = Policy(*masks.masks, **listed)
    admissible = policy.admits(word, entity) and public_at <= as_of < expires_at
    why = reasons(word, public_at, policy, as_of, entity=entity, expires_at=expires_at)
    assert admissible == (why == ())


def test_a_decision_admits_exactly_what_it_has_no_reason_against() -> None:
    """For words near the bounds, with every set of entities, at each minute around opening, cooling and expiry."""
    listed = Policy(Mask(), deny_entities=[1])
    policies = [
        (Policy(Mask(0, PolicyBit.MATERIAL)), None),
        (listed, None),
        (Policy(Mask(0, PolicyBit.MATERIAL), allow_entities=[2]), listed),
    ]
    words = [policy_word(bits) ^ control for bits in (0, PolicyBit.MATERIAL) for control in (0, VERSION_WORD)]
    times = list(itertools.product(range(4), repeat=4))
    for (policy, reopened), word, about in itertools.product(policies, words, [(), (1,), (2,), (1, 2)]):
        opened = any(one.admits(word, about) for one in (policy, reopened) if one is not None)
        for public_at, expires_at, as_of, cooling in times:
            decision = Decision("r", "p", policy, as_of, None, False, "", reopened=reopened, cooling=cooling)
            cooled = not word & PolicyBit.MATERIAL or public_at + cooling <= as_of
            expected = opened and public_at <= as_of < expires_at and cooled
            terms = {"entity": about, "expires_at": expires_at}
            assert expected is decision.admits(word, public_at, **terms)
            why = decision.reasons(word, public_at, **terms)
            assert expected is (why == ())
            fresh = not cooled and word & VERSION_WORD and public_at <= as_of
            assert bool(fresh) is (cooling_reason(cooling, public_at) in why)


@pytest.mark.parametrize(
    ("lists", "terms", "codes"),
    [
        ({"deny_entities": [7]}, {"entity": 7}, ["ENTITY_DENIED"]),
        ({"deny_entities": [7]}, {"entity": 8}, []),
        ({"deny_entities": [7]}, {"entity": 8, "expires_at": 100}, ["EXPIRED"]),
        ({"deny_entities": [7]}, {"entity": 8, "expires_at": 101}, []),
        ({"deny_entities": [7]}, {"entity": 7, "expires_at": 100}, ["EXPIRED", "ENTITY_DENIED"]),
        ({"allow_entities": [7]}, {}, ["ENTITY_NOT_ALLOWED"]),
    ],
)
def test_terms_have_stable_codes(
    lists: dict[str, list[int]], terms: dict[str, int], codes: list[str]
) -> None:
    """Records keep them for years; the end of a release is exclusive; denied and not allowed are told apart."""
    why = reasons(policy_word(0), 0, Policy(Mask(), **lists), 100, **terms)
    assert codes == [reason.code for reason in why]


@pytest.mark.parametrize("rule", ["deny_entities", "allow_entities"])
def test_a_kind_says_that_there_is_a_list_and_never_who_is_on_it(rule: str) -> None:
    """Two lists give the same kinds, so a model or an asker cannot distinguish them."""
    kinds = [withheld_kinds(Policy(Mask(), **{rule: listed})) for listed in ([320_193], [789_019, 1_018_724])]
    assert kinds[0] == kinds[1]
    assert any(kind.code.startswith("ENTITY_") for kind in kinds[0])
    assert "320193" not in repr(kinds)
