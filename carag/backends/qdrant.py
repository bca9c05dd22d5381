"""Store rows as points of Qdrant, and search them exactly.

A version of a row is a point with integers for its epochs, word, times, entity and audience as payload; the register is
a second collection. Vectors are compared by dot product, because with cosine Qdrant would normalise them and not keep
them as given. No graph is built: ``exact`` scores every point that passes the filter.

Every write waits, in the strong order of the shard's leader, for all replicas, and every read asks all replicas.
According to Qdrant's documentation, replicas of a point may otherwise stay different.

Tested with the client's local mode, without replicas, because no package index has a Qdrant server; what is said about
replicas is what the calls request, and has not been observed. Ranges compare doubles, so epochs have at most 53 bits.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID, uuid5

from carag.backends.address import DEFAULT_COLLECTION, BackendAddress, check_collection, patiently
from carag.backends.versioned import (
    KEEP,
    NEVER,
    NUMBERS,
    Nearest,
    VersionedLoads,
    Versions,
    rows_from,
    version_item,
)
from carag.errors import BackendUnavailable
from carag.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted
    from carag.backends.versioned import Register


_SCHEMES: Final = {"qdrant": False, "qdrant+tls": True, "http": False, "https": True}
_PORT: Final = 6333
_SECRET: Final = "CARAG_QDRANT_API_KEY"  # noqa: S105 - its name
"""The environment variable with the API key."""
_TIMEOUT: Final = 30
"""Seconds that the server may take to answer."""
_AT_ONCE: Final = 500
"""Points per request."""
_NAMES: Final = UUID("9c2f5b52-6c0e-4f43-8f0c-3f0f6d2d7a41")
"""The namespace for names of texts in the register (RFC 9562, version 5)."""


class QdrantBackend(VersionedLoads):
    """Rows in Qdrant.

    Parameters
    ----------
    url_or_client : str or qdrant_client.QdrantClient
        ``qdrant://HOST:PORT/COLLECTION``, with TLS ``qdrant+tls://``, or ``http://`` and ``https://`` likewise; the API
        key comes from the environment variable ``CARAG_QDRANT_API_KEY``. Or a client, which the caller closes.
    collection : str, optional
        The name of the rows, if a client is given.
    replicas : int
        Copies of each point in a new collection, all of which confirm a write.
    keep : float, optional
        See :class:`~carag.backends.versioned.VersionedBackend`.

    Raises
    ------
    InvalidArgument
        If the address or name is not valid.
    BackendUnavailable
        If the server does not answer.
    MissingExtra
        If qdrant-client is not installed.
    """

    _most_words: ClassVar[int] = 4096

    def __init__(
        self,
        url_or_client: Any,
        *,
        collection: str = DEFAULT_COLLECTION,
        replicas: int = 1,
        keep: float | None = KEEP,
    ) -> None:
        require("a backend in Qdrant", "qdrant")
        self._is_ours = isinstance(url_or_client, str)
        self._client: Any = url_or_client
        if self._is_ours:
            address = BackendAddress.parse(url_or_client, _SCHEMES, _PORT, _SECRET)
            collection, self._client = address.collection, _connected(address)
        check_collection(collection)
        super().__init__(collection, "qdrant", keep)
        self._register_name = f"{collection}__register"
        self._replicas = replicas
        self._is_open, self._is_there = True, False
        self._kind = f"qdrant {self._talk('info').version}"

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may still hold deleted rows: segments, which the server rewrites when it likes, and its log."""
        return ("qdrant-segments", "qdrant-wal", "qdrant-replicas")

    def close(self) -> None:
        """Close connections, unless the client is the caller's; idempotent."""
        if self._is_ours and self._is_open:
            self._client.close()
        self._is_open = False

    def _talk(self, method: str, *words: Any, **named: Any) -> Any:
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException

        if not self._is_open:
            raise BackendUnavailable("this backend in Qdrant is closed; open it again")
        return patiently(
            "Qdrant",
            partial(getattr(self._client, method), *words, **named),
            failures=(ApiException, QdrantException, OSError, *_rpc_errors()),
            again=_may_pass,
        )

    def _write(self, method: str, collection: str, **named: Any) -> None:
        from qdrant_client.models import WriteOrdering

        self._talk(method, collection, wait=True, ordering=WriteOrdering.STRONG, **named)

    def _read(self, method: str, collection: str, **named: Any) -> Any:
        from qdrant_client.models import ReadConsistencyType

        return self._talk(method, collection, consistency=ReadConsistencyType.ALL, **named)

    # ------------------------------------------------------------ collections

    def _prepare(self, dim: int) -> None:
        from qdrant_client import models

        if self._is_there:
            return
        settings = {"replication_factor": self._replicas, "write_consistency_factor": self._replicas}
        if not self._talk("collection_exists", self._collection):
            self._talk(
                "create_collection",
                self._collection,
                vectors_config=models.VectorParams(size=dim, distance=models.Distance.DOT),
                hnsw_config=models.HnswConfigDiff(m=0),
                **settings,
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Payload indexes have no effect", UserWarning)
            for name in NUMBERS:
                self._talk(
                    "create_payload_index",
                    self._collection,
                    field_name=name,
                    field_schema=models.PayloadSchemaType.INTEGER,
                )
        if not self._exists():
            self._talk("create_collection", self._register_name, vectors_config={}, **settings)
        self._is_there = True

    def _exists(self) -> bool:
        """Return whether there is a register, which is created last."""
        self._is_there = self._is_there or bool(self._talk("collection_exists", self._register_name))
        return self._is_there

    # ------------------------------------------------------------ register

    def _texts(self, *names: str) -> list[str]:
        if not self._exists():
            return [""] * len(names)
        ids = [str(uuid5(_NAMES, name)) for name in names]
        found = self._read("retrieve", self._register_name, ids=ids, with_payload=True)
        texts = {point.id: point.payload["text"] for point in found}
        return [texts.get(one, "") for one in ids]

    def _keep_texts(self, texts: dict[str, str]) -> None:
        from qdrant_client.models import PointStruct

        points = [
            PointStruct(id=str(uuid5(_NAMES, name)), vector={}, payload={"name": name, "text": text})
            for name, text in texts.items()
        ]
        self._write("upsert", self._register_name, points=points)

    def _drop_texts(self, names: Iterable[str]) -> None:
        if ids := [str(uuid5(_NAMES, name)) for name in names]:
            self._write("delete", self._register_name, points_selector=ids)

    # ------------------------------------------------------------ write

    def _put(self, versions: Versions) -> None:
        from qdrant_client.models import PointStruct

        payloads, vectors = versions.numbered(), versions.rows.vectors
        for start in range(0, len(payloads), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            points = [
                PointStruct(id=_point(payload["key"], payload["e0"]), vector=vector.tolist(), payload=payload)
                for payload, vector in zip(payloads[some], vectors[some], strict=True)
            ]
            self._write("upsert", self._collection, points=points)

    def _end(self, versions: Versions, epoch: int) -> None:
        ids = [*map(_point, versions.rows.keys.tolist(), versions.e0.tolist())]
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            self._write("set_payload", self._collection, payload={"e1": epoch}, points=some)

    def _drop_after(self, epoch: int) -> None:
        self._write("delete", self._collection, points_selector=_selector(_range("e0", gt=epoch)))

    def _reopen_after(self, epoch: int) -> None:
        late = _selector(_range("e1", gt=epoch, lt=NEVER))
        self._write("set_payload", self._collection, payload={"e1": NEVER}, points=late)

    def _drop_ended(self, epoch: int) -> None:
        self._write("delete", self._collection, points_selector=_selector(_range("e1", lte=epoch)))

    def _free(self) -> None:
        """Do nothing: a client cannot ask the server to rewrite its segments."""

    # ------------------------------------------------------------ read

    def _live(self, keys: Sequence[int], register: Register) -> Versions:
        from qdrant_client.models import Filter

        found: list[Any] = []
        for start in range(0, len(keys) if self._exists() else 0, _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            points, _ = self._read(
                "scroll",
                self._collection,
                scroll_filter=Filter(must=[_any("key", some), *_holds(register.epoch)]),
                limit=len(some),
                with_payload=True,
                with_vectors=True,
            )
            found += points
        return Versions.listed([_item(point) for point in found], register.dim)

    def _counted(self, admitted: Admitted, register: Register) -> int:
        asked = _filter(admitted, register.epoch)
        return int(self._talk("count", self._collection, count_filter=asked, exact=True).count)

    def _nearest(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, register: Register
    ) -> Nearest:
        from qdrant_client.models import QueryRequest, SearchParams

        asked = _filter(admitted, register.epoch)
        requests = [
            QueryRequest(
                query=query.tolist(),
                filter=asked,
                params=SearchParams(exact=True),
                limit=k,
                with_payload=True,
                with_vector=True,
            )
            for query in queries
        ]
        answers = [
            one.points for one in self._read("query_batch_points", self._collection, requests=requests)
        ]
        rows = {point.payload["key"]: _item(point) for points in answers for point in points}
        return Nearest(
            [[point.payload["key"] for point in points] for points in answers],
            [[point.score for point in points] for points in answers],
            rows_from(list(rows.values()), register.dim),
        )


def connected_to(url: str) -> tuple[Any, str]:
    """Return a client, which connects when it is used, and the collection that an address names."""
    address = BackendAddress.parse(url, _SCHEMES, _PORT, _SECRET)
    return _connected(address), address.collection


def _connected(address: BackendAddress) -> Any:
    from qdrant_client import QdrantClient

    host, port = address.only_host("Qdrant", "node")
    return QdrantClient(
        host=host,
        port=port,
        https=address.is_encrypted,
        api_key=address.secret or None,
        timeout=_TIMEOUT,
        check_compatibility=False,  # the check only warns; the version is read and recorded anyway
    )


def _rpc_errors() -> tuple[type[BaseException], ...]:
    import grpc

    return (grpc.RpcError,)


def _may_pass(error: BaseException) -> bool:
    """Return whether a failure may pass: the network, or a busy or starting server; not a refusal."""
    status = getattr(error, "status_code", None)
    return not isinstance(status, int) or status in (408, 429) or status >= 500


def _point(key: int, e0: int) -> str:
    """Make a version's id: the key and the epoch that brought it, as one number of 128 bits."""
    return str(UUID(int=key << 64 | e0))


def _item(point: Any) -> tuple[object, ...]:
    return version_item(point.payload, point.vector)


def _range(name: str, **bounds: float) -> Any:
    from qdrant_client.models import FieldCondition, Range

    return FieldCondition(key=name, range=Range(**bounds))


def _any(name: str, numbers: Iterable[int]) -> Any:
    from qdrant_client.models import FieldCondition, MatchAny

    return FieldCondition(key=name, match=MatchAny(any=list(numbers)))


def _holds(epoch: int) -> list[Any]:
    return [_range("e0", lte=epoch), _range("e1", gt=epoch)]


def _selector(*conditions: Any) -> Any:
    from qdrant_client.models import Filter, FilterSelector

    return FilterSelector(filter=Filter(must=list(conditions)))


def _filter(admitted: Admitted, epoch: int) -> Any:
    from qdrant_client.models import Filter

    wanted = [
        *_holds(epoch),
        _range("public_at", lte=admitted.as_of),
        _range("expires_at", gt=admitted.alive_at),
        _any("word", admitted.words),
    ]
    if admitted.allow_entities is not None:
        wanted.append(_any("entity", admitted.allow_entities))
    if admitted.audiences is not None:
        wanted.append(_any("audience", admitted.audiences))
    denied = [_any("entity", admitted.deny_entities)] if admitted.deny_entities else None
    return Filter(must=wanted, must_not=denied)
