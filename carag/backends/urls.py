"""Make a backend from a URL; the client is imported only then."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.postgres.address import taken_out, with_parameter

if TYPE_CHECKING:
    from carag.backends.protocol import VectorBackend


_BACKENDS: Final = {
    "postgresql": ("carag.backends.postgres.backend", "PostgresBackend"),
    "milvus": ("carag.backends.milvus", "MilvusBackend"),
    "milvus+tls": ("carag.backends.milvus", "MilvusBackend"),
    "qdrant": ("carag.backends.qdrant", "QdrantBackend"),
    "qdrant+tls": ("carag.backends.qdrant", "QdrantBackend"),
    "redis": ("carag.backends.redis", "RedisBackend"),
    "rediss": ("carag.backends.redis", "RedisBackend"),
}
"""Module and class by URL scheme."""


def backend_by_url(url: str) -> VectorBackend:
    """Make the backend that a URL names.

    Raises
    ------
    InvalidArgument
        If the scheme is unknown, or there are several URLs. The message shows nothing else of the URL, because it may
        contain a password.
    BackendUnavailable
        If a server does not answer.

    Examples
    --------
    >>> backend_by_url("oracle://me:secret@host")
    Traceback (most recent call last):
    carag.errors.InvalidArgument: there is no backend of vectors 'oracle'; want a URL that begins with milvus://, ...
    """
    if url.count("://") > 1:
        raise InvalidArgument(
            f"there are {url.count('://')} addresses, but a collection is in one place; name one server (Milvus, "
            "Qdrant and Redis spread a collection over several machines themselves)"
        )
    scheme, mark, _ = url.partition("://")
    if not mark or scheme not in _BACKENDS:
        known = ", ".join(f"{one}://" for one in sorted(_BACKENDS))
        # Without ://, all of the URL could be a password.
        raise InvalidArgument(
            f"there is no backend of vectors {quoted(scheme) if mark else 'of this name'}; want a URL that begins with "
            f"{known}, or 'native'"
        )
    module, name = _BACKENDS[scheme]
    made: VectorBackend = getattr(import_module(module), name)(url)
    return made


def in_collection(url: str, name: str) -> str:
    """Name another collection on the same server.

    Examples
    --------
    >>> in_collection("redis://node-1:7000,node-2:7000/filings", "other")
    'redis://node-1:7000,node-2:7000/other'
    >>> in_collection("postgresql://carag_app@db.example/vectors?collection=filings&sslmode=require", "other")
    'postgresql://carag_app@db.example/vectors?sslmode=require&collection=other'
    """
    scheme, mark, rest = url.partition("://")
    if scheme != "postgresql":
        return f"{scheme}{mark}{rest.partition('/')[0]}/{name}"
    return with_parameter(taken_out(url, "collection")[0], "collection", name)
