r"""Encode the message of a timestamped cosignature on a checkpoint (``c2sp.org/tlog-cosignature``).

A witness's cosignature states that, at that time, this is the largest consistent tree of this log that it has seen.
Its line holds ``key id || uint64 time || signature``, with the time in seconds since 1970.

An Ed25519 key (signature type 0x04) signs two lines and the checkpoint's text::

    cosignature/v1
    time <seconds since 1970>
    <origin>
    <size>
    <root>

An ML-DSA-44 key (type 0x06) signs a structure with the same facts::

    uint8  label[12] = "subtree/v1\n\0"
    opaque cosigner_name<1..255>      the key's name
    uint64 timestamp                  0 by a log's own key: anchors show when it signed
    opaque log_origin<1..255>
    uint64 start = 0, end             the tree size
    uint8  hash[32]                   the root
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.tlog.checkpoint import Checkpoint


_ML_DSA_LABEL: Final = b"subtree/v1\n\0"
_TIME_SIZE: Final = 8  # bytes
_MAX_TIME: Final = (1 << 63) - 1  # seconds since 1970


def ed25519_message(text: str, time: int) -> bytes:
    """Return the message that a witness's Ed25519 key signs for a checkpoint's text."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def ml_dsa_message(name: str, time: int, checkpoint: Checkpoint) -> bytes:
    """Return the message that the ML-DSA-44 key of this name signs for a checkpoint."""
    numbers = b"".join(number.to_bytes(8, "big") for number in (0, checkpoint.size))
    return b"".join(
        (
            _ML_DSA_LABEL,
            _opaque(name),
            time.to_bytes(_TIME_SIZE, "big"),
            _opaque(checkpoint.origin),
            numbers,
            checkpoint.root,
        )
    )


def timed(time: int, signature: bytes) -> bytes:
    """Put the time in front of a signature, as in its line."""
    return time.to_bytes(_TIME_SIZE, "big") + signature


def untimed(data: bytes, size: int) -> tuple[int, bytes] | None:
    """Split data into time and signature of ``size`` bytes; None if the length is wrong."""
    time = int.from_bytes(data[:_TIME_SIZE], "big")
    if len(data) != _TIME_SIZE + size or time > _MAX_TIME:
        return None
    return time, data[_TIME_SIZE:]


def _opaque(text: str) -> bytes:
    data = text.encode("utf-8")
    if not 1 <= len(data) <= 255:
        raise InvalidArgument(f"ML-DSA-44 signatures take names of 1 to 255 bytes, got {len(data)}")
    return bytes([len(data)]) + data
