"""Look for bytes that an erasure must leave nowhere, in files as they are on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np


def remains(wanted: Iterable[bytes], *places: Path) -> set[bytes]:
    """Return those that are in a file at or below one of some places."""
    left, found = set(wanted), set[bytes]()
    for place in places:
        for file in place.rglob("*") if place.is_dir() else [place]:
            if file.is_file():
                content = file.read_bytes()
                found |= {one for one in left - found if one in content}
    return found


def remains_in_database(wanted: Iterable[bytes], db: Any) -> set[bytes]:
    """Return those that are in a file of a database, its tables, indexes and catalogues: all but the server's journal.

    ``db`` is the administrator's connection, on this machine.
    """
    db.execute("CHECKPOINT")
    query = (
        "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
    )
    data, number = db.execute(query).fetchone()
    return remains(wanted, Path(data) / "base" / str(number))


def as_stored(vector: np.ndarray) -> list[bytes]:
    """Return the bytes of a vector in single and half precision."""
    return [vector.astype(kind).tobytes() for kind in ("<f4", "<f2")]
