"""Build the graph of a backend, once its rows are there."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from carag.backends import GraphBackend, backend_by_url
from carag.errors import InvalidArgument

__all__ = ["Built", "build_graph"]


class Built(NamedTuple):
    """A graph."""

    rows: int
    """That it is over."""
    recall: float | None
    """That the backend declares of its plan ``graph``."""


def build_graph(url: str, *, memory_mb: int | None = None) -> Built:
    """Have the backend that a URL names build its graph: :class:`~carag.backends.GraphBackend`.

    Raises
    ------
    InvalidArgument
        If it is of a kind that builds none, has no rows, or cannot take so much memory.
    BackendUnavailable
        If a server does not answer.
    """
    with closing(backend_by_url(url)) as place:
        if not isinstance(place, GraphBackend):
            raise InvalidArgument("this backend builds no graph; PostgreSQL does")
        place.build_graph(memory_mb=memory_mb)
        return Built(sum(shard.rows for shard in place.state().shards), place.capabilities.recall)
