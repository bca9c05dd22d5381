"""Index vectors with policy words, terms and keys; calls release the GIL, and many threads may use one index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from carag.index import kernels
from carag.index._arguments import (
    batch_of,
    distinct,
    index_params,
    integer,
    key_array,
    one_query,
    path_bytes,
    predicate,
    queries_of,
    search_params,
    threads_or_all,
    warn_of_unlabelled,
    word_array,
)
from carag.index._buffers import lent, room
from carag.index._core import ffi, lib
from carag.index._status import new_fault, raise_for, text
from carag.index._stored import Stored
from carag.index._wider import wider_room
from carag.index.results import DType, Plan, SearchResult, search_room
from carag.index.views import IndexStats, views_of
from carag.policy.bits import bits_of

if TYPE_CHECKING:
    from datetime import date, datetime

    from numpy.typing import ArrayLike, NDArray

    from carag.policy.bits import Bits
    from carag.policy.decision import Search
    from carag.policy.mask import Mask, Policy


FILE_VERSION: Final = int(lib.CARAG_FILE_VERSION)
"""Version of the file format (csrc/FORMAT.md)."""
OLDEST_FILE_VERSION: Final = FILE_VERSION - 1
"""The earliest version of a file that is read."""

_NULL: Final = ffi.NULL
_NO_ROWS: Final = 0
"""The default of ``also_hidden``; recognising it by identity costs a search nothing."""


MAX_ROWS: Final = 2**32 - 65
"""Greatest number of rows of an index; the remaining 32-bit numbers are reserved."""


class Index(Stored):
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
        Decides the layers. The same calls with the same seed give the same file, byte for byte, with any number of
        threads.
    dtype : DType or str
        Stored type of vectors: ``"float32"``, ``"float16"`` or ``"int8"``.
    views : int
        Bytes for materialised views: a policy that is asked repeatedly gets an index of its admissible rows alone,
        built in the background, which answers until the index changes (:mod:`carag.index.views`). With 0, the default,
        none is made.

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

    __slots__ = ("_views",)

    def __init__(
        self,
        dim: int,
        *,
        M: int = 32,  # noqa: N803 - the paper's name
        ef_construction: int = 200,
        seed: int = 0,
        dtype: DType | str = DType.FLOAT32,
        views: int = 0,
    ) -> None:
        kernels.active()  # gives a better message about an unusable CARAG_KERNEL than the core does
        self._views = views_of(views)
        params = index_params(dim, M, ef_construction, seed, dtype)
        out, fault = ffi.new("carag_index **"), new_fault()
        raise_for(lib.carag_index_new(params, out, fault), fault)
        self._own(out[0], "")

    def close(self) -> None:
        """Free the index; idempotent. Calls running in other threads, and a view being made, finish first."""
        if self._views is not None:
            self._views.close()
        super().close()

    def stats(self) -> IndexStats:
        """Report how many rows there are, and the state of the views.

        Examples
        --------
        >>> Index(2, views=1 << 20).stats()
        IndexStats(rows=0, classes=0, views=0, view_bytes=0, view_hits=0, view_error='')
        """
        info = self._info()
        kept = (0, 0, 0, "") if self._views is None else self._views.told()
        return IndexStats(int(info.live), int(info.classes), *kept)

    # ------------------------------------------------------------ change

    def add(
        self,
        vectors: ArrayLike,
        words: ArrayLike,
        keys: ArrayLike | None = None,
        *,
        public_at: ArrayLike | None = None,
        expires_at: ArrayLike | None = None,
        entities: ArrayLike | None = None,
        audiences: ArrayLike | None = None,
        allow_quarantine: bool = False,
        threads: int | None = None,
    ) -> NDArray[np.int64]:
        """Add rows and return their keys, (n,) int64; on any error none is added.

        Raises InvalidArgument on a wrong shape, NaN, a zero vector, a duplicate or negative key, or a word with control
        bits set.

        Parameters
        ----------
        vectors : (n, dim) float
            Any length but zero; stored as unit vectors.
        words : (n,) integer
            Policy words, see :func:`carag.policy.policy_word`. A word of version 0 is stored with an
            :class:`~carag.errors.UnlabelledWarning` and never admissible.
        keys : (n,) integer, optional
            Each 0 or more and not in use; by default the next free row numbers. A deleted row's key is free.
        public_at, expires_at : (n,) or scalar integer, optional
            Minutes since 1970-01-01T00:00Z from which a row is public (by default 0, always), and from which it no
            longer is (by default ``2**32 - 1``, never).
        entities : (n,) or scalar integer, optional
            The entity a row is about (for EDGAR, the filer's CIK); 0, the default, means no entity.
        audiences : (n,) or scalar integer, optional
            Whom a row may be shown to, as the number of an audience; 0, the default, means everybody. A policy admits
            other rows only if it lists their audience.
        allow_quarantine : bool
            Accept words with the quarantine bit, whose rows no policy admits.
        threads : int, optional
            By default all cores that this process may use. The result does not depend on it.
        """
        terms = {
            "public_at": public_at,
            "expires_at": expires_at,
            "entities": entities,
            "audiences": audiences,
        }
        batch = batch_of(
            self.dim, vectors, words, keys, terms, allow_quarantine=allow_quarantine, threads=threads
        )
        given, fault = np.empty(len(batch.words), dtype=np.int64), new_fault()
        status = lib.carag_index_add(self._core, batch.rows, room(given), fault)
        raise_for(status, fault, keys=batch.keys, words=batch.words)
        warn_of_unlabelled(batch.words)
        return given

    def reserve(self, rows: int) -> None:
        """Reserve memory for a total number of rows, so that growing never copies existing rows.

        Memory is used only as rows are written, and answers do not depend on it. An index that outgrows its reservation
        holds all rows in memory twice while it grows. A batch at least as large as the index is linked by building the
        whole graph, several times faster per row than inserting rows one after another, so double the size of batches.

        Examples
        --------
        >>> import numpy as np
        >>> from carag.policy import policy_word
        >>> index = Index(2)
        >>> index.reserve(1_000)
        >>> index.add(np.eye(2), [policy_word(1), policy_word(2)])
        array([0, 1])
        """
        fault = new_fault()
        raise_for(lib.carag_index_reserve(self._core, integer("rows", rows, 0, MAX_ROWS), fault), fault)

    def relabel(self, keys: ArrayLike, words: ArrayLike, *, allow_quarantine: bool = False) -> None:
        """Give rows new words, in O(1) per row; on any error none is changed.

        A concurrent search sees the old or the new word of each row, and returns no row whose word is inadmissible when
        it is returned. Raises InvalidArgument if a key is unknown or named twice, or a word has control bits set.
        """
        wanted = distinct(key_array(keys))
        labels = word_array(words, wanted.size)
        fault = new_fault()
        status = lib.carag_index_relabel(
            self._core, lent(wanted), lent(labels), wanted.size, bool(allow_quarantine), fault
        )
        raise_for(status, fault, keys=wanted, words=labels)
        warn_of_unlabelled(labels)

    def relabel_where(
        self,
        policy: Policy | Mask,
        *,
        set: Bits = 0,  # noqa: A002 - bits are set and cleared
        clear: Bits = 0,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
    ) -> int:
        """Give every row that the policy admits the word ``(word & ~clear) | set``, class by class; return how many.

        Bits are read by :func:`carag.policy.bits_of`, and no bit may be both set and cleared; instants are as for
        :meth:`search`.
        """
        on, off = bits_of(set, name="set"), bits_of(clear, name="clear")
        test, out, fault = predicate(policy, as_of, alive_at), ffi.new("uint64_t *"), new_fault()
        raise_for(lib.carag_index_relabel_where(self._core, test.predicate, on, off, out, fault), fault)
        return int(out[0])

    def delete(self, keys: ArrayLike) -> None:
        """Delete rows and free their keys; on any error none is deleted."""
        wanted = distinct(key_array(keys))
        fault = new_fault()
        status = lib.carag_index_delete(self._core, lent(wanted), wanted.size, fault)
        raise_for(status, fault, keys=wanted)

    def consolidate(self, *, threads: int | None = None) -> None:
        """Remove deleted rows from memory, sort the others by class, and rebuild the graph.

        Searches may run at the same time. Exact answers stay the same, and the file does not depend on ``threads``.
        """
        fault = new_fault()
        raise_for(lib.carag_index_consolidate(self._core, threads_or_all(threads), fault), fault)

    # ------------------------------------------------------------ search

    def search(
        self,
        queries: ArrayLike,
        k: int,
        policy: Policy | Mask,
        *,
        plan: Plan | str = Plan.AUTO,
        ef_search: int | None = None,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
        threads: int | None = None,
        fallback: bool = True,
        exact_limit: int = 0,
        also_hidden: int = _NO_ROWS,
        hidden_among: Search | None = None,
    ) -> SearchResult:
        """Find the ``k`` nearest rows among those that the policy admits.

        Parameters
        ----------
        queries : (nq, dim) or (dim,) float
            Any length but zero.
        k : int
            Rows wanted per query, at most 1,048,576 or the number of rows, if greater. ``counts`` is always
            ``min(k, admissible)``: fewer rows than ``k`` are not an error.
        policy : Policy or Mask
            Admits rows. A ``Mask`` is a policy of one mask; ``Policy()`` admits nothing.
        plan : Plan or str
            ``"exact"``, ``"certified"``, ``"scan"``, ``"graph"``, or ``"auto"``, which takes the cheapest, over the
            policy's view if there is one.
        ef_search : int, optional
            Beam width of the graph search, raised to ``k`` if smaller, and used in full. By default, the width to which
            the index was tuned; a search then stops early if all remaining rows are too far away.
        as_of : datetime, date or int, optional
            Rows are admissible from their ``public_at`` until before their ``expires_at``. An aware datetime; a date,
            meaning the end of that day, US Eastern; or minutes since 1970. By default 0, when only rows that were
            always public are admissible.
        alive_at : datetime, date or int, optional
            The instant, ``as_of`` or later, by the end of which a row must not have expired; by default ``as_of``.
        threads : int, optional
            Number of threads that share the queries; by default one for one query, otherwise all cores this process may
            use.
        fallback : bool
            False only for measurements: ``plan="graph"`` then returns what it found, even if it cost more than a scan
            or found fewer rows than are admissible.
        exact_limit : int
            Number of admissible rows up to which ``plan="auto"`` runs the certified plan whatever it costs, so that
            every machine chooses the same plan. 0, the default, means never. Other plans ignore it.
        also_hidden : int
            Number of nearest rows per query to look up under a wider policy as well; the answer stays the same. The
            result's ``hidden`` holds those of these rows that ``policy`` refuses. 0, the default, looks for none.
        hidden_among : Search, optional
            The wider policy, with its instants; by default every labelled row, at the last representable minute.
        """
        rows, nq = queries_of(queries, self._dim)
        wanted, params = search_params(k, self, nq, ef_search, plan, threads, fallback, exact_limit)
        test = predicate(policy, as_of, alive_at)
        wider = beside = None
        if also_hidden is not _NO_ROWS or hidden_among is not None:
            wider = wider_room(also_hidden, hidden_among, self, nq)
        core, found = self._core, search_room(nq, wanted)
        if (
            self._views is not None
            and wider is None
            and plan == Plan.AUTO
            and self._views.answer(core, policy, test, lent(rows), nq, params, found)
        ):
            return found.result(kernels.active())
        more = _NULL if wider is None else wider.struct
        status = lib.carag_index_search_both(
            core, lent(rows), nq, test.predicate, params, found.report, more, found.fault
        )
        if status:
            raise_for(status, found.fault, noun="query")
        kernel = kernels.active()
        if wider is not None:
            beside = wider.result(kernel)
        return found.result(kernel, beside)

    def count(
        self,
        policy: Policy | Mask,
        *,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
    ) -> int:
        """Count exactly the rows that a policy admits; arguments as for :meth:`search`."""
        test, out, fault = predicate(policy, as_of, alive_at), ffi.new("uint64_t *"), new_fault()
        raise_for(lib.carag_index_count(self._core, test.predicate, out, fault), fault)
        return int(out[0])

    def similarities(self, query: ArrayLike, keys: ArrayLike) -> NDArray[np.float32]:
        """Compute the similarity of rows to one query, (n,) float32, bit for bit as :meth:`search` reports it.

        No policy is applied: use it for rows that were already found admissible.
        """
        asked, wanted = one_query(query, self._dim), distinct(key_array(keys))
        found, fault = np.empty(wanted.size, np.float32), new_fault()
        status = lib.carag_index_similarities(
            self._core, lent(asked), lent(wanted), wanted.size, room(found), fault
        )
        raise_for(status, fault, noun="query", keys=wanted)
        return found

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, replacing it atomically and durably."""
        fault = new_fault()
        status = lib.carag_index_save(self._core, path_bytes(path), fault)
        raise_for(status, fault, path=os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False, views: int = 0) -> Self:
        """Read an index from a file that :meth:`save` wrote.

        With ``mmap``, vectors, codes and graph are read from the file as searches need them, so an index of any size
        opens at once; their checksums are left to :meth:`verify`, and :meth:`preload` copies what searches read most
        into memory.
        """
        kernels.active()
        kept = views_of(views)
        out, fault = ffi.new("carag_index **"), new_fault()
        status = lib.carag_index_load(path_bytes(path), bool(mmap), out, fault)
        raise_for(status, fault, path=os.fspath(path))
        index = cls.__new__(cls)
        index._views = kept  # noqa: SLF001 - its own class
        index._own(out[0], os.fspath(path))  # noqa: SLF001 - its own class
        return index

    def preload(self) -> None:
        """Copy codes and links of an index opened with ``load(path, mmap=True)`` into memory; otherwise do nothing.

        Searches may run at the same time, and are faster afterwards, because memory has larger pages than the file.
        Vectors stay in the file. The checksums of what is copied are verified.
        """
        fault = new_fault()
        raise_for(lib.carag_index_preload(self._core, fault), fault, path=self._path)

    def verify(self) -> None:
        """Verify the checksums of the sections that ``load(path, mmap=True)`` did not read; otherwise do nothing."""
        fault = new_fault()
        raise_for(lib.carag_index_verify(self._core, fault), fault, path=self._path)

    def check(self) -> tuple[str, ...]:
        """Check the index's invariants, including that every row is reachable, and list those that are broken."""
        broken = lib.carag_index_check(self._core, ffi.NULL)
        return tuple(text(lib.carag_invariant_name(bit)) for bit in range(32) if broken >> bit & 1)
