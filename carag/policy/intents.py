"""Find intents in a question, which can only tighten masks: audited figures, the latest report, a named person, ...

They are found by a fixed list of words, so that the same question always gives the same masks. No model ever sets
one, and no word of a question widens a policy.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.policy.mask import Mask

if TYPE_CHECKING:
    from carag.policy.mask import Policy

__all__ = ["Intent", "intents", "tighten"]


class Intent(StrEnum):
    """A restriction that a question asks for."""

    AUDITED = "AUDITED"
    LATEST = "LATEST"
    AS_AMENDED = "AS_AMENDED"
    CURRENT_HOLDINGS = "CURRENT_HOLDINGS"
    """Form 13F is 45 days old when it is filed, Schedule 13G up to a year."""
    US_GAAP = "US_GAAP"
    PERSON_NAMED = "PERSON_NAMED"
    """Only for sessions without a right to personal data."""

    @property
    def required(self) -> int:
        """Bits that this intent adds to the required ones."""
        return _MASKS[self].required

    @property
    def forbidden(self) -> int:
        """Bits that this intent adds to the forbidden ones."""
        return _MASKS[self].forbidden


_MASKS: Final[dict[Intent, Mask]] = {
    Intent.AUDITED: Mask(required="FS_AUDITED", forbidden=["FS_UNAUDITED", "FURNISHED"]),
    Intent.LATEST: Mask(forbidden="NOT_LATEST"),
    Intent.AS_AMENDED: Mask(forbidden=["AMENDED", "SUPERSEDED"]),
    Intent.CURRENT_HOLDINGS: Mask(forbidden="OWNERSHIP"),
    Intent.US_GAAP: Mask(forbidden="FPI"),
    Intent.PERSON_NAMED: Mask(forbidden=["PD_INSIDER", "PD_COMP", "PD_NATURAL", "PD_SPECIAL"]),
}

# Phrases that sound like an intent but are not: citations of a statute, a deadline, a document's title.
_NOT_MEANT: Final = re.compile(
    r"\bAct(?:\s+of\s+\d{4})?,?\s+as\s+amended\b|\bat\s+the\s+latest\b"
    r"|\b(?:not|never)\s+(?:been\s+)?audited\b|\b(?:non|un)[-\s]?audited\b|\bnon[-\s](?:US|U\.S\.)[-\s]?GAAP\b",
    re.IGNORECASE,
)
_WORDS: Final[dict[Intent, re.Pattern[str]]] = {
    intent: re.compile(pattern, re.IGNORECASE)
    for intent, pattern in {
        Intent.AUDITED: r"\baudited\b",
        Intent.LATEST: r"\b(?:latest|newest|most\s+recent)\b",
        Intent.AS_AMENDED: r"\bas\s+(?:amended|restated)\b",
        Intent.CURRENT_HOLDINGS: r"\bcurrent(?:ly)?\s+(?:hold(?:s|ings?)?|own(?:s|ership)?|stakes?)\b",
        Intent.US_GAAP: r"(?<!\w)(?:US|U\.S\.)[-\s]?GAAP\b",
    }.items()
}
# Case matters here: a title and a name, or a full name in the genitive before something that the person has.
_PERSON: Final = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|Sir|Dame)\b\.?\s+[A-Z][\w’'-]+"
    r"|\b[A-Z][\w-]+\s+(?:[A-Z]\.?\s+)?[A-Z][\w-]+[’']s?\s+(?:(?:annual|base|total|current|equity)\s+)?"
    r"(?:salary|pay|compensation|remuneration|bonus|severance|age|home|address|family|wife|husband|spouse"
    r"|ethnicity|gender|health|shareholding|trades|biography)\b"
)


def intents(text: str) -> tuple[Intent, ...]:
    """Find the intents of a question, in the order of :class:`Intent`.

    Examples
    --------
    >>> [intent.value for intent in intents("What do the latest audited figures show?")]
    ['AUDITED', 'LATEST']
    >>> intents("Is this governed by the Securities Act of 1933, as amended?")
    ()
    """
    meant = _NOT_MEANT.sub(" ", text)
    found = [intent for intent, words in _WORDS.items() if words.search(meant)]
    if _PERSON.search(meant):
        found.append(Intent.PERSON_NAMED)
    return tuple(found)


def tighten(policy: Policy, intent: Intent) -> Policy:
    """Add the bits that an intent requires and forbids to every mask.

    Raises
    ------
    PolicyConflict
        If a bit would be both required and forbidden: the question asks for what the policy hides.

    Examples
    --------
    >>> from carag.policy.mask import Policy
    >>> tighten(Policy(Mask(0, 0x4000)), Intent.LATEST).masks
    (Mask(forbidden=['PD_SPECIAL', 'NOT_LATEST']),)
    """
    return add_bits(policy, intent.required, intent.forbidden)


def add_bits(policy: Policy, required: int, forbidden: int) -> Policy:
    """Add required and forbidden bits to every mask."""
    return policy.with_masks(
        *(Mask(mask.required | required, mask.forbidden | forbidden) for mask in policy.masks)
    )
