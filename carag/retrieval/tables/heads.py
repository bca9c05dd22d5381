"""Give a passage the head rows of the table that continues in it, from the passages right before it.

Heads are added to passages that were already found: no search counts or embeds them. They belong to another passage
with its own label, and would otherwise move scores by text that the session must not see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from carag.retrieval.evidence import Head
from carag.retrieval.tables.table import torn_row
from carag.retrieval.tables.torn import torn_heads

if TYPE_CHECKING:
    from collections.abc import Sequence


BACK: Final = 2
"""The number of preceding passages in which the heads of a table are looked for."""
_GAP: Final = 200
"""The most characters between two passages that are joined. The chunker leaves out only whitespace, and no table
continues across more of it."""
_PLACE: Final = re.compile(r"(?:^|, )(?:(?:up to )?clauses?|pages?) .*")
"""The place of a passage in a part's name, which a table may continue across."""


class DocumentPiece(Protocol):
    """A passage of a document, and its place in characters of the part's text."""

    @property
    def chunk_id(self) -> str: ...  # noqa: D102 - its type says it
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def document(self) -> str:
        """The part that it is from."""
        ...

    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


def head_of(passage: DocumentPiece, before: Sequence[DocumentPiece]) -> Head | None:
    """Return the head rows of the table that a passage begins inside, or None if one of the others does not have them.

    ``before`` has the passages right before it, nearest first, up to the first that the session must not use.
    """
    row = torn_row(passage.text)
    if row is None:
        return None
    text, start, own = passage.text[: row[1]], passage.start, passage.text
    above: list[DocumentPiece] = []
    for one in before[:BACK]:
        joined = _joined(one, own, start)
        if _PLACE.sub("", one.document) != _PLACE.sub("", passage.document) or joined is None:
            break
        text, start, own = joined + text, one.start, one.text
        above.append(one)
        if torn_row(own) is None:
            break
    here = passage.start - start
    [span] = torn_heads(text, [(here, len(text))]) if above else [None]
    if span is None:
        return None
    lender = next(one for one in above if one.start <= start + span[0])
    if start + span[1] > lender.end:  # they are in two passages, which have two labels
        return None
    return Head(lender.chunk_id, start + span[0], start + span[1], text[slice(*span)])


def _joined(above: DocumentPiece, own: str, start: int) -> str | None:
    """Return the text of a passage up to where another starts, or None if that one does not continue it."""
    if not above.start < start <= above.end + _GAP:
        return None
    text = above.text[: start - above.start]
    if not own.startswith(above.text[len(text) :]):
        return None
    return text + "\n" * (start - above.end)
