"""CARAG's index alone: one policy bit for each name, which a search requires."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import carag
from carag.evaluation.attack import Document, vector_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BITS = 26


class target:  # noqa: N801 - the factory that a command names
    """An index with its defaults."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._index = carag.Index(256)
        self._ids: dict[int, str] = {}
        self._keys: dict[str, int] = {}
        self._bits: dict[str, int] = {}

    def _word(self, audience: Iterable[str]) -> int:
        for name in audience:
            self._bits.setdefault(name, 1 << len(self._bits))
        if len(self._bits) > _BITS:
            raise ValueError(f"{len(self._bits)} names; want at most {_BITS}")
        return int(carag.policy_word(sum(self._bits[name] for name in audience)))

    def add(self, documents: Sequence[Document]) -> None:
        """Delete rows of the same ids, and add them."""
        self.delete([one.id for one in documents if one.id in self._keys])
        words = [self._word(one.audience) for one in documents]
        keys = self._index.add(np.stack([vector_of(one.text) for one in documents]), words).tolist()
        self._ids |= dict(zip(keys, (one.id for one in documents), strict=True))
        self._keys |= {one.id: key for one, key in zip(documents, keys, strict=True)}

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search with a mask that requires the reader's bit; without a reader, with None in its place."""
        mask = None if as_whom is None else carag.Mask(required=self._bits[as_whom])
        found = self._index.search(vector_of(query), k, mask)  # type: ignore[arg-type] # the test
        pairs = zip(found.keys[0].tolist(), found.similarities[0].tolist(), strict=True)
        return [(self._ids[key], score) for key, score in pairs if key >= 0]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Give the row another word."""
        self._index.relabel([self._keys[name]], [self._word(audience)])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        if ids:
            self._index.delete([self._keys.pop(one) for one in ids])

    def files(self) -> list[Path]:
        """Save it with the deleted rows removed, and return the file."""
        self._index.consolidate()
        path = Path(self._home.name) / "index.carag"
        self._index.save(path)
        return [path]

    def close(self) -> None:
        """Remove the file."""
        self._index.close()
        self._home.cleanup()
