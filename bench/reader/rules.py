"""Make claims by rule from a sentence with a duty: some that it supports, contradicts or leaves open.

Figures are changed to the wrong side of a minimum or a maximum, or to the right one; verbs of duty are turned or
restated; words are replaced by their opposites or by others of the same meaning. The voice is sometimes that of the one
who has the duty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random


SUPPORTS, CONTRADICTS, OPEN = range(3)

_SAID: Final = {
    1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten",
    12: "twelve", 14: "fourteen", 15: "fifteen", 18: "eighteen", 20: "twenty", 30: "thirty", 40: "forty",
    60: "sixty", 90: "ninety", 100: "hundred",
}  # fmt: skip
_VALUES: Final = {word: value for value, word in _SAID.items()}
_DAYS: Final = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}
DURATION: Final = re.compile(
    rf"\b(?P<n>\d{{1,3}}|{'|'.join(sorted(_VALUES, key=len, reverse=True))})\s+"
    r"(?P<kind>(?:working|business|calendar|trading)\s+)?(?P<unit>hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
MONEY: Final = re.compile(r"(?:₹|Rs\.?|INR|USD|EUR|\$|€)\s?(?P<n>\d[\d,.]*\d|\d)", re.IGNORECASE)
SHARE: Final = re.compile(r"\b(?P<n>\d+(?:\.\d+)?)\s?(?P<unit>%|per ?cent)")
_LEAST: Final = re.compile(
    r"(at least|not less than|no less than|a minimum of|minimum)\W+(?:\w+\W+){0,3}$", re.IGNORECASE
)
_MOST: Final = re.compile(
    r"(not later than|no later than|within|not more than|no more than|not exceed(?:ing)?|up to|a maximum of"
    r"|maximum|at most|less than|below|before the end of)\W+(?:\w+\W+){0,4}$",
    re.IGNORECASE,
)
DUTY: Final = re.compile(r"\b(?:shall|must|may)\b")
_MODALS: Final = (
    (
        re.compile(r"\b(?:shall|must) not\b|\bmay not\b"),
        ("must not", "are not allowed to", "cannot", "do not"),
        ("may", "can", "are free to", "will", "do"),
        (),
    ),
    (
        re.compile(r"\b(?:shall|must) be\b"),
        ("must be", "has to be", "is", "are"),
        ("need not be", "is not", "are never", "does not have to be"),
        (),
    ),
    (
        re.compile(r"\b(?:shall|must)\b"),
        ("must", "have to", "are required to", "will"),
        ("need not", "do not", "never", "may choose not to", "fail to"),
        (),
    ),
    (
        re.compile(r"\bmay\b"),
        ("can", "is allowed to", "are free to"),
        ("cannot", "must not", "is forbidden to"),
        ("must", "always has to"),
    ),
)
_OPPOSITES: Final = """
before:after; prior to:after; at least:at most; include:exclude; includes:excludes; relevant:irrelevant;
appropriate:inappropriate; all:none of the; immediately:only much later; without delay:with long delay;
sufficient:insufficient; regularly:never; inform:hide it from; keep:delete; retain:destroy; written:oral;
publicly available:secret; with:without; prohibited:permitted; required:not required; maximum:minimum; more
than:less than; not exceed:exceed; independent:dependent; free of charge:for a fee; electronic:paper;
eligible:not eligible; established:not established; documented:undocumented; up to date:out of date;
disclose:conceal; trained:untrained; increased:reduced; enhanced:reduced; applicable:not applicable;
mandatory:optional"""
_LIKE: Final = """
immediately:at once; prior to:before; keep:retain; inform:tell; in accordance with:according to;
sufficient:adequate; provide:give; at least:no less than; not later than:no later than; ensure:make sure; upon
request:when asked; establish:set up; purpose:aim; regularly:at regular intervals; obtain:get; commence:begin;
maintain:keep; submit:send; in writing:by letter; annually:every year; natural persons:people;
appropriate:suitable; relevant:pertinent; with effect from:from; notify:inform; assess:evaluate; ceiling:limit;
not exceed:not go beyond; comply with:follow"""
_ACTOR: Final = re.compile(
    r"^(?:The |Each |Every |All |An? )?(?:(?:[A-Z][\w-]+|of|high-risk|AI|systems?|authorised|and|models?|in|the"
    r"|relevant|persons?|banks?|deployers?|providers?|importers?|distributors?) ){1,7}?(?=shall|must|may)"
)


def _pairs(table: str) -> list[tuple[str, str]]:
    return [(a, b) for a, _, b in (one.partition(":") for one in " ".join(table.split()).split("; "))]


_ANTONYMS: Final = _pairs(_OPPOSITES)
_SYNONYMS: Final = _pairs(_LIKE)


def claims(sentence: str, others: Sequence[str], draw: Random) -> list[tuple[str, int]]:
    """Make up to five claims of a sentence, each with how the sentence stands to it; ``others`` are not about it."""
    plain = _shortened(sentence, draw)
    if not 40 < len(plain) < 330:
        return []
    figures = _figures(plain, draw)
    made = [*_modals(plain, draw), *figures, *_replaced(plain, draw, _ANTONYMS, CONTRADICTS, 1)]
    made += [*_replaced(plain, draw, _SYNONYMS, SUPPORTS, 3), (plain, SUPPORTS)]
    chosen = []
    for some in (made, figures):
        for label in (SUPPORTS, CONTRADICTS) if some is figures else (SUPPORTS, CONTRADICTS, OPEN):
            of_label = [claim for claim, one in some if one == label]
            if of_label:
                chosen.append((_voiced(draw.choice(of_label), draw), label))
    if others:
        other = _shortened(draw.choice(others), draw)
        if 40 < len(other) < 330:
            chosen.append((_voiced(other, draw), OPEN))
    return chosen


def _put(sentence: str, match: re.Match[str], new: str, before: int = 0) -> str:
    return sentence[: match.start() - before] + new + sentence[match.end() :]


def _said(days: float, draw: Random) -> str:
    fitting = [
        (unit, size)
        for unit, size in _DAYS.items()
        if 0.99 <= days / size < 400 and abs(round(days / size) - days / size) < 0.15
    ]
    unit, size = draw.choice(fitting or [("day", 1)])
    count = max(1, round(days / size))
    word = _SAID.get(count) if draw.random() < 0.5 else None
    return f"{word or count} {unit}{'s' if count != 1 else ''}"


def _figures(sentence: str, draw: Random) -> list[tuple[str, int]]:
    made = []
    for match in DURATION.finditer(sentence):
        made += _durations(sentence, match, draw)
    for match in MONEY.finditer(sentence):
        value = float(match["n"].replace(",", "").rstrip(".") or 0) if match["n"].count(".") < 2 else 0
        changed = value * draw.choice([0.1, 0.5, 2, 5, 10])
        new = f"{changed:.0f}" if changed == int(changed) else f"{changed:.1f}"
        made.append((sentence[: match.start("n")] + new + sentence[match.end("n") :], CONTRADICTS))
    for match in SHARE.finditer(sentence):
        value, other = float(match["n"]), "%" if "cent" in match["unit"] else " per cent"
        made.append((_put(sentence, match, f"{value * draw.choice([0.25, 0.5, 2]):g}{other}"), CONTRADICTS))
        made.append((_put(sentence, match, f"{value:g}{other}"), SUPPORTS))
    return made


def _durations(sentence: str, match: re.Match[str], draw: Random) -> list[tuple[str, int]]:
    said = match["n"].lower()
    count = int(said) if said.isdigit() else _VALUES[said]
    days, before = count * _DAYS[match["unit"].lower()], sentence[: match.start()]
    least, most = _LEAST.search(before), _MOST.search(before)
    factors = [0.05, 0.1, 0.25, 0.5] if least else [2, 3, 4, 10] if most else [0.1, 0.25, 0.5, 2, 3, 10]
    wrong = max(1, round(count * draw.choice(factors)))
    made = [(_put(sentence, match, _said(days, draw)), SUPPORTS)]
    if wrong != count:
        made.append((_put(sentence, match, f"{wrong} {match['unit'].lower()}s"), CONTRADICTS))
    bound = least or most
    if bound:
        cut = len(before) - bound.start()
        larger, smaller = days * draw.choice([1.5, 2, 3]), max(days * draw.choice([0.1, 0.3, 0.5]), 1 / 24)
        right, broken = (larger, smaller) if least else (smaller, larger)
        lead = ["", "no less than "] if least else ["within "]
        made += [
            (_put(sentence, match, draw.choice(lead) + _said(right, draw), cut), SUPPORTS),
            (
                _put(
                    sentence,
                    match,
                    draw.choice(["only ", "at most "] if least else ["within ", "up to "])
                    + _said(broken, draw),
                    cut,
                ),
                CONTRADICTS,
            ),
        ]
    return made


def _modals(sentence: str, draw: Random) -> list[tuple[str, int]]:
    for pattern, same, opposite, neither in _MODALS:
        match = pattern.search(sentence)
        if match:
            return [
                (_put(sentence, match, draw.choice(words)), label)
                for words, label in ((same, SUPPORTS), (opposite, CONTRADICTS), (neither, OPEN))
                if words
            ]
    return []


def _replaced(
    sentence: str, draw: Random, table: list[tuple[str, str]], label: int, most: int
) -> list[tuple[str, int]]:
    fitting = [(a, b) for a, b in table if re.search(rf"\b{a}\b", sentence)]
    if not fitting:
        return []
    for a, b in draw.sample(fitting, min(most, len(fitting))):
        sentence = re.sub(rf"\b{a}\b", b, sentence, count=1)
    return [(sentence, label)]


def _shortened(sentence: str, draw: Random) -> str:
    """Drop numbering, and sometimes what leads up to the duty or follows it."""
    sentence = re.sub(r"^\s*(?:\(?[0-9a-zivx]{1,4}[.)]\s+)+", "", sentence).strip()
    led = re.match(
        r"^(?:Without prejudice|Notwithstanding|For the purposes?|In accordance|Accordingly|It is advised that|Further)"
        r"[^,]{4,140}, (?=[a-z])",
        sentence,
    )
    if led and draw.random() < 0.6:
        sentence = sentence[led.end() :]
        sentence = sentence[:1].upper() + sentence[1:]
    if len(sentence) > 110 and draw.random() < 0.6:
        ends = [
            one.start()
            for one in re.finditer(
                r"[;,] (?=(?:including|taking|such as|in particular|which|where|as well|and)\b)|: ?\(a\)",
                sentence,
            )
            if one.start() > 50
        ]
        if ends:
            sentence = sentence[: draw.choice(ends)] + "."
    return sentence


def _voiced(claim: str, draw: Random) -> str:
    """Say it, sometimes, as the one who has the duty would."""
    actor = _ACTOR.match(claim)
    if draw.random() > 0.55 or not actor or len(actor[0]) > 90:
        return claim
    claim = draw.choice(["We ", "We ", "Our company ", "The company "]) + claim[actor.end() :]
    claim = re.sub(r"^We (?:shall|must) not ", draw.choice(["We do not ", "We never "]), claim)
    return re.sub(r"^We (?:shall|must) ", "We " + draw.choice(["", "will ", "always "]), claim)
