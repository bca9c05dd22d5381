"""Read a question without a model: what it names, as an order among admissible passages and never as a right."""

from __future__ import annotations

from carag.retrieval.reading.lexicon import Lexicon
from carag.retrieval.reading.names import Key, Mention, NameRow, Names, Naming
from carag.retrieval.reading.periods import Period, ReportKind, Span
from carag.retrieval.reading.question import Reading, Section, asking, read_question

__all__ = [
    "Key",
    "Lexicon",
    "Mention",
    "NameRow",
    "Names",
    "Naming",
    "Period",
    "Reading",
    "ReportKind",
    "Section",
    "Span",
    "asking",
    "read_question",
]
