"""Carry to a passage the head rows of the table that it was torn from, out of the passages right before it.

Heads are carried to what was found already: no search counts or embeds them. They are another passage's words, under
its own label, and would move scores by text that the session may not see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from carag.retrieval.evidence import Head
from carag.retrieval.tables.table import torn_row
from carag.retrieval.tables.torn import torn_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BACK", "Piece", "head_of"]

BACK: Final = 2
"""Passages before one in which the heads of its table are looked for."""
_GAP: Final = 200
"""Characters between two passages up to which they are joined. The chunker leaves out whitespace alone, which is not
stored; across more of it no table goes on."""
_PLACE: Final = re.compile(r"(?:^|, )(?:(?:up to )?clauses?|pages?) .*")
"""What a part says of the place of a passage within one text, over which a table goes on."""


class Piece(Protocol):
    """A passage of a document, and where it stands."""

    @property
    def chunk_id(self) -> str:
        """Its id."""
        ...

    @property
    def text(self) -> str:
        """Its text."""
        ...

    @property
    def document(self) -> str:
        """The part that it is of."""
        ...

    @property
    def start(self) -> int:
        """Where it begins, in characters of the part's text."""
        ...

    @property
    def end(self) -> int:
        """Where it ends."""
        ...


def head_of(passage: Piece, before: Sequence[Piece]) -> Head | None:
    """Return the head rows of the table that a passage begins inside, or None.

    Parameters
    ----------
    passage : Piece
    before : sequence of Piece
        The passages of its document that stand right before it, the nearest first, up to the first that the session may
        not use.

    Returns
    -------
    Head or None
        None if it begins inside no table, or the heads do not stand in one of these passages.
    """
    row = torn_row(passage.text)
    if row is None:
        return None
    text, start, own = passage.text[: row[1]], passage.start, passage.text
    above: list[Piece] = []
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
    if (
        start + span[1] > lender.end
    ):  # heads, or a line above them, in two passages: one label for both there is not
        return None
    return Head(lender.chunk_id, start + span[0], start + span[1], text[slice(*span)])


def _joined(above: Piece, own: str, start: int) -> str | None:
    """Return the text of a passage up to where another starts, or None if that one does not go on from it."""
    if not above.start < start <= above.end + _GAP:
        return None
    text = above.text[: start - above.start]
    if not own.startswith(above.text[len(text) :]):
        return None
    return text + "\n" * (start - above.end)
