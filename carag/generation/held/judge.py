"""Hold the figures of one sentence against what the passages that it cites state.

A figure holds if a cited passage states its value in its unit, for the time that the sentence names, and if the words
around it fit that place at least as well as any place with another value. Rounding holds at the digits that the
sentence writes; arithmetic does not.
"""

from __future__ import annotations

import re
from enum import StrEnum
from math import fsum, isclose, log
from typing import TYPE_CHECKING, Final

from carag.generation.figures.units import scale_stated, without_scale
from carag.generation.held.stated import DATE, OF_SENTENCE, Stated, amounts, dates_of, figures_of, words
from carag.generation.held.when import times_in

if TYPE_CHECKING:
    from collections.abc import Sequence


class Unheld(StrEnum):
    """Why a sentence was left out of an answer; stable codes."""

    NOT_IN_PASSAGE = "NOT_IN_PASSAGE"
    """A figure that no cited passage states."""
    OTHER_UNIT = "OTHER_UNIT"
    """A figure that the cited passages state in another unit or scale."""
    OTHER_PERIOD = "OTHER_PERIOD"
    """A figure that the cited passages state for another time."""
    OTHER_LABEL = "OTHER_LABEL"
    """A figure that the cited passages state of something else."""
    NOT_CITED = "NOT_CITED"
    """A figure in a sentence that cites no passage."""
    NAME_NOT_STATED = "NAME_NOT_STATED"
    """A name, or another word with a capital letter, that neither the cited passages nor the question has."""


_MOST_ROUNDED: Final = 0.05
"""The greatest share of a value by which rounding may change it."""
_LEAST_WORDS: Final = 0.5
"""Share of a figure's words, by weight, that the place in the passage must have."""
_EVEN: Final = 1e-9
"""Two merits that differ by less are even. Rows may be, under two heads; of two clauses neither is then meant."""
_OF_LABEL: Final = 0.35
"""Loss, per unit of weight, for a word of a row's label that the sentence does not have."""
_LOSES: Final = words(
    "loss losses used decrease decreased deficit outflow paid payment negative decline declined "
    "expense repurchase repurchased benefit purchase purchases repayment repayments dividends reduction less provision "
    "cost outflows deduction charge"
)
"""Words that say that a figure is negative, so that the sentence may leave out its sign."""
_NEGATIVE: Final = words("loss losses deficit outflow")
"""Words that say in prose that a figure is negative."""
_EITHER: Final = re.compile(
    r"(\w+(?:\s(?:by|from|in))?)\s*\(((?:loss|losses|deficit|used|decrease|expense|benefit)\b.*?)\)",
    re.IGNORECASE | re.DOTALL,
)
"""A label that says what a negative figure is in parentheses."""
_ENDS: Final = {">": "least", "<": "most"}
"""The end of a range that a bound states."""
_EXACT: Final = frozenset({"time", "working time"})
"""Kinds whose figures are never rounded."""


def why_not(sentence: str, stated: Sequence[Stated], question: str) -> Unheld | None:
    """Return why a sentence does not hold, or None if it does."""
    scale = float(scale_stated(sentence) or 1)
    sentence = without_scale(sentence)
    for label in {
        " ".join(one.said.split()) for one in stated
    }:  # "net of allowances of $495" claims nothing by itself
        sentence = sentence.replace(label, re.sub(r"\d", " ", label)) if label else sentence
    times = times_in(sentence)
    found = amounts(sentence)
    claims = figures_of(sentence, times, {})
    if scale != 1:
        claims = [
            one if one.kind == "share" or any(map(str.isalpha, sentence[it.start : it.end]))
            else one._replace(value=one.value * scale, step=one.step * scale)
            for one, it in zip(claims, found, strict=True)
        ]  # fmt: skip
    if not claims:
        claims = dates_of(sentence, times, {})
    asked = times_in(question)
    if not times and len(asked) == 1 and any(one.when and asked[0].fits(one.when) for one in stated):
        claims = [one._replace(when=asked[0]) for one in claims]
    if _turns_otherwise(claims):
        return Unheld.OTHER_LABEL
    for one in claims:
        twice = [other for other in claims if other.kind != DATE and _is_value(one, other)]
        if reason := _why_not(one, stated, question, len(twice)):
            return reason
    return None


