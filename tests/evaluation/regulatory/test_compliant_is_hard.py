"""Claims that share the words of a rule and still break it are never called compliant."""

from __future__ import annotations

import pytest

from carag.evaluation.regulatory.norms import Said, read
from carag.evaluation.regulatory.signs import signs
from carag.evaluation.regulatory.stance_head import StanceHead

DECLARE = "The provider shall draw up a written EU declaration of conformity."
AFFIX = "The provider shall affix the CE marking to the high-risk AI system visibly, legibly and indelibly."
DISPOSAL = "The provider shall keep the documentation at the disposal of the national competent authorities."
OVERSEE = "Human oversight shall be performed by natural persons who have the necessary competence."
ASSESS = "The system shall undergo a conformity assessment before it is placed on the market."
VERIFY = "Importers shall verify the conformity assessment before placing a system on the market."
ACCURACY = "The levels of accuracy measured shall be declared in the instructions of use."
LOGS = "Systems shall record events automatically in a log file."
USE = "Deployers shall use the system in accordance with the instructions of use."
BIAS = "Data sets shall be examined in view of possible biases."
UPDATE = "The technical documentation shall be drawn up before the system is placed on the market and kept up to date."
RISK = "A risk management system shall be established, implemented, documented and maintained."
TRAIN = "Staff shall be trained before they operate the system."
NOTIFY = "The provider shall inform the authority of a serious incident."

VIOLATIONS = [
    (DECLARE, "We draw up the EU declaration of conformity orally."),
    (AFFIX, "We affix the CE marking to the high-risk AI system in invisible ink."),
    (DISPOSAL, "We keep the documentation at the disposal of competitors."),
    (OVERSEE, "Human oversight is performed by the AI system itself."),
    (ACCURACY, "The accuracy declared in the instructions of use is at twice what was measured."),
    (LOGS, "Systems record events automatically in a log file overwritten each hour."),
    (USE, "Deployers use the system in accordance with instructions of use written by themselves."),
    (OVERSEE, "Human oversight is performed by the system alone."),
    (BIAS, "Data sets are examined without regard to possible biases."),
    (ASSESS, "The conformity assessment takes place after the system is placed on the market."),
    (VERIFY, "Importers verify the conformity assessment afterwards."),
    (UPDATE, "The technical documentation was drawn up and was not updated since."),
    (RISK, "A risk management system was established once."),
    ("Instructions of use", "The instructions of use are clear."),
    # More of the same kinds.
    (DECLARE, "The provider draws up a written EU declaration of conformity in a dead language."),
    (AFFIX, "The CE marking is affixed to the inside of the sealed housing."),
    (DISPOSAL, "We keep the documentation at the disposal of paying subscribers."),
    (OVERSEE, "Human oversight is performed by untrained interns."),
    (ASSESS, "The system undergoes a conformity assessment once it is placed on the market."),
    (TRAIN, "Staff are trained after they operate the system."),
    (TRAIN, "Staff operate the system first and are trained later."),
    (NOTIFY, "We inform the authority of a serious incident anonymously."),
    (NOTIFY, "We inform the press of a serious incident."),
    (LOGS, "Systems record random events in a log file."),
    (BIAS, "Data sets are examined in view of possible profits."),
    ("Risk management system", "We have a risk management system."),
]
TWINS = [
    (DECLARE, "We draw up a written EU declaration of conformity."),
    (AFFIX, "We affix the CE marking to the high-risk AI system visibly and legibly."),
    (DISPOSAL, "We keep the documentation at the disposal of the national competent authorities."),
    (OVERSEE, "Human oversight is performed by people who have the necessary competence."),
    (LOGS, "Our systems record events automatically in a log file."),
    (ASSESS, "The system undergoes a conformity assessment before it is placed on the market."),
    (BIAS, "Data sets are examined in view of possible biases."),
    (TRAIN, "Staff are trained before they operate the system."),
    (NOTIFY, "We inform the authority of a serious incident."),
]


@pytest.mark.parametrize(("rule", "claim"), VIOLATIONS)
def test_a_word_or_an_order_that_the_rule_has_not_never_meets_it(rule: str, claim: str) -> None:
    assert read(claim, rule, lambda _word: 1.0).said is not Said.MEETS


def test_most_of_their_compliant_twins_are_still_recognised() -> None:
    met = sum(read(claim, rule, lambda _word: 1.0).said is Said.MEETS for rule, claim in TWINS)
    assert met >= 7


def test_what_one_passage_supports_and_another_contradicts_is_not_supported() -> None:
    claim = "Vendors sell the logs and records of customers to brokers."
    against = "Vendors shall not sell the logs and records of customers."
    head = StanceHead(knows_requirements=False)
    supports, contradicts, _ = head.conclude(
        claim, ["Vendors shall sell the logs and records of customers to brokers.", against]
    ).probabilities
    assert supports <= contradicts


@pytest.mark.parametrize(
    ("one", "other"),
    [("people", "persons"), ("employees", "workers"), ("he dies", "he died"), ("dies", "death")],
)
def test_words_for_one_thing_have_one_name(one: str, other: str) -> None:
    assert signs(one).keys() == signs(other).keys()
