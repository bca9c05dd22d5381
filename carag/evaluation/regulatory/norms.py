"""Read what a passage demands, forbids or permits, and whether a claim meets it, breaks it, or is not settled by it.

Only the words themselves decide: figures of one kind, by what they allow; a negation of what is demanded; and the force
of the rule, be it a duty, a prohibition or a permission. The part of the passage that shares most of the claim's words
decides, and the other parts are ignored. Sharing the words of a rule is not enough for a claim that states a figure
that the rule does not have, or that affirms one half of what is demanded and denies the other half.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.evaluation.regulatory.lists import entries
from carag.evaluation.regulatory.signs import UNDOING, Sign, signs
from carag.labelling.quantities import Quantity, agrees, quantities, without_quantities
from carag.labelling.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_CACHED: Final = 1 << 14
"""Passages and sentences whose reading is cached: a passage is read for every sentence of a response."""
_MEETS_FROM: Final = 0.6
"""Share of a claim's words, by weight, that a rule must contain to support the claim; the rule may forbid the rest."""
_BREAKS_FROM: Final = 0.5
"""The same share for contradicting a claim."""
_AGREE: Final = 0.6
_DISAGREE: Final = -0.5
"""How far the shared words, by weight, are affirmed or denied by both: from 1 to -1."""
_NEAR: Final = 4
"""Words after "shall" over which the weight of what is demanded falls to a half."""
_MODAL: Final = re.compile(
    r"\b(?:shall|must|should|will|may|can|(?:is|are) (?:required|permitted|allowed) to)\b", re.IGNORECASE
)
_PERMITS: Final = re.compile(
    r"\bmay\b(?! not\b)|(?<!not )\b(?:allowed|permitted|free|entitled) to\b", re.IGNORECASE
)
_UNLESS: Final = re.compile(r"\b(?:unless|except|save where|provided that)\b", re.IGNORECASE)
_EXEMPTS: Final = re.compile(
    r"\b(?:shall|does|do|need) not (?:apply|cover|affect)\b|[’'”\"] means\b", re.IGNORECASE
)
"""An exemption or a definition, which cannot be met or broken."""
_DEROGATES: Final = re.compile(r"\W*(?:\d+\.\s)?(?:notwithstanding|by way of derogation)\b", re.IGNORECASE)
_ASIDE: Final = 0.8
"""Exceptions, exemptions, definitions and permissions accompany a rule, and must share this much more of a claim."""
_LIMITS: Final = re.compile(
    r"\b(?:only|optional(?:ly)?|voluntar(?:y|ily)|unnecessary|superfluous|waived?|exempt(?:ed)?|hardly|rarely|seldom|barely"
    r"|sometimes|occasionally|partly|mostly|usually|few|stop(?:ped|s)?|ceased?|instead|wrong|false|untrue|pretends?|secret"
    r"|intends?|plans?|planned|hopes?|tr(?:y|ies|ied)|should|could|might|would|later|eventually|less|almost|nearly|if)\b",
    re.IGNORECASE,
)
"""Words with which a sentence says less than it seems to: what it affirms may be only a part, or a wish."""
_HARMLESS: Final = frozenset(
    signs(
        "we our company firm provider deployer vendor organisation ai system model product application tool high-risk "
        "always every year longer shorter more currently duly properly fully strictly law regulation act"
    )
)
"""Words that may be in a claim but not in its rule: who acts, with what, and that it is done well."""
_BEFORE: Final = re.compile(r"\b(?:before(?:hand)?|prior to|until|till|ahead of)\b", re.IGNORECASE)
_AFTER: Final = re.compile(
    r"\b(?:after(?:wards?)?|once|since|then|later(?! than\b)|following)\b", re.IGNORECASE
)
_BEGINS: Final = re.compile(r"\W*[A-Z0-9]")
_NO: Final = re.compile(r"\b(?:no(?:thing|body|ne)?|neither|never)\b", re.IGNORECASE)


class Said(IntEnum):
    """What a rule says about a claim; of two that share the same number of its words, the lesser decides."""

    BREAKS = 0
    UNSETTLED = 1
    MEETS = 2


class Reading(NamedTuple):
    """What the part of a passage that shares most of a claim's words says about it."""

    compares: bool
    """Whether it has a figure that a figure of the claim can be compared with."""
    held: float
    """The share of the claim's words that it contains, by weight."""
    is_aside: bool
    """Whether it is an exception or a permission rather than a rule."""
    said: Said
    start: int
    """Position of its sentence in the passage."""
    end: int

    @property
    def rank(self) -> tuple[bool, float, int]:
        """Sort key; the greatest decides, and a figure is settled by figures alone."""
        return self.compares, self.held * (_ASIDE if self.is_aside else 1), -self.said


class _Norm(NamedTuple):
    text: str
    lead: str
    start: int
    end: int


class _Rule(NamedTuple):
    words: Mapping[str, Sign]
    """What is demanded, in the order of the text."""
    forbids: bool
    is_undone: bool
    """Whether a lead forbids the words, which do not themselves say so."""
    is_leave: bool


