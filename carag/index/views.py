"""Keep materialised views: indexes of a policy's admissible rows alone, for policies that are asked repeatedly.

A view is made in the background after :data:`QUERIES_BEFORE` queries under one policy. It answers until the index
changes, or until an instant passes at which a row opens or expires; the core tests each row found against the index.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.index._arguments import integer
from carag.index._core import ffi, lib
from carag.index._handle import owned
from carag.index._status import new_fault, raise_for
from carag.policy.mask import Mask, Policy

if TYPE_CHECKING:
    from carag.index._arguments import CompiledPolicy
    from carag.index._core import CData
    from carag.index.results import SearchRoom


QUERIES_BEFORE: Final = 1_000
"""Queries under a policy before its view is made; a view of 100,000 rows of 384 dimensions takes a core ten seconds."""
_WATCHED: Final = 256
"""Number of policies whose queries are counted; a policy's view is dropped together with its count."""
_MOST: Final = 0.9
"""Greatest share of the rows that a view may hold; with nearly all rows a view would not be faster than the index."""
_THREADS: Final = 1
"""Threads that make a view; the other cores are left to searches."""


@dataclass(frozen=True, slots=True)
class IndexStats:
    """The rows of an index, and the state of its views."""

    rows: int
    classes: int
    """Upper bound on the distinct (word, terms) of the live rows."""
    views: int
    """Number of views in memory; an outdated view is kept until it is replaced."""
    view_bytes: int
    view_hits: int
    """Queries answered by views, including those since dropped."""
    view_error: str
    """Why a view last failed to be made; empty if none failed."""


