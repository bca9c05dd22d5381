"""Rules and claims: what is demanded, forbidden or permitted, and when nothing is settled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.evaluation.regulatory.lists import entries
from carag.evaluation.regulatory.norms import Said, read
from carag.evaluation.regulatory.signs import signs
from carag.labelling.sentences import sentences

MEETS, BREAKS, UNSETTLED = Said.MEETS, Said.BREAKS, Said.UNSETTLED
KEEP = "Providers shall keep the logs for at least six months, unless the law says otherwise."
REPORT = (
    "The provider shall report an incident not later than 15 days after it becomes aware of the incident."
)
TESTED = "Systems shall be tested before they are sold."
LISTED = "1. The following practices shall be prohibited:\n(a) the scoring of citizens by their behaviour;\n(b) fraud."
SHARE = "Vendors may share data with auditors."
EXEMPT = "The duty to keep logs shall not apply to small providers."
MARK = "Vendors shall disclose that the pictures were generated."

LAW = {
    "one day is not six months": (KEEP, "We retain the logs for one day.", BREAKS),
    "twelve months are at least six": (
        KEEP,
        "We keep the logs for twelve months, longer than six months.",
        MEETS,
    ),
    "deleted too early": (KEEP, "Providers may delete the logs after 30 days.", BREAKS),
    "need not": (KEEP, "A provider need not keep the logs.", BREAKS),
    "a figure that the rule has not": (TESTED, "Systems are tested 3 times before they are sold.", UNSETTLED),
    "once a year": (REPORT, "We report an incident once a year.", BREAKS),
    "within ten days": (REPORT, "We report an incident within ten days of becoming aware of it.", MEETS),
    "a negation on what is demanded": (TESTED, "Our systems are not tested before they are sold.", BREAKS),
    "a negation of something else": (
        TESTED,
        "Systems are tested before they are sold, but not by us.",
        MEETS,
    ),
    "without": (MARK, "We sell films without disclosing that they were generated.", BREAKS),
    "one half denied and one affirmed": (
        MARK,
        "We never disclose it, but our pictures were generated.",
        UNSETTLED,
    ),
    "switched off": (KEEP, "Providers do not keep the logs; logging is switched off.", BREAKS),
    "optional": (TESTED, "Systems are optionally tested before they are sold.", UNSETTLED),
    "only some": (TESTED, "Only few systems are tested before they are sold.", UNSETTLED),
    "hardly ever": (KEEP, "Providers hardly ever keep the logs.", UNSETTLED),
    "stopped": (KEEP, "Providers have stopped to keep the logs.", UNSETTLED),
    "said to be false": (KEEP, "It is false that providers keep the logs.", UNSETTLED),
    "a piece of a sentence": (
        "monitoring system, as in the law",
        "We have a monitoring system.",
        UNSETTLED,
    ),
    "another action": (
        KEEP,
        "Logs of providers are painted blue and thrown at passing strangers.",
        UNSETTLED,
    ),
    "done though forbidden by the lead": (LISTED, "We score citizens by their behaviour.", BREAKS),
    "not done, as it is forbidden": (LISTED, "We do not score citizens by their behaviour.", MEETS),
    "said to be forbidden": (LISTED, "Scoring citizens by their behaviour is prohibited.", MEETS),
    "said to be allowed": (LISTED, "Cities may score citizens by their behaviour.", BREAKS),
    "a permission is not a duty": (SHARE, "Vendors share data with auditors.", UNSETTLED),
    "a permission given and claimed": (SHARE, "Vendors may share data with auditors.", MEETS),
    "a permission not used": (SHARE, "Vendors do not share data with auditors.", UNSETTLED),
    "an exemption": (EXEMPT, "Small providers keep logs.", UNSETTLED),
}


@pytest.mark.parametrize("name", LAW)
def test_words_settle_only_what_they_say(name: str) -> None:
    rule, claim, said = LAW[name]
    assert read(claim, rule, lambda _word: 1.0).said is said


def test_the_general_rule_decides_unless_the_exception_is_spoken_of() -> None:
    death = (
        "Notwithstanding that, where a person has died the provider shall report an incident not later than 2 days "
        "after it becomes aware of the incident."
    )
    ten = "We report an incident within ten days of becoming aware of it."
    both = f"{REPORT} {death}"
    assert read(ten, both, lambda _word: 1.0).said is MEETS
    assert read(f"Where a person has died, {ten}", both, lambda _word: 1.0).said is BREAKS


@given(st.permutations([KEEP, REPORT, TESTED, MARK]))
def test_the_order_of_rules_does_not_matter(rules: list[str]) -> None:
    found = read("We report an incident once a year.", "\n".join(rules), lambda _word: 1.0)
    assert (found.said, "\n".join(rules)[found.start : found.end]) == (BREAKS, REPORT)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_read(claim: str, passage: str) -> None:
    found = read(claim, passage, lambda _word: 1.0)
    assert 0 <= found.held <= 1
    assert 0 <= found.start <= found.end <= len(passage)
    if not signs(claim):
        assert found.said is UNSETTLED


def test_points_of_points_end_with_the_next_point() -> None:
    text = "These:\n(h) one, unless:\n(i) x;\n(ii) y;\n(i) two.\n\nAfter it. No list."
    found = [(text[one.start : one.end], len(one.leads)) for one in entries(text, sentences(text))]
    assert [leads for _, leads in found] == [0, 1, 2, 2, 2, 0, 0]
    bullets = "Keep:\n- logs;\n- keys:\n(a) all.\n- data."
    assert [len(one.leads) for one in entries(bullets, sentences(bullets))] == [0, 1, 1, 2, 1]
