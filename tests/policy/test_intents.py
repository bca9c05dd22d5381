"""Intents are found by fixed words, and never widen a policy."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, PolicyConflict, Refused
from carag.policy import (
    POLICY_BITS,
    Intent,
    Mask,
    Policy,
    PolicyBit,
    PolicyTable,
    Session,
    infer,
    intents,
    policy_word,
    tighten,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TABLE = PolicyTable.shipped()
MASKS = {rule.name: rule.mask for rule in TABLE.vocabulary.intents.rules}
vectors = st.integers(0, POLICY_BITS)
policies = st.builds(
    lambda pairs, denied: Policy(*(Mask(req & ~ban, ban) for req, ban in pairs), deny_entities=denied),
    st.lists(st.tuples(vectors, vectors), max_size=8),
    st.sets(st.integers(0, 3)),
)


@given(policies, st.sampled_from(Intent), vectors, st.integers(0, 3))
def test_tightening_never_widens(policy: Policy, intent: Intent, bits: int, entity: int) -> None:
    """A tightened policy admits exactly the words that the policy admits and that have what was asked for."""
    adds = MASKS[intent]
    conflict = any(
        (mask.required | adds.required) & (mask.forbidden | adds.forbidden) for mask in policy.masks
    )
    if conflict:
        with pytest.raises(PolicyConflict):
            tighten(policy, intent)
        return
    word = policy_word(bits)
    asked_for = bits & adds.required == adds.required and not bits & adds.forbidden
    assert tighten(policy, intent).admits(word, entity) == (policy.admits(word, entity) and asked_for)


@pytest.mark.parametrize(
    ("intent", "required", "forbidden"),
    [
        (Intent.AUDITED, 0x20, 0xC0),
        (Intent.LATEST, 0, 0x200000),
        (Intent.AS_AMENDED, 0, 0xC0000),
        (Intent.CURRENT_HOLDINGS, 0, 0x400),
        (Intent.US_GAAP, 0, 0x4000000),
        (Intent.PERSON_NAMED, 0, 0x7800),
    ],
)
def test_each_intent_has_the_specified_masks(intent: Intent, required: int, forbidden: int) -> None:
    """The masks are those of the specification, bit for bit."""
    assert (MASKS[intent].required, MASKS[intent].forbidden) == (required, forbidden)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is the audited net income?", ["AUDITED"]),
        ("What does the most recent 10-Q say?", ["LATEST"]),
        ("What was revenue, as restated?", ["AS_AMENDED"]),
        ("Which funds currently hold the stock?", ["CURRENT_HOLDINGS"]),
        ("Net income under U.S. GAAP?", ["US_GAAP"]),
        ("Net income under US-GAAP, latest audited year?", ["AUDITED", "LATEST", "US_GAAP"]),
        ("What did Ms. Okafor sell?", ["PERSON_NAMED"]),
        ("What is Jane Q. Okafor's total compensation?", ["PERSON_NAMED"]),
        # what only sounds like one
        ("What is the unaudited net income?", []),
        ("Which figures were not audited?", []),
        ("Which non-audited services were bought?", []),
        ("Who filed under the Securities Exchange Act of 1934, as amended?", []),
        ("Is payment due at the latest in May?", []),
        ("Which non-U.S. GAAP measures are used?", []),
        ("What does Apple Inc.'s revenue depend on?", []),
        ("Are current holders of the notes protected?", []),
        ("What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?", []),
        ("", []),
    ],
)
def test_the_word_list(question: str, found: list[str]) -> None:
    """Each intent by its words, and phrases that only look like one."""
    assert found == [intent.value for intent in intents(question)]


@given(st.text())
def test_any_text_has_its_intents(text: str) -> None:
    """They come in order, once each, and nothing raises."""
    found = intents(text)
    assert list(found) == [intent for intent in Intent if intent in found]


def test_a_question_that_contradicts_its_cell_is_refused() -> None:
    """Neither the question nor the cell is ignored."""
    text = (
        'schema = 1\n[[cell]]\nrole = "r"\npurpose = "p"\nregulation = "x"\nmay_know_existence = false\npast = "none"\n'
        'masks = [{ required = ["NOT_LATEST"] }, {}]'
    )
    with pytest.raises(Refused, match="NOT_LATEST") as refusal:
        infer(Session(role="r", purpose="p"), PolicyTable.from_toml(text), now=NOW, intents=(Intent.LATEST,))
    assert refusal.value.code == "CONFLICT"


def test_who_may_look_persons_up_is_not_tightened_by_a_name() -> None:
    """Surveillance finds a Form 4 by its reporter; research does not."""
    named = (Intent.PERSON_NAMED,)
    surveil = infer(Session(role="compliance", purpose="surveil"), TABLE, now=NOW, intents=named)
    invest = infer(Session(role="buy_side", purpose="invest"), TABLE, now=NOW, intents=named)
    form_4 = policy_word(PolicyBit.PD_INSIDER | PolicyBit.PD_NATURAL)
    assert (surveil.policy.admits(form_4), surveil.intents) == (True, ())
    assert (invest.policy.admits(form_4), invest.intents) == (False, named)


def test_a_session_names_intents_too_and_only_known_ones() -> None:
    """They are added to those of the question, each once, in a fixed order."""
    session = Session(role="buy_side", purpose="invest", intents=("LATEST", Intent.AUDITED, "LATEST"))
    assert session.intents == (Intent.LATEST, Intent.AUDITED)
    assert infer(session, TABLE, now=NOW, intents=(Intent.US_GAAP,)).intents == (
        Intent.AUDITED,
        Intent.LATEST,
        Intent.US_GAAP,
    )
    with pytest.raises(Refused, match=r"unknown intent 'LATSET'; want one of .* did you mean 'LATEST'"):
        infer(Session(role="buy_side", purpose="invest", intents=("LATSET",)), TABLE, now=NOW)
    for bad in ("LATEST", (7,), None, ([],), ("",), ("a\nb",)):
        with pytest.raises(InvalidArgument, match="intent"):
            Session(role="buy_side", purpose="invest", intents=bad)  # type: ignore[arg-type]


def test_what_is_taken_out_of_a_question_leaves_no_name_behind() -> None:
    """A statute cited in the genitive is not a person whose pay is asked for."""
    assert intents("What is the Act, as amended's pay ratio?") == ()
