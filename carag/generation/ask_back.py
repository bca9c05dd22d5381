"""Ask back if a question names nothing and several documents are about everything that the question says.

"What is the penalty?" has a different answer in each of many documents, so any answer would be a guess. The choices
offered are the documents of the given passages, which the session may use; a hidden document changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.generation.words import terms
from carag.retrieval.reading import asking
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Topic


_FEW: Final = 1
"""At most this many words of a question say too little to choose among documents that contain them all. With two, as in
"When does the canteen close?", a question has a subject, and quotes may come from several documents."""
_SEVERAL: Final = 2
_SHOWN: Final = 4
"""The number of documents named when asking back."""


def question_back(question: str, passages: Sequence[Passage], topic: Topic) -> str:
    """Return a question that names the documents that may be meant, or an empty string if there is no need to ask.

    There is no need if the question names a document, if only one document contains the question's words, or if
    only one document has them all in its name.
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
