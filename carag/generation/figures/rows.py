"""Choose the figure whose row, heads and section contain most of the question's words; rarer words weigh more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import fsum, log
from typing import TYPE_CHECKING, Final

from carag.generation.words import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.figures.entries import Entry


_HEAD: Final = 0.8
_SECTION: Final = 0.5
_CAPTION: Final = 0.1
"""Weights of a word of the question that is in the section or heads but not in the label, where it is worth 1."""
_ASIDE: Final = 0.35
"""Loss, per unit of weight, for a word of the label that is not in the question."""


@dataclass(frozen=True, slots=True)
class Match:
    """A figure, and how well it matches what the question asks for."""

    entry: Entry
    merit: float
    coverage: float
    """Share of the weight of the question's words that the label, section or heads contain, 0 to 1."""
    of_label: float
    """Share of the weight of the label's words that the question contains, 0 to 1."""


def matches(asked: frozenset[str], more: frozenset[str], entries: Sequence[Entry]) -> list[Match]:
    """Order figures by how much of a question they contain, best first; ties keep their order.

    ``asked`` are terms of the question, without companies and times; ``more`` are terms in a label that ask for the
    same thing, which distinguish rows but do not count as coverage.
    """
    rows = {(*one.table, one.line): _words(one.label.text) for one in entries}
    seen = Counter(term for words in rows.values() for term in words)
    whole = len(rows)
    weight = {term: log(1 + whole / max(many, 1)) for term, many in seen.items()}
    weight |= {term: log(1 + whole) for term in asked if term not in weight}

    def weighed(words: frozenset[str]) -> float:
        return fsum(weight.get(term, log(1 + whole)) for term in words)

    total = weighed(asked)
    found = []
    for one in entries:
        label = rows[(*one.table, one.line)]
        head = _words(" ".join(each.text for each in one.heads)) - label
        section = (_words(one.section.text) if one.section else frozenset()) - label - head
        caption = _words(" ".join(one.captions)) - label - head - section
        held = asked & label
        merit = (
            weighed(held)
            + _HEAD * weighed(asked & head)
            + _SECTION * weighed(asked & section)
            + _CAPTION * weighed(asked & caption)
            + 0.2 * weighed((more - asked) & label)
            - _ASIDE * weighed(label - asked - more)
            - 0.1 * weighed(head - asked)
        )
        covered = weighed(asked & (label | head | section))
        found.append(
            Match(
                one,
                merit,
                covered / total if total and held else 0.0,
                weighed(held) / max(weighed(label), 1e-9),
            )
        )
    return sorted(found, key=lambda match: -match.merit)


def _words(text: str) -> frozenset[str]:
    return frozenset(term for term in terms(text) if not term[0].isdigit() and len(term) > 1)
