"""FAISS with a filter after the search: ten times as many rows are asked for, and the others are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import faiss
import numpy as np

from carag.evaluation.attack import Document, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDER = 10


class target:  # noqa: N801 - the factory that a command names
    """A flat index by inner product, with labels beside it."""

    def __init__(self) -> None:
        self._index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(256))
        self._rows: dict[int, Document] = {}
        self._keys: dict[str, int] = {}

    def add(self, documents: Sequence[Document]) -> None:
        """Remove rows of the same ids, and add them."""
        self.delete([one.id for one in documents if one.id in self._keys])
        keys = [len(self._keys) + number for number in range(len(documents))]
        self._keys |= {one.id: key for one, key in zip(documents, keys, strict=True)}
        self._rows |= dict(zip(keys, documents, strict=True))
        self._index.add_with_ids(np.stack([vector_of(one.text) for one in documents]), np.array(keys))

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search, and drop what the reader may not see; without a reader, drop nothing."""
        wider = k if as_whom is None else k * _WIDER
        scores, keys = self._index.search(vector_of(query)[None], wider)
        found = [
            (self._rows[key], float(one))
            for key, one in zip(keys[0].tolist(), scores[0], strict=True)
            if key >= 0
        ]
        return [(one.id, score) for one, score in found if as_whom is None or as_whom in one.audience][:k]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Change the label beside the index."""
        key = self._keys[name]
        self._rows[key] = Document(name, self._rows[key].text, audience)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove rows; their keys are not given again."""
        self._index.remove_ids(np.array([self._keys[one] for one in ids], dtype=np.int64))
