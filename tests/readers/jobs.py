"""Functions that the tests run in a child. The module imports little, because importing takes processor time too."""

from __future__ import annotations

import os
import sys
from time import process_time
from typing import NoReturn

from carag.readers.pdf.text import joined_words


def spin(_: bytes) -> NoReturn:
    """Take processor time without end, as a parser that starts again and again does."""
    while True:
        pass


def busy(_: bytes) -> None:
    """Take more than half of a second's budget."""
    start = process_time()
    while process_time() < start + 0.6:
        pass


def swell(_: bytes) -> int:
    """Take four gigabytes."""
    return len(bytearray(4 << 30))


def join(content: bytes) -> list[str]:
    """Join the words that lines of a PDF page break."""
    return joined_words(content.decode().split("\n"), ())


def end(content: bytes) -> NoReturn:
    """End as a crashed parser does, by a signal."""
    os.kill(os.getpid(), int(content))
    raise AssertionError


def chatter(content: bytes) -> str:
    """Print bytes that could be taken for a reply, and fail with a text in the message."""
    os.write(sys.stdout.fileno(), b'11\n{"found": 1}')
    os.write(sys.stderr.fileno(), b"secret")
    if content:
        raise KeyError(content)
    return "said"
