"""Answer by quoting sentences of the passages, with citations; the default generator.

It picks up to five sentences or table rows (:mod:`carag.generation.quoting`), several of one passage too, by the
share of the question's words that each holds, a rarer word weighing more; words beside it and in the name of its
document count in part. What holds the kind of thing that is asked for, such as a date
(:mod:`carag.generation.asked_kind`), goes before what does not, and what changes a rule before what recalls it. Every
piece is a substring of the passage that it cites, so nothing is invented; only what reads like a citation mark in it is
escaped. Where no piece holds what is asked for, a last line without a mark says so.

Of three passages or fewer, which is all that a new store may hold, the rarity of words tells nothing. There the passage
nearest to the question is quoted where no piece has enough of its words, and a last line says so; not where the
question names somebody or a time, for then few passages are what is left of many.

Before that, a question for one figure of one company and one period is looked up in the tables of the passages
(:mod:`carag.generation.figures`); where that is not certain of the cell, it quotes.

It uses no model, no state and no randomness: the same passages and question give the same answer on every machine.

The constants were chosen on the questions on circulars at odd places (``python -m bench.circulars.facts``); the least
coverage on the development questions of the benchmark alone, with the oracle's passages (bench/edgar/README.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, log
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.generation.asked_kind import asked_kinds, not_said
from carag.generation.figures import look_up_alone
from carag.generation.generator import Draft
from carag.generation.marks import escaped
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.generation.quoting import quotables
from carag.generation.words import terms
from carag.retrieval.model_files import fingerprint
from carag.retrieval.reading import asking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.quoting import Quotable
    from carag.retrieval.evidence import Passage, Withheld

__all__ = ["Extractive"]

_VERSION: Final = 8
"""Version of the choice of pieces and figures. Raise it when the choice may change."""
_MAX_PIECES: Final = 5
"""Pieces in one answer."""
_MAX_LENGTH: Final = 850
"""Characters that the pieces of an answer have together, if there are several."""
_MIN_COVERAGE: Final = 0.15
"""Share of the question, 0 to 1, that a piece must hold; if none does, the passages do not answer the question.

Above it more of the answerable development questions are declined; below it nothing changes, for whether passages speak
of the question at all is decided before (``least_words`` of the profile)."""
_MIN_OF_FIRST: Final = 0.5
"""Share of what the first piece itself holds of the question, 0 to 1, that a further one must hold; but not one of the
same passage that holds what is asked for, as "It is due in May." does."""
_MIN_NEW: Final = 0.3
"""Share of a further piece's words, 0 to 1, that no piece chosen before holds: filings repeat themselves."""
_BESIDE: Final = 0.7
"""What a word counts that stands in the sentence before or after, or in the name of the document."""
_AROUND: Final = 0.3
"""What a word counts that stands elsewhere in the passage."""
_RANK_DISCOUNT: Final = 0.04
"""Subtracted from a piece's merit for each rank of its passage below the first."""
_KIND_BONUS: Final = 0.15
"""Added to a piece's merit if it holds what is asked for, such as a date, and the question does not say that itself."""
_CHANGE_BONUS: Final = 0.2
"""Added to the merit of a piece that says what a figure or rule is changed to."""
_FEW: Final = 3
"""Passages, or fewer, of which the nearest is quoted though words differ; the gate has found it near enough."""
_NO_WORDS: Final = (
    "Few words of the question stand in the sentences quoted: they are of the passage nearest to it."
)
_LONG: Final = 600
"""Characters. The merit of a longer piece is divided by its length in this unit, for a long piece holds words of the
question by chance."""


@dataclass(frozen=True, slots=True)
class _Weighed:
    piece: Quotable
    share: float
    """Of the question, 0 to 1, with what is beside the piece."""
    alone: float
    """The same of the piece itself."""
    answers: bool
    """Whether it holds the kind of thing that is asked for."""
    merit: float


