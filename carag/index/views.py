"""Keep materialised views: indexes of the rows alone that a policy admits, for policies that are asked again and again.

A search under a policy reads past what it may not answer with; an index of the admissible rows alone does not. A view
is made beside the searches once :data:`QUERIES_BEFORE` queries were asked under one policy, and answers until the index
changes, or an instant passes at which a row opens or expires: the core asks it no more then, and tests every row that
it finds in the index itself before it gives it out. Views are kept within the bytes they may take; what was asked least
recently goes first.
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
    from carag.index._arguments import Test
    from carag.index._core import CData
    from carag.index.results import SearchRoom

__all__ = ["QUERIES_BEFORE", "IndexStats", "Views", "views_of"]

QUERIES_BEFORE: Final = 1_000
"""Queries under a policy before its view is made, and before it is made again after the index changed. Making one of
100,000 rows of 384 dimensions takes ten seconds of a core."""
_WATCHED: Final = 256
"""Policies whose queries are counted; a view goes with the count of its policy."""
_MOST: Final = 0.9
"""The greatest part of the rows that a view is made of: one of nearly all finds nothing sooner than the index."""
_THREADS: Final = 1
"""Threads that make a view: the other cores are for searches."""


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an index holds, and what became of its views."""

    rows: int
    """Live rows."""
    classes: int
    """Distinct (word, terms) of the live rows, at most."""
    views: int
    """Views that are kept now; one that is behind is kept until another is made."""
    view_bytes: int
    """What they take."""
    view_hits: int
    """Queries that views answered, those that are gone included."""
    view_error: str
    """Why the last view that could not be made was not; empty if there was none."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A policy that is asked, and the view of it."""

    queries: int = 0
    """That no view answered, since one was wanted, less those that one did: of two instants, one has the view."""
    view: CData | None = None
    bytes: int = 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class Views:
    """The views of one index."""

    limit: int
    """Bytes."""
    _asked: OrderedDict[Policy, _Asked] = field(default_factory=OrderedDict)
    """Most recently asked last."""
    _wanted: OrderedDict[Policy, tuple[CData, Test]] = field(default_factory=OrderedDict)
    """Policies whose views are to be made, and the index; the first is being made."""
    _maker: threading.Thread | None = None
    _hits: int = 0
    _error: str = ""
    _is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Held for moments, while the above is changed."""
    _copying: threading.Lock = field(default_factory=threading.Lock)
    """Held while rows are copied from the index."""

    def __post_init__(self) -> None:
        _all.add(self)

    # ------------------------------------------------------------ searching

    def answer(
        self,
        core: CData,
        policy: Policy | Mask,
        test: Test,
        queries: CData,
        count: int,
        params: CData,
        room: SearchRoom,
    ) -> bool:
        """Answer over the view of a policy, if it has one and that is of what is admissible now; otherwise count."""
        whole = Policy(policy) if isinstance(policy, Mask) else policy
        gone = None  # views are freed after the lock is
        with self._lock:
            asked = self._asked.get(whole)
            if asked is None:
                asked = self._asked[whole] = _Asked()
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
        """Start the thread unless it runs; the lock is held. In a process that was forked it does not."""
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
            except Exception as error:  # noqa: BLE001 - told by stats(): no caller waits for it
                self._error = f"{type(error).__name__}: {error}"
            finally:
                with self._lock:
                    self._wanted.pop(policy, None)

    def _make(self, policy: Policy, core: CData, test: Test) -> None:
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
        """Drop views until there is room for another of a policy, and return how much there is.

        First its own and those that are behind; then what was asked least recently.
        """
        if size > self.limit:
            raise InvalidArgument(
                f"a view of the policy takes {size:,} bytes; want at most the {self.limit:,} that views may take"
            )
        gone = []  # freed after the lock is
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
        """Tell of :class:`IndexStats` what concerns views."""
        with self._lock:
            sizes = [asked.bytes for asked in self._asked.values() if asked.view is not None]
            return len(sizes), sum(sizes), self._hits, self._error

    def close(self) -> None:
        """Wait for the view that is being made, and drop all."""
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
    """Make room for views of so many bytes; for none, there are no views."""
    size = integer("views", limit, 0, 2**63 - 1)
    return Views(size) if size else None


# A child of fork has no maker, and shares nothing with the one of its parent: no lock may be held as it begins, and no
# copy be under way, which holds up whoever changes an index.

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
