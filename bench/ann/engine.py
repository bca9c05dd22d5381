"""What an engine under measurement is, and what it is asked.

Everything an engine does with a policy (its own value for it, bitmaps, lists of ids, its own query language) happens
inside :meth:`Engine.policy` and :meth:`Engine.search`, and the clock sees both (:mod:`bench.ann.run`). Only what is
made of the rows alone may be ready before, by :meth:`Engine.build`.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from carag.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray


POLICY_BITS: Final = (1 << 27) - 1
"""The part of a word that policies speak of."""

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is indexed; row ``i`` has id ``i``."""

    vectors: NDArray[np.float32]
    """(n, dim) unit rows."""
    words: NDArray[np.uint32]
    """(n,) 27-bit policy words."""
    public_at: NDArray[np.uint32]
    """(n,) minutes since the epoch."""
    entities: NDArray[np.uint32]
    """(n,) numbers of the entities the rows are about."""
    entity_count: int
    """All of them are below this."""
    digest: str = ""
    """Of the labels above; in the name of every kept index that holds them."""
    sessions: bool = True
    """Whether requests with ``as_of`` and ``denied`` will be asked."""
    audiences: NDArray[np.uint32] | None = None
    """(n,) numbers of the lists of groups that may see the rows; None: everybody may."""
    lists: tuple[tuple[int, ...], ...] = ()
    """The groups of every audience, by its number; that of 0 is empty, and no row has it."""

    def some(self, ids: NDArray[np.int64]) -> Rows:
        """Take the labels of some rows, without their vectors."""
        return replace(
            self,
            vectors=self.vectors[:0],
            words=self.words[ids],
            public_at=self.public_at[ids],
            entities=self.entities[ids],
            audiences=None if self.audiences is None else self.audiences[ids],
        )

    def groups(self) -> list[tuple[int, ...]]:
        """List the groups of every row, for peers that keep them there."""
        assert self.audiences is not None
        return [self.lists[audience] for audience in self.audiences.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A policy, in the plainest terms: a row is admissible if its word, time and entity all pass."""

    required: int = 0
    forbidden: int = 0
    as_of: int | None = None
    denied: NDArray[np.uint32] | None = None
    """Entities whose rows are closed, in no order."""
    groups: tuple[int, ...] | None = None
    """The groups of the session, ascending; None: it is not asked who may see a row."""
    shared: NDArray[np.bool_] | None = None
    """(audiences,) which of them list one of these groups: what a store finds for a session."""
    twin: int = 0
    """The bit of a word that the same rows have."""

    @property
    def is_open(self) -> bool:
        """Whether it admits everything, so that an engine may search without a filter."""
        return (
            not (self.required | self.forbidden)
            and self.as_of is None
            and self.denied is None
            and self.groups is None
        )

    def masked(self, required: int, forbidden: int) -> Request:
        """Return the same request with other masks."""
        return replace(self, required=required, forbidden=forbidden)

    def admissible(self, rows: Rows) -> NDArray[np.bool_]:
        """Test every row: what peers that take bitmaps call, and what judges their answers."""
        open_rows: NDArray[np.bool_] = (
            rows.words & np.uint32(self.required | self.forbidden)
        ) == self.required
        if self.as_of is not None:
            open_rows &= rows.public_at <= self.as_of
        if self.denied is not None:
            open_rows &= ~self.denied_table(rows.entity_count)[rows.entities]
        if self.shared is not None:
            open_rows &= self.shared[rows.audiences]
        return open_rows

    def denied_table(self, entities: int) -> NDArray[np.bool_]:
        """Spread the deny list over the entities of the index."""
        table = np.zeros(entities, dtype=np.bool_)
        if self.denied is not None:
            table[self.denied[self.denied < entities]] = True
        return table


@dataclass(frozen=True, slots=True)
class Build:
    """What it took to make an index ready."""

    seconds: float
    """Of processor time, all threads together: a build that is kept may run beside other work."""
    threads: int
    bytes_per_row: float
    """Size of the saved index (of its arrays, where it cannot be saved) over the rows."""
    cached: bool = False
    """Whether this run read it from disk; ``seconds`` is then of the run that built it."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a search says of itself."""

    plan: str
    fallback: bool
    distances: int


class Engine(ABC):
    """One way of searching, with one knob."""

    name: str
    bits: int
    """Bits of a dimension in the narrowest code that a search reads."""
    efforts: tuple[int, ...] = (0,)
    """Values of the knob, cheapest first; one meaningless value where there is no knob."""
    is_peer: bool = True
    """Whether it is one of those CARAG is measured against."""
    last: Any = None
    """What the last search answered, for `work`."""

    @abstractmethod
    def build(self, rows: Rows, store: Store) -> Build:
        """Make ready to search `rows`."""

    @abstractmethod
    def search(self, query: NDArray[np.float32], k: int, policy: Any, effort: int) -> NDArray[np.int64]:
        """Return up to `k` ids, nearest first; negative ones are padding."""

    def policy(self, request: Request) -> Any:
        """Say a request in the engine's own terms: a value made from the request alone.

        Nothing that depends on the rows may be prepared here: it may be made once a session, too.
        """
        return request

    def work(self, answer: Any) -> Work | None:
        """Tell how the search ran that left this as `last`, if the engine knows."""
        del answer
        return None

    def close(self) -> None:
        """Let go of the index."""
        self.__dict__.clear()


@dataclass(slots=True)
class Store:
    """Where indexes of one data set are kept between runs, and within one."""

    path: Path
    keep: str
    """What the rows depend on; files of another value are never read."""
    memo: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], _Made]) -> _Made:
        """Make an object that several engines share."""
        if name not in self.memo:
            self.memo[name] = make()
        found: _Made = self.memo[name]
        return found

    def file(self, name: str) -> Path:
        """Return where an index of that name is kept."""
        self.path.mkdir(parents=True, exist_ok=True)
        return self.path / f"{name}-{self.keep}"

    def built(
        self, name: str, rows: int, threads: int, make: Callable[[Path], float], *, extra: float = 0.0
    ) -> Build:
        """Let `make` build and save an index unless that was done before; it returns the seconds.

        Parameters
        ----------
        extra : float
            Bytes of a row that a search needs besides the file.
        """
        path = self.file(name)
        about = path.with_name(path.name + ".json")
        if about.exists() and path.exists():
            return Build(**(json.loads(about.read_text(encoding="utf-8")) | {"cached": True}))
        partial = path.with_name(path.name + ".partial")
        if partial.is_dir():
            shutil.rmtree(partial)
        seconds = make(partial)
        partial.replace(path)
        build = Build(round(seconds, 3), threads, _size(path) / rows + extra)
        about.write_text(json.dumps(asdict(build)), encoding="utf-8")
        return build


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())


def graph_degree(rows: int) -> int:
    """Return M for every graph of the run: 32, and 16 from half a million rows, where 32 takes too long."""
    return 16 if rows >= 500_000 else 32


def optional(name: str) -> Any:
    """Import a package that only some measurements need.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"{name} cannot be imported ({error}); install it, or leave its peers out"
        ) from error