@dataclass(slots=True, eq=False)
class _AskedPolicy:
    """A policy that is asked, and its view."""

    queries: int = 0
    """Queries that no view answered since a view was last requested, less those that a view answered."""
    view: CData | None = None
    bytes: int = 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class Views:
    """The views of one index."""

    limit: int
    _asked: OrderedDict[Policy, _AskedPolicy] = field(default_factory=OrderedDict)
    """Most recently asked last."""
    _wanted: OrderedDict[Policy, tuple[CData, CompiledPolicy]] = field(default_factory=OrderedDict)
    """Policies whose views are to be made, with the index; the view of the first is being made."""
    _maker: threading.Thread | None = None
    _hits: int = 0
    _error: str = ""
    _is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Held briefly, while any field above changes."""
    _copying: threading.Lock = field(default_factory=threading.Lock)
    """Held while rows are copied from the index."""

    def __post_init__(self) -> None:
        _all.add(self)

    # ------------------------------------------------------------ searching

    def answer(
        self,
        core: CData,
        policy: Policy | Mask,
        test: CompiledPolicy,
        queries: CData,
        count: int,
        params: CData,
        room: SearchRoom,
    ) -> bool:
        """Answer from the policy's view if it is current; otherwise count the queries."""
        whole = Policy(policy) if isinstance(policy, Mask) else policy
        gone = None  # a view is freed only after the lock is released
        with self._lock:
            asked = self._asked.get(whole)
            if asked is None:
                asked = self._asked[whole] = _AskedPolicy()
                if len(self._asked) > _WATCHED:
                    gone = self._asked.popitem(last=False)
            self._asked.move_to_end(whole)
            view = asked.view
        del gone
        if view is not None:
            status = lib.carag_materialised_search(
                view, queries, count, test.predicate, params, room.report, room.fault
            )
            if not status:
                with self._lock:
                    self._hits += count
                    asked.queries = max(0, asked.queries - count)
                return True
            if status != lib.CARAG_BEHIND:
                raise_for(status, room.fault, noun="query")
        with self._lock:
            asked.queries += count
            if asked.queries >= QUERIES_BEFORE and whole not in self._wanted and not self._is_closed:
                asked.queries = 0
                self._wanted[whole] = (core, test)
                self._start()
        return False

    # ------------------------------------------------------------ making

    def _start(self) -> None:
        """Start the thread unless it is running; the lock is held. After a fork the child has no thread."""
        if self._maker is None or not self._maker.is_alive():
            self._maker = threading.Thread(target=self._make_all, name="carag-views", daemon=True)
            self._maker.start()

    def _make_all(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._maker = None
                    return
                policy, (core, test) = next(iter(self._wanted.items()))
            try:
                self._make(policy, core, test)
            except Exception as error:  # noqa: BLE001 - reported by stats(), since no caller waits for it
                self._error = f"{type(error).__name__}: {error}"
            finally:
                with self._lock:
                    self._wanted.pop(policy, None)

    def _make(self, policy: Policy, core: CData, test: CompiledPolicy) -> None:
        """Make the view of a policy, unless the index changes meanwhile, or it admits nothing or nearly everything."""
        fault = new_fault()
        count, info = ffi.new("uint64_t *"), ffi.new("carag_info *")
        raise_for(lib.carag_index_count(core, test.predicate, count, fault), fault)
        lib.carag_index_info(core, info)
        if not 0 < count[0] <= _MOST * info.live:
            return
        out, size = ffi.new("carag_materialised **"), int(lib.carag_materialised_bytes(core, count[0]))
        with self._copying:
            status = lib.carag_materialised_copy(
                core, test.predicate, self._room_for(policy, size), out, fault
            )
        if status == lib.CARAG_BEHIND:
            return
        raise_for(status, fault)
        view = owned(out[0], lib.carag_materialised_free, core)
        raise_for(lib.carag_materialised_build(view, _THREADS, fault), fault)
        with self._lock:
            asked = self._asked.get(policy)
            if asked is not None and not self._is_closed:
                asked.view = view
                asked.bytes = int(lib.carag_materialised_bytes(core, lib.carag_materialised_rows(view)))

    def _room_for(self, policy: Policy, size: int) -> int:
        """Drop views until ``size`` bytes are free, first its own and outdated ones; return how many bytes are free."""
        if size > self.limit:
            raise InvalidArgument(
                f"a view of the policy takes {size:,} bytes; want at most {self.limit:,}, the limit for views"
            )
        gone = []  # freed only after the lock is released
        with self._lock:
            kept = [asked for asked in self._asked.values() if asked.view is not None]
            left = self.limit - sum(asked.bytes for asked in kept)
            own = self._asked.get(policy)
            old = [
                asked for asked in kept if asked is own or not lib.carag_materialised_is_current(asked.view)
            ]
            for asked in [*old, *(asked for asked in kept if asked not in old)]:
                if left >= size and asked not in old:
                    break
                gone.append(asked.view)
                left += asked.bytes
                asked.view, asked.bytes = None, 0
        return left

    # ------------------------------------------------------------ the end

    def told(self) -> tuple[int, int, int, str]:
        """Return the part of :class:`IndexStats` that concerns views."""
        with self._lock:
            sizes = [asked.bytes for asked in self._asked.values() if asked.view is not None]
            return len(sizes), sum(sizes), self._hits, self._error

    def close(self) -> None:
        """Wait for the view that is being made, and drop all views."""
        with self._lock:
            self._is_closed = True
            maker = self._maker
            for policy in list(self._wanted)[1:]:
                del self._wanted[policy]
        if maker is not None:
            maker.join()
        with self._lock:
            asked, self._asked = self._asked, OrderedDict()
        asked.clear()


def views_of(limit: int) -> Views | None:
    """Return a keeper of views that takes up to a number of bytes, or None for 0."""
    size = integer("views", limit, 0, 2**63 - 1)
    return Views(size) if size else None


# A forked child does not have its parent's maker thread. At the fork, no lock may be held and no copy may be under
# way, or the child could never change the index.

_all: Final[weakref.WeakSet[Views]] = weakref.WeakSet()
_forking: Final = threading.Lock()
_held: Final[list[threading.Lock]] = []


def _hold() -> None:
    _forking.acquire()
    for views in list(_all):
        for lock in (views._copying, views._lock):  # noqa: SLF001 - its own module
            lock.acquire()
            _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
