"""Answer by quoting sentences of the passages, with citations; the default generator.

It picks up to five sentences or table rows (:mod:`carag.generation.quoting`), also several from one passage, by the
share of the question's words that each contains. Rarer words weigh more; words in adjacent sentences and in the name of
the document count in part. What contains the kind of thing asked for, such as a date
(:mod:`carag.generation.asked_kind`), comes before what does not, and what changes a rule before what recalls it. Every
piece is a substring of the passage that it cites, so nothing is invented; only what looks like a citation mark in it is
escaped. If no piece contains what is asked for, a last line without a mark says so.

With three passages or fewer, which may be all that a new store has, rarity means nothing. If no piece then has enough
of the question's words, the nearest passage is quoted, and a last line says so; but not if the question names a company
or a time, since the few passages are then what is left of many.

Before that, a question for one figure of one company and one period is looked up in the tables of the passages
(:mod:`carag.generation.figures`); if the cell is not certain, sentences are quoted.

There is no model, state or randomness: the same passages and question give the same answer on every machine.

The constants were chosen on questions about circulars (``python -m bench.circulars.facts``), the least coverage only on
the benchmark's development questions, given the oracle's passages (bench/edgar/README.md).
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import fsum, log
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.generation.asked_kind import asked_kinds, not_said
from carag.generation.figures import look_up_alone
from carag.generation.generator import Draft
from carag.generation.marks import escaped
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.generation.quoting import quotables
from carag.generation.words import Asked, terms
from carag.retrieval.model_files import fingerprint
from carag.retrieval.reading import asking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.quoting import Quotable
    from carag.retrieval.evidence import Passage, Withheld


_VERSION: Final = 9
"""Version of the choice of pieces and figures. Raise it when the choice may change."""
_MAX_PIECES: Final = 5
"""Pieces in one answer."""
_MAX_LENGTH: Final = 850
"""Most characters in all pieces of an answer together, if there are several."""
_MIN_COVERAGE: Final = 0.15
"""Share of the question, 0 to 1, that a piece must contain; if none does, the passages do not answer the question. A
higher value declines more of the answerable development questions. A lower one changes nothing, since whether passages
are about the question at all is decided earlier (by the profile's ``least_words``)."""
_MIN_OF_FIRST: Final = 0.5
"""A further piece must contain at least this fraction of the share of the question that the first piece itself
contains, unless it is from the same passage and contains what is asked for, as "It is due in May." does."""
_MIN_NEW: Final = 0.3
"""Least share of a further piece's words, 0 to 1, that no earlier piece contains, because filings repeat themselves."""
_BESIDE: Final = 0.7
"""Weight of a word in the sentence before or after, or in the name of the document."""
_AROUND: Final = 0.3
"""Weight of a word elsewhere in the passage."""
_RANK_DISCOUNT: Final = 0.04
"""Subtracted from a piece's merit for each rank of its passage below the first."""
_KIND_BONUS: Final = 0.15
"""Added to a piece's merit if it contains what is asked for, such as a date not stated in the question."""
_CHANGE_BONUS: Final = 0.2
"""Added to the merit of a piece that says what a figure or rule is changed to."""
_FEW: Final = 3
"""With at most this many passages, the nearest is quoted even if its words differ; the gate found it near enough."""
_NO_WORDS: Final = (  # The hash of an answer is in its record, so the wording stays.
    "Few words of the question stand in the sentences quoted: they are " + "of the passage nearest to it."
)
_LONG: Final = 600
"""Characters. The merit of a longer piece is divided by its length in this unit, since it contains words of the
question by chance."""


class _Weighed(NamedTuple):
    piece: Quotable
    share: float
    """Share of the question that the piece contains, with what is around it, 0 to 1."""
    alone: float
    """The same share for the piece alone."""
    answers: bool
    """Whether it contains the kind of thing that is asked for."""
    merit: float


class Extractive:
    """Quotes the pieces of the passages that contain most of the question's words.

    Parameters
    ----------
    least_coverage : float
        Share of the question, 0 to 1, that a piece must contain to be quoted. Higher values decline more.

    Raises
    ------
    InvalidArgument
        If ``least_coverage`` is not between 0 and 1.

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
            raise InvalidArgument(f"least_coverage is {least_coverage}; want a share from 0 to 1")
        self.fingerprint = fingerprint(self.name, _VERSION, str(float(least_coverage)))
        self._least_coverage = least_coverage

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Answer with a figure or one to five quotes, or say that the evidence is insufficient."""
        heads = {position: one.head.text for position, one in enumerate(passages) if one.head is not None}
        if (figure := look_up_alone(question, passages, heads=heads)) is not None:
            return Draft(figure.text, figure.cited, worked=figure.worked)
        chosen, notes = _chosen(_weighed(question, passages, self._least_coverage)), []
        if not chosen and len(passages) <= _FEW and not withheld.topic.is_particular:
            chosen, notes = _of_nearest(question, passages), [_NO_WORDS]
        if not chosen:
            return Draft(INSUFFICIENT_EVIDENCE, ())
        quotes = dict.fromkeys((piece.position, *span) for piece in _in_order(chosen) for span in piece.spans)
        said = [(passages[at].text[start:end], at) for at, start, end in quotes]
        lines = [f"{escaped(quote)} [{at + 1}]" for quote, at in said]
        lines += [not_said(asking(question), [quote for quote, _ in said]), *notes]
        return Draft("\n".join(filter(None, lines)), tuple(dict.fromkeys(at for _, at in said)))


def _weighed(question: str, passages: Sequence[Passage], least: float) -> list[_Weighed]:
    """Weigh the pieces that contain a word of the question, or what it asks for next to one; the best first.

    Pieces with less than the least share of the question are left out.
    """
    asked = terms(asking(question)) or terms(question)
    words = frozenset(term for term in asked if not term[0].isdigit())
    kinds = asked_kinds(asking(question))
    in_text = Asked(asked)
    pieces = [[*quotables(at, passage.text, passage.source)] for at, passage in enumerate(passages)]
    held = [_asked_in(in_text, one.text, its) for one, its in zip(passages, pieces, strict=True)]
    seen = Counter(term for _, own in held for one in own for term in one)
    total = sum(map(len, pieces))
    weight = {term: log(1 + total / max(seen[term], 1)) for term in asked}
    # fsum is exact, so the order in which a set yields its terms has no effect.
    whole = fsum(weight.values())
    beside, elsewhere = ({term: one * part for term, one in weight.items()} for part in (_BESIDE, _AROUND))
    found = []
    for passage, its, (around, own) in zip(passages, pieces, held, strict=True):
        named = in_text.among(f"{passage.company} {passage.form} {passage.filed[:4]} {passage.source}")
        is_headed = not words.isdisjoint(named | around.difference(*own))
        for piece, said, near in zip(its, own, _near(its, own), strict=True):
            if not is_headed and words.isdisjoint(near):
                continue
            other = (near | named) - said
            parts = ((weight, said), (beside, other), (elsewhere, around - other - said))
            share = fsum([of[term] for of, terms_ in parts for term in terms_]) / whole
            if share < least:
                continue
            answers = any(kind.is_in(piece.said, question) for kind in kinds)
            if answers or not words.isdisjoint(said):
                alone = fsum(weight[term] for term in said) / whole
                bonus = _KIND_BONUS * answers + _CHANGE_BONUS * piece.changes
                merit = (share + bonus) / max(1.0, piece.length / _LONG) - _RANK_DISCOUNT * piece.position
                found.append(_Weighed(piece, share, alone, answers, merit))
    return sorted(found, key=lambda one: one.merit, reverse=True)


def _asked_in(
    asked: Asked, text: str, pieces: Sequence[Quotable]
) -> tuple[frozenset[str], list[frozenset[str]]]:
    """Return the words asked for that a passage has, and those that each of its pieces has; each part is read once."""
    edges = sorted({0, len(text), *(edge for one in pieces for span in one.spans for edge in span)})
    parts = [asked.among(text[start:end]) for start, end in pairwise(edges)]
    at = {edge: number for number, edge in enumerate(edges)}
    none = frozenset[str]()
    own = [none.union(*[one for a, b in it.spans for one in parts[at[a] : at[b]]]) for it in pieces]
    return none.union(*parts), own


def _of_nearest(question: str, passages: Sequence[Passage]) -> list[Quotable]:
    """Return the first pieces of the nearest passage: those that contain what is asked for, if any."""
    if not passages or not terms(question):
        return []
    at = max(range(len(passages)), key=lambda at: passages[at].similarity)
    found = [one for one in quotables(at, passages[at].text, passages[at].source) if one.terms]
    kinds = asked_kinds(asking(question))
    answering = [one for one in found if any(kind.is_in(one.said, question) for kind in kinds)]
    chosen: list[Quotable] = []
    for one in (answering or found)[:_MAX_PIECES]:
        if not chosen or sum(it.length for it in chosen) + one.length <= _MAX_LENGTH:
            chosen.append(one)
    return chosen


def _near(pieces: Sequence[Quotable], words: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Return the words of each piece with those of adjacent sentences; a table row stands alone."""
    near = [*words]
    for at, (one, after) in enumerate(pairwise(pieces)):
        if not (one.is_row or after.is_row):
            near[at] |= words[at + 1]
            near[at + 1] |= words[at]
    return near


def _chosen(weighed: Sequence[_Weighed]) -> list[Quotable]:
    """Choose the best pieces that do not repeat each other."""
    chosen: dict[Quotable, frozenset[str]] = {}
    for one in weighed:
        piece = one.piece
        is_near = one.answers and any(piece.position == it.position for it in chosen)
        is_about = is_near or one.alone >= _MIN_OF_FIRST * weighed[0].alone
        fits = not chosen or sum(it.length for it in chosen) + piece.length <= _MAX_LENGTH
        if is_about and fits and len(chosen) < _MAX_PIECES:
            own = piece.terms
            if all(_adds(own, its, to=it) for it, its in chosen.items()):
                chosen[piece] = own
    return [*chosen]


def _adds(words: frozenset[str], its: frozenset[str], *, to: Quotable) -> bool:
    """Tell whether a piece with certain words adds enough to another, or states the figure that the other changes."""
    more = words - its
    return len(more) >= _MIN_NEW * len(words) or (any(term[0].isdigit() for term in more) and to.changes)


def _in_order(chosen: Sequence[Quotable]) -> list[Quotable]:
    """Put the items of a list after each other, after its lead-in; otherwise the best stays first."""
    first = {(one.position, one.spans[0]): at for at, one in reversed([*enumerate(chosen)])}
    return sorted(chosen, key=lambda one: (first[one.position, one.spans[0]], one.spans))
