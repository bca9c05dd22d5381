"""Carry commands and answers between the processes of one owner, in frames: versioned, bounded, read strictly.

A frame is thirteen bytes, ``CRG``, the version, the kind and two lengths in network order, and then the two parts that
these announce. Whatever else comes ends the connection, for after one wrong byte nobody knows where a frame begins.
"""

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
"""Kinds of an answer."""
_SECONDS: Final = 10.0
"""Longest time between two parts of one frame; between frames there is no limit."""
_PIECE: Final = 64 << 10
"""Most bytes that are read at once."""


class Bounds(NamedTuple):
    """What a reader takes: kinds below this number, and parts of at most these lengths in bytes."""

    kinds: int
    head: int
    body: int


REPLIES: Final = Bounds(2, 8 << 10, 64 << 20)
"""Of answers, which are as large as a client takes one."""


class BrokenFrame(Exception):
    """What came is no frame, or one out of bounds; the message quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message; what it holds is not shown, for it may be a token or text.

    Examples
    --------
    >>> Frame(0, b"token", b"{}")
    Frame(kind=0)
    >>> len(Frame(0, b"token", b"{}").to_bytes())
    20
    """

    kind: int
    head: bytes = field(default=b"", repr=False)
    body: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        """Return what is sent."""
        return _HEADER.pack(_MAGIC, self.kind, len(self.head), len(self.body)) + self.head + self.body


def _announced(header: bytes | bytearray, bounds: Bounds) -> tuple[int, int, int]:
    """Read a header: the kind, and the lengths of the two parts.

    Raises
    ------
    BrokenFrame
    """
    magic, kind, head, body = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise BrokenFrame("another protocol, or another version of this one")
    if kind >= bounds.kinds or head > bounds.head or body > bounds.body:
        raise BrokenFrame("a kind or a length that is out of bounds")
    return kind, head, body


class FrameReader:
    """Reads one frame after another of a connection.

    A frame that has come whole is read by one call. Each call gives up the interpreter's lock, and has to wait for it
    again behind every thread that computes.

    Parameters
    ----------
    connection : socket
        Stays the caller's to close; it blocks from now on.
    bounds : Bounds
    """

    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        self._connection, self._bounds = connection, bounds
        self._data = bytearray()
        connection.settimeout(None)

    def receive(self) -> Frame | None:
        """Wait for a frame; None if the other side has closed between two frames.

        Raises
        ------
        BrokenFrame
            If anything else comes, or the rest of a frame does not.
        OSError
            If the connection fails.
        """
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
        """Wait for the rest of a frame, no longer than between two parts of one."""
        if len(self._data) >= size:
            return
        self._connection.settimeout(_SECONDS)
        try:
            while len(self._data) < size:
                if not self._has_more():
                    raise BrokenFrame("half a frame")
        except TimeoutError:
            raise BrokenFrame("half a frame") from None
        self._connection.settimeout(None)  # an answer may be sent as slowly as it is read

    def _has_more(self) -> bool:
        piece = self._connection.recv(_PIECE)
        self._data += piece
        return bool(piece)