class Extractive:
    """Quotes the pieces of the passages that hold most of the question's words.

    Parameters
    ----------
    least_coverage : float
        Share of the question, 0 to 1, that a piece must hold to be quoted. Higher declines more.

    Raises
    ------
    InvalidArgument
        If that is not a share.

    Examples
    --------
    >>> from carag.retrieval.evidence import Passage, Withheld
    >>> passage = Passage(
    ...     chunk_id="1:0", text="Net sales were $5 million in 2024. We make nails.", similarity=0.7, word=0,
    ...     accession_number="1", form="10-K", company="Nail Co", filed="2025-02-01", document="10-K",
    ...     start=0, end=48,
    ... )
    >>> Extractive().generate("What were net sales in 2024?", (passage,), Withheld(())).text
    'Net sales were $5 million in 2024. [1]'
    """

    name: Final = "extractive"
    remote: Final = False

    def __init__(self, *, least_coverage: float = _MIN_COVERAGE) -> None:
        if not 0 <= least_coverage <= 1:
            raise InvalidArgument(f"least_coverage is {least_coverage}; want a share, 0 to 1")
        self.fingerprint = fingerprint(self.name, _VERSION, str(float(least_coverage)))
        self._least_coverage = least_coverage

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Give a figure or one to five quotes, or say that the evidence is insufficient; see :class:`Generator`."""
        heads = {position: one.head.text for position, one in enumerate(passages) if one.head is not None}
        if (figure := look_up_alone(question, passages, heads=heads)) is not None:
            return Draft(figure.text, figure.cited)
        chosen, notes = _chosen(_weighed(question, passages), self._least_coverage), []
        if not chosen and len(passages) <= _FEW and not withheld.topic.is_particular:
            chosen, notes = _of_nearest(question, passages), [_NO_WORDS]
        if not chosen:
            return Draft(INSUFFICIENT_EVIDENCE, ())
        quotes = dict.fromkeys((piece.position, *span) for piece in _in_order(chosen) for span in piece.spans)
        said = [(passages[at].text[start:end], at) for at, start, end in quotes]
        lines = [f"{escaped(quote)} [{at + 1}]" for quote, at in said]
        lines += [not_said(asking(question), [quote for quote, _ in said]), *notes]
        return Draft("\n".join(filter(None, lines)), tuple(dict.fromkeys(at for _, at in said)))


def _weighed(question: str, passages: Sequence[Passage]) -> list[_Weighed]:
    """Weigh the pieces that have a word of the question in them, or what it asks for beside one; the best first."""
    asked = terms(asking(question)) or terms(question)
    words = frozenset(term for term in asked if not term[0].isdigit())
    kinds = asked_kinds(asking(question))
    pieces = [
        one for at, passage in enumerate(passages) for one in quotables(at, passage.text, passage.source)
    ]
    seen = Counter(term for piece in pieces for term in piece.terms & asked)
    weight = {term: log(1 + len(pieces) / max(seen[term], 1)) for term in asked}
    # fsum is exact, so the order in which a set yields its terms has no effect.
    whole = fsum(weight.values())
    named = [terms(f"{one.company} {one.form} {one.filed[:4]} {one.source}") for one in passages]
    around = [terms(one.text) for one in passages]
    quoted = [
        frozenset[str]().union(*(one.terms for one in pieces if one.position == at))
        for at in range(len(passages))
    ]
    heads = [named[at] | (one - quoted[at]) for at, one in enumerate(around)]
    found = []
    for piece, near in zip(pieces, _near(pieces), strict=True):
        at = piece.position
        said = passages[at].text[slice(*piece.spans[-1])]
        answers = any(kind.is_in(said, question) for kind in kinds)
        if piece.terms & words or (answers and (near | heads[at]) & words):
            held = dict.fromkeys(around[at] & asked, _AROUND)
            held |= dict.fromkeys((near | named[at]) & asked, _BESIDE)
            held |= dict.fromkeys(piece.terms & asked, 1.0)
            share = fsum(weight[term] * part for term, part in held.items()) / whole
            alone = fsum(weight[term] for term in piece.terms & asked) / whole
            bonus = _KIND_BONUS * answers + _CHANGE_BONUS * piece.changes
            merit = (share + bonus) / max(1.0, piece.length / _LONG) - _RANK_DISCOUNT * at
            found.append(_Weighed(piece, share, alone, answers, merit))
    return sorted(found, key=lambda one: one.merit, reverse=True)


def _of_nearest(question: str, passages: Sequence[Passage]) -> list[Quotable]:
    """Return the first pieces of the passage nearest to the question: those that hold what is asked for, if any."""
    if not passages or not terms(question):
        return []
    at = max(range(len(passages)), key=lambda at: passages[at].similarity)
    found = [one for one in quotables(at, passages[at].text, passages[at].source) if one.terms]
    kinds = asked_kinds(asking(question))
    answering = [
        one
        for one in found
        if any(kind.is_in(passages[at].text[slice(*one.spans[-1])], question) for kind in kinds)
    ]
    chosen: list[Quotable] = []
    for one in (answering or found)[:_MAX_PIECES]:
        if not chosen or sum(it.length for it in chosen) + one.length <= _MAX_LENGTH:
            chosen.append(one)
    return chosen


def _near(pieces: Sequence[Quotable]) -> list[frozenset[str]]:
    """Return the words of each piece and of the sentences before and after it; a row is of what it says itself."""
    near = [piece.terms for piece in pieces]
    for at, (one, after) in enumerate(pairwise(pieces)):
        if one.position == after.position and not (one.is_row or after.is_row):
            near[at] |= after.terms
            near[at + 1] |= one.terms
    return near


def _chosen(weighed: Sequence[_Weighed], least: float) -> list[Quotable]:
    """Choose the best pieces that do not repeat each other."""
    chosen: list[Quotable] = []
    able = [one for one in weighed if one.share >= least]
    for one in able:
        piece = one.piece
        is_near = one.answers and any(piece.position == it.position for it in chosen)
        is_about = is_near or one.alone >= _MIN_OF_FIRST * able[0].alone
        fits = not chosen or sum(it.length for it in chosen) + piece.length <= _MAX_LENGTH
        if is_about and fits and len(chosen) < _MAX_PIECES and all(_adds(piece, it) for it in chosen):
            chosen.append(piece)
    return chosen


def _adds(piece: Quotable, to: Quotable) -> bool:
    """Tell whether a piece says enough that another does not, or the figure that the other changes."""
    more = piece.terms - to.terms
    return len(more) >= _MIN_NEW * len(piece.terms) or (
        to.changes and any(term[0].isdigit() for term in more)
    )


def _in_order(chosen: Sequence[Quotable]) -> list[Quotable]:
    """Put the items of a list behind each other, after its lead-in; else the best stays first."""
    first = {(one.position, one.spans[0]): at for at, one in reversed([*enumerate(chosen)])}
    return sorted(chosen, key=lambda one: (first[one.position, one.spans[0]], one.spans))
