"""Make rows for a backend, check rows that it returned, and score them with the kernel of :class:`carag.Index`.

An index keeps a unit vector bit for bit, so a few rows in an index of their own have the same similarities as in any
other index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from carag.backends.protocol import Rows
from carag.errors import BackendFault, InvalidArgument
from carag.index import Index
from carag.policy import NEVER, VERSION_WORD

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_COLUMNS: Final = {
    "keys": np.int64,
    "words": np.uint32,
    "public_at": np.uint32,
    "expires_at": np.uint32,
    "entities": np.uint32,
    "audiences": np.uint32,
}


def rows_of(
    vectors: ArrayLike,
    words: ArrayLike,
    keys: ArrayLike,
    *,
    public_at: ArrayLike = 0,
    expires_at: ArrayLike = NEVER,
    entities: ArrayLike = 0,
    audiences: ArrayLike = 0,
) -> Rows:
    """Make rows, even with quarantined words; parameters and errors are those of :meth:`carag.Index.add`.

    Examples
    --------
    >>> rows_of([[3, 4]], [1 << 27], [7]).vectors.tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    array = np.asarray(vectors, np.float32)
    if array.ndim != 2:
        raise InvalidArgument(f"vectors have shape {array.shape}; want (n, dim)")
    # The index checks every column, and normalises the vectors.
    index = Index(array.shape[1], M=2, ef_construction=1)
    with index:
        given = np.atleast_1d(np.asarray(keys))
        index.add(
            array,
            words,
            given,
            public_at=public_at,
            expires_at=expires_at,
            entities=entities,
            audiences=audiences,
            allow_quarantine=True,
        )
        return few_rows(index, given)


def few_rows(index: Index, keys: ArrayLike) -> Rows:
    """Read rows of an index, in the order of the keys."""
    wanted = np.asarray(keys, np.int64)
    return Rows(
        wanted,
        index.vectors(wanted),
        index.words(wanted),
        index.public_at(wanted),
        index.expires_at(wanted),
        index.entities(wanted),
        index.audiences(wanted),
    )


def index_of(rows: Rows, dim: int) -> Index:
    """Put rows that a backend returned into an index of their own, to score them; the caller closes it.

    Raises BackendFault if a column does not have the form stated in :class:`~carag.backends.Rows`, a key is negative or
    repeated, or a vector is not finite or not of unit length.
    """
    count = len(rows.keys)
    for name, dtype in _COLUMNS.items():
        column = getattr(rows, name)
        if not isinstance(column, np.ndarray) or column.dtype != dtype or column.shape != (count,):
            raise BackendFault(
                f"the backend returned {name} that are not {np.dtype(dtype)} of shape ({count},)"
            )
    vectors = rows.vectors
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.shape != (count, dim):
        raise BackendFault(f"the backend returned vectors that are not float32 of shape ({count}, {dim})")
    index = Index(dim, M=2, ef_construction=1)
    try:
        # Words are checked elsewhere; here only keys and vectors count.
        index.add(vectors, np.full(count, VERSION_WORD, np.uint32), rows.keys, threads=1)
        is_kept = np.array_equal(index.vectors(rows.keys), vectors)
    except InvalidArgument as error:
        index.close()
        raise BackendFault(f"the backend returned impossible rows: {error}") from error
    if not is_kept:
        index.close()
        raise BackendFault(
            "the backend returned a vector that is not of unit length, unlike the rows it was given"
        )
    return index
