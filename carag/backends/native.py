"""Serve a :class:`carag.Index` as a backend: the reference for all other backends, and the only one that can certify.

With a file, this backend holds a store's rows if no other backend does. A load is then a second file, named after its
batch, which replaces the first file on publication.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.backends.loads import is_new, load_is_open, no_load
from carag.backends.protocol import Capabilities, Found, IndexState, ShardState
from carag.backends.rows import few_rows
from carag.errors import BackendUnavailable, InvalidArgument
from carag.index import FILE_VERSION, Index, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted, Rows


_NAME: Final = f"native, file format {FILE_VERSION}"
_SAVE_ROWS: Final = 1 << 16
"""Least number of rows between two saves of a load: this many are written again after a kill."""
_SAVE_FRACTION: Final = 4
"""Save a load once more than 1/4 of its rows are new: each save writes all of them."""


class NativeBackend:
    """An index in this process; its epoch is the number of changes, and only the last epoch can be asked for.

    Parameters
    ----------
    dim : int
        Length of every vector.
    collection : str
        The name in records.
    path : path, optional
        A file for the rows, which need not exist. Only loads are saved to it, and no other change.
    index : Index, optional
        An existing index, which its owner closes.

    Raises
    ------
    CorruptFile
        If the file is not an index.
    InvalidArgument
        If its vectors have another length.
    """

    capabilities: Final = Capabilities(
        plans=frozenset(Plan),
        exact_count=True,
        read_your_writes=True,
        atomic_batches=True,
        replay_by_epoch=False,
        recall=0.9,
        most_words=2**31 - 1,
        server_side_policy=False,
    )

    def __init__(
        self,
        dim: int,
        *,
        collection: str = "rows",
        path: str | PathLike[str] | None = None,
        index: Index | None = None,
    ) -> None:
        self._path = None if path is None else Path(path)
        self._is_ours = index is None
        if index is None and self._path is not None and self._path.exists():
            index = Index.load(self._path)
        self._index = Index(dim) if index is None else index
        if self._index.dim != dim:
            raise InvalidArgument(f"the vectors of the index have length {self._index.dim}; want {dim}")
        self._collection = collection
        self._batches: dict[str, IndexState] = {}
        self._epoch = min(1, len(self._index))
        self._state: IndexState | None = None
        self._lock = threading.RLock()
        self._loading: tuple[str, Index] | None = None
        self._saved = 0

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(batch, lambda: _add(self._index, rows))

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(batch, lambda: self._index.relabel(keys, words, allow_quarantine=True))

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(batch, lambda: self._index.delete(keys))

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            state = self._at(at)
            found = self._index.search(
                queries, k, admitted.policy, plan=plan, as_of=admitted.as_of, alive_at=admitted.alive_at
            )
            keys = np.unique(found.keys[found.keys >= 0])
            ran = Plan.EXACT if not found.counts.size else found.stats.plans[0]
            rows = few_rows(self._index, keys)
            return Found(found.keys, found.similarities, rows, found.stats.admissible, ran, state)

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            self._at(at)
            return self._index.count(admitted.policy, as_of=admitted.as_of, alive_at=admitted.alive_at)

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            self._at(at)
            return few_rows(self._index, [key for key in dict.fromkeys(keys) if key in self._index])

    @property
    def beyond(self) -> tuple[str, ...]:
        """Nothing: the rows are in the memory of this process."""
        return ()

    def purge(self) -> None:
        """Consolidate the index."""
        self._index.consolidate()

    def state(self) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            if self._state is None:
                words = np.unique(self._index.words(self._index.keys()))
                shard = ShardState("0", str(self._epoch), len(self._index))
                self._state = IndexState(
                    _NAME, self._collection, self._epoch, tuple(words.tolist()), (shard,)
                )
            return self._state

    def close(self) -> None:
        """See :class:`~carag.backends.VectorBackend`."""
        if self._is_ours:
            self._index.close()
        if self._loading is not None:
            self._loading[1].close()

    # ------------------------------------------------------------ loads

    def loaded(self, batch: str) -> int | None:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._lock:
            return None if batch in self._batches else len(self._load(batch))

    def load(self, rows: Rows, *, batch: str, begin: int, end: int) -> None:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._lock:
            if batch in self._batches:
                return
            index = self._load(batch)
            if begin > 0 and not len(index):
                raise no_load()
            if not is_new(len(index), begin, end):
                return
            if any(key in self._index for key in rows.keys.tolist()):
                raise InvalidArgument("a key of the load is in use; delete its row first, or relabel it")
            _add(index, rows)
            self._loading = batch, index
            worth = max(_SAVE_ROWS, self._saved // _SAVE_FRACTION)
            if self._path is not None and len(index) - self._saved >= worth:
                index.save(self._file_of(batch))
                self._saved = len(index)

    def count_loaded(self, batch: str) -> int:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._lock:
            return len(self._open(batch))

    def get_loaded(self, keys: Sequence[int], *, batch: str) -> Rows:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._lock:
            index = self._open(batch)
            return few_rows(index, [key for key in dict.fromkeys(keys) if key in index])

    def publish(self, batch: str) -> IndexState:
        """See :class:`~carag.backends.LoadingBackend`."""

        def take() -> None:
            index = self._open(batch)
            if self._path is not None:
                index.save(self._file_of(batch))
                self._file_of(batch).replace(self._path)
            if len(self._index):
                _add(self._index, few_rows(index, index.keys()))
                index.close()
            else:
                self._index.close()
                self._index = index
            self._loading, self._saved = None, 0

        return self._change(batch, take, is_load=True)

    def unload(self) -> None:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._lock:
            if self._loading is not None:
                self._loading[1].close()
                self._loading, self._saved = None, 0
            for file in self._files():
                file.unlink()

    def _load(self, batch: str) -> Index:
        """Return the rows of a load, empty if it has not begun; refuse if another load is open."""
        if self._loading is not None and self._loading[0] == batch:
            return self._loading[1]
        if self._path is not None and len(self._index):
            raise InvalidArgument(
                f"{self._path} holds rows already, and only an empty file takes a load; use another path"
            )
        if self._loading is not None or [one for one in self._files() if one != self._file_of(batch)]:
            raise load_is_open()
        if self._path is None or not self._file_of(batch).exists():
            return Index(self._index.dim)
        index = Index.load(self._file_of(batch))
        self._loading, self._saved = (batch, index), len(index)
        return index

    def _open(self, batch: str) -> Index:
        index = self._load(batch)
        if not len(index):
            raise no_load()
        return index

    def _files(self) -> list[Path]:
        return [] if self._path is None else [*self._path.parent.glob(f"{self._path.name}.*.load")]

    def _file_of(self, batch: str) -> Path:
        assert self._path is not None  # noqa: S101 - ours
        name = hashlib.sha256(batch.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self._path.with_name(f"{self._path.name}.{name}.load")

    # ------------------------------------------------------------ epochs

    def _change(self, batch: str, make: Callable[[], object], *, is_load: bool = False) -> IndexState:
        with self._lock:
            if batch not in self._batches:
                if self._loading is not None and not is_load:
                    raise load_is_open()
                make()
                self._epoch, self._state = self._epoch + 1, None
                self._batches[batch] = self.state()
            return self._batches[batch]

    def _at(self, epoch: int | None) -> IndexState:
        if epoch is not None and epoch > self._epoch:
            raise InvalidArgument(f"epoch {epoch} does not exist yet; the last is {self._epoch}")
        if epoch is not None and epoch < self._epoch:
            raise BackendUnavailable(f"epoch {epoch} is gone, and {self._epoch} is the last; ask again")
        return self.state()


def _add(index: Index, rows: Rows) -> None:
    index.add(
        rows.vectors,
        rows.words,
        rows.keys,
        public_at=rows.public_at,
        expires_at=rows.expires_at,
        entities=rows.entities,
        audiences=rows.audiences,
        allow_quarantine=True,
    )
