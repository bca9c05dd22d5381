"""Reduce a sentence to the stems of its content words, each affirmed or denied."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


UNDOING: Final = re.compile(
    r"\b(?:is|are|was|were|be|been)(?: \w+ly)? (?:prohibited|forbidden|unlawful|banned|disabled|omitted|missing|absent"
    r"|switched off|turned off|not (?:allowed|permitted))\b|\bnot be (?:allowed|permitted)\b",
    re.IGNORECASE,
)
"""Words that deny the whole sentence they occur in."""
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.,]\d+)*|[,;:.()]")
_ENDINGS: Final = (
    *(
        "ications",
        "ication",
        "ically",
        "ations",
        "ation",
        "ments",
        "ment",
        "edly",
        "ings",
        "ing",
        "ions",
        "ion",
    ),
    *("ally", "ies", "ied", "ers", "er", "ed", "es", "ic", "ly", "al", "s"),
)
_ALIKE: Final = (
    (("keep", "kept", "retain", "stor", "preserv"), ("delet", "eras", "destroy", "discard", "wip", "purg")),
    (("inform", "told", "tell", "notif", "disclos"), ("conceal", "hid", "withhold")),
    (("person", "peopl", "individu", "user", "human"), ()),
    (("work", "employ", "staff"), ()),
    (("death", "die", "died", "dead"), ()),
    (("examin", "check", "assess", "evaluat"), ()),
    (("overs", "oversight", "overseen", "oversaw"), ()),
)
"""Stems that mean the same, and those that mean the opposite."""
_ONE_THING: Final = {
    word: (same[0], sign)
    for same, opposite in _ALIKE
    for words, sign in ((same, 1), (opposite, -1))
    for word in words
}
_IDLE: Final = frozenset(
    re.findall(
        r"\w+",
        "a about after against all also an and any applicable appropriate are article as at be become been before "
        "being both by can could do does done each either every following for from get gets had has have having "
        "how i if in including into is it its least may might more most must my need needs of on once one only or "
        "other our own paragraph particular point prior referred shall should so some such than that the their "
        "them then there these they this those through to under until up upon us use used uses using view was we "
        "well were what when where whether which while who whole whom whose why will with within would you your",
    )
)
_DENIES_CLAUSE: Final = re.compile("not|cannot|never|no(?:body|thing|ne)")
_DENIES_WHAT_FOLLOWS: Final = frozenset(["no", "without", "neither", "nor"])
_FAILS: Final = frozenset(
    ["fail", "fails", "failed", "refuse", "refuses", "refused", "avoid", "avoids", "refrain", "lack", "lacks"]
)
_BREAKS: Final = frozenset(
    [
        *";:.()",
        "but",
        "so",
        "because",
        "since",
        "although",
        "though",
        "as",
        "if",
        "when",
        "where",
        "unless",
        "except",
    ]
)
_BEGIN: Final = frozenset(
    ["we", "they", "it", "he", "she", "you", "i", "and", "which", "who", "the", "this", "then"]
)
"""After a comma they begin a clause; other words continue what is denied: "not sold, lent or shown"."""
_PARTS: Final = re.compile(r";|, (?=(?:so|as|because|since|and|but)\b)")
"""Words beyond which a word that denies a whole sentence does not reach."""
_IDIOM: Final = re.compile(r"\bwithout (?:undue )?delay\b|\bwithout prejudice\b|\bnot only\b")


class Sign(NamedTuple):
    """A word of a sentence."""

    word: str
    """As it occurs there, in lower case."""
    sign: int
    """-1 if it is denied, otherwise 1."""


@lru_cache(maxsize=1 << 14)
def signs(text: str) -> Mapping[str, Sign]:
    """Return the content words of a sentence, by stem.

    "Not" denies its whole clause, "no" and "without" deny what follows; synonyms share one name, and their opposites
    have the same name denied.
    """
    plain = _IDIOM.sub(" ", re.sub(r"(?<=n)['\u2019]t\b", " not", text.lower()))
    found: dict[str, Sign] = {}
    for part in _PARTS.split(plain):
        found.update(_of_part(part))
    return found


def _of_part(part: str) -> dict[str, Sign]:
    found: dict[str, Sign] = {}
    clause: list[str] = []
    denied, goes_on = 1, False
    undone = -1 if UNDOING.search(part) else 1
    for word, following in pairwise([*_TOKEN.findall(part), ""]):
        if word in _BREAKS or (word == "," and not (goes_on and following not in _BEGIN)):
            clause, denied, goes_on = [], 1, False
        elif _DENIES_CLAUSE.fullmatch(word):
            found.update({one: found[one]._replace(sign=-found[one].sign) for one in clause if denied > 0})
            denied, goes_on = -1, True
        elif word in _DENIES_WHAT_FOLLOWS:
            denied = -1
        elif word in _FAILS:
            denied = -denied
        elif word not in _IDLE and not word[0].isdigit():
            stem = _stem(word)
            name, sign = _ONE_THING.get(stem, (stem, 1))
            found[name] = Sign(word, denied * sign * undone)
            clause.append(name)
    return found


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word.removesuffix(ending)
            if word[-1] == word[-2] and ending in ("ing", "ings", "ed", "er", "ers"):
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word[-1] in "eiy" else word
