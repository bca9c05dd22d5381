"""Make a backend from a URL, or a sharded one from several; the client is imported only then.

Several URLs are separated by white space, which no URL contains; a comma would not do, since libpq takes ``HOST,HOST``
for one server and its standby.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from carag.backends.address import DEFAULT_COLLECTION
from carag.backends.postgres.backend import PostgresBackend
from carag.backends.postgres.epochs import PostgresEpochs
from carag.backends.postgres.link import collection_in
from carag.backends.sharded import ShardedBackend
from carag.errors import BackendUnavailable, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.backends.protocol import VectorBackend

__all__ = ["backend_by_url", "in_collection"]

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
_SHARDS: Final = "postgresql://"
"""The start of a shard's address: these servers replay their epochs, and are independent of each other."""


def backend_by_url(url: str) -> VectorBackend:
    """Make the backend that a URL names; several URLs name the PostgreSQL servers of one sharded collection.

    Parameters
    ----------
    url : str
        Several are separated by white space. Their order must stay the same, since with the key it decides which shard
        a row is in. The first server also stores the epochs.

    Raises
    ------
    InvalidArgument
        If the scheme is unknown, or several URLs are not the shards of one collection in their order. The message shows
        nothing else of the URL, which may contain a password.
    BackendUnavailable
        If a server does not answer.

    Examples
    --------
    >>> backend_by_url("oracle://me:secret@host")
    Traceback (most recent call last):
    carag.errors.InvalidArgument: there is no backend of vectors 'oracle'; want a URL that begins with milvus://, ...
    """
    urls = url.split()
    if any(one.count("://") > 1 or one.endswith(",") for one in urls):
        raise InvalidArgument("several addresses are separated by spaces or line breaks; remove the commas")
    if len(urls) > 1:
        return _sharded(urls)
    scheme, mark, _ = url.partition("://")
    if not mark or scheme not in _BACKENDS:
        known = ", ".join(f"{one}://" for one in sorted(_BACKENDS))
        # Without :// all of it could be a password.
        raise InvalidArgument(
            f"there is no backend of vectors {quoted(scheme) if mark else 'of this name'}; want a URL that begins with "
            f"{known}, or 'native'"
        )
    module, name = _BACKENDS[scheme]
    made: VectorBackend = getattr(import_module(module), name)(url)
    return made


def _sharded(urls: list[str]) -> VectorBackend:
    for number, url in enumerate(urls):
        if not url.startswith(_SHARDS):
            raise InvalidArgument(
                f"several addresses are the shards of one collection, and shard {number} of {len(urls)} does not begin "
                f"with {_SHARDS}; name PostgreSQL servers, or one address of another engine, with %20 for a space in it"
            )
    named = [collection_in(url)[1] or DEFAULT_COLLECTION for url in urls]
    if len(set(named)) > 1:
        raise InvalidArgument(
            f"the shards name the collections {', '.join(quoted(one) for one in named)}; use one name in all addresses"
        )
    with ExitStack() as undo:
        shards = []
        for number, url in enumerate(urls):
            with _named(f"shard {number} of {len(urls)}"):
                shards.append(PostgresBackend(url))
            undo.callback(shards[-1].close)
        _check_distinct([shard.state().shards[0].id for shard in shards])
        epochs = PostgresEpochs(collection_in(urls[0])[0], collection=named[0])
        undo.callback(epochs.close)
        made = ShardedBackend(shards, epochs)
        undo.pop_all()
        return made


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Name the shard in an error."""
    try:
        yield
    except (BackendUnavailable, InvalidArgument) as error:
        raise type(error)(f"{what}: {error}") from None


def _check_distinct(databases: list[str]) -> None:
    for number, database in enumerate(databases):
        if (first := databases.index(database)) < number:
            raise InvalidArgument(
                f"shards {first} and {number} are the same database; name each database once"
            )


def in_collection(url: str, name: str) -> str:
    """Name another collection on the same server, or the same shards.

    Examples
    --------
    >>> in_collection("redis://node-1:7000,node-2:7000/filings", "other")
    'redis://node-1:7000,node-2:7000/other'
    >>> in_collection("postgresql://a/v?collection=one  postgresql://b/v", "other")
    'postgresql://a/v?collection=other postgresql://b/v?collection=other'
    >>> in_collection("postgresql://carag_app@db.example/vectors?collection=filings&sslmode=require", "other")
    'postgresql://carag_app@db.example/vectors?sslmode=require&collection=other'
    """
    urls = url.split()
    if len(urls) > 1:
        return " ".join(in_collection(one, name) for one in urls)
    scheme, mark, rest = url.partition("://")
    if scheme != "postgresql":
        return f"{scheme}{mark}{rest.partition('/')[0]}/{name}"
    parts = urlsplit(url)
    asked = [one for one in parse_qsl(parts.query, keep_blank_values=True) if one[0] != "collection"]
    return parts._replace(query=urlencode([*asked, ("collection", name)])).geturl()
