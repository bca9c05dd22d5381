"""Answer by quoting sentences of the passages, with citations; the default generator.

It picks up to three sentences or table rows, each of another passage, by the share of the question's words that each
holds together with the company, form and year of its filing; a rarer word weighs more. Every piece is a substring of
the passage that it cites, so nothing is invented; only what reads like a citation mark in it is escaped.

Before that, a question for one figure of one company and one period is looked up in the tables of the passages
(:mod:`carag.generation.figures`); where that is not certain of the cell, it quotes.

It uses no model, no state and no randomness: the same passages and question give the same answer on every machine.

The constants were chosen on the development questions of the benchmark alone, with the oracle's passages;
``python -m bench.edgar.generator`` prints their effect (figures in bench/edgar/README.md).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import fsum, log
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.generation.figures import look_up_alone
from carag.generation.generator import Draft
from carag.generation.marks import escaped
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.generation.words import terms
from carag.labelling.sentences import sentences
from carag.retrieval.model_files import fingerprint
from carag.retrieval.reading import asking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.retrieval.evidence import Passage, Withheld

__all__ = ["Extractive"]

_VERSION: Final = 6
"""Version of the choice of pieces and figures. Raise it when the choice may change."""
_MAX_PIECES: Final = 3
"""Pieces in one answer, and so passages that it cites."""
_MIN_COVERAGE: Final = 0.15
"""Share of the question, 0 to 1, that a piece must hold; if none does, the passages do not answer the question.

Above it more of the answerable development questions are declined; below it nothing changes, for whether passages speak
of the question at all is decided before (``least_words`` of the profile)."""
_MIN_OF_FIRST: Final = 0.5
"""Share of what the first piece holds of the question, 0 to 1, that a further one must hold."""
_MIN_NEW: Final = 0.3
"""Share of a further piece's words, 0 to 1, that no piece chosen before holds: filings repeat themselves."""
_RANK_DISCOUNT: Final = 0.05
"""Subtracted from a piece's merit for each rank of its passage below the first."""
_NUMBER_BONUS: Final = 0.1
"""Added to a piece's merit if the question asks for a number and the piece holds one that the question lacks."""
_LONG: Final = 400
"""Characters. The merit of a longer piece is divided by its length in this unit, for a long piece holds words of the
question by chance."""

_CELL: Final = " | "
"""Separator of the cells of a table row, where the source kept them apart."""
_FIGURE: Final = re.compile(r"[($]*[\d,]*\d(?:\.\d+)?[)%]*|[$(—–-]")
_ROW_FIGURES: Final = 2
"""Figures at the end of a line that make it a table row without separators."""
_WHOLE: Final = re.compile(r"""[.!?;:]["'”’)\]]*\Z""")
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_WANTS_NUMBER: Final = re.compile(
    r"\bhow (?:much|many|long|large)\b"
    r"|\b(?:amount|number|total|rate|percentage|ratio|margin|price|date|usd|when)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence or table row: its place and its terms."""

    position: int
    start: int
    end: int
    terms: frozenset[str]
    header: tuple[int, int] | None = None
    """Start and end of the row of years or dates above it in its table."""


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

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:  # noqa: ARG002
        """Give a figure or one to three quotes, or say that the evidence is insufficient; see :class:`Generator`."""
        heads = {position: one.head.text for position, one in enumerate(passages) if one.head is not None}
        if (figure := look_up_alone(question, passages, heads=heads)) is not None:
            return Draft(figure.text, figure.cited)
        pieces = [
            piece
            for position, passage in enumerate(passages)
            for piece in _pieces(position, passage.text)
            if _is_whole(passage.text[piece.start : piece.end])
        ]
        chosen = _choose(question, passages, pieces, self._least_coverage)
        if not chosen:
            return Draft(INSUFFICIENT_EVIDENCE, ())
        quotes: dict[tuple[int, int, int], None] = {}
        for piece in chosen:
            if piece.header:
                quotes[piece.position, *piece.header] = None
            quotes[piece.position, piece.start, piece.end] = None
        text = "\n".join(f"{escaped(passages[at].text[start:end])} [{at + 1}]" for at, start, end in quotes)
        return Draft(text, tuple(piece.position for piece in chosen))


def _choose(
    question: str, passages: Sequence[Passage], pieces: Sequence[_Piece], least: float
) -> list[_Piece]:
    """Choose pieces of different passages that hold most of the question's words and do not repeat each other."""
    asked = terms(asking(question))
    words = frozenset(term for term in asked if not term[0].isdigit())
    subjects = [terms(f"{one.company} {one.form} {one.filed[:4]}") for one in passages]
    seen = Counter(term for piece in pieces for term in piece.terms & asked)
    weight = {term: log(1 + len(pieces) / max(seen[term], 1)) for term in asked}
    # fsum is exact, so the order in which a set yields its terms has no effect.
    whole = fsum(weight.values())
    wants_number = _WANTS_NUMBER.search(question) is not None

    def held(piece: _Piece) -> float:
        return fsum(weight[term] for term in (piece.terms | subjects[piece.position]) & asked) / whole

    def merit(able: tuple[float, _Piece]) -> float:
        share, piece = able
        number = wants_number and any(term[0].isdigit() for term in piece.terms - asked)
        length = max(1.0, (piece.end - piece.start) / _LONG)
        return (share + _NUMBER_BONUS * number) / length - _RANK_DISCOUNT * piece.position

    able = [(held(piece), piece) for piece in pieces if piece.terms & words]
    chosen: list[_Piece] = []
    for share, piece in sorted((one for one in able if one[0] >= least), key=merit, reverse=True):
        if len(chosen) == _MAX_PIECES:
            break
        if share >= least and all(_adds(piece, one) for one in chosen):
            if not chosen:
                least = max(least, _MIN_OF_FIRST * share)
            chosen.append(piece)
    return chosen


def _adds(piece: _Piece, to: _Piece) -> bool:
    return piece.position != to.position and len(piece.terms - to.terms) >= _MIN_NEW * len(piece.terms)


def _pieces(position: int, text: str) -> Iterator[_Piece]:
    """Cut a passage into sentences and table rows; a row knows the row of years above it."""
    at = prose = 0
    header: tuple[int, int] | None = None
    for line in text.splitlines(keepends=True):
        if _is_row(line):
            yield from _sentences(position, text, prose, at)
            row = _trim(text, at, at + len(line))
            about = text[slice(*row)] + (text[slice(*header)] if header else "")
            yield _Piece(position, *row, terms(about), header)
            if _YEAR.search(text, *row):
                header = row
            prose = at + len(line)
        elif line.strip():
            header = None
        at += len(line)
    yield from _sentences(position, text, prose, at)


def _is_whole(piece: str) -> bool:
    """Tell a row or a sentence from a heading, a cover page, or what the passage's end cuts off."""
    return _WHOLE.search(piece) is not None or all(_is_row(line) for line in piece.splitlines())


def _is_row(line: str) -> bool:
    if _CELL in line:
        return True
    words = line.split()[-_ROW_FIGURES:]
    return len(words) == _ROW_FIGURES and all(_FIGURE.fullmatch(word) for word in words)


def _sentences(position: int, text: str, start: int, end: int) -> Iterator[_Piece]:
    for first, last in sentences(text, start, end, wrapped=True):
        if held := terms(text[first:last]):
            yield _Piece(position, first, last, held)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
