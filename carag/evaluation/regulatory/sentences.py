"""Cut responses and passages into sentences, whose places stay known."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["sentences"]

_END: Final = re.compile(
    r"(?<=[.!?\u3002])[\"')\]\u201d\u2019]*\s+(?=[^\W\d_a-z]|[(\u201c\"])|(?<=\u3002)|\n+"
)
"""Where a sentence ends: at a line end, or at a mark that a capital, a bracket or a quotation follows. So "Art. 5" and
"e.g. logs" stay whole."""


def sentences(text: str) -> list[tuple[int, int]]:
    r"""Return where the sentences of a text stand, in characters; what holds no letter or digit is none.

    Examples
    --------
    >>> text = "Logs are kept. See Art. 5(2).\n- for six months;\n---"
    >>> [text[start:end] for start, end in sentences(text)]
    ['Logs are kept.', 'See Art. 5(2).', '- for six months;']
    """
    edges = [0, *(edge for found in _END.finditer(text) for edge in found.span()), len(text)]
    cut = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        sentence = text[start:end]
        if any(map(str.isalnum, sentence)):
            blank = len(sentence) - len(sentence.lstrip())
            cut.append((start + blank, start + len(sentence.rstrip())))
    return cut
