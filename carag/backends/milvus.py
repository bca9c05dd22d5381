"""Store rows as entities of Milvus, and search them exactly.

A version of a row is an entity with integer fields for its epochs, word, times and entity; the register is a second
collection. The index is ``FLAT``, which scores every entity that passes the filter; the metric is the inner product, so
vectors come back as they were given.

Every read has consistency ``Strong``: with less, a confirmed relabel was not seen for seconds. Strong waits for the
next tick of the server's clock, by default up to 200 ms, so any question may take that long. A version is ended by
writing it again, because Milvus cannot change a single field.

A server that was killed and started again reports within seconds that it is healthy, but refuses every question until
the earlier session has expired (``common.session.ttl``, 30 seconds by default). With 10, 30 and 90 seconds it answered
after 16, 35 and 96 seconds, with everything that it had confirmed.

Tested with the real server 2.3.5 in one process; its cluster needs a broker that no package index has. It returns at
most 16,384 rows for a query.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from carag.backends.address import BackendAddress, patiently
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
from carag.errors import BackendUnavailable, InvalidArgument
from carag.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted
    from carag.backends.versioned import Register


_SCHEMES: Final = {"milvus": False, "milvus+tls": True, "http": False, "https": True}
_PORT: Final = 19_530
_SECRET: Final = "CARAG_MILVUS_TOKEN"  # noqa: S105 - its name
"""The environment variable with the token, or with the password if the address names a user."""
_TIMEOUT: Final = 30.0
"""Seconds for a call including the client's own retries."""
_COMPACTION: Final = 600.0
"""Seconds that the server may take to write its segments again."""
_PAUSE: Final = 0.2
"""Seconds between two questions whether it has."""
_AT_ONCE: Final = 1000
"""Entities per request."""
_MOST: Final = 16_384
"""Most rows that Milvus returns for a query."""
_LONGEST: Final = 65_535
"""Most bytes in a text field."""
_STRONG: Final = {"consistency_level": "Strong"}


