"""Read what a question names, without a model; the result only orders admissible passages, and admits none."""

from __future__ import annotations

from carag.retrieval.reading.declared import Declared
from carag.retrieval.reading.documents import Described, Documents
from carag.retrieval.reading.instants import Instant, instants_of
from carag.retrieval.reading.lexicon import Lexicon
from carag.retrieval.reading.names import Key, Mention, NameRow, Names, Naming
from carag.retrieval.reading.numbers import Numbers, number_key
from carag.retrieval.reading.order import Absent, absent, is_void, tiers
from carag.retrieval.reading.periods import Period, ReportKind, Span
from carag.retrieval.reading.question import Reading, Section, asking, read_question
from carag.retrieval.reading.said import Listener, Said
from carag.retrieval.reading.spelling import Respelt, respelt
from carag.retrieval.reading.unheard import unheard

__all__ = [
    "Absent",
    "Declared",
    "Described",
    "Documents",
    "Instant",
    "Key",
    "Lexicon",
    "Listener",
    "Mention",
    "NameRow",
    "Names",
    "Naming",
    "Numbers",
    "Period",
    "Reading",
    "ReportKind",
    "Respelt",
    "Said",
    "Section",
    "Span",
    "absent",
    "asking",
    "instants_of",
    "is_void",
    "number_key",
    "read_question",
    "respelt",
    "tiers",
    "unheard",
]
