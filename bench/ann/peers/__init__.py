"""The engines CARAG is measured against, one family a file: those that were the fastest in at least one cell.

A family is imported when one of its engines is asked for, so that a missing package only costs its own peers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from bench.ann.engine import Engine


PEERS: Final = {
    "numba-scan": ("scans", "NumbaScan"),
    "numpy-grouped": ("scans", "NumpyGrouped"),
    "faiss-ivf": ("faiss", "IvfFlat"),
    "faiss-ivfpq-fastscan": ("faiss", "IvfPqFastScan"),
    "hnswlib-native": ("hnswlib", "Native"),
    "faiss-hnsw": ("faiss", "Hnsw"),
    "faiss-hnsw-sq8": ("faiss", "HnswSq8"),
    "hnswlib-callback": ("hnswlib", "Callback"),
    "turbovec4-rerank": ("turbovec", "TurboVec"),
    "glass-sq8": ("postfilter", "Glass"),
}
"""Cheap ones first: a sweep ends where it cannot beat what was seen before it."""

LISTS: Final = {
    "wardowl-faiss": ("lists", "Wardowl"),
    "pgvector-rls": ("lists", "PgVector"),
    "qdrant-edge": ("lists", "QdrantEdge"),
    "lancedb": ("lists", "LanceDb"),
}
"""Those that are asked about rows that are shared with groups."""

_AT_A_MILLION: Final = {
    "faiss-hnsw": "one graph is built at this size: hnswlib's, whose test in the loop is the stronger",
    "faiss-hnsw-sq8": "one graph is built at this size: hnswlib's",
}
LEFT_OUT: Final = {("mixture-1m-128", engine): reason for engine, reason in _AT_A_MILLION.items()}
"""(set, engine) pairs that a run leaves out unless they are named, with the reason."""


def peer(name: str) -> Engine:
    """Make a peer by name.

    Raises
    ------
    InvalidArgument
        If there is no peer of that name.
    MissingExtra
        If its package is not installed.
    """
    known = PEERS | LISTS
    if name not in known:
        raise InvalidArgument(f"unknown peer {name!r}; want one of {', '.join(known)}")
    module, cls = known[name]
    made: Engine = getattr(import_module(f"{__name__}.{module}"), cls)()
    return made
