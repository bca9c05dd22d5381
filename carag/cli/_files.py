"""Open the files, keys and logs that a command line names; InvalidArgument says what is wrong and what to do."""

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


_READABLE: Final = "name a readable file"
_PRIVATE: Final = "PRIVATE+KEY+"
"""How a signing key begins (c2sp.org/signed-note)."""
_STORE_KEY: Final = "carag-private-key/"
"""How a store's private.key begins."""
_VKEY: Final = re.compile(r"\s*[^\s+]+\+[0-9a-f]{8}\+")  # c2sp.org/signed-note: <name>+<key id>+<key>


def key_text(vkey: str) -> str:
    """Return the vkeys given: the text itself if it begins as a vkey does, else those in the file that it names."""
    if _VKEY.match(vkey):
        return vkey.strip()
    is_text = vkey.lstrip().startswith(_PRIVATE)
    text = vkey if is_text else read_text(Path(vkey), "name a readable file, or give the vkey itself").strip()
    if any(mark in text for mark in (_PRIVATE, _STORE_KEY)):  # never quote it
        raise InvalidArgument(
            f"{'--key' if is_text else shown(vkey)} holds a private key, which must stay secret; give "
            "the log's public key: the file vkey of the store"
        )
    return text


def given_key(vkey: str | None) -> str | None:
    """Return the vkeys that an option gives, or None without one."""
    return None if vkey is None else key_text(vkey)


def read_bytes(path: Path, want: str = _READABLE, *, most: int = -1) -> bytes:
    """Read a file, or its first ``most`` bytes."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise InvalidArgument(f"cannot read {shown(str(path))}: {_why(error)}; {want}") from error


def read_text(path: Path, want: str = _READABLE) -> str:
    """Read a file of UTF-8 text."""
    try:
        return read_bytes(path, want).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path} is not UTF-8 text") from error


def write_text(path: Path, text: str) -> None:
    """Write a file."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def opened_log(store: Path) -> Iterator[AuditLog]:
    """Open a store's log for writing; InvalidArgument if it has none, because opening would create one."""
    from carag.audit import AuditLog

    if not (store / "vkey").is_file():
        raise InvalidArgument(f"there is no audit log in {store}; name a store that carag ingest has made")
    with AuditLog.open(store) as log:
        yield log


def reader_of(store: Path, vkey: str | None) -> LogReader:
    """Open a log for reading, with the key given or the one in the store; a writer may be at work meanwhile."""
    from carag.audit.auditor.reader import LogReader

    return LogReader(store, vkey=given_key(vkey))


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def profile_texts(folder: Path | None) -> tuple[str, str] | None:
    """Return the texts of profile.toml and roles.toml in a folder, or None without a folder."""
    if folder is None:
        return None
    roles, profile = (
        read_text(folder / name, "name a profile's folder") for name in ("roles.toml", "profile.toml")
    )
    return profile, roles


def table_in(path: Path) -> PolicyTable:
    """Read the table in a profile's folder, or a TOML file with a table of EDGAR's bits."""
    from carag.policy import PolicyTable, Profile

    if path.is_dir():
        return Profile.open(path).table
    text = read_text(path, "name a profile's folder, or a table in TOML")
    return PolicyTable.from_toml(text, file=path.name)
