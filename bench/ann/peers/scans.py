"""Exact scans anyone could write: numpy over rows grouped by word, and one fused loop in numba."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, optional

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NO_TIME: Final = 2**32 - 1


class NumpyGrouped(Engine):
    """Rows sorted by word; one matrix-vector product for every run of admissible words."""

    name = "numpy-grouped"
    bits = 32

    def build(self, rows: Rows, store: Store) -> Build:  # noqa: ARG002 - nothing is kept
        """Sort."""
        begin = time.process_time()
        self._order = np.argsort(rows.words, kind="stable")
        self._vectors = rows.vectors[self._order]
        self._public_at = rows.public_at[self._order]
        self._entities = rows.entities[self._order]
        self._entity_count = rows.entity_count
        self._distinct, starts = np.unique(rows.words[self._order], return_index=True)
        self._edges = np.append(starts, len(self._order))
        self._similarities = np.empty(len(self._order), dtype=np.float32)
        return Build(time.process_time() - begin, 1, self._vectors.nbytes / len(self._order) + 4)

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:  # noqa: ARG002 - no knob
        """Score the admissible runs, close what time and entity close, and take the k best."""
        runs = self._runs(policy)
        table = None if policy.denied is None else policy.denied_table(self._entity_count)
        end = 0
        spans = []
        for first, last in runs:
            out = self._similarities[end : end + last - first]
            np.dot(self._vectors[first:last], query, out=out)
            if policy.as_of is not None:
                out[self._public_at[first:last] > policy.as_of] = -np.inf
            if table is not None:
                out[table[self._entities[first:last]]] = -np.inf
            spans.append((end, first))
            end += last - first
        found = self._similarities[:end]
        best = np.argpartition(found, end - k)[end - k :] if end > k else np.arange(end)
        best = best[np.argsort(-found[best])]
        best = best[found[best] > -np.inf]
        if not len(best):
            return np.empty(0, dtype=np.int64)
        starts, firsts = np.array(spans).T
        span = np.searchsorted(starts, best, side="right") - 1
        return np.asarray(self._order[firsts[span] + best - starts[span]])

    def _runs(self, policy: Request) -> list[tuple[int, int]]:
        """List the runs of admissible words, neighbours joined."""
        passing = (self._distinct & np.uint32(policy.required | policy.forbidden)) == policy.required
        turns = np.flatnonzero(np.diff(passing, prepend=False, append=False))
        return [(int(self._edges[a]), int(self._edges[b])) for a, b in turns.reshape(-1, 2)]


class NumbaScan(Engine):
    """One compiled loop in order of ids: test the row, then score it."""

    name = "numba-scan"
    bits = 32

    def build(self, rows: Rows, store: Store) -> Build:
        """Compile."""
        begin = time.process_time()
        self._rows = rows
        self._entity_count = rows.entity_count
        self._no_table = np.zeros(self._entity_count, dtype=np.bool_)
        self._loop = store.once("numba-scan", _compile)
        self.search(rows.vectors[0], 1, Request(), 0)
        return Build(time.process_time() - begin, 1, rows.vectors.nbytes / len(rows.words) + 4)

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:  # noqa: ARG002 - no knob
        """Run the loop."""
        rows = self._rows
        is_session = policy.as_of is not None or policy.denied is not None
        found: NDArray[np.int64] = self._loop(
            rows.vectors,
            rows.words,
            rows.public_at,
            rows.entities,
            query,
            k,
            np.uint32(policy.required | policy.forbidden),
            np.uint32(policy.required),
            is_session,
            np.uint32(_NO_TIME if policy.as_of is None else policy.as_of),
            policy.denied_table(self._entity_count) if is_session else self._no_table,
        )
        return found


def _compile() -> Any:
    numba = optional("numba")

    # Sums may be reordered, so that they run in vector registers; infinities stay what they are.
    @numba.njit(fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator]
    def scan(
        vectors: Any,
        words: Any,
        public_at: Any,
        entities: Any,
        query: Any,
        k: Any,
        mask: Any,
        value: Any,
        is_session: Any,
        as_of: Any,
        denied: Any,
    ) -> Any:
        ids = np.full(k, -1, dtype=np.int64)
        best = np.full(k, -np.inf, dtype=np.float32)
        count = 0
        for row in range(len(words)):
            if (words[row] & mask) != value:
                continue
            if is_session and (public_at[row] > as_of or denied[entities[row]]):
                continue
            similarity = np.float32(0)
            for i in range(len(query)):
                similarity += vectors[row, i] * query[i]
            if count == k and similarity <= best[k - 1]:
                continue
            at = min(count, k - 1)
            while at > 0 and best[at - 1] < similarity:
                best[at], ids[at] = best[at - 1], ids[at - 1]
                at -= 1
            best[at], ids[at] = similarity, row
            count = min(count + 1, k)
        return ids[:count]

    return scan
