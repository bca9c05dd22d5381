"""The engines CARAG is measured against, one family a file.

A family is imported when one of its engines is asked for, so that a missing package only costs its own peers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from bench.ann.engine import Engine

__all__ = ["LEFT_OUT", "PEERS", "peer"]

PEERS: Final = {
    "numba-scan": ("scans", "NumbaScan"),
    "numpy-grouped": ("scans", "NumpyGrouped"),
    "faiss-flat": ("faiss", "Flat"),
    "faiss-ivf": ("faiss", "IvfFlat"),
    "faiss-ivfpq-fastscan": ("faiss", "IvfPqFastScan"),
    "faiss-ivf-rabitq": ("faiss", "IvfRaBitQ"),
    "hnswlib-native": ("hnswlib", "Native"),
    "faiss-hnsw": ("faiss", "Hnsw"),
    "faiss-hnsw-sq8": ("faiss", "HnswSq8"),
    "hnswlib-callback": ("hnswlib", "Callback"),
    "turbovec4-rerank": ("turbovec", "TurboVec"),
    "qdrant-edge": ("qdrant", "QdrantEdge"),
    "qdrant-edge-acorn": ("qdrant", "QdrantAcorn"),
    "zvec-hnsw": ("zvec", "Zvec"),
    "zvec-hnsw-int8": ("zvec", "ZvecInt8"),
    "svs-vamana-lvq4x8": ("postfilter", "VamanaLvq4x8"),
    "svs-vamana-lvq8": ("postfilter", "VamanaLvq8"),
    "svs-vamana": ("postfilter", "Vamana"),
    "usearch": ("postfilter", "Usearch"),
    "usearch-i8": ("postfilter", "UsearchInt8"),
    "voyager": ("postfilter", "Voyager"),
    "glass-sq8": ("postfilter", "Glass"),
    "wardowl-faiss": ("wardowl", "Wardowl"),
}
"""Cheap ones first: a sweep ends where it cannot beat what was seen before it."""

_AT_A_MILLION: Final = {
    "faiss-hnsw": "one graph is built at this size: hnswlib's, whose test in the loop is the stronger",
    "faiss-hnsw-sq8": "one graph is built at this size: hnswlib's",
    "qdrant-edge": "its build takes longer than the whole run",
    "qdrant-edge-acorn": "its build takes longer than the whole run",
    "zvec-hnsw": "its build takes longer than the whole run",
    "zvec-hnsw-int8": "its build takes longer than the whole run",
    "wardowl-faiss": "it tests every row in Python: under 20 queries/s from 26,595 rows up",
}
LEFT_OUT: Final = {("mixture-1m-128", engine): reason for engine, reason in _AT_A_MILLION.items()}
"""(set, engine) pairs that a run leaves out unless they are named, with the reason."""


def peer(name: str) -> Engine:
    """Make a peer by name.

    Raises
    ------
    InvalidArgument
        If there is none of that name.
    MissingExtra
        If its package is not installed.
    """
    if name not in PEERS:
        raise InvalidArgument(f"there is no peer {name!r}; want one of {', '.join(PEERS)}")
    module, cls = PEERS[name]
    made: Engine = getattr(import_module(f"{__name__}.{module}"), cls)()
    return made
