"""Frames between a service and a command are read strictly: complete and within bounds, or not at all."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.service.frames import _HEADER, Bounds, BrokenFrame, Frame, FrameReader, _announced

_KINDS = 3
BOUNDS = Bounds(_KINDS, 100, 1000)


def pair() -> tuple[socket.socket, socket.socket]:
    one, other = socket.socketpair()
    other.settimeout(5)
    return one, other


@given(st.integers(0, _KINDS - 1), st.binary(max_size=100), st.binary(max_size=1000))
def test_a_frame_arrives_as_it_was_sent(kind: int, head: bytes, body: bytes) -> None:
    """In any pieces, and followed by another one."""
    frame, (one, other) = Frame(kind, head, body), pair()
    with one, other:
        data = frame.to_bytes() * 2
        for start in range(0, len(data), 700):
            one.sendall(data[start : start + 700])
        one.close()
        frames = FrameReader(other, BOUNDS)
        assert [frame, frame, None] == [frames.receive() for _ in range(3)]


@given(st.binary(min_size=1, max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    """Only a complete frame within bounds is read as one."""
    one, other = pair()
    with one, other:
        one.sendall(data)
        one.close()
        with contextlib.suppress(BrokenFrame):
            found = FrameReader(other, BOUNDS).receive()
            assert found is not None
            assert data.startswith(found.to_bytes())


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ((b"CRG\x02", 0, 0, 0), "version"),
        ((b"GET ", 0, 0, 0), "protocol"),
        ((b"CRG\x01", _KINDS, 0, 0), "out of bounds"),
        ((b"CRG\x01", 255, 0, 0), "out of bounds"),
        ((b"CRG\x01", 0, 101, 0), "out of bounds"),
        ((b"CRG\x01", 0, 0, 1001), "out of bounds"),
        ((b"CRG\x01", 0, 0xFFFFFFFF, 0xFFFFFFFF), "out of bounds"),
    ],
)
def test_each_wrong_header_is_refused(header: Any, told: str) -> None:
    """Of another version or protocol, an unknown kind, or a length out of bounds."""
    with pytest.raises(BrokenFrame, match=told):
        _announced(_HEADER.pack(*header), BOUNDS)


def test_half_a_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its sender has gone or is silent."""
    whole = Frame(0, b"token", b"body").to_bytes()
    for size in range(1, len(whole)):
        one, other = pair()
        with one, other:
            one.sendall(whole[:size])
            one.close()
            with pytest.raises(BrokenFrame, match="frame"):
                FrameReader(other, BOUNDS).receive()
    monkeypatch.setattr("carag.service.frames._SECONDS", 0.05)
    one, other = pair()
    with one, other:
        one.sendall(whole[:-1])
        with pytest.raises(BrokenFrame, match="frame"):
            FrameReader(other, BOUNDS).receive()
