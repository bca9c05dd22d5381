"""Carry commands and answers between processes of one owner, in frames: versioned, bounded and read strictly."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import socket

__all__ = [
    "ANSWERED",
    "PROBLEM",
    "REPLIES",
    "Bounds",
    "BrokenFrame",
    "Frame",
    "FrameReader",
]

_MAGIC: Final = b"CRG\x01"
"""The last byte is the version."""
_HEADER: Final = struct.Struct(">4sBII")
ANSWERED, PROBLEM = 0, 1
"""Kinds of answers."""
_SECONDS: Final = 10.0
"""Longest wait between two pieces of one frame; between frames there is no limit."""
_PIECE: Final = 64 << 10
"""Most bytes read at once."""


class Bounds(NamedTuple):
    """What a reader accepts: kinds below this number, and parts of at most these lengths in bytes."""

    kinds: int
    head: int
    body: int


REPLIES: Final = Bounds(2, 8 << 10, 64 << 20)
"""For answers: as large as a client accepts."""


class BrokenFrame(Exception):
    """The bytes received are not a valid frame; the message quotes none of them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message; its repr hides the parts, which may be a token or a text."""

    kind: int
    head: bytes = field(default=b"", repr=False)
    body: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        """Return the bytes to send."""
        return _HEADER.pack(_MAGIC, self.kind, len(self.head), len(self.body)) + self.head + self.body


def _announced(header: bytes | bytearray, bounds: Bounds) -> tuple[int, int, int]:
    """Return the kind and the two lengths that a header states; raise BrokenFrame if they are not valid."""
    magic, kind, head, body = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise BrokenFrame("the header belongs to another protocol, or to another version of this one")
    if kind >= bounds.kinds or head > bounds.head or body > bounds.body:
        raise BrokenFrame("the header states a kind or a length out of bounds")
    return kind, head, body


class FrameReader:
    """Read one frame after another from a connection.

    A frame that has arrived completely is read in one call: each call releases the interpreter's lock, and getting it
    back can mean waiting behind every thread that computes.

    - ``connection``: made blocking; the caller closes it.
    """

    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        self._connection, self._bounds = connection, bounds
        self._data = bytearray()
        connection.settimeout(None)

    def receive(self) -> Frame | None:
        """Wait for a frame; return None if the other side closed between two frames."""
        if not self._data and not self._has_more():
            return None
        self._fill(_HEADER.size)
        kind, head, body = _announced(self._data[: _HEADER.size], self._bounds)
        middle, end = _HEADER.size + head, _HEADER.size + head + body
        self._fill(end)
        found = Frame(kind, bytes(self._data[_HEADER.size : middle]), bytes(self._data[middle:end]))
        del self._data[:end]
        return found

    def _fill(self, size: int) -> None:
        if len(self._data) >= size:
            return
        self._connection.settimeout(_SECONDS)
        try:
            while len(self._data) < size:
                if not self._has_more():
                    raise BrokenFrame("the connection closed within a frame")
        except TimeoutError:
            raise BrokenFrame("the rest of a frame did not arrive in time") from None
        self._connection.settimeout(None)  # an answer may be sent as slowly as it is read

    def _has_more(self) -> bool:
        piece = self._connection.recv(_PIECE)
        self._data += piece
        return bool(piece)
