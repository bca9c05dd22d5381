"""CARAG as an engine under measurement: ``plan="auto"`` with no tuning, and every plan on its own."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, Work, graph_degree
from carag.index import Index, Plan, _core
from carag.policy import Mask, Policy, policy_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.index import IndexStats, SearchResult


DEFAULT: Final = 0
"""The effort that stands for the core's own choice."""
_EFS: Final = (DEFAULT, 10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
PLAN_BITS: Final = {"scan": 1, "exact": 8, "certified": 8, "graph": 8}
"""Of the first pass of a plan; every answer is ranked in the stored precision."""
_ALWAYS_PUBLIC: Final = 2**32 - 2


class Carag(Engine):
    """One plan over one index, which all plans of a storage type share.

    Parameters
    ----------
    plan : Plan
    dtype : str
        How rows are stored: ``float32``, ``float16`` or ``int8``.
    alone : bool
        Whether a graph search keeps what it found, where it would fall back to a scan.
    views : int
        Bytes for materialised views.
    """

    is_peer = False

    def __init__(self, plan: Plan, *, dtype: str = "float32", alone: bool = False, views: int = 0) -> None:
        self.name = "carag" if plan is Plan.AUTO else f"carag-{plan.value}"
        self.name += "-alone" if alone else ""
        self.name += "" if dtype == "float32" else f"[{dtype}]"
        self.bits = PLAN_BITS.get(plan.value, 8)
        self.efforts = _EFS if plan is Plan.GRAPH and not alone else (DEFAULT,)
        self._dtype, self._views = dtype, views
        self._options: dict[str, Any] = {"plan": plan} | ({"fallback": False} if alone else {})
        self.last: SearchResult | None = None

    def build(self, rows: Rows, store: Store) -> Build:
        """Build or read the index of words, and the one of words, times and entities if sessions are asked."""
        kept: dict[str, Any] = {"dtype": self._dtype, "views": self._views}
        self._plain, build = _index(rows, store, sessions=False, **kept)
        self._session = _index(rows, store, sessions=True, **kept)[0] if rows.sessions else self._plain
        return build

    def policy(self, request: Request) -> Any:
        """Make the policy."""
        mask = Mask(request.required, request.forbidden)
        if request.as_of is None:
            return self._plain, Policy(mask), self._options
        denied = () if request.denied is None else request.denied
        return self._session, Policy(mask, deny_entities=denied), self._options | {"as_of": request.as_of}

    def search(self, query: NDArray[np.float32], k: int, policy: Any, effort: int) -> NDArray[np.int64]:
        """Search through the public interface; one query takes one thread."""
        index, admits, options = policy
        if effort == DEFAULT:
            self.last = index.search(query, k, admits, **options)
        else:
            self.last = index.search(query, k, admits, ef_search=effort, **options)
        keys: NDArray[np.int64] = self.last.keys[0]
        return keys

    def stats(self) -> IndexStats:
        """Tell of the index of words, and of its views."""
        return self._plain.stats()

    def work(self, answer: SearchResult | None) -> Work | None:
        """Read the statistics of an answer."""
        if answer is None:
            return None
        stats = answer.stats
        return Work(stats.plans[0].value, bool(stats.fallbacks[0]), int(stats.distance_computations[0]))


class Shared(Carag):
    """The audiences of a session, listed in a policy that is kept."""

    def __init__(self) -> None:
        super().__init__(Plan.AUTO)

    def policy(self, request: Request) -> Any:
        """Make the policy of the audiences that were found for the session."""
        assert request.shared is not None
        return self._plain, Policy(Mask(), audiences=np.flatnonzero(request.shared).tolist()), self._options


class SharedAgain(Shared):
    """The same with a policy made for every search."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "carag-made-again"

    def policy(self, request: Request) -> Any:
        """Leave it to the search."""
        return request

    def search(self, query: NDArray[np.float32], k: int, policy: Any, effort: int) -> NDArray[np.int64]:
        """Make the policy, and search."""
        return super().search(query, k, super().policy(policy), effort)


class SharedByWord(Carag):
    """The same rows, admitted by a bit of their words; the index knows of no audience."""

    def __init__(self) -> None:
        super().__init__(Plan.AUTO)
        self.name = "carag-by-word"

    def build(self, rows: Rows, store: Store) -> Build:
        """Build without audiences."""
        return super().build(replace(rows, audiences=None, digest=f"{rows.digest}-words"), store)

    def policy(self, request: Request) -> Any:
        """Make the policy of the bit."""
        return super().policy(Request(required=request.twin))


def all_plans(*, dtype: str = "float32") -> list[Engine]:
    """Make an engine of every plan the core has, ``auto`` first, and of the graph without its fallback."""
    plans = sorted(Plan, key=lambda plan: plan is not Plan.AUTO)
    return [*(Carag(plan, dtype=dtype) for plan in plans), Carag(Plan.GRAPH, dtype=dtype, alone=True)]


def new_index(rows: Rows, dtype: str, *, sessions: bool, threads: int | None = None) -> tuple[Index, float]:
    """Build an index and return it with the seconds that took."""
    index = Index(rows.vectors.shape[1], M=graph_degree(len(rows.words)), dtype=dtype)
    columns: dict[str, Any] = {} if threads is None else {"threads": threads}
    if sessions:
        columns |= {"public_at": rows.public_at, "entities": rows.entities}
    if rows.audiences is not None:
        columns["audiences"] = rows.audiences
    words = policy_word(rows.words)
    begin = time.perf_counter()
    index.add(rows.vectors, words, **columns)
    return index, time.perf_counter() - begin


def index_file(rows: Rows, store: Store, *, dtype: str, sessions: bool) -> tuple[Path, Build]:
    """Return where an index that this very core built is kept, having built it if it is not."""
    core = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:12]
    kind = "session" if sessions else "word"
    name = f"carag-{core}-{dtype}-M{graph_degree(len(rows.words))}-{kind}-{rows.digest}"

    def make(path: Path) -> float:
        begin = time.process_time()
        index, _ = new_index(rows, dtype, sessions=sessions)
        seconds = time.process_time() - begin
        index.save(path)
        return seconds

    build = store.built(name, len(rows.words), os.cpu_count() or 1, make)
    return store.file(name), build


def _index(rows: Rows, store: Store, *, dtype: str, views: int, sessions: bool) -> tuple[Index, Build]:
    """Read an index; engines of the same file share it."""

    def read() -> tuple[Index, Build]:
        path, build = index_file(rows, store, dtype=dtype, sessions=sessions)
        return Index.load(path, views=views), build

    return store.once(f"carag {dtype}, sessions {sessions}, views {views}, {rows.digest}", read)
