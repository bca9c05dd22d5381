"""The default generator: the passages' own sentences, quoted and cited. It cannot invent.

It picks up to three sentences or table rows, by how many of the question's words they hold (a rarer word
counts for more, a number for more still), and stops when a further one would add little. Every piece is a
substring of the passage it cites, character for character.

No model, no state, no randomness: the same passages and question give the same answer on every machine.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import fsum, log
from typing import TYPE_CHECKING, Final

from carag.generation.generator import Draft
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.retrieval.packages import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.retrieval.evidence import Passage, Withheld

__all__ = ["Extractive"]

_VERSION: Final = 1
"""Raise when the choice of pieces may change."""
_MOST_PIECES: Final = 3
_LEAST_COVERAGE: Final = 0.35
"""Share of the question's weight the best piece must hold; below it, nothing here answers the question.

On the questions of ``data/``, 0.2 quotes a source in 78 of the 84 cases where one is among the passages, and
refuses in 10 of the 32 where none is; 0.35 in 76 and in 25."""
_LEAST_GAIN: Final = 0.2
"""Share of the question's weight a further piece must add."""
_RANK_DISCOUNT: Final = 0.03
"""What each place further down the retriever's ranking costs a piece."""
_NUMBER_WEIGHT: Final = 1.5
"""How much more a number of the question (a year, an amount) counts than a word of the same rarity."""
_NUMBER_BONUS: Final = 0.1
"""What a piece gains for holding a number of its own when the question wants one."""
_SUBJECT_BONUS: Final = 0.5
"""What a piece gains for standing in a filing the question names (company, form, year)."""
_LONG: Final = 400
"""Characters beyond which a piece is more likely to hold the question's words by chance."""

