"""Read questions about what has replaced, withdrawn or amended a document, or what it has done to others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.retrieval.reading.question import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.reading.question import Reading


_IT: Final = "\x01"
"""Takes the place of the document that is named."""
_ACTS: Final = {
    ActKind.REPLACES: r"(?:replac|supersed)(?:es|ed|e)",
    ActKind.WITHDRAWS: r"(?:withdr[ae]wn?s?|repeal(?:s|ed)?|rescind(?:s|ed)?)",
    ActKind.AMENDS: r"(?:amend(?:s|ed)?|revis(?:es|ed|e)|modif(?:ies|ied|y))",
}
_ACT: Final = "|".join(f"(?P<{kind.name}>{words})" for kind, words in _ACTS.items())
_SOME: Final = r"(?:what|which(?:\s\w+){1,2})"
_THE: Final = rf"(?:the\s)?(?:\w+\s){{0,2}}{_IT}"
_DONE_TO: Final = re.compile(
    rf"{_SOME}(?:\s(?:has|have|had))?(?:\s(?:since|now))?\s(?:{_ACT})\s{_THE}"
    rf"|(?:by\s)?{_SOME}\s(?:was|is|has|were)\s{_THE}(?:\s(?:been|now|since))*\s(?:{_ACT.replace('P<', 'P<P')})"
    r"(?:\sby)?",
    re.IGNORECASE,
)
_DONE_BY: Final = re.compile(rf"{_SOME}\s(?:did|does|do|has|have)\s{_THE}\s(?:{_ACT})", re.IGNORECASE)


class Acted(NamedTuple):
    """A question about acts on a document, or by it."""

    documents: tuple[int, ...]
    """The numbers of the documents that it may mean."""
    said: str
    """The document in the question's words."""
    kind: ActKind
    is_by_it: bool
    """Whether it asks what the document has done to others."""


def read_acted(question: str, reading: Reading, ids: Sequence[str], numbers: Sequence[int]) -> Acted | None:
    """Read such a question; None if it is not certain to be one.

    ``ids`` and ``numbers`` are those of the documents among which the question was read.
    """
    text = re.sub(r"\s", " ", plain(question)).strip(" ?.!")
    known = {id_: number for id_, number in zip(ids, numbers, strict=True) if id_ in text}
    named = {
        one.text: [key for key in one.keys if isinstance(key, int)]
        for one in (*reading.numbers, *reading.titles)
    }
    named |= {id_: [number] for id_, number in known.items()}
    if not named:
        return None
    said = max(named, key=len)
    asked = re.sub(rf"[\"'“‘]?{re.escape(said)}[\"'”’]?", _IT, text)
    for pattern, is_by_it in ((_DONE_TO, False), (_DONE_BY, True)):
        if match := pattern.fullmatch(asked):
            kind = next(one for one in ActKind if any(match[name] for name in _groups(pattern, one)))
            return Acted(tuple(named[said]), said, kind, is_by_it)
    return None


def _groups(pattern: re.Pattern[str], kind: ActKind) -> list[str]:
    return [name for name in (kind.name, f"P{kind.name}") if name in pattern.groupindex]
