"""Ask back where a question names nothing and several documents speak of all that it says.

"What is the penalty?" is answered by each of many documents otherwise, and any answer would be a guess. What is offered
to choose from are the documents of the passages given, which the session may use: a hidden one changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.generation.words import terms
from carag.retrieval.reading import asking
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Topic

__all__ = ["question_back"]

_FEW: Final = 1
"""Words of a question, or fewer, that say too little to choose among documents that hold them all: with two, as in
"When does the canteen close?", a question has a subject, and what is quoted may be of several documents."""
_SEVERAL: Final = 2
_SHOWN: Final = 4
"""Documents that a question back names."""


def question_back(question: str, passages: Sequence[Passage], topic: Topic) -> str:
    """Return a question that names the documents that may be meant; empty where one is named, or one alone is of it.

    One alone does, too, where its name holds all words of the question and no other's does.

    Examples
    --------
    >>> from carag.retrieval.evidence import NOTHING_NAMED, Passage
    >>> passages = [
    ...     Passage(
    ...         chunk_id=f"{name}:00000", text="The penalty is Rs. 5.", similarity=0.7, word=0, accession_number=name,
    ...         form="", company="", filed="", document="", start=0, end=21, source=f"{name} loans",
    ...     )
    ...     for name in ("Gold", "Microfinance")
    ... ]
    >>> question_back("What is the penalty?", passages, NOTHING_NAMED)
    'The question names no document, and several speak of it. Which is meant: Gold loans; or Microfinance loans?'
    >>> question_back("What is the penalty of gold loans?", passages, NOTHING_NAMED)
    ''
    """
    asked = terms(asking(question)) or terms(question)
    if topic.understood or not 0 < len(asked) <= _FEW:
        return ""
    names: dict[str, str] = {}
    for one in passages:
        name = one.source or one.document_id
        if asked <= terms(f"{one.text} {name}"):
            names.setdefault(one.document_id, name)
    meant = list(dict.fromkeys(names.values()))
    if len(meant) < _SEVERAL or sum(asked <= terms(name) for name in meant) == 1:
        return ""
    *firsts, last = [visible_line(name) for name in meant[:_SHOWN]]
    if len(meant) > _SHOWN:
        firsts, last = [*firsts, last], "another"
    return (
        "The question names no document, and several speak of it. Which is meant: "
        f"{'; '.join(firsts)}; or {last}?"
    )
