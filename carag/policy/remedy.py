"""Explain who could lift the rule that hides a passage, and how; and the regulation each rule serves.

These explanations are for roles that may know that hidden passages exist. The mapping to regulations is an engineering
control, not legal advice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from carag.policy.explain import Rule
from carag.policy.restrictions import Basis
from carag.policy.vocabulary import PolicyBit, meaning

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.policy.decision import Decision
    from carag.policy.explain import Reason

__all__ = ["Explained", "explained"]

_CELL: Final = "compliance, by a reviewed change of this cell of the role and purpose table"
_PRIVACY: Final = "the data protection officer, for a purpose that has a basis of its own"
_PLACE: Final = "the data protection officer, by a basis for the transfer or by lifting the residency rule"
_STATE: Final = "nobody: ask for the filing that replaced it"

_BITS: Final[dict[PolicyBit, str]] = {
    **dict.fromkeys(PolicyBit, _CELL),
    **dict.fromkeys(
        (PolicyBit.J_US, PolicyBit.J_EU, PolicyBit.J_UK, PolicyBit.J_CA, PolicyBit.J_OTHER), _PLACE
    ),
    **dict.fromkeys((PolicyBit.PD_INSIDER, PolicyBit.PD_COMP, PolicyBit.PD_NATURAL), _PRIVACY),
    PolicyBit.PD_SPECIAL: "nobody but the person: on an access request",
    **dict.fromkeys((PolicyBit.AMENDED, PolicyBit.SUPERSEDED, PolicyBit.NOT_LATEST), _STATE),
    PolicyBit.NON_RELIANCE: "the filer, by an amendment with restated statements",
    PolicyBit.OFFERING: "the control room, by a deal list that shows the firm takes no part; of emerging growth "
    "companies only",
    PolicyBit.CONF_TREAT: "nobody before the order ends",
}

_RULES: Final[dict[Rule, tuple[str, str]]] = {
    Rule.TOMBSTONE: ("", "nobody: it was deleted"),
    Rule.UNLABELLED: ("", "whoever runs the store, by ingesting it again under the current vocabulary"),
    Rule.QUARANTINE: (
        "",
        "whoever runs the store, by ingesting it again once its facts are mended at their source",
    ),
    Rule.NOT_YET_PUBLIC: ("Exchange Act Rule 10b-5; MAR Art. 7, 8", "time: ask again when it is public"),
    Rule.EXPIRED: ("the terms of its release", "nobody: the release has ended"),
    Rule.COOLING: (meaning(PolicyBit.MATERIAL).regulation, "time, or compliance by a shorter window"),
    Rule.ENTITY_DENIED: (
        "Exchange Act s. 15(g); FINRA 2241; GDPR Art. 18, 21",
        "whoever keeps the list; where no company is stated, whoever mends the label",
    ),
    Rule.ENTITY_NOT_ALLOWED: (
        "PCAOB AS 1105; GDPR Art. 15(4)",
        "whoever grants the list: the engagement partner, or for an access request the data protection officer",
    ),
    Rule.REQUIRED: ("", "nobody for this purpose, which is for another kind of document"),
    Rule.COMBINATION: ("", _CELL),
}

_BASES: Final[dict[Basis, tuple[str, str]]] = {
    Basis.RESTRICTED_LIST: (
        "Exchange Act s. 15(g)",
        "the control room, by taking the company off the list or by a signed wall-crossing for the deal's purpose",
    ),
    Basis.WATCH_LIST: (
        "Exchange Act s. 15(g)",
        "the control room, by taking the company off the list or by a signed wall-crossing for the deal's purpose",
    ),
    Basis.QUIET_PERIOD: ("FINRA 2241(b)(2)(I)", "time: the end of the quiet period"),
    Basis.WALL_CROSSED: (
        "Exchange Act s. 15(g); Regulation FD 100(b)(2); MAR Art. 11",
        "compliance, by ending the crossing once what was learnt is public",
    ),
    Basis.OBJECTION: (
        "GDPR Art. 21",
        "the person, by withdrawing the objection, or the controller on compelling grounds",
    ),
    Basis.RESTRICTION: (
        "GDPR Art. 18",
        "the controller, when the restriction ends and the person has been told",
    ),
}


@dataclass(frozen=True, slots=True)
class Explained:
    """A reason with its legal grounds and its remedy.

    Attributes
    ----------
    reason : Reason
    basis : tuple of str
        The lists that the entity is on, if the reason is an entity.
    regulation : str
        The rules this control is designed for.
    lift : str
        Who could lift it and how.
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
    """Find the regulation that a reason serves and who could lift it.

    Parameters
    ----------
    reason : Reason
        Why ``decision`` hides a passage about ``entity``, which is one or several.

    Examples
    --------
    >>> from carag.policy.decision import Decision
    >>> from carag.policy.mask import Mask, Policy
    >>> decision = Decision("r", "p", Policy(Mask(0, 0x100000)), 0, None, True, "")
    >>> [explained(why, decision, 0).lift for why in decision.reasons(0x0810_0000, 0)]
    ['the filer, by an amendment with restated statements']
    """
    bases = decision.bases(entity) if reason.rule is Rule.ENTITY_DENIED else ()
    if bases:
        regulation = "; ".join(dict.fromkeys(_BASES[basis][0] for basis in bases))
        lift = "; and ".join(dict.fromkeys(_BASES[basis][1] for basis in bases))
    elif reason.rule is Rule.FORBIDDEN:
        (bit,) = reason.bits
        regulation, lift = meaning(bit).regulation, _BITS[bit]
        if meant := [intent.value for intent in decision.intents if intent.forbidden & bit.value]:
            lift = f"{lift}; or, where only {', '.join(meant)} forbids it, the asker, by asking otherwise"
    else:
        regulation, lift = _RULES[reason.rule]
    return Explained(reason, tuple(basis.value for basis in bases), regulation or decision.regulation, lift)