def _why_not(claim: Stated, stated: Sequence[Stated], question: str, times: int = 1) -> Unheld | None:
    """Judge one figure, which the sentence has some number of times."""
    same = [one for one in stated if _is_value(claim, one)]
    if len(same) < max(times, 1):
        return Unheld.NOT_IN_PASSAGE
    same = [one for one in same if _is_unit(claim, one) and _is_sign(claim, one)]
    if not same:
        return Unheld.OTHER_UNIT
    if claim.when is not None and claim.kind != DATE:
        same = [one for one in same if one.when is not None and claim.when.fits(one.when)]
        if not same:
            return Unheld.OTHER_PERIOD
    same = [one for one in same if not _is_other_role(claim, one)]
    own = {word for word, share in claim.words.items() if share >= 0.7} or words(question)
    rivals = [
        one
        for one in stated
        if not (_is_value(claim, one) and _is_unit(claim, one))
        and (one.kind == DATE) == (claim.kind == DATE)
        and not _is_other_role(claim, one)
        and (claim.kind == DATE or claim.when is None or one.when is None or claim.when.fits(one.when))
    ]
    weight = _weights(own, stated)
    elsewhere = {
        word for one in stated for word in own if one.kind != DATE and one.words.get(word, 0.0) >= 0.75
    }
    rated = [(_merit(own, one, weight), one) for one in rivals]
    best = max((merit for merit, _ in rated), default=0.0)
    whole = fsum(weight.values())
    for one in same:
        if any(one.words.get(word, 0.0) < OF_SENTENCE for word in elsewhere):
            continue  # the passage says this only of other figures
        share = fsum(weight[word] for word in own if one.words.get(word, 0.0) > OF_SENTENCE)
        merit = _merit(own, one, weight)
        beside = max((value for value, it in rated if _is_beside(claim, one, it)), default=-1.0)
        if share >= _LEAST_WORDS * whole and merit >= best - _EVEN and merit > beside + _EVEN:
            return None
    return Unheld.OTHER_LABEL


def _is_value(claim: Stated, stated: Stated) -> bool:
    if DATE in (claim.kind, stated.kind):
        return claim.kind == stated.kind and bool(
            claim.when and stated.when and claim.when.is_same(stated.when)
        )
    said, value = abs(claim.value), abs(stated.value)
    if isclose(said, value, rel_tol=1e-9):
        return True
    off = abs(said - value)
    is_rounded = claim.step > stated.step and claim.kind not in _EXACT and off <= claim.step / 2 * (1 + 1e-9)
    return is_rounded and off <= _MOST_ROUNDED * value


def _is_unit(claim: Stated, stated: Stated) -> bool:
    """Tell whether two units may mean the same: a sentence may leave out a currency or what is counted."""
    if claim.rate and stated.rate and claim.rate != stated.rate:
        return False
    if claim.kind == stated.kind:
        return True
    named = (*_EXACT, "share", DATE)
    if stated.kind in named or claim.kind in named:
        return False
    return not claim.kind or not (claim.kind.isupper() or stated.kind.isupper() or stated.kind == "?")


def _is_sign(claim: Stated, stated: Stated) -> bool:
    """Tell whether a sentence says the sign of a figure, by a sign or by a word."""
    if not stated.said:
        is_lost = (claim if stated.value < 0 else stated).words.keys() & _NEGATIVE
        return (claim.value < 0) == (stated.value < 0) or bool(is_lost)
    losing = claim.words.keys() & _LOSES
    if stated.value < 0:
        return claim.value < 0 or bool(losing)
    either = _EITHER.search(stated.said)
    if either and words(either[2]) & claim.words.keys():
        return bool(words(either[1]) & claim.words.keys())
    return claim.value >= 0


def _is_beside(claim: Stated, one: Stated, rival: Stated) -> bool:
    """Tell whether a clause may be meant as well as another one; not if only that one has the role of the claim."""
    is_prose = not (one.said or rival.said)
    return is_prose and rival.kind == one.kind and not (one.role == claim.role != rival.role)


def _is_other_role(claim: Stated, stated: Stated) -> bool:
    """Tell whether a figure is what something rose to, and not from or by; or fell; or another bound, or no bound."""
    if claim.turn * stated.turn < 0:
        return True
    if claim.bound and stated.bound:
        return claim.bound[0] != stated.bound[0]
    if claim.bound[:1] in _ENDS and stated.role == _ENDS[claim.bound[:1]]:
        return False
    one_sided = {"not", *_ENDS.values()} & {claim.role, stated.role}
    is_strict = {"<", ">"} & {claim.bound, stated.bound}
    both = claim.role and stated.role
    return bool(is_strict) or (claim.role != stated.role and bool(both or one_sided))


def _turns_otherwise(claims: Sequence[Stated]) -> bool:
    """Tell whether a sentence says that something fell from one figure to a greater one, or rose to a smaller one."""
    ends = [[one for one in claims if one.role == role] for role in ("from", "to")]
    if [len(one) for one in ends] != [1, 1] or ends[0][0].kind != ends[1][0].kind:
        return False
    return (ends[1][0].value - ends[0][0].value) * claims[0].turn < 0


def _weights(own: set[str] | frozenset[str], stated: Sequence[Stated]) -> dict[str, float]:
    """Weigh words by how few of the stated figures have them."""
    whole = len(stated)
    seen = {word: sum(one.words.get(word, 0.0) >= 0.75 for one in stated) for word in own}
    return {word: log(1 + whole / (many or whole / 2)) for word, many in seen.items()}


def _merit(own: set[str] | frozenset[str], stated: Stated, weight: dict[str, float]) -> float:
    held = fsum(weight[word] * stated.words.get(word, 0.0) for word in own)
    aside = len(stated.label - own)
    mean = fsum(weight.values()) / max(len(weight), 1)
    return held - _OF_LABEL * aside * mean
