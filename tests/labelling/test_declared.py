"""Facts become bits by a profile's rules; a missing, unknown or misspelt fact quarantines, and never opens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.labelling.declared import FactProblem, _is_among, _plain, label_facts
from carag.policy import QUARANTINE, Profile, Vocabulary, bit_names
from carag.policy.shipped import shipped_text

GENERIC = Profile.open("generic").vocabulary
LEVELS = {"public": 0, "internal": 1, "confidential": 2, "secret": 3}
truths = st.sampled_from([True, False, "yes", "no", "TRUE", "false", 1, 0])


def names(facts: dict[str, object]) -> set[str]:
    return set(bit_names(label_facts(facts, GENERIC).word, GENERIC.flags))


@given(
    st.sampled_from(list(LEVELS)),
    st.fixed_dictionaries({}, optional={"personal_data": truths, "draft": truths}),
)
def test_the_generic_rules_set_their_bits(level: str, more: dict[str, object]) -> None:
    """A higher level has the bits of the lower ones; the other bits depend on their own facts alone."""
    expected = set(["INTERNAL", "CONFIDENTIAL", "SECRET"][: LEVELS[level]])
    holds = {name for name, value in more.items() if str(value).casefold() in {"true", "yes", "1"}}
    expected |= {{"personal_data": "PERSONAL", "draft": "DRAFT"}[name] for name in holds}
    assert names({"classification": level.upper(), **more}) == expected


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({}, "MISSING_FACT"),
        ({"classification": None}, "MISSING_FACT"),
        ({"classification": ""}, "MISSING_FACT"),
        ({"classification": "top secret"}, "UNKNOWN_VALUE"),
        ({"classification": ["public", "secret"]}, "UNKNOWN_VALUE"),
        ({"classification": 3}, "UNKNOWN_VALUE"),
        ({"classification": "public", "draft": "perhaps"}, "UNKNOWN_VALUE"),
        ({"classification": "public", "draft": 1.0}, "UNKNOWN_VALUE"),
        ({"classification": "public", "personal_dta": "yes"}, "MISSPELT_FACT"),
        ({"Classification": "public"}, "MISSING_FACT"),
    ],
)
def test_what_gives_no_label_is_quarantined_with_its_reason(facts: dict[str, object], code: str) -> None:
    """Its other facts do not matter."""
    said = label_facts(facts, GENERIC)
    assert said.quarantine is not None
    assert (said.quarantine.code, bool(said.word & QUARANTINE)) == (FactProblem(code), True)


@given(st.dictionaries(st.text(max_size=12), st.none() | st.text(max_size=9) | st.integers() | st.floats()))
def test_no_facts_break_the_rules(facts: dict[str, object]) -> None:
    """Any facts are labelled or quarantined; without a classification they are never open."""
    said = label_facts(facts, GENERIC)
    assert (said.quarantine is None) <= ("classification" in facts)


def with_rule(rule: str) -> Vocabulary:
    return Vocabulary.from_toml(
        f"{shipped_text('generic', 'profile.toml')}\n[[rule]]\n{rule}\nregulation = 'r'\n"
    )


@pytest.mark.parametrize(
    ("rule", "holding", "not_holding"),
    [
        ("bit='LEGAL'\nfield='tags'\noperator='contains'\nvalue='Legal'", ["x", "legal"], ["x"]),
        ("bit='LEGAL'\nfield='tags'\noperator='one_of'\nvalue=['a','b']", "B", "c"),
        ("bit='LEGAL'\nfield='tags'\noperator='at_least'\nvalue=2020", "2020", 2019),
        ("bit='LEGAL'\nfield='tags'\noperator='at_most'\nvalue=2020", 2020, "2020.5"),
        ("bit='LEGAL'\nfield='tags'\noperator='equals'\nvalue=7", 7, 8),
        ("bit='LEGAL'\nfield='tags'\noperator='equals'\nvalue=7", " 7", "8"),
        ("bit='LEGAL'\nfield='tags'\noperator='contains'\nvalue=true", ["True"], ["yes"]),
        ("bit='LEGAL'\nfield='tags'\noperator='one_of'\nvalue=['7']", 7, 70),
    ],
)
def test_each_operator_tells_what_holds(rule: str, holding: object, not_holding: object) -> None:
    """A rule about an absent fact does not hold."""
    said = with_rule(rule)
    for value, holds in ((holding, True), (not_holding, False)):
        word = label_facts({"classification": "public", "tags": value}, said).word
        assert ("LEGAL" in bit_names(word, said.flags)) == holds
    assert not bit_names(label_facts({"classification": "public"}, said).word, said.flags)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, "1", " YES ", "true", "None", "Straße"])
)


@given(scalars.filter(lambda one: one is not None), st.lists(scalars, max_size=3))
def test_a_fact_holds_by_its_value_or_by_its_text(wanted: object, stated: list[object]) -> None:
    """As front matter or Python writes it: 1 equals "1", 1.0 and true."""

    def text(value: object) -> str:
        return str(value.strip() if isinstance(value, str) else value).strip().casefold()

    expected = any(one == wanted or text(one) == text(wanted) for one in stated)
    assert _is_among(wanted, [_plain(one) for one in stated]) is expected


@pytest.mark.parametrize("stated", ["nan", "-inf", "1e999", "many", "", [], [1, 2], True])
def test_a_value_that_is_not_a_number_is_never_compared(stated: object) -> None:
    """It is neither above nor below a bound, so no bit would hide the document."""
    said = with_rule("bit='LEGAL'\nfield='tags'\noperator='at_least'\nvalue=2020")
    labelled = label_facts({"classification": "public", "tags": stated}, said)
    assert labelled.quarantine is not None
    assert labelled.quarantine.code == "UNKNOWN_VALUE"


@pytest.mark.parametrize(
    "rule",
    [
        "bit='LEGAL'\nfield='tags'\noperator='matches'\nvalue='a'",
        "bit='LEGEL'\nfield='tags'\noperator='equals'\nvalue='a'",
        "bit='LEGAL'\nfield='Tags'\noperator='equals'\nvalue='a'",
        "bit='LEGAL'\nfield='tags'\noperator='one_of'\nvalue='a'",
        "bit='LEGAL'\nfield='tags'\noperator='is_true'\nvalue=true",
        "bit='LEGAL'\nfield='tags'\noperator='at_least'\nvalue='a'",
        "bit='LEGAL'\nfield='tags'\noperator='equals'",
        "bit='LEGAL'\nfield='tags'\noperator='at_least'\nvalue=nan",
        "bit='LEGAL'\nfield='tags'\noperator='one_of'\nvalue=[]",
    ],
)
def test_a_meaningless_rule_is_refused_with_its_profile(rule: str) -> None:
    """Its operator, bit, field or value does not exist or does not fit."""
    with pytest.raises(InvalidArgument):
        with_rule(rule)
