"""Encode a question beside a passage as the reader takes them: tokens, and a mark for each.

Every token is marked by whether it stands in the other text too, and whether it is a number. The marks are rows of the
table that BERT keeps for the two segments, which is larger here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.numerals import NUMBER_WORDS
from carag.retrieval.minilm import MiniLm
from carag.retrieval.model_files import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Sequence


TOKENS: Final = 192
"""In a pair, its three special tokens included; what the reader was trained with."""
FIRST: Final = 72
"""Tokens of the question: what goes beyond is not read."""
MARKS: Final = 5
"""Kinds of marks; segment and mark together choose a row of the token type table."""
_CLS: Final = 101
_SEP: Final = 102
_COMMON: Final = (
    "the a an of to in on for and or is are be by with as at it its this that any from such "
    "what how when which"
)
_UNMARKED: Final = frozenset(_COMMON.split())
_NUMBERS: Final = frozenset({*NUMBER_WORDS, "hundred", "thousand", "lakh", "crore", "million", "billion"})
_SHARED: Final = frozenset({MARKS + 1, MARKS + 4})
"""The types of a word and a number of the second text that the first has too."""


class Encoded(NamedTuple):
    """A pair of texts as the graph takes it."""

    ids: list[int]
    types: list[int]
    """Segment and mark of each token."""
    split: int
    """Where the second text begins."""

    @property
    def shared(self) -> int:
        """How many different tokens of the second text, other than common words, the first has too."""
        return len({one for one, kind in zip(self.ids, self.types, strict=True) if kind in _SHARED})


class Pairs:
    """Encodes pairs of texts: ``[CLS] first [SEP] second [SEP]``, each token with its segment and mark."""

    def __init__(self) -> None:
        self._tokenizer = tokenizer_of(MiniLm.files[1].read().decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def windows(self, first: str, second: str) -> list[Encoded]:
        """Encode a pair; a long second text is cut into windows, each repeating a quarter of the one before."""
        asked, text = self._tokenizer.encode_batch([first, second], add_special_tokens=False)
        tokens, ids = asked.tokens[:FIRST], asked.ids[:FIRST]
        room = TOKENS - 3 - len(ids)
        step = room - room // 4
        starts = range(0, max(len(text.ids) - room // 4, 1), step)
        return [
            _encoded((tokens, ids), (text.tokens[at : at + room], text.ids[at : at + room])) for at in starts
        ]


def _encoded(first: tuple[list[str], list[int]], second: tuple[list[str], list[int]]) -> Encoded:
    of_first, of_second = marks(first[0], second[0]), marks(second[0], first[0])
    return Encoded(
        [_CLS, *first[1], _SEP, *second[1], _SEP],
        [0, *of_first, 0, *(MARKS + mark for mark in (*of_second, 0))],
        len(first[1]) + 2,
    )


def marks(tokens: Sequence[str], others: Sequence[str]) -> list[int]:
    """Mark tokens: 1 a word of the other text, 2 another word, 3 another number, 4 a number of the other text."""
    there = set(others)
    found = []
    for token in tokens:
        if token.lstrip("#").isdigit() or token in _NUMBERS:
            found.append(4 if token in there else 3)
        elif token in _UNMARKED or not token[-1].isalnum():
            found.append(0)
        else:
            found.append(1 if token in there else 2)
    return found
