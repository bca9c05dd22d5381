"""Read by key what an index keeps of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.index._arguments import MAX_KEY, key_array
from carag.index._buffers import lent, room
from carag.index._core import ffi, lib
from carag.index._handle import Handle
from carag.index._status import new_fault, raise_for

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData

__all__ = ["Rows"]


class Rows(Handle):
    """The live rows of an index: which there are, and what was said of each."""

    __slots__ = ()

    def _info(self) -> CData:
        info = ffi.new("carag_info *")
        lib.carag_index_info(self._core, info)
        return info

    def __len__(self) -> int:
        """Count the live rows: added and not deleted."""
        return int(self._info().live)

    def __contains__(self, key: object) -> bool:
        """Tell whether a live row has this key."""
        handle = self._core
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)) or not 0 <= key <= MAX_KEY:
            return False
        return bool(lib.carag_index_contains(handle, int(key)))

    def keys(self) -> NDArray[np.int64]:
        """List the keys of the live rows, ascending."""
        handle = self._core
        keys = np.empty(len(self), dtype=np.int64)
        return keys[: lib.carag_index_keys(handle, room(keys), keys.size)]

    def words(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read the words of some rows.

        Parameters
        ----------
        keys : (n,) int64

        Raises
        ------
        InvalidArgument
            If a key is not in the index.
        """
        return self._column("words", keys)

    def public_at(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read when some rows became public, in minutes since the epoch; as :meth:`words`."""
        return self._column("public_at", keys)

    def expires_at(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read when some rows stop being public, in minutes since the epoch; as :meth:`words`."""
        return self._column("expires_at", keys)

    def entities(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read which entity some rows are about, 0 for none; as :meth:`words`."""
        return self._column("entities", keys)

    def vectors(self, keys: ArrayLike) -> NDArray[np.float32]:
        """Read what is kept of the unit vectors of some rows, shape ``(n, dim)``; as :meth:`words`."""
        return self._column("vectors", keys, np.float32, int(self._info().params.dim))

    def _column(
        self, name: str, keys: ArrayLike, dtype: type[np.generic] = np.uint32, *shape: int
    ) -> NDArray[Any]:
        wanted = key_array(keys)
        column, fault = np.empty((wanted.size, *shape), dtype), new_fault()
        columns = ffi.new("carag_columns *", {name: room(column)})
        status = lib.carag_index_get(self._core, lent(wanted), wanted.size, columns, fault)
        raise_for(status, fault, keys=wanted)
        return column