class MilvusBackend(VersionedLoads):
    """Rows in Milvus.

    Parameters
    ----------
    uri : str
        ``milvus://HOST:PORT/COLLECTION``, with TLS ``milvus+tls://``, or ``http://`` and ``https://`` likewise, with an
        optional user before the host. The token or password comes from the environment variable ``CARAG_MILVUS_TOKEN``.
    keep : float, optional
        See :class:`~carag.backends.versioned.VersionedBackend`.
    timeout : float
        Seconds for a call including the client's own retries.

    Raises
    ------
    InvalidArgument
        If the address is not valid.
    BackendUnavailable
        If the server does not answer.
    MissingExtra
        If pymilvus is not installed.
    """

    _most_words: ClassVar[int] = 2048

    def __init__(self, uri: str, *, keep: float | None = KEEP, timeout: float = _TIMEOUT) -> None:
        require("a backend in Milvus", "milvus")
        address = BackendAddress.parse(uri, _SCHEMES, _PORT, _SECRET)
        super().__init__(address.collection, "milvus", keep)
        self._register_name = f"{address.collection}__register"
        self._timeout = timeout
        self._is_open, self._is_there = True, False
        self._client: Any = self._tried(partial(_connected, address, timeout))
        version = self._talk("get_server_version")
        self._kind = f"milvus {str(version).removeprefix('v')}"

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may still hold deleted rows: old segments, which the server removes later, and its log."""
        return ("milvus-segments", "milvus-log")

    def close(self) -> None:
        """Close connections; idempotent."""
        if self._is_open:
            self._is_open = False
            self._client.close()

    def _talk(self, method: str, *words: Any, **named: Any) -> Any:
        if not self._is_open:
            raise BackendUnavailable("this backend in Milvus is closed; open it again")
        return self._tried(partial(getattr(self._client, method), *words, timeout=self._timeout, **named))

    def _tried(self, call: Any) -> Any:
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        # The client itself retries until the timeout.
        return patiently("Milvus", call, failures=(MilvusException, RpcError, OSError), again=lambda _: False)

    # ------------------------------------------------------------ collections

    def _prepare(self, dim: int) -> None:
        if self._exists():
            return
        from pymilvus import DataType

        texts = [("name", 100, True), ("text", _LONGEST, False)]
        if not self._talk("has_collection", self._collection):
            self._create(self._collection, dim, [("id", 50, True)], DataType)
        self._create(self._register_name, 2, texts, DataType, numbers=())
        self._is_there = True

    def _create(
        self,
        name: str,
        dim: int,
        texts: Sequence[tuple[str, int, bool]],
        kinds: Any,
        numbers: Sequence[str] = NUMBERS,
    ) -> None:
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        for field, length, is_primary in texts:
            schema.add_field(field, kinds.VARCHAR, max_length=length, is_primary=is_primary)
        for field in numbers:
            schema.add_field(field, kinds.INT64)
        schema.add_field("vector", kinds.FLOAT_VECTOR, dim=dim)
        index = self._client.prepare_index_params()
        index.add_index("vector", index_type="FLAT", metric_type="IP")
        self._talk("create_collection", name, schema=schema, index_params=index, **_STRONG)

    def _exists(self) -> bool:
        """Return whether there is a register, which is created last."""
        self._is_there = self._is_there or bool(self._talk("has_collection", self._register_name))
        return self._is_there

    # ------------------------------------------------------------ register

    def _texts(self, *names: str) -> list[str]:
        if not self._exists():
            return [""] * len(names)
        found = self._query(f"name in {_quoted(names)}", ["name", "text"], collection=self._register_name)
        texts = {one["name"]: one["text"] for one in found}
        return [texts.get(name, "") for name in names]

    def _keep_texts(self, texts: dict[str, str]) -> None:
        entities = [{"name": name, "text": text, "vector": [0.0, 0.0]} for name, text in texts.items()]
        self._talk("upsert", self._register_name, entities)

    def _drop_texts(self, names: Iterable[str]) -> None:
        if listed := list(names):
            self._talk("delete", self._register_name, ids=listed)

    # ------------------------------------------------------------ write

    def _put(self, versions: Versions) -> None:
        entities = [
            {"id": f"{one['key']}:{one['e0']}", "vector": vector, **one}
            for one, vector in zip(versions.numbered(), versions.rows.vectors, strict=True)
        ]
        for start in range(0, len(entities), _AT_ONCE):
            self._talk("upsert", self._collection, entities[start : start + _AT_ONCE])

    def _end(self, versions: Versions, epoch: int) -> None:
        self._put(versions._replace(e1=np.full_like(versions.e1, epoch)))

    def _drop_after(self, epoch: int) -> None:
        self._drop(f"e0 > {epoch}")

    def _drop_ended(self, epoch: int) -> None:
        self._drop(f"e1 <= {epoch}")

    def _free(self) -> None:
        """Have the server write its segments without the removed entities.

        Raises BackendUnavailable if it has not within :data:`_COMPACTION` seconds.
        """
        until = time.monotonic() + _COMPACTION
        for name in (self._collection, self._register_name):
            self._talk("flush", name)
            job = self._talk("compact", name)
            while self._talk("get_compaction_state", job) != "Completed":
                if time.monotonic() > until:
                    raise BackendUnavailable(
                        f"Milvus has not compacted {name} within {_COMPACTION:g} s, so that its segments still have "
                        "deleted rows; try again"
                    )
                time.sleep(_PAUSE)

    def _drop(self, condition: str) -> None:
        while found := self._query(condition, ["id"], limit=_AT_ONCE):
            self._talk("delete", self._collection, ids=[one["id"] for one in found])

    def _reopen_after(self, epoch: int) -> None:
        condition = f"e1 > {epoch} and e1 < {NEVER}"
        while found := self._query(condition, [*NUMBERS, "vector"], limit=_AT_ONCE):
            self._end(Versions.listed([_item(one) for one in found], 0), NEVER)

    # ------------------------------------------------------------ read

    def _query(
        self, condition: str, fields: Sequence[str], *, collection: str = "", **named: Any
    ) -> list[dict[str, Any]]:
        found = self._talk(
            "query",
            collection or self._collection,
            filter=condition,
            output_fields=list(fields),
            **_STRONG,
            **named,
        )
        return list(found)

    def _live(self, keys: Sequence[int], register: Register) -> Versions:
        found: list[dict[str, Any]] = []
        for start in range(0, len(keys) if self._exists() else 0, _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            found += self._query(f"key in {list(some)} and {_holds(register.epoch)}", [*NUMBERS, "vector"])
        return Versions.listed([_item(one) for one in found], register.dim)

    def _counted(self, admitted: Admitted, register: Register) -> int:
        (found,) = self._query(_filter(admitted, register.epoch), ["count(*)"])
        return int(found["count(*)"])

    def _nearest(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, register: Register
    ) -> Nearest:
        if k > _MOST:
            raise InvalidArgument(f"k is {k:,}; Milvus returns at most {_MOST:,} rows")
        answers = self._talk(
            "search",
            self._collection,
            data=list(queries),
            anns_field="vector",
            filter=_filter(admitted, register.epoch),
            limit=k,
            output_fields=[*NUMBERS, "vector"],
            search_params={"metric_type": "IP"},
            **_STRONG,
        )
        rows = {hit["entity"]["key"]: _item(hit["entity"]) for hits in answers for hit in hits}
        return Nearest(
            [[hit["entity"]["key"] for hit in hits] for hits in answers],
            [[hit["distance"] for hit in hits] for hits in answers],
            rows_from(list(rows.values()), register.dim),
        )


def _connected(address: BackendAddress, timeout: float) -> Any:
    from pymilvus import MilvusClient

    host, port = address.only_host("Milvus", "proxy")
    return MilvusClient(
        uri=f"{'https' if address.is_encrypted else 'http'}://{host}:{port}",
        token=f"{address.user}:{address.secret}" if address.user else address.secret,
        timeout=timeout,
        dedicated=True,  # a shared connection would be closed with this one
    )


def _item(entity: dict[str, Any]) -> tuple[object, ...]:
    return version_item(entity, entity["vector"])


def _quoted(names: Sequence[str]) -> str:
    """List names in the register, which consist of letters, digits and slashes."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _holds(epoch: int) -> str:
    return f"e0 <= {epoch} and e1 > {epoch}"


def _filter(admitted: Admitted, epoch: int) -> str:
    """Write the filter expression, of integers only."""
    conditions = [
        _holds(epoch),
        f"public_at <= {admitted.as_of} and expires_at > {admitted.alive_at}",
        f"word in {list(admitted.words)}",
    ]
    if admitted.allow_entities is not None:
        conditions.append(f"entity in {list(admitted.allow_entities)}")
    if admitted.deny_entities:
        conditions.append(f"entity not in {list(admitted.deny_entities)}")
    if admitted.audiences is not None:
        conditions.append(f"audience in {list(admitted.audiences)}")
    return " and ".join(conditions)
