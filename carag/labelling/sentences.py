"""Split a text into sentences with known positions: for passages, for quotes, and for sentence-level judgements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.labelling.abbreviations import abbreviates

if TYPE_CHECKING:
    from collections.abc import Iterator


_STOP: Final = re.compile(
    r"""[.!?…。！？](?:                     # every match begins with this class, so that the engine skips to it
        (?<=[.!?…])(?<![.!?…(\[].)(?P<more>[.!?…]*)                # the first of a run, but not (...)
        (?:\s?»|['"”’“)\]])* \s+                                 # with its quotation marks
        (?=\([a-z\d]{1,4}\)\s | [•§] | ["'“‘„«(\[€$£₹¿¡]*\s?(?P<first>\w))
      | (?<=[。！？])[”」』）]*\s*)                                    # where no spaces are written""",
    re.VERBOSE | re.DOTALL,
)
_LINES: Final = re.compile(r"\n+")
_PARAGRAPHS: Final = re.compile(r"\n\s*\n|:[ \t]*\n")


def sentence_ends(text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield where the sentences after the first begin in ``text[start:end]``; line ends count as spaces."""
    for stop in _STOP.finditer(text, start, len(text) if end is None else end):
        if stop["first"] is not None and stop["first"].islower():
            continue
        if stop["more"] or text[stop.start()] != "." or not abbreviates(text, stop.start() + 1):
            yield stop.end()


def sentences(
    text: str, start: int = 0, end: int | None = None, *, wrapped: bool = False
) -> list[tuple[int, int]]:
    r"""Return the character spans of the sentences in ``text[start:end]`` that contain a letter or digit.

    With ``wrapped``, a sentence may continue on the next line, and a blank line or a colon at the end of a line ends
    it; otherwise every line end does.
    """
    end = len(text) if end is None else end
    found: list[tuple[int, int]] = []
    breaks = _PARAGRAPHS if wrapped else _LINES
    for line in (*(one.end() for one in breaks.finditer(text, start, end)), end):
        for stop in (*sentence_ends(text, start, line), line):
            sentence = text[start:stop]
            if any(map(str.isalnum, sentence)):
                found.append((start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())))
            start = stop
    return found
