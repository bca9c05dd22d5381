"""Carry to a passage the head rows of the table that it was torn from, out of the passages right before it.

Heads are carried to what was found already: no search counts or embeds them. They are another passage's words, under
its own label, and would move scores by text that the session may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from carag.retrieval.evidence import Head
from carag.retrieval.tables.torn import begins_in_a_table, torn_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BACK", "Piece", "head_of"]

BACK: Final = 2
"""Passages before one in which the heads of its table are looked for."""
_GAP: Final = 200
"""Characters between two passages up to which they are joined. The chunker leaves out whitespace alone, which is not
stored; across more of it no table goes on."""


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
        None if it begins inside no table, or the heads do not stand in one of these passages as a whole.
    """
    if not begins_in_a_table(passage.text):
        return None
    text, start = passage.text, passage.start
    for one in before[:BACK]:
        above = one.text[: start - one.start] if one.start < start else ""
        overlap = one.text[len(above) :]
        if (
            one.document != passage.document
            or not above
            or start - one.end > _GAP
            or not text.startswith(overlap)
        ):
            return None
        text = above + "\n" * (start - one.end) + text
        start = one.start
        here = passage.start - start
        [span] = torn_heads(text, [(here, here + len(passage.text))])
        if span is not None:
            first, last = span
            return (
                Head(one.chunk_id, start + first, start + last, text[first:last])
                if last <= len(above)
                else None
            )
        if not begins_in_a_table(one.text):
            return None
    return None
