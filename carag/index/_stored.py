"""Read the parameters and the rows of a vector index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.index._arguments import MAX_KEY, key_array
from carag.index._buffers import lent, room
from carag.index._core import ffi, lib
from carag.index._handle import Handle
from carag.index._status import new_fault, raise_for
from carag.index.results import DTYPE_CODES, DType

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData


class Stored(Handle):
    """The parameters of an index, and its rows by key."""

    __slots__ = ("_dim", "_made")

    def _own(self, index: CData, path: str) -> None:
        self._hold(index, lib.carag_index_free, path)
        self._made = self._info()  # used only for the parameters; the counts in it go out of date
        self._dim = int(self._made.params.dim)

    def _info(self) -> CData:
        info = ffi.new("carag_info *")
        lib.carag_index_info(self._core, info)
        return info

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._dim

    @property
    def M(self) -> int:  # noqa: N802 - the paper's name
        """Links that a row asks for on each layer."""
        return int(self._made.params.M)

    @property
    def ef_construction(self) -> int:
        """Beam width while a row is inserted."""
        return int(self._made.params.ef_construction)

    @property
    def seed(self) -> int:
        """Seed of the random layers."""
        return int(self._made.params.seed)

    @property
    def dtype(self) -> DType:
        """Type in which vectors are stored."""
        return next(dtype for dtype, code in DTYPE_CODES.items() if code == self._made.params.dtype)

    @property
    def classes(self) -> int:
        """Upper bound on the distinct (word, terms) of live rows; a policy is tested once for each."""
        return int(self._info().classes)

    def __len__(self) -> int:
        """Count the live rows: added and not deleted."""
        return int(self._info().live)

    def __contains__(self, key: object) -> bool:
        """Tell whether a live row has this key."""
        handle = self._core
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)) or not 0 <= key <= MAX_KEY:
            return False
        return bool(lib.carag_index_contains(handle, int(key)))

    def __repr__(self) -> str:
        rows = "closed" if self._handle is None else f"{len(self)} rows"
        return (
            f"<Index dim={self.dim} M={self.M} ef_construction={self.ef_construction} "
            f"seed={self.seed} dtype={self.dtype}: {rows}>"
        )

    def keys(self) -> NDArray[np.int64]:
        """List the keys of the live rows, ascending."""
        handle = self._core
        keys = np.empty(len(self), dtype=np.int64)
        return keys[: lib.carag_index_keys(handle, room(keys), keys.size)]

    def words(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read the words of the rows with these keys, in the order given."""
        return self._column("words", keys)

    def public_at(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read when rows became public, in minutes since the epoch; otherwise as :meth:`words`."""
        return self._column("public_at", keys)

    def expires_at(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read when rows stop being public, in minutes since the epoch; otherwise as :meth:`words`."""
        return self._column("expires_at", keys)

    def entities(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read which entity rows are about, 0 for none; otherwise as :meth:`words`."""
        return self._column("entities", keys)

    def audiences(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read the audiences of rows, 0 for everybody; otherwise as :meth:`words`."""
        return self._column("audiences", keys)

    def vectors(self, keys: ArrayLike) -> NDArray[np.float32]:
        """Read the stored unit vectors of rows, shape ``(n, dim)``; otherwise as :meth:`words`."""
        return self._column("vectors", keys, np.float32, self.dim)

    def _column(
        self, name: str, keys: ArrayLike, dtype: type[np.generic] = np.uint32, *shape: int
    ) -> NDArray[Any]:
        wanted = key_array(keys)
        column, fault = np.empty((wanted.size, *shape), dtype), new_fault()
        columns = ffi.new("carag_columns *", {name: room(column)})
        status = lib.carag_index_get(self._core, lent(wanted), wanted.size, columns, fault)
        raise_for(status, fault, keys=wanted)
        return column
