"""turbovec: a scan over 4-bit codes under a mask, its candidates scored again from the float32 rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, optional
from carag.errors import MissingExtra

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


_SAMPLE: Final = 1_024


class TurboVec(Engine):
    """TurboQuantIndex with 4 bits, calibrated; the effort is how many candidates are scored again."""

    name = "turbovec4-rerank"
    bits = 4
    efforts = (10, 20, 40, 80, 160, 320)

    def build(self, rows: Rows, store: Store) -> Build:
        """Calibrate on a sample, encode, save."""
        turbovec = optional("turbovec")
        dim = rows.vectors.shape[1]
        if dim % 8:
            raise MissingExtra(f"turbovec takes dimensions that are multiples of 8; these vectors have {dim}")

        def make(path: Path) -> float:
            begin = time.process_time()
            index = turbovec.TurboQuantIndex(dim, 4)
            sample = np.random.default_rng(0).choice(
                len(rows.words), min(_SAMPLE, len(rows.words)), replace=False
            )
            index.calibrate(rows.vectors[sample])
            index.add(rows.vectors)
            seconds = time.process_time() - begin
            index.write(str(path))
            return seconds

        build = store.built(self.name, len(rows.words), 1, make, extra=4.0 * dim)
        self._index = turbovec.TurboQuantIndex.load(str(store.file(self.name)))
        self._index.prepare()
        self._rows = rows
        return build

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Build the mask, scan, and rank the candidates by their rows."""
        mask = None if policy.is_open else policy.admissible(self._rows)
        _, found = self._index.search(query[np.newaxis], effort, mask=mask)
        ids = found[0]
        exact = self._rows.vectors[ids] @ query
        return np.asarray(ids[np.argsort(-exact)[:k]], dtype=np.int64)