_TERM: Final = re.compile(r"\d[\d,.]*\d|\d|[^\W\d_]+")
_SENTENCE_END: Final = re.compile(r"[.!?][\"'”’)\]]*(?=\s+[\"'“‘(\[•]?[A-Z0-9])|\n\s*\n|:[ \t]*\n")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:Inc|Corp|Co|Ltd|Nos?|Mr|Mrs|Ms|Dr|St|vs|Sec|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
    r"|\b[A-Za-z])\.$"
)
_CELL: Final = " | "
"""What stands between the cells of a table row, where the source kept them apart."""
_FIGURE: Final = re.compile(r"[($]*[\d,]*\d(?:\.\d+)?[)%]*|[$(—–-]")
_ROW_FIGURES: Final = 2
"""Figures at the end of a line that make it a table row all the same."""
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_WANTS_NUMBER: Final = re.compile(
    r"\bhow (?:much|many|long|large)\b"
    r"|\b(?:amount|number|total|rate|percentage|ratio|margin|price|date|usd|when)\b",
    re.IGNORECASE,
)
_STOP_WORDS: Final = frozenset(
    _TERM.findall(
        "a about above all an and any are as at be been by can could did do does each for from fy give had "
        "has have how if in into is it its many may me much of on or our please question shall should show "
        "such than that the their them there these they this those to was we were what when where which who "
        "whom whose why will with would you your"
    )
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence or table row: where it stands, and what it is about."""

    position: int
    start: int
    end: int
    terms: frozenset[str]
    header: tuple[int, int] | None = None
    """The row of years or dates above it in its table."""


class Extractive:
    """Quote the pieces of the passages that hold most of the question.

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
    fingerprint: Final = fingerprint("extractive", _VERSION)

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:  # noqa: ARG002
        """Quote one to three pieces, or say that the evidence is insufficient; see :class:`Generator`."""
        pieces = [
            piece for position, passage in enumerate(passages) for piece in _pieces(position, passage.text)
        ]
        chosen = _choose(question, passages, pieces)
        if not chosen:
            return Draft(INSUFFICIENT_EVIDENCE, ())
        quotes: dict[tuple[int, int, int], None] = {}
        for piece in chosen:
            if piece.header:
                quotes[piece.position, *piece.header] = None
            quotes[piece.position, piece.start, piece.end] = None
        text = "\n".join(f"{passages[at].text[start:end]} [{at + 1}]" for at, start, end in quotes)
        return Draft(text, tuple(dict.fromkeys(piece.position for piece in chosen)))


def _choose(question: str, passages: Sequence[Passage], pieces: Sequence[_Piece]) -> list[_Piece]:
    """Pick pieces greedily, each for what it adds to the share of the question's weight held so far."""
    asked = _asked(question)
    subjects = [_terms(f"{one.company} {one.form} {one.filed[:4]}") & asked for one in passages]
    topic = asked.difference(*subjects) or asked
    words = frozenset(term for term in topic if not term[0].isdigit())
    seen = Counter(term for piece in pieces for term in piece.terms & asked)
    weight = {term: _rarity(term, seen[term], len(pieces)) for term in asked}
    wants_number = _WANTS_NUMBER.search(question) is not None

    def share(terms: frozenset[str], of: frozenset[str]) -> float:
        # fsum is exact, so the order in which a set yields its terms cannot show.
        return fsum(weight[term] for term in terms & of) / (fsum(weight[term] for term in of) or 1.0)

    def merit(piece: _Piece, held: frozenset[str]) -> float:
        gain = share(piece.terms - held, topic)
        subject = share(piece.terms | subjects[piece.position], asked - topic)
        number = wants_number and any(term[0].isdigit() for term in piece.terms - asked)
        length = max(1.0, (piece.end - piece.start) / _LONG)
        worth = gain + _SUBJECT_BONUS * subject + _NUMBER_BONUS * number
        return worth / length - _RANK_DISCOUNT * piece.position

    chosen: list[_Piece] = []
    held: frozenset[str] = frozenset()
    least = _LEAST_COVERAGE
    while len(chosen) < _MOST_PIECES:
        able = [
            piece for piece in pieces if piece.terms & words and share(piece.terms - held, topic) >= least
        ]
        if not able:
            break
        chosen.append(max(able, key=lambda piece: merit(piece, held)))
        held |= chosen[-1].terms
        least = _LEAST_GAIN
    return chosen


def _asked(question: str) -> frozenset[str]:
    """Read what is asked: the sentences that ask, without the instructions around them."""
    sentences = [question[piece.start : piece.end] for piece in _pieces(0, question)]
    asking = [sentence for sentence in sentences if sentence.endswith("?")]
    return _terms(" ".join(asking or sentences))


def _rarity(term: str, holders: int, pieces: int) -> float:
    """Weigh a question's term: inverse document frequency over the pieces at hand, more for a number."""
    return log(1 + pieces / max(holders, 1)) * (_NUMBER_WEIGHT if term[0].isdigit() else 1.0)


def _pieces(position: int, text: str) -> Iterator[_Piece]:
    """Cut a passage into sentences and table rows; a row knows the row of years above it."""
    at = prose = 0
    header: tuple[int, int] | None = None
    for line in text.splitlines(keepends=True):
        if _is_row(line):
            yield from _sentences(position, text, prose, at)
            row = _trim(text, at, at + len(line))
            about = text[slice(*row)] + (text[slice(*header)] if header else "")
            yield _Piece(position, *row, _terms(about), header)
            if _YEAR.search(text, *row):
                header = row
            prose = at + len(line)
        elif line.strip():
            header = None
        at += len(line)
    yield from _sentences(position, text, prose, at)


def _is_row(line: str) -> bool:
    if _CELL in line:
        return True
    words = line.split()[-_ROW_FIGURES:]
    return len(words) == _ROW_FIGURES and all(_FIGURE.fullmatch(word) for word in words)


def _sentences(position: int, text: str, start: int, end: int) -> Iterator[_Piece]:
    ends = [
        match.end()
        for match in _SENTENCE_END.finditer(text, start, end)
        if not _ABBREVIATION.search(text, max(start, match.end() - 12), match.end())
    ]
    for stop in (*ends, end):
        first, last = _trim(text, start, stop)
        if terms := _terms(text[first:last]):
            yield _Piece(position, first, last, terms)
        start = stop


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _terms(text: str) -> frozenset[str]:
    """Reduce a text to its words without endings, and its numbers without separators."""
    return frozenset(_stem(term) for term in _TERM.findall(text.lower()) if term not in _STOP_WORDS)


def _stem(term: str) -> str:
    """Strip an English ending, crudely but the same way for question and passage.

    Examples
    --------
    >>> [_stem(term) for term in ("expenditures", "companies", "acquired", "1,577")]
    ['expenditure', 'company', 'acquir', '1577']
    """
    if term[0].isdigit():
        return term.replace(",", "")
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if term.endswith(ending) and not term.endswith("ss") and len(term) > len(ending) + 3:
            return term.removesuffix(ending) + instead
    return term
