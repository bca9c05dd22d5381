"""Read questions that ask for a part of a document as it stands: a section, a table, or the outline."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.retrieval.reading.question import SECTION, plain

if TYPE_CHECKING:
    from carag.retrieval.reading.question import Reading, Section


_SHOW: Final = (
    r"(?:(?:show|give|display|print|quote|read|reproduce)(?: me| us)?|what does|what do|what is in)"
)
_WHOLE: Final = re.compile(
    rf"(?:{_SHOW} )?(?:the )?(?:(?:whole|full|entire|complete|exact) )?(?:(?:text|wording) of )?(?:the )?",
    re.IGNORECASE,
)
_OF: Final = re.compile(
    r" (?:of|in|from) (?P<document>.+?)(?: (?:say|says|state|provide)|,? in full)?", re.IGNORECASE
)
_TABLES: Final = (
    re.compile(rf"{_SHOW} (?P<what>.+?) (?:as|in) (?:a |the )?table(?: form(?:at)?)?", re.IGNORECASE),
    re.compile(rf"{_SHOW} the (?:whole |full )?table (?:of|with|on|for) (?P<what>.+)", re.IGNORECASE),
)
_OUTLINE: Final = re.compile(
    r"(?:(?P<sums>summari[sz]e|(?:give (?:me |us )?)?(?:a |an |the )?(?:short |brief )?summary of)|outline"
    r"|(?:(?:give|show) (?:me |us )?)?(?:a |an |the )?(?:outline|overview) of"
    r"|(?:list|what are) the (?:headings|sections|parts|chapters) (?:of|in)) (?P<what>.+)",
    re.IGNORECASE,
)
_SPLIT: Final = re.compile(r" (?:of|in|from) ", re.IGNORECASE)


class PartKind(StrEnum):
    """What part of a document is asked for."""

    SECTION = "section"
    TABLE = "table"
    OUTLINE = "outline"


class Part(NamedTuple):
    """A part of a document that is asked for."""

    kind: PartKind
    documents: tuple[tuple[str, str], ...]
    """Ways to understand the rest of the question: words that head the part, perhaps none, and the document's words."""
    section: Section | None = None
    is_summary: bool = False
    """Whether a summary is asked for, which only a model can write."""


def read_part(question: str, reading: Reading) -> Part | None:
    """Read such a question; None if it is not certain to be one.

    Examples
    --------
    >>> from carag.retrieval.reading import read_question
    >>> asked = "What does section 4.2 of the Travel Policy say?"
    >>> part = read_part(asked, read_question(asked))
    >>> part.kind.value, part.section.number, part.documents
    ('section', '4.2', (('', 'the Travel Policy'),))
    """
    text = re.sub(r"\s", " ", plain(question)).strip(" ?.!").removeprefix("Please ").removeprefix("please ")
    for form in _TABLES:
        if match := form.fullmatch(text):
            return Part(PartKind.TABLE, ((match["what"], ""),))
    if match := _OUTLINE.fullmatch(text):
        what = match["what"]
        ways = [(what[: one.start()], what[one.end() :]) for one in _SPLIT.finditer(what)]
        if not ways and (genitive := re.search(r"['’]s? ", what)):
            ways = [(what[genitive.end() :], what[: genitive.end()])]
        return Part(PartKind.OUTLINE, (("", what), *ways), is_summary=bool(match["sums"]))
    if len(reading.sections) == 1 and (place := SECTION.search(text)):
        after = _OF.fullmatch(text, place.end())
        if _WHOLE.fullmatch(text, 0, place.start()) and after:
            return Part(PartKind.SECTION, (("", after["document"]),), reading.sections[0])
    return None
