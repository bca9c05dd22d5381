"""Turn the facts of a document into its policy word, by the rules that its profile declares.

A required fact that is missing, or a value that a rule cannot read, quarantines the document with the reason. So does a
fact whose name is nearly the name of a fact that a rule reads, because a typing error must not open a document.
"""

from __future__ import annotations

import difflib
import re
from enum import StrEnum
from functools import lru_cache, reduce
from math import isfinite, nan
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.labelling.label import Cause, Quarantine
from carag.policy import QUARANTINE, VERSION_WORD, policy_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.policy import Vocabulary
    from carag.policy.vocabulary import FactRule


_TRUE = frozenset({"true", "yes", "1"})
_FALSE = frozenset({"false", "no", "0", ""})


_SHARING: Final = frozenset({"allow", "deny"})
"""Lists of a document, which are not facts: if one were taken for a fact, or misspelt, the document would be open."""
_LIST: Final = re.compile(r"((?P<allow>allow(s|ed)?)|den(y|ies|ied)|disallow(s|ed)?)([^a-z].*)?")
"""Names of facts that mean such a list, and are not near enough to its name."""


class FactProblem(StrEnum):
    """Why the facts of a document give no label."""

    MISSING_FACT = "MISSING_FACT"
    UNKNOWN_VALUE = "UNKNOWN_VALUE"
    MISSPELT_FACT = "MISSPELT_FACT"
    MISSING_AUDIENCE = "MISSING_AUDIENCE"


class DeclaredLabel(NamedTuple):
    """The word of a document, the cause of each bit, and any quarantine."""

    word: int
    causes: tuple[Cause, ...]
    quarantine: Quarantine | None = None


class _Unreadable(Exception):
    """A value that a rule cannot read."""


def label_facts(facts: Mapping[str, Any], vocabulary: Vocabulary) -> DeclaredLabel:
    """Label a document by the facts it states: by name, a text, a number, a truth value, or a list of them."""
    if problem := _problem(facts, vocabulary):
        return quarantined(*problem)
    causes = []
    for rule in vocabulary.rules:
        try:
            holds = rule.field in facts and _holds(rule, facts[rule.field])
        except _Unreadable as wanted:
            return quarantined(
                FactProblem.UNKNOWN_VALUE, f"{rule.field} is {facts[rule.field]!r}; want {wanted}"
            )
        if holds:
            causes.append(Cause(rule.bit, rule.field, rule.regulation))
    bits = (int(vocabulary.flags[cause.bit]) for cause in causes)
    return DeclaredLabel(reduce(or_, bits, VERSION_WORD), tuple(causes))


def quarantined(code: FactProblem, text: str) -> DeclaredLabel:
    """Return the label of a document that no policy admits, with the reason."""
    return DeclaredLabel(policy_word(0) | QUARANTINE, (), Quarantine(code, text))


def _problem(facts: Mapping[str, Any], vocabulary: Vocabulary) -> tuple[FactProblem, str] | None:
    for one in vocabulary.required:
        stated = facts.get(one.field)
        if stated is None or stated == "":
            wanted = ", ".join(one.one_of)
            return FactProblem.MISSING_FACT, f"{one.field} is not stated; want one of {wanted}"
        if _plain(stated) not in [_plain(value) for value in one.one_of]:
            return (
                FactProblem.UNKNOWN_VALUE,
                f"{one.field} is {stated!r}; want one of {', '.join(one.one_of)}",
            )
    read = frozenset({one.field for one in vocabulary.required} | {rule.field for rule in vocabulary.rules})
    for name in facts:
        if name not in read and (meant := _meant(name, read | _SHARING)):
            return (
                FactProblem.MISSPELT_FACT,
                f"{name} is not a fact that any rule reads; did you mean {meant}?",
            )
    return None


@lru_cache(maxsize=1024)  # documents in one store state facts with the same names
def _meant(name: str, read: frozenset[str]) -> str | None:
    plain = name.strip().casefold()
    if plain in read:
        return plain
    if list_ := _LIST.fullmatch(plain):
        return "allow" if list_["allow"] else "deny"
    return next(iter(difflib.get_close_matches(plain, sorted(read), n=1, cutoff=0.8)), None)


def _plain(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


def _holds(rule: FactRule, stated: Any) -> bool:
    several = [_plain(one) for one in stated] if isinstance(stated, (list, tuple)) else [_plain(stated)]
    wanted = rule.value
    match rule.operator:
        case "equals" | "contains":
            if len(several) > 1 and rule.operator == "equals":
                raise _Unreadable("one value")
            return _is_among(wanted, several)
        case "one_of":
            return any(_is_among(one, several) for one in wanted or ())  # type: ignore[union-attr]
        case "is_true":
            return _truth(several)
    return _compared(rule, several)


def _is_among(wanted: Any, several: list[Any]) -> bool:
    """Compare as values and as texts, because front matter and sidecar files write everything as text."""
    plain = _plain(wanted)
    if isinstance(plain, str) and all(isinstance(one, str) for one in several):
        return plain in several
    return plain in several or _plain(str(wanted)) in [_plain(str(one)) for one in several]


def _truth(several: list[Any]) -> bool:
    """Read a truth value as spreadsheets and front matter write it."""
    (value,) = several if len(several) == 1 else (None,)
    written = str(value).casefold()
    if isinstance(value, float) or written not in _TRUE | _FALSE:
        raise _Unreadable("true or false, yes or no")
    return written in _TRUE


def _compared(rule: FactRule, several: list[Any]) -> bool:
    try:
        (number,) = (float(one) for one in several if not isinstance(one, bool))
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):  # the text "nan" is neither above nor below any number
        raise _Unreadable("a number")
    bound = float(rule.value)  # type: ignore[arg-type] # the schema has numbers alone here
    return number >= bound if rule.operator == "at_least" else number <= bound
