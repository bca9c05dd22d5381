"""Say which documents an answer comes from, and which part of the question no admissible document is about.

A session can seldom use everything that a question is about, and the question seldom says what would suffice. An answer
from a part of the documents is right as long as it says which part. What it says depends on the citations, the question
and admissible documents, so it is the same whatever is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.guarded import Citation
    from carag.retrieval.evidence import Topic


def basis_of(topic: Topic, citations: Sequence[Citation]) -> str:
    """Return one or two sentences; empty if nothing is cited, or the question names neither a company nor a time.

    Examples
    --------
    >>> from carag.generation.guarded import Citation
    >>> from carag.retrieval.evidence import Topic
    >>> cited = Citation(
    ...     number=1, chunk_id="1:0", accession_number="1", form="10-Q", company="Amazon", filed="2022-08-01",
    ...     document="10-Q", start=0, end=9,
    ... )
    >>> print(basis_of(Topic("Amazon", is_particular=True), [cited]))
    From one of the documents that this session may use: Amazon 10-Q filed 2022-08-01.
    """
    if not (citations and topic.is_particular):
        return ""
    count = len({one.document_id for one in citations})
    named = "; ".join(dict.fromkeys(visible_line(_name(one)) for one in citations))
    said = f"From {'one' if count == 1 else count} of the documents that this session may use: {named}."
    if topic.missing:
        said += f" Nothing that it may use is about {visible_line(topic.missing)}."
    return said


def _name(one: Citation) -> str:
    """Name a filing by company, form and date, and any other document as its profile does."""
    if not one.form:
        return one.source or one.document_id
    filed = f"filed {one.filed}" if one.filed else ""
    return " ".join(part for part in (one.company, one.form, filed) if part)
