"""Carry requests and answers between the processes of one service, in frames: versioned, bounded, read strictly.

A frame is thirteen bytes, ``CRG``, the version, the kind and two lengths in network order, and then the two parts that
these announce. Whatever else comes ends the connection, for after one wrong byte nobody knows where a frame begins.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from carag.service.problems import TITLES, Problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from carag.service.metrics import Counting
    from carag.service.release import Asker

__all__ = [
    "ANSWERED",
    "HEADER",
    "OPERATIONS",
    "PROBLEM",
    "REPLIES",
    "Answering",
    "Bounds",
    "BrokenFrame",
    "Frame",
    "FrameReader",
    "announced",
    "learn",
    "problem_in",
    "reply",
]

OPERATIONS: Final = (
    "ask",
    "retrieve",
    "explain",
    "policy",
    "receipt",
    "checkpoint",
    "tile",
    "may_bring",
    "ingest",
    "job",
    "console",
)
"""What a request may be for: methods of :class:`carag.service.service.Service`; its kind is the place in this list."""
_MAGIC: Final = b"CRG\x01"
"""The last byte is the version."""
HEADER: Final = struct.Struct(">4sBII")
ANSWERED, PROBLEM = 0, 1
"""Kinds of an answer."""
_SECONDS: Final = 10.0
"""Longest time between two parts of one frame; between frames there is no limit."""
_PIECE: Final = 64 << 10
"""Most bytes that are read at once."""


class Answering(Protocol):
    """What the application asks: the service itself, or a front worker's way to it."""

    @property
    def metrics(self) -> Counting:
        """Where requests are counted."""
        ...

    @property
    def max_body(self) -> int:
        """Greatest number of bytes of a request's body."""
        ...

    @property
    def max_ingest(self) -> int:
        """The same of a body that brings documents."""
        ...

    @property
    def slots(self) -> Mapping[str, float] | None:
        """Seconds that responses wait for, by operation; None: they do not wait."""
        ...

    async def answered(self, operation: str, asker: Asker, asked: bytes = b"") -> bytes:
        """Answer a request of one of :data:`OPERATIONS`, or raise a Problem."""
        ...


class Bounds(NamedTuple):
    """What a reader takes: kinds below this number, and parts of at most these lengths in bytes."""

    kinds: int
    head: int
    body: int


REPLIES: Final = Bounds(2, 8 << 10, 64 << 20)
"""Of answers: before the answer, which is as large as a client takes one, what was verified of who asks."""


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
        return HEADER.pack(_MAGIC, self.kind, len(self.head), len(self.body)) + self.head + self.body


def announced(header: bytes | bytearray, bounds: Bounds) -> tuple[int, int, int]:
    """Read a header: the kind, and the lengths of the two parts.

    Raises
    ------
    BrokenFrame
    """
    magic, kind, head, body = HEADER.unpack(header)
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
        self._fill(HEADER.size)
        kind, head, body = announced(self._data[: HEADER.size], self._bounds)
        middle, end = HEADER.size + head, HEADER.size + head + body
        self._fill(end)
        found = Frame(kind, bytes(self._data[HEADER.size : middle]), bytes(self._data[middle:end]))
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


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    code: str
    at: list[str] | None = None
    retry_after: int | None = None


class _Who(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    person: tuple[str, str] | None
    role: str | None
    may_know: bool


def reply(asker: Asker, found: bytes | Problem) -> Frame:
    """Return the frame of an answer, or of a problem, with what was verified of who asks."""
    who = _Who(person=asker.person, role=asker.role, may_know=asker.may_know).model_dump_json().encode()
    if isinstance(found, Problem):
        told = _Told(code=found.code, at=found.at, retry_after=found.retry_after)
        return Frame(PROBLEM, who, told.model_dump_json().encode())
    return Frame(ANSWERED, who, found)


def learn(asker: Asker, frame: Frame) -> None:
    """Take over what a reply says of who asks.

    Raises
    ------
    BrokenFrame
        If it says nothing of that.
    """
    try:
        who = _Who.model_validate_json(frame.head)
    except ValidationError:
        raise BrokenFrame("a reply to nobody") from None
    asker.person, asker.role, asker.may_know = who.person, who.role, who.may_know


def problem_in(frame: Frame) -> Problem:
    """Read the problem that a reply tells.

    Raises
    ------
    BrokenFrame
        If it is none.
    """
    try:
        told = _Told.model_validate_json(frame.body)
    except ValidationError:
        raise BrokenFrame("a problem that is none") from None
    if told.code not in TITLES:
        raise BrokenFrame("a problem that is none")
    return Problem(told.code, at=told.at, retry_after=told.retry_after)
