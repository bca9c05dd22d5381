"""The index: vectors, words, keys and times in; the nearest rows a policy admits out.

Arrays are converted once, here, and handed to the core as they lie in memory; every judgement about rows is
the core's. Calls release the GIL: searches and relabels of one index may run in many threads, and the core
makes a writer run alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from carag.errors import InvalidArgument
from carag.index import kernels
from carag.index._arguments import (
    MAX_KEY,
    beam_width,
    distinct,
    floats,
    integer,
    integers,
    key_array,
    minutes,
    path_bytes,
    plan_named,
    predicate,
)
from carag.index._core import ffi, lib
from carag.index._status import new_fault, raise_for, text
from carag.index.results import Plan, SearchResult, SearchStats

if TYPE_CHECKING:
    from datetime import date, datetime

    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData
    from carag.policy.mask import Mask, Policy

__all__ = ["Index"]

_MAX_K: Final = 2**31 - 1
_MAX_WORD: Final = 2**32 - 1
_PLANS: Final = {
    Plan.AUTO: lib.CARAG_PLAN_AUTO,
    Plan.EXACT: lib.CARAG_PLAN_EXACT,
    Plan.GRAPH: lib.CARAG_PLAN_GRAPH,
}
_PLAN_OF: Final = {code: plan for plan, code in _PLANS.items()}

_C_TYPES: Final[dict[Any, str]] = {
    np.dtype(np.int64): "int64_t",
    np.dtype(np.float32): "float",
    np.dtype(np.uint8): "uint8_t",
    np.dtype(np.bool_): "uint8_t",
}


class Index:
    """A filtered vector index under cosine similarity.

    Parameters
    ----------
    dim : int
        Length of every vector, 1 to 65,536.
    M : int
        Links a row asks for on each layer of the graph; layer 0 holds up to ``2 M``.
    ef_construction : int
        Beam width while a row is inserted.
    seed : int
        Decides the layers. Same rows in the same order, same seed: same file, byte for byte.

    Raises
    ------
    InvalidArgument
        If a parameter is out of range, or ``CARAG_KERNEL`` names no usable kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from carag.policy import Mask, Policy, policy_word
    >>> index = Index(2)
    >>> index.add(np.array([[1, 0], [0, 1], [1, 1]]), [policy_word(b) for b in (1, 1, 2)])
    array([0, 1, 2])
    >>> result = index.search([1, 0.1], 3, Policy(Mask(required=1)))
    >>> result.keys.tolist(), result.counts.tolist()
    ([[0, 1, -1]], [2])
    """

    __slots__ = ("_handle", "_made")

    def __init__(
        self,
        dim: int,
        *,
        M: int = 32,  # noqa: N803 - the paper's name
        ef_construction: int = 200,
        seed: int = 0,
    ) -> None:
        kernels.active()  # an unusable CARAG_KERNEL is best explained there
        params = {
            "dim": integer("dim", dim, 1, lib.CARAG_MAX_DIM),
            "M": integer("M", M, lib.CARAG_MIN_M, lib.CARAG_MAX_M),
            "ef_construction": integer("ef_construction", ef_construction, 1, lib.CARAG_MAX_EF),
            "seed": integer("seed", seed, 0, 2**64 - 1),
        }
        out, fault = ffi.new("carag_index **"), new_fault()
        raise_for(lib.carag_index_new(ffi.new("carag_params *", params), out, fault), fault)
        self._own(out[0])

    def _own(self, index: CData) -> None:
        self._handle: CData | None = ffi.gc(index, lib.carag_index_free)
        self._made = self._info()

    @property
    def _core(self) -> CData:
        """The handle. A call keeps its own reference, so close() in another thread cannot free it midway."""
        if self._handle is None:
            raise InvalidArgument("the index is closed; make or load another")
        return self._handle

    def _info(self) -> CData:
        info = ffi.new("carag_info *")
        lib.carag_index_info(self._core, info)
        return info

    # ------------------------------------------------------------ what it is

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return int(self._made.params.dim)

    @property
    def M(self) -> int:  # noqa: N802 - the paper's name
        """Links a row asks for on each layer."""
        return int(self._made.params.M)

    @property
    def ef_construction(self) -> int:
        """Beam width while a row is inserted."""
        return int(self._made.params.ef_construction)

    @property
    def seed(self) -> int:
        """What decides the layers."""
        return int(self._made.params.seed)

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
            f"seed={self.seed}: {rows}>"
        )

    def keys(self) -> NDArray[np.int64]:
        """List the keys of the live rows, in the order they were added."""
        handle = self._core
        keys = np.empty(len(self), dtype=np.int64)
        return keys[: lib.carag_index_keys(handle, _out("int64_t[]", keys), keys.size)]

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
        wanted = key_array(keys)
        words = np.empty(wanted.size, dtype=np.uint32)
        self._get(wanted, words=_out("uint32_t[]", words))
        return words

    def public_at(self, keys: ArrayLike) -> NDArray[np.uint32]:
        """Read when some rows became public, in minutes since the epoch; as :meth:`words`."""
        wanted = key_array(keys)
        minutes = np.empty(wanted.size, dtype=np.uint32)
        self._get(wanted, public_at=_out("uint32_t[]", minutes))
        return minutes

    def vectors(self, keys: ArrayLike) -> NDArray[np.float32]:
        """Read the unit vectors of some rows, shape ``(n, dim)``; as :meth:`words`."""
        wanted = key_array(keys)
        vectors = np.empty((wanted.size, self.dim), dtype=np.float32)
        self._get(wanted, vectors=_out("float[]", vectors))
        return vectors

    def _get(self, keys: NDArray[np.int64], **columns: CData) -> None:
        fault = new_fault()
        status = lib.carag_index_get(
            self._core, _in("int64_t[]", keys), keys.size, ffi.new("carag_columns *", columns), fault
        )
        raise_for(status, fault, keys=keys)

    # ------------------------------------------------------------ change

    def add(
        self,
        vectors: ArrayLike,
        words: ArrayLike,
        keys: ArrayLike | None = None,
        *,
        public_at: ArrayLike | None = None,
        allow_quarantine: bool = False,
    ) -> NDArray[np.int64]:
        """Add rows: all of them, or, on any error, none.

        Parameters
        ----------
        vectors : (n, dim) float
            Any length but zero; stored as unit vectors in float32.
        words : (n,) integer
            Policy words, see :func:`carag.policy.policy_word`. Version 0 is stored and stays closed.
        keys : (n,) integer, optional
            Each 0 or more and in use once; by default the next free row numbers. A deleted row's key is free.
        public_at : (n,) or scalar integer, optional
            Minutes since 1970-01-01T00:00Z from which a row is public; 0, the default, is always and
            ``2**32 - 1`` never.
        allow_quarantine : bool
            Let words carry the quarantine bit, which closes their rows to every policy.

        Returns
        -------
        (n,) int64
            The keys of the new rows.

        Raises
        ------
        InvalidArgument
            On a wrong shape, NaN, a zero vector, a duplicate or negative key, a word with control bits set.
        """
        rows = floats("vectors", vectors, self.dim)
        count = rows.shape[0]
        labels = integers("words", words, count, np.uint32, _MAX_WORD)
        named = None if keys is None else key_array(keys, count)
        times = None if public_at is None else minutes(public_at, count)
        given = np.empty(count, dtype=np.int64)
        batch = {
            "vectors": _in("float[]", rows),
            "words": _in("uint32_t[]", labels),
            "keys": ffi.NULL if named is None else _in("int64_t[]", named),
            "public_at": ffi.NULL if times is None else _in("uint32_t[]", times),
            "count": count,
            "allow_quarantine": bool(allow_quarantine),
        }
        fault = new_fault()
        status = lib.carag_index_add(
            self._core, ffi.new("carag_rows *", batch), _out("int64_t[]", given), fault
        )
        raise_for(status, fault, keys=named, words=labels)
        return given

    def relabel(self, keys: ArrayLike, words: ArrayLike, *, allow_quarantine: bool = False) -> None:
        """Give rows new words: all of them, or, on any error, none. O(1) a row.

        A search that is running sees each row's old word or its new one, and emits no row whose word it finds
        closed at the moment of emission.

        Raises
        ------
        InvalidArgument
            If a key is unknown or named twice, or a word has control bits set.
        """
        wanted = distinct(key_array(keys))
        labels = integers("words", words, wanted.size, np.uint32, _MAX_WORD)
        fault = new_fault()
        status = lib.carag_index_relabel(
            self._core,
            _in("int64_t[]", wanted),
            _in("uint32_t[]", labels),
            wanted.size,
            bool(allow_quarantine),
            fault,
        )
        raise_for(status, fault, keys=wanted, words=labels)

    def delete(self, keys: ArrayLike) -> None:
        """Delete rows: all of them, or, on any error, none. Their keys become free.

        Raises
        ------
        InvalidArgument
            If a key is unknown or named twice.
        """
        wanted = distinct(key_array(keys))
        fault = new_fault()
        status = lib.carag_index_delete(self._core, _in("int64_t[]", wanted), wanted.size, fault)
        raise_for(status, fault, keys=wanted)

    # ------------------------------------------------------------ ask

    def search(
        self,
        queries: ArrayLike,
        k: int,
        policy: Policy | Mask,
        *,
        plan: Plan | str = Plan.AUTO,
        ef_search: int | None = None,
        as_of: datetime | date | int | None = None,
    ) -> SearchResult:
        """Find the ``k`` nearest rows among those the policy admits.

        Parameters
        ----------
        queries : (nq, dim) or (dim,) float
            Any length but zero.
        k : int
            Rows wanted a query. ``counts`` is always ``min(k, admissible)``: fewer is an answer, not an error.
        policy : Policy or Mask
            What may be seen. A ``Mask`` is a policy of one mask; ``Policy()`` admits nothing.
        plan : Plan or str
            ``"exact"``, ``"graph"`` or ``"auto"``, the cheaper of them.
        ef_search : int, optional
            Beam width of the graph search, raised to ``k`` when smaller; 96 by default.
        as_of : datetime, date or int, optional
            Rows are open from their ``public_at`` on. An aware datetime; a date, meaning the end of that day,
            US Eastern; or minutes since the epoch. By default the beginning of time: only rows that were
            always public are open.

        Returns
        -------
        SearchResult

        Raises
        ------
        InvalidArgument
            On a wrong dimension, NaN, a zero query, an unknown plan, or no policy.
        """
        rows = floats("queries", queries, self.dim, allow_one=True)
        count = integer("k", k, 1, _MAX_K)
        test = predicate(policy, as_of)
        params = ffi.new(
            "carag_search_params *",
            {"k": count, "ef_search": beam_width(ef_search), "plan": _PLANS[plan_named(plan)]},
        )
        handle, nq = self._core, rows.shape[0]
        arrays: dict[str, NDArray[Any]] = {
            "keys": np.empty((nq, count), dtype=np.int64),
            "similarities": np.empty((nq, count), dtype=np.float32),
            "counts": np.empty(nq, dtype=np.int64),
            "distance_computations": np.empty(nq, dtype=np.int64),
            "hops": np.empty(nq, dtype=np.int64),
            "ef": np.empty(nq, dtype=np.int64),
            "plans": np.empty(nq, dtype=np.uint8),
            "fallbacks": np.empty(nq, dtype=np.bool_),
        }
        views = {name: _out(f"{_C_TYPES[array.dtype]}[]", array) for name, array in arrays.items()}
        results, fault = ffi.new("carag_results *", views), new_fault()
        status = lib.carag_index_search(handle, _in("float[]", rows), nq, test, params, results, fault)
        raise_for(status, fault, noun="query")
        stats = SearchStats(
            admissible=int(results.admissible),
            rows=int(results.rows),
            plans=tuple(_PLAN_OF[code] for code in arrays["plans"].tolist()),
            distance_computations=arrays["distance_computations"],
            hops=arrays["hops"],
            ef=arrays["ef"],
            fallbacks=arrays["fallbacks"],
            kernel=kernels.active(),
        )
        return SearchResult(arrays["keys"], arrays["similarities"], arrays["counts"], stats)

    def count(self, policy: Policy | Mask, *, as_of: datetime | date | int | None = None) -> int:
        """Count the rows a policy admits, exactly; arguments as for :meth:`search`."""
        out, fault = ffi.new("uint64_t *"), new_fault()
        raise_for(lib.carag_index_count(self._core, predicate(policy, as_of), out, fault), fault)
        return int(out[0])

    # ------------------------------------------------------------ keep

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, replacing it atomically and durably.

        Raises
        ------
        OSError
            If the file cannot be written; what was there before is untouched.
        """
        fault = new_fault()
        status = lib.carag_index_save(self._core, path_bytes(path), fault)
        raise_for(status, fault, path=os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an index from a file that :meth:`save` wrote.

        Raises
        ------
        CorruptFile
            If anything in the file is not as it should be; the message names the section.
        OSError
            If the file cannot be read.
        """
        kernels.active()
        out, fault = ffi.new("carag_index **"), new_fault()
        status = lib.carag_index_load(path_bytes(path), out, fault)
        raise_for(status, fault, path=os.fspath(path))
        index = cls.__new__(cls)
        index._own(out[0])  # noqa: SLF001 - its own class
        return index

    def check(self) -> tuple[str, ...]:
        """Prove the invariants of the index, reachability of every row included; list those broken."""
        broken = lib.carag_index_check(self._core, ffi.NULL)
        return tuple(text(lib.carag_invariant_name(bit)) for bit in range(32) if broken >> bit & 1)

    def close(self) -> None:
        """Let go of the index; idempotent. Calls that are running in other threads finish first."""
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _in(cdecl: str, array: NDArray[Any]) -> CData:
    return ffi.from_buffer(cdecl, array)


def _out(cdecl: str, array: NDArray[Any]) -> CData:
    return ffi.from_buffer(cdecl, array, require_writable=True)
