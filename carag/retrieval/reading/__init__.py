"""Read what a question names, without a model; the result only orders admissible passages, and admits none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily
from carag.retrieval.reading.unheard import unheard as unheard  # not later: a module has this name

if TYPE_CHECKING:
    from carag.retrieval.reading.declared import Declared as Declared
    from carag.retrieval.reading.documents import Described as Described
    from carag.retrieval.reading.documents import Documents as Documents
    from carag.retrieval.reading.instants import Instant as Instant
    from carag.retrieval.reading.instants import instants_of as instants_of
    from carag.retrieval.reading.lexicon import Lexicon as Lexicon
    from carag.retrieval.reading.names import Key as Key
    from carag.retrieval.reading.names import Mention as Mention
    from carag.retrieval.reading.names import NameRow as NameRow
    from carag.retrieval.reading.names import Names as Names
    from carag.retrieval.reading.names import Naming as Naming
    from carag.retrieval.reading.numbers import Numbers as Numbers
    from carag.retrieval.reading.numbers import number_key as number_key
    from carag.retrieval.reading.order import Absent as Absent
    from carag.retrieval.reading.order import absent as absent
    from carag.retrieval.reading.order import is_void as is_void
    from carag.retrieval.reading.order import tiers as tiers
    from carag.retrieval.reading.periods import Period as Period
    from carag.retrieval.reading.periods import ReportKind as ReportKind
    from carag.retrieval.reading.periods import Span as Span
    from carag.retrieval.reading.question import Reading as Reading
    from carag.retrieval.reading.question import Section as Section
    from carag.retrieval.reading.question import asking as asking
    from carag.retrieval.reading.question import read_question as read_question
    from carag.retrieval.reading.said import Listener as Listener
    from carag.retrieval.reading.said import Said as Said
    from carag.retrieval.reading.spelling import Respelt as Respelt
    from carag.retrieval.reading.spelling import respelt as respelt
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "declared": "Declared",
            "documents": "Described Documents",
            "instants": "Instant instants_of",
            "lexicon": "Lexicon",
            "names": "Key Mention NameRow Names Naming",
            "numbers": "Numbers number_key",
            "order": "Absent absent is_void tiers",
            "periods": "Period ReportKind Span",
            "question": "Reading Section asking read_question",
            "said": "Listener Said",
            "spelling": "Respelt respelt",
        },
    )
    __all__ += ["unheard"]
