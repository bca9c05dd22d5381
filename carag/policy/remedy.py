"""Explain who could lift the rule that hides a passage and how, and which regulation each rule serves.

This is for roles that may know that hidden passages exist. The mapping to regulations is an engineering control, not
legal advice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from carag.policy.explain import Rule
from carag.policy.restrictions import Basis
from carag.policy.vocabulary import meaning, vocabulary_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.policy.decision import Decision
    from carag.policy.explain import Reason


_CELL: Final = "compliance, by a reviewed change of this cell of the role and purpose table"

_RULES: Final[dict[Rule, str]] = {
    Rule.TOMBSTONE: "no one: it was deleted",
    Rule.UNLABELLED: "the operator of the store, by ingesting it again under the current vocabulary",
    Rule.QUARANTINE: "the operator of the store, by ingesting it again once its facts are corrected at their source",
    Rule.NOT_YET_PUBLIC: "time: ask again when it is public",
    Rule.EXPIRED: "no one: the release has ended",
    Rule.COOLING: "time, or compliance by a shorter window",
    Rule.ENTITY_DENIED: "the keeper of the list; where no company is stated, the person who corrects the label",
    Rule.ENTITY_NOT_ALLOWED: "the person who grants the list: the engagement partner, or for an access request the "
    "data protection officer",
    Rule.AUTHORITY: "the keeper of that authority's rules",
    Rule.AUDIENCE: "the owner of the document, by sharing it, or the keeper of the groups",
    Rule.REQUIRED: "no one for this purpose, which is for another kind of document",
    Rule.COMBINATION: _CELL,
}
_CONTROL_ROOM: Final = (
    "the control room, by taking the company off the list or by a signed wall-crossing for the deal's purpose"
)
_BASES: Final[dict[Basis, str]] = {
    Basis.RESTRICTED_LIST: _CONTROL_ROOM,
    Basis.WATCH_LIST: _CONTROL_ROOM,
    Basis.QUIET_PERIOD: "time: the end of the quiet period",
    Basis.WALL_CROSSED: "compliance, by ending the crossing once the inside information is public",
    Basis.OBJECTION: "the person, by withdrawing the objection, or the controller on compelling grounds",
    Basis.RESTRICTION: "the controller, when the restriction ends and the person has been told",
}
_REGULATIONS: Final = {
    Rule.EXPIRED.value: "the terms of its release",
    Basis.OBJECTION.value: "GDPR Art. 21",
    Basis.RESTRICTION.value: "GDPR Art. 18",
}
"""For rules and lists that serve the same regulation in every profile."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A reason with its legal grounds and its remedy.

    ``basis`` names the lists that an entity is on; ``lift`` says who could lift the rule, and how.
    """

    reason: Reason
    basis: tuple[str, ...]
    regulation: str
    lift: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "code": self.reason.code,
            "rule": self.reason.rule.value,
            "bits": [bit.name for bit in self.reason.bits],
            "text": self.reason.text,
            "basis": list(self.basis),
            "regulation": self.regulation,
            "lift": self.lift,
        }


def explained(reason: Reason, decision: Decision, entity: int | Collection[int]) -> Explained:
    """Find the regulation that a reason serves and who could lift it; ``entity`` gives the passage's one or more.

    Examples
    --------
    >>> from carag.policy.decision import Decision
    >>> from carag.policy.mask import Mask, Policy
    >>> decision = Decision("r", "p", Policy(Mask(0, 0x100000)), 0, None, True, "")
    >>> [explained(why, decision, 0).lift for why in decision.reasons(0x0810_0000, 0)]
    ['the filer, by an amendment with restated statements']
    """
    said = vocabulary_of(decision.policy.flags)
    stated = _REGULATIONS | dict(said.regulations)
    bases = decision.bases(entity) if reason.rule is Rule.ENTITY_DENIED else ()
    if bases:
        regulation = "; ".join(dict.fromkeys(stated.get(basis.value, "") for basis in bases))
        lift = "; and ".join(dict.fromkeys(_BASES[basis] for basis in bases))
    elif reason.rule is Rule.FORBIDDEN:
        (bit,) = reason.bits
        regulation, lift = meaning(bit).regulation, meaning(bit).lift
        rules = said.intents.named(decision.intents)
        if meant := [rule.name for rule in rules if rule.mask.forbidden & bit.value]:
            lift = (
                f"{lift}; or, where only {', '.join(meant)} forbids it, the asker, by rephrasing the question"
            )
    else:
        concerned = "; ".join(dict.fromkeys(meaning(bit).regulation for bit in reason.bits))
        of_bits = concerned if reason.rule is Rule.COOLING else ""
        regulation, lift = of_bits or stated.get(reason.rule.value, ""), _RULES[reason.rule]
    return Explained(reason, tuple(basis.value for basis in bases), regulation or decision.regulation, lift)
