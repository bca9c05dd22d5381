"""Files, keys and logs that a command line names: read whole, or refused with what to do."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit import AuditLog

__all__ = ["key_text", "opened_log", "read_bytes", "read_text", "write_text"]

_READABLE: Final = "name a readable file"
_SHOWN_PATH: Final = 300
_VKEY: Final = re.compile(r"\s*[^\s+]+\+[0-9a-f]{8}\+")  # c2sp.org/signed-note: <name>+<key id>+<key>


def key_text(vkey: str) -> str:
    """Return the vkeys given: as they are if the text begins as a vkey does, or else those in the file it names.

    Raises
    ------
    InvalidArgument
        If it is neither.

    Examples
    --------
    >>> key_text("log.example/1+0a1b2c3d+AaBb")
    'log.example/1+0a1b2c3d+AaBb'
    """
    if _VKEY.match(vkey):
        return vkey.strip()
    return read_text(Path(vkey), "name a readable file, or give the vkey itself").strip()


def read_bytes(path: Path, want: str = _READABLE) -> bytes:
    """Read a file; InvalidArgument says why it cannot be, and what is wanted."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # no path may hold a zero byte
        raise InvalidArgument(f"cannot read {_shortened(path)}: {_why(error)}; {want}") from error


def read_text(path: Path, want: str = _READABLE) -> str:
    """Read a file of UTF-8; InvalidArgument for any other."""
    try:
        return read_bytes(path, want).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path} is not UTF-8 text") from error


def write_text(path: Path, text: str) -> None:
    """Write a file; InvalidArgument if nothing can be written there."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def opened_log(store: Path) -> Iterator[AuditLog]:
    """Open the log of a store to write in it; InvalidArgument where there is none, for opening would found one."""
    from carag.audit import AuditLog

    if not (store / "vkey").is_file():
        raise InvalidArgument(f"there is no audit log in {store}; name a store that carag ingest has made")
    with AuditLog.open(store) as log:
        yield log


def _shortened(path: Path) -> str:
    text = str(path)
    return text if len(text) <= _SHOWN_PATH else f"{text[:_SHOWN_PATH]}... ({len(text)} characters)"


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
