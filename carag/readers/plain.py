"""Read plain text and Markdown: decode it, and separate the front matter."""

from __future__ import annotations

import codecs
import re
from typing import Final

from carag.readers.front_matter import split_front_matter
from carag.readers.outcome import Content, broken

_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_LINE_END: Final = re.compile("\r\n?")


def read_plain(content: bytes) -> Content:
    r"""Return a text without its front matter, with ``\n`` at the end of each line.

    Raises ``CorruptFile`` if the text is neither UTF-8 nor UTF-16 with a byte order mark, or its front matter cannot be
    read.
    """
    facts, text = split_front_matter(_LINE_END.sub("\n", decoded(content)))
    return Content(text, facts=facts)


def decoded(content: bytes, encoding: str = "utf-8") -> str:
    """Decode a text by its byte order mark, or else as stated; the encoding is never guessed.

    Raises ``Unreadable`` if a byte is not valid in the encoding.
    """
    for mark, marked in _MARKS.items():
        if content.startswith(mark):
            content, encoding = content[len(mark) :], marked
            break
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise broken(
            f"byte {error.start + 1} is not valid {encoding}, the stated or default encoding; convert the file"
        ) from None
