"""Why a passage is hidden, and what a policy hides at all.

The second question is answered from the policy alone: nothing in :func:`withheld_kinds` depends on what the
corpus holds, so it may be shown to a model or a person who must not learn what exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument
from carag.policy.time import NEVER, from_minutes
from carag.policy.vocabulary import QUARANTINE, TOMBSTONE, VERSION_WORD, PolicyBit, meaning

if TYPE_CHECKING:
    from carag.policy.mask import Mask, Policy

__all__ = ["Reason", "Rule", "reasons", "withheld_kinds"]

_VERSION_FIELD = 7 << 27


class Rule(StrEnum):
    """The test that hides a passage."""

    TOMBSTONE = "TOMBSTONE"
    UNLABELLED = "UNLABELLED"
    QUARANTINE = "QUARANTINE"
    NOT_YET_PUBLIC = "NOT_YET_PUBLIC"
    FORBIDDEN = "FORBIDDEN"
    REQUIRED = "REQUIRED"
    COMBINATION = "COMBINATION"


@dataclass(frozen=True, slots=True)
class Reason:
    """One rule, the bits it concerns, and the same in words."""

    rule: Rule
    bits: tuple[PolicyBit, ...]
    text: str

    @property
    def code(self) -> str:
        """A stable code for records: ``FORBIDDEN:PD_SPECIAL``; of several bits, ``REQUIRED:0x7800``."""
        match self.bits:
            case ():
                return self.rule.value
            case (bit,):
                return f"{self.rule.value}:{bit.name}"
        return f"{self.rule.value}:{sum(bit.flag for bit in self.bits):#x}"


def reasons(word: int, public_at: int, policy: Policy, as_of: int) -> tuple[Reason, ...]:
    """Explain one passage's verdict, minimally.

    Control bits and time come first, because nothing else matters while they fail; of several masks the one
    that comes closest to admitting is explained.

    Parameters
    ----------
    word : int
        The passage's policy word.
    public_at, as_of : int
        Minutes since the epoch.

    Returns
    -------
    tuple of Reason
        Empty exactly when the passage is admissible.

    Raises
    ------
    InvalidArgument
        If the policy has a list of entities: passages and records do not say yet about whom they are.

    Examples
    --------
    >>> from carag.policy.mask import Mask, Policy
    >>> [r.code for r in reasons(0x0830_0041, 0, Policy(Mask(0, 0x194000)), 0)]
    ['FORBIDDEN:NON_RELIANCE']
    """
    _refuse_entities(policy)
    if word & TOMBSTONE:
        return (Reason(Rule.TOMBSTONE, (), "deleted"),)
    if word & _VERSION_FIELD != VERSION_WORD:
        return (Reason(Rule.UNLABELLED, (), "carries no label of the current vocabulary"),)
    if word & QUARANTINE:
        return (Reason(Rule.QUARANTINE, (), "quarantined: the facts for a label are missing or disagree"),)
    found: list[Reason] = []
    if public_at > as_of:
        when = "never" if public_at == NEVER else f"not before {from_minutes(public_at):%Y-%m-%d %H:%M} UTC"
        found.append(Reason(Rule.NOT_YET_PUBLIC, (), f"not public as of the session: {when}"))
    if not policy.admits(word):
        verdicts = [_against(word, mask) for mask in policy.masks] or [_NOTHING]
        nearest = min(verdicts, key=len)
        found.extend(nearest)
    return tuple(found)


def withheld_kinds(policy: Policy) -> tuple[Reason, ...]:
    """List the kinds of document a policy hides, from the policy alone.

    Examples
    --------
    >>> from carag.policy.mask import Mask, Policy
    >>> [kind.code for kind in withheld_kinds(Policy(Mask(0, 0x4000)))]
    ['FORBIDDEN:PD_SPECIAL', 'NOT_YET_PUBLIC', 'QUARANTINE']
    """
    _refuse_entities(policy)
    if not policy.masks:
        return _NOTHING
    always = reduce(and_, (mask.forbidden for mask in policy.masks))
    somewhere = reduce(or_, (mask.forbidden for mask in policy.masks)) & ~always
    kinds = [_forbidden(bit) for bit in PolicyBit if always & bit.flag]
    if somewhere:
        bits = tuple(bit for bit in PolicyBit if somewhere & bit.flag)
        kinds.append(Reason(Rule.COMBINATION, bits, f"certain combinations of: {_kinds(bits)}"))
    if all(mask.required for mask in policy.masks):
        required = reduce(or_, (mask.required for mask in policy.masks))
        bits = tuple(bit for bit in PolicyBit if required & bit.flag)
        kinds.append(Reason(Rule.REQUIRED, bits, f"everything except: {_kinds(bits)}"))
    kinds.append(Reason(Rule.NOT_YET_PUBLIC, (), "documents not public at the session's as-of time"))
    kinds.append(Reason(Rule.QUARANTINE, (), "documents whose label could not be established"))
    return tuple(kinds)


def _refuse_entities(policy: Policy) -> None:
    """Refuse what would be left out: without its list, a reason or a record would state a looser policy."""
    if policy.allow_entities is not None or policy.deny_entities:
        raise InvalidArgument(
            "the policy lists entities, which neither reasons nor records can state; search the index itself with it"
        )


_NOTHING = (Reason(Rule.REQUIRED, (), "this policy admits nothing"),)


def _against(word: int, mask: Mask) -> tuple[Reason, ...]:
    missing = tuple(bit for bit in PolicyBit if mask.required & ~word & bit.flag)
    forbidden = tuple(_forbidden(bit) for bit in PolicyBit if mask.forbidden & word & bit.flag)
    if not missing:
        return forbidden
    return (
        Reason(Rule.REQUIRED, missing, f"is not among the required kind: {_kinds(missing)}"),
        *forbidden,
    )


def _forbidden(bit: PolicyBit) -> Reason:
    said = meaning(bit)
    return Reason(Rule.FORBIDDEN, (bit,), f"{said.document} ({said.regulation})")


def _kinds(bits: tuple[PolicyBit, ...]) -> str:
    return "; ".join(meaning(bit).document for bit in bits)