def read(claim: str, passage: str, rarity: Callable[[str], float]) -> Reading:
    """Return the decisive reading of a passage; ``rarity`` gives the weight of a word."""
    ours = signs(without_quantities(claim))
    rules = _norms(passage)
    counted = Counter(name for one in rules for name in signs(one.text))
    # What a passage repeats again and again ("high-risk AI system") tells little about any one of its sentences.
    weights = {
        name: rarity(said.word) * (1 - max(counted[name] - 1, 0) / max(len(rules), 1))
        for name, said in ours.items()
    }
    return max((_reading(claim, one, weights) for one in rules), key=lambda one: one.rank)


@lru_cache(maxsize=_CACHED)
def _norms(passage: str) -> tuple[_Norm, ...]:
    """Return the parts of a passage: sentences, cut at semicolons."""
    return tuple(
        _Norm(part, " ".join(leads), start, end)
        for start, end, leads in entries(passage, sentences(passage) or [(0, len(passage))])
        for part in passage[start:end].split(";")
    )


@lru_cache(maxsize=_CACHED)
def _quantities(text: str) -> tuple[Quantity, ...]:
    return tuple(quantities(text))


def _reading(claim: str, norm: _Norm, weights: Mapping[str, float]) -> Reading:
    theirs = signs(f"{norm.lead} {norm.text}")
    # Summed exactly, so that the order of words does not matter.
    whole = math.fsum(weights.values())
    held = math.fsum(weight for name, weight in weights.items() if name in theirs) / max(whole, 1e-9)
    rule = _rule(norm)
    figures = _figures(claim, norm.text)
    if figures is False:
        said = Said.BREAKS
    elif rule is None or (figures is None and _quantities(claim)):
        said = Said.UNSETTLED
    else:
        said = _by_force(claim, rule, weights, has_figure=figures is True)
    if said is Said.MEETS and not _accounts(claim, norm):
        said = Said.UNSETTLED
    said_less = [one for one in _LIMITS.findall(claim) if one.lower() not in norm.text.lower()]
    if said is Said.MEETS and said_less and figures is None:
        said = Said.UNSETTLED
    if (said is Said.MEETS and held < _MEETS_FROM) or (said is Said.BREAKS and held < _BREAKS_FROM):
        said = Said.UNSETTLED
    is_aside = rule is None or rule.is_leave or _DEROGATES.match(norm.text) is not None
    return Reading(figures is not None, held, is_aside, said, norm.start, norm.end)


def _accounts(claim: str, norm: _Norm) -> bool:
    """Tell whether a rule contains all that a claim says: every word, and the order in time.

    A word that the rule lacks may turn the act into a breach: a declaration drawn up orally does not count. A title
    demands nothing.
    """
    text = f"{norm.lead} {norm.text}"
    if _MODAL.search(text) is None and UNDOING.search(text) is None:
        return False
    ours = {*signs(without_quantities(claim))} - _HARMLESS
    # A figure may state the order: "within ten days" for what the rule calls "after".
    orders = all(one.search(text) for one in (_BEFORE, _AFTER) if one.search(claim))
    return orders and ours <= signs(text).keys()


def _figures(claim: str, rule: str) -> bool | None:
    """Tell whether a rule allows the comparable figures of a claim; None if no figures can be compared."""
    rules = _quantities(rule)
    found: bool | None = None
    for one in _quantities(claim):
        compared = {agrees(one, other) for other in rules} - {None}
        if compared == {False}:
            return False
        found = True if compared else found
    return found


@lru_cache(maxsize=_CACHED)
def _rule(norm: _Norm) -> _Rule | None:
    """Return what a part of a passage demands, forbids or permits, or None."""
    if _EXEMPTS.search(norm.text) or _UNLESS.search(norm.lead):
        return None
    body = _UNLESS.split(norm.text)[0]
    own = _MODAL.search(body)
    modal = own or _MODAL.search(norm.lead)
    if modal is None and not _BEGINS.match(norm.text):  # a fragment of a sentence, whose verb is elsewhere
        return None
    forbids = UNDOING.search(f"{norm.lead} {body}") is not None
    if own and not forbids and not _NO.search(body[: own.start()]):
        body = body[own.end() :]
    is_leave = modal is not None and modal[0].lower().endswith(("may", "can", "permitted to", "allowed to"))
    return _Rule(signs(without_quantities(body)), forbids, forbids and not UNDOING.search(body), is_leave)


def _by_force(claim: str, rule: _Rule, weights: Mapping[str, float], *, has_figure: bool) -> Said:
    """Compare what is affirmed and denied, by the force of the rule."""
    ours = signs(without_quantities(claim))
    # What is demanded comes right after "shall"; what follows further on says of what, when and how.
    shared = {name: weights[name] / (1 + at / _NEAR) for at, name in enumerate(rule.words) if name in ours}
    if not shared:
        return Said.MEETS if has_figure and all(one.sign > 0 for one in ours.values()) else Said.UNSETTLED
    agreed = math.fsum(weight * ours[name].sign * rule.words[name].sign for name, weight in shared.items())
    share = (-agreed if rule.is_undone else agreed) / max(math.fsum(shared.values()), 1e-9)
    is_broken_by_denial = rule.forbids or not rule.is_leave
    if share <= _DISAGREE and not has_figure and is_broken_by_denial:
        return Said.BREAKS
    settles = has_figure or rule.forbids or rule.is_leave == (_PERMITS.search(claim) is not None)
    return Said.MEETS if share >= _AGREE and settles else Said.UNSETTLED
