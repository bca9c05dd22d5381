"""Keep vectors and scores on disk by the model's fingerprint and a hash of the texts: a second run asks no model."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


_BATCH: Final = 32
"""Values that are computed, and then written at once: what a run that is stopped loses at most."""


def key(*texts: str) -> bytes:
    r"""Return what a value is found by: a hash in which no two lists of texts run together.

    Examples
    --------
    >>> key("a", "bc") == key("ab", "c"), len(key("a"))
    (False, 16)
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.digest()


class Kept:
    """Rows of numbers in SQLite, by model and key; in memory if no folder is given.

    Parameters
    ----------
    home : Path, optional
        A folder, made if it is missing.
    """

    def __init__(self, home: Path | None = None) -> None:
        if home is not None:
            home.mkdir(parents=True, exist_ok=True)
        # What a crash loses is computed again.
        self._file = sqlite3.connect(":memory:" if home is None else home / "kept.db", isolation_level=None)
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS kept (model TEXT, key BLOB, value BLOB, PRIMARY KEY (model, key)) WITHOUT ROWID"
        )
        self._read: dict[str, dict[bytes, NDArray[np.float32]]] = {}
        self.computed = 0
        """Values that were not there."""

    def rows(
        self,
        model: str,
        keys: Sequence[bytes],
        compute: Callable[[list[int]], NDArray[np.float32]],
        said: Callable[[int, int], None] | None = None,
    ) -> list[NDArray[np.float32]]:
        """Return a row for each key; those that are missing are computed from their places, and kept.

        Parameters
        ----------
        model : str
            Its fingerprint.
        keys : sequence of bytes
        compute : callable
            Takes places in ``keys``, each key once, and returns a row for each.
        said : callable, optional
            Told how many of how many are computed.
        """
        known = self._of(model)
        missing = list({one: at for at, one in enumerate(keys) if one not in known}.values())
        for start in range(0, len(missing), _BATCH):
            places = missing[start : start + _BATCH]
            fresh = dict(zip((keys[at] for at in places), compute(places), strict=True))
            self._file.execute("BEGIN")
            self._file.executemany(
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)",
                [(model, one, row.astype("<f4").tobytes()) for one, row in fresh.items()],
            )
            self._file.execute("COMMIT")
            known.update({one: row.astype("<f4") for one, row in fresh.items()})
            self.computed += len(places)
            if said is not None:
                said(start + len(places), len(missing))
        return [known[one] for one in keys]

    def _of(self, model: str) -> dict[bytes, NDArray[np.float32]]:
        if model not in self._read:
            rows = self._file.execute("SELECT key, value FROM kept WHERE model = ?", (model,))
            self._read[model] = {one: np.frombuffer(value, "<f4") for one, value in rows}
        return self._read[model]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
