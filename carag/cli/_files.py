"""Open the files, keys and logs that a command line names; InvalidArgument says what is wrong and what is wanted."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit import AuditLog
    from carag.audit.auditor.reader import LogReader
    from carag.policy import PolicyTable

__all__ = [
    "given_key",
    "key_text",
    "opened_log",
    "profile_texts",
    "read_bytes",
    "read_text",
    "reader_of",
    "table_in",
    "write_text",
]

_READABLE: Final = "name a readable file"
_PRIVATE: Final = "PRIVATE+KEY+"
"""How a key that signs begins (c2sp.org/signed-note)."""
_STORE_KEY: Final = "carag-private-key/"
"""How the file begins that opens a store's private values."""
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
    is_text = vkey.lstrip().startswith(_PRIVATE)
    text = vkey if is_text else read_text(Path(vkey), "name a readable file, or give the vkey itself").strip()
    if any(mark in text for mark in (_PRIVATE, _STORE_KEY)):  # its content is never quoted
        raise InvalidArgument(
            f"{'--key' if is_text else shown(vkey)} holds a private key, which must stay secret; give "
            "the log's public key: the file vkey of the store"
        )
    return text


def given_key(vkey: str | None) -> str | None:
    """Return the vkeys that an option gives, or None if it was left out."""
    return None if vkey is None else key_text(vkey)


def read_bytes(path: Path, want: str = _READABLE, *, most: int = -1) -> bytes:
    """Read a file, or its first bytes; InvalidArgument says why it cannot be, and what is wanted."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:  # no path may hold a zero byte
        raise InvalidArgument(f"cannot read {shown(str(path))}: {_why(error)}; {want}") from error


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
    """Open the log of a store to write in it; InvalidArgument if it has none, because opening would create one."""
    from carag.audit import AuditLog

    if not (store / "vkey").is_file():
        raise InvalidArgument(f"there is no audit log in {store}; name a store that carag ingest has made")
    with AuditLog.open(store) as log:
        yield log


def reader_of(store: Path, vkey: str | None) -> LogReader:
    """Open a log to read it, by the key given or the one in the store; its writer may go on writing."""
    from carag.audit.auditor.reader import LogReader

    return LogReader(store, vkey=given_key(vkey))


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def profile_texts(folder: Path | None) -> tuple[str, str] | None:
    """Return the two files of a profile's folder as they stand, or None for none."""
    if folder is None:
        return None
    roles, profile = (
        read_text(folder / name, "want a profile's folder") for name in ("roles.toml", "profile.toml")
    )
    return profile, roles


def table_in(path: Path) -> PolicyTable:
    """Read the table of a profile's folder, or a table of EDGAR's bits from a file."""
    from carag.policy import PolicyTable, Profile

    if path.is_dir():
        return Profile.open(path).table
    text = read_text(path, "name a profile's folder, or a table in TOML")
    return PolicyTable.from_toml(text, file=path.name)
