"""hnswlib: the policy test compiled into its loop, and its Python callback, over one graph.

The native peer is hnswlib's headers (from its source distribution, kept in the cache) with a functor of ours,
compiled here for this machine: what one gets by building a policy filter on hnswlib without Python in the loop.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import POLICY_BITS, Build, Engine, Request, Rows, Store, graph_degree, optional
from carag.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


EFS: Final = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
EF_CONSTRUCTION: Final = 200
_SOURCE: Final = Path(__file__).with_name("hnswlib_native.cpp")
_COMPILER: Final = ("g++", "-O3", "-march=native", "-std=c++17", "-shared", "-fPIC", "-pthread")
_POINTER: Final = ctypes.c_void_p


def build_graph(
    rows: Rows, path: Path, *, threads: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Build with hnswlib's package, save, and return the seconds of the build alone."""
    graph = optional("hnswlib").Index("ip", rows.vectors.shape[1])
    begin = clock()
    graph.init_index(
        len(rows.vectors), M=graph_degree(len(rows.vectors)), ef_construction=EF_CONSTRUCTION, random_seed=0
    )
    graph.add_items(rows.vectors, num_threads=threads)
    seconds = clock() - begin
    graph.save_index(str(path))
    return seconds


def _graph(rows: Rows, store: Store) -> Build:
    name = f"hnswlib-M{graph_degree(len(rows.vectors))}-efc{EF_CONSTRUCTION}"

    def make(path: Path) -> float:
        return build_graph(rows, path, threads=1, clock=time.process_time)

    return store.built(name, len(rows.vectors), 1, make)


def _path(rows: Rows, store: Store) -> Path:
    return store.file(f"hnswlib-M{graph_degree(len(rows.vectors))}-efc{EF_CONSTRUCTION}")


class Native(Engine):
    """hnswlib with the word test compiled into its loop."""

    name = "hnswlib-native"
    bits = 32
    efforts = EFS

    def build(self, rows: Rows, store: Store) -> Build:
        """Load the graph into the compiled peer."""
        build = _graph(rows, store)
        self._core = _compiled(store.path.parent)
        self._rows = rows
        self._entities = rows.entity_count
        self._columns = tuple(column.ctypes.data for column in (rows.words, rows.public_at, rows.entities))
        self._peer = self._core.peer_load(os.fsencode(_path(rows, store)), rows.vectors.shape[1])
        if not self._peer:
            raise MissingExtra(f"hnswlib cannot read {_path(rows, store)}; delete it and run again")
        self._ids = np.empty(1_000, dtype=np.int64)
        return build

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Walk the graph with ``ef = effort``."""
        count = self._ask(query, 1, 1, k, policy, effort, self._ids)
        return self._ids[:count].copy()

    def _ask(
        self,
        queries: NDArray[np.float32],
        count: int,
        threads: int,
        k: int,
        policy: Request,
        effort: int,
        ids: NDArray[np.int64],
    ) -> int:
        denied = policy.denied
        found: int = self._core.peer_search(
            self._peer,
            queries.ctypes.data,
            count,
            threads,
            k,
            effort,
            policy.is_open,
            policy.required,
            policy.forbidden,
            *self._columns,
            self._entities,
            POLICY_BITS if policy.as_of is None else policy.as_of,
            None if denied is None else denied.ctypes.data,
            -1 if denied is None else len(denied),
            ids.ctypes.data,
        )
        return found

    def close(self) -> None:
        """Free the graph."""
        self._core.peer_free(self._peer)
        super().close()


class Callback(Engine):
    """hnswlib's package with its Python filter, as cheap as a callable can be: an index into bytes."""

    name = "hnswlib-callback"
    bits = 32
    efforts = EFS

    def build(self, rows: Rows, store: Store) -> Build:
        """Load the graph into the package."""
        build = _graph(rows, store)
        self._rows = rows
        self._graph = optional("hnswlib").Index("ip", rows.vectors.shape[1])
        self._graph.load_index(str(_path(rows, store)))
        return build

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Ask for k; when it raises for want of k rows, for half as many, as its users do."""
        self._graph.set_ef(effort)
        test = None if policy.is_open else policy.admissible(self._rows).tobytes().__getitem__
        while k:
            try:
                ids, _ = self._graph.knn_query(query, k, num_threads=1, filter=test)
            except RuntimeError:
                k //= 2
            else:
                return np.asarray(ids[0], dtype=np.int64)
        return np.empty(0, dtype=np.int64)


def _compiled(cache: Path) -> Any:
    """Compile the native peer for this machine, once for every version of its source."""
    headers = _headers(cache)
    stamp = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    library = cache / f"hnswlib-native-{stamp}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}.so")
        subprocess.run(
            [*_COMPILER, f"-I{headers}", str(_SOURCE), "-o", str(partial)],
            check=True,
        )
        partial.replace(library)
    core: Any = ctypes.CDLL(str(library))
    core.peer_load.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    core.peer_load.restype = _POINTER
    core.peer_free.argtypes = [_POINTER]
    core.peer_free.restype = None
    size, number = ctypes.c_size_t, ctypes.c_uint32
    core.peer_search.argtypes = [
        *(_POINTER, _POINTER, size, size, size, size, ctypes.c_int, number, number, _POINTER, _POINTER),
        *(_POINTER, size, number, _POINTER, ctypes.c_int64, _POINTER),
    ]
    core.peer_search.restype = ctypes.c_int64
    return core


def _headers(cache: Path) -> Path:
    """Fetch hnswlib's source distribution, whose version is that of the installed package."""
    version = optional("importlib.metadata").version("hnswlib")
    home = cache / f"hnswlib-{version}"
    if not (home / "hnswlib" / "hnswalg.h").exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "hnswlib"]
        done = subprocess.run(
            [*command, "--dest", str(cache), f"hnswlib=={version}"],
            check=False,
            capture_output=True,
            text=True,
        )
        archive = cache / f"hnswlib-{version}.tar.gz"
        if not archive.exists():
            raise MissingExtra(
                f"the headers of hnswlib {version} cannot be fetched ({done.stderr.strip()[-200:]}); "
                f"put {archive.name} into {cache}, or leave hnswlib-native out"
            )
        with tarfile.open(archive) as contents:
            contents.extractall(cache, filter="data")
    return home
