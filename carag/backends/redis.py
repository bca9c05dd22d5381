"""Store rows in the vector sets of a Redis 8 cluster, and search them exactly.

A vector set lies on one node, so rows are spread over as many sets as the cluster had primaries when the first rows
came, each pinned to its share of the slots by a hash tag. A search asks all of the sets and merges; if one set does not
answer, the search fails. Every set has a hash in the same slot, changed in the same transaction, with each row's
versions and the bytes of its vector: a vector set normalises vectors and cannot return the original.

Measured on three nodes of one machine: the exact plan (``TRUTH``) reads a JSON text of every *stored* row to filter it,
so its cost hardly falls if few rows are admissible, and is three times as high with 1,000 words and ten times with
5,000. A count is such a search that returns all names, so it is cached by epoch and policy. All rows are in memory, and
no node may evict any (``noeviction``): if rows are missing, this is noticed and the answer refused. Replication is
asynchronous: a confirmed batch can be lost when a replica takes over; a reader that had seen its epoch notices and
raises an error. There is no graph plan: with a filter, it returned short lists with two thirds of the nearest rows.

A row is removed by a script, not by ``VREM`` alone, which crashes a node of Redis 8.2 and 8.4 about once in 10,000 rows
of small sets (redis/redis#15424). With the script, none crashed in 1.6 million rows. But a replica, or a node that
reloads its append-only file, replays only the ``VREM`` and draws its own levels: it may crash, and comes up when it is
started again.
"""

from __future__ import annotations

import json
import struct
import time
from collections import defaultdict
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from carag.backends.address import BackendAddress, patiently
from carag.backends.versioned import KEEP, NEVER, Nearest, VersionedLoads, Versions
from carag.errors import BackendFault, BackendUnavailable
from carag.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted
    from carag.backends.versioned import Register


_SCHEMES: Final = {"redis": False, "rediss": True}
_PORT: Final = 6379
_SECRET: Final = "CARAG_REDIS_PASSWORD"  # noqa: S105 - its name
"""The environment variable with the password."""
_SLOTS: Final = 16_384
_TIMEOUT: Final = 30.0
"""Seconds that a node may take to answer."""
_CONNECT: Final = 5.0
"""Seconds that a connection to a node may take."""
_REWRITE: Final = 600.0
"""Seconds that a node may take to write its file again."""
_PAUSE: Final = 0.1
"""Seconds between two questions whether it has."""
_WRITES: Final = (
    "aof_rewrite_in_progress",
    "aof_rewrite_scheduled",
    "rdb_bgsave_in_progress",
)
_AT_ONCE: Final = 200
"""Rows per transaction, during which a node serves nothing else."""
_GRAPH: Final = ("NOQUANT", "EF", 1, "M", 4)
"""Whole vectors, and the smallest possible graph: a vector set builds one, and nothing here searches it."""
_REMOVAL: Final = """
local set, vector, left = KEYS[1], table.remove(ARGV, 1), ARGV
local function top()
    local info = redis.call('VINFO', set)
    for i = 1, info and #info or 0, 2 do
        if (info[i].ok or info[i]) == 'max-level' then return info[i + 1] end
    end
    return -1
end
local function level(element)
    local links = redis.call('VLINKS', set, element)
    return links and #links - 1 or -1
end
local added = 0
while #left > 0 do
    local tall = {}
    for _, element in ipairs(left) do
        if level(element) > top() then
            table.insert(tall, element)
        else
            redis.call('VREM', set, element)
        end
    end
    left = tall
    local highest = #tall > 0 and level(tall[1]) or -1
    while top() < highest do
        added = added + 1
        redis.call('VADD', set, 'FP32', vector, '+' .. added, GRAPH)
        table.insert(left, '+' .. added)
    end
end
""".replace("GRAPH", ", ".join(map(repr, _GRAPH)))
"""Removes elements from a vector set without the crash. Redis looks for neighbours of a removed node past the end of
the graph's entry point if the node reaches above that point, which can happen after entry points were removed. Such a
node waits until added points, whose levels are random, reach as high; then all of these are removed. Of 40,000 rows,
removed from the highest down, one waited for 933 points, 34 ms; in the usual order of removal, none waited.
"""
_FIXED: Final = struct.Struct("<qqIIIIII")
"""The fixed part of a stored version: ``e0``, ``e1``, word, public_at, expires_at, entity, audience, dim. Its vector
follows."""

_Stored: TypeAlias = dict[int, bytes]
"""The versions of a key, by ``e0``."""


class RedisBackend(VersionedLoads):
    """Rows in a Redis 8 cluster.

    Parameters
    ----------
    nodes : str or sequence of str
        Some nodes of the cluster, which name the others: ``redis://HOST:PORT,HOST:PORT/COLLECTION``, with TLS
        ``rediss://``; or a list of ``HOST:PORT``. A user and password may precede the hosts; a password is better kept
        in the environment variable ``CARAG_REDIS_PASSWORD``.
    keep : float, optional
        See :class:`~carag.backends.versioned.VersionedBackend`.
    timeout : float
        Seconds that a node may take for one command.

    Raises
    ------
    InvalidArgument
        If the address is not valid.
    BackendUnavailable
        If no node answers, or not all slots are served.
    MissingExtra
        If redis is not installed.
    """

    _most_words: ClassVar[int] = 4096

    def __init__(
        self, nodes: str | Sequence[str], *, keep: float | None = KEEP, timeout: float = _TIMEOUT
    ) -> None:
        require("a backend in Redis", "redis")
        text = nodes if isinstance(nodes, str) else ",".join(map(str, nodes))
        address = BackendAddress.parse(text if "://" in text else f"redis://{text}", _SCHEMES, _PORT, _SECRET)
        super().__init__(address.collection, "redis", keep)
        self._tags: list[str] = []
        self._is_open = True
        self._client: Any = self._talk(lambda: _connected(address, timeout))
        info = self._talk(lambda: self._client.info("server", target_nodes=self._client.get_primaries()[0]))
        self._kind = f"redis {info['redis_version']}"

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may still hold deleted rows: memory that is free again, and what replicas wrote to disk."""
        return ("redis-memory", "redis-replicas")

    def close(self) -> None:
        """Close connections; idempotent."""
        self._is_open = False
        self._client.close()

    # ------------------------------------------------------------ parts

    def _shards(self) -> int:
        return len(self._of_parts())

    def _prepare(self, dim: int) -> None:  # noqa: ARG002 - a vector set takes the length from its first row
        """Fix the number of parts; a vector set is created by its first row."""
        parts = len(self._of_parts())
        self._talk(lambda: self._client.hsetnx(self._key, "parts", parts))

    def _of_parts(self) -> list[str]:
        """Return the hash tags of the parts, fixed by the first write; before that, one per primary."""
        if not self._tags:
            fixed = self._talk(lambda: self._client.hget(self._key, "parts"))
            tags = list(_tags(self._collection, int(fixed or len(self._client.get_primaries()))))
            if fixed is None:
                return tags
            self._tags = tags
        return self._tags

    @property
    def _key(self) -> str:
        return f"{{{self._collection}}}:register"

    def _talk(self, call: Callable[[], Any]) -> Any:
        import redis

        if not self._is_open:
            raise BackendUnavailable("this backend in Redis is closed; open it again")
        of_cluster = redis.exceptions.RedisClusterException
        passing = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ClusterError, of_cluster)
        return patiently(
            "Redis",
            call,
            failures=(redis.RedisError, of_cluster, OSError),
            again=lambda error: isinstance(error, passing),
        )

    def _ask(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Send commands to their nodes in one round trip; either all are answered or none."""

        def asked() -> list[Any]:
            with self._client.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return list(pipe.execute())

        return self._talk(asked) if commands else []

    # ------------------------------------------------------------ register

    def _texts(self, *names: str) -> list[str]:
        found = self._talk(lambda: self._client.hmget(self._key, names))
        return ["" if one is None else one.decode() for one in found]

    def _keep_texts(self, texts: dict[str, str]) -> None:
        self._talk(lambda: self._client.hset(self._key, mapping=texts))

    def _drop_texts(self, names: Iterable[str]) -> None:
        if listed := list(names):
            self._talk(lambda: self._client.hdel(self._key, *listed))

    # ------------------------------------------------------------ write

    def _put(self, versions: Versions) -> None:
        new = dict(zip(versions.rows.keys.tolist(), _packed(versions), strict=True))
        self._rewrite(new, lambda key, there: {**there, _epochs(new[key])[0]: new[key]})

    def _end(self, versions: Versions, epoch: int) -> None:
        begun = dict(zip(versions.rows.keys.tolist(), versions.e0.tolist(), strict=True))
        self._rewrite(begun, lambda key, there: {**there, begun[key]: _ended(there[begun[key]], epoch)})

    def _drop_after(self, epoch: int) -> None:
        self._rewrite(
            self._matching(f".a > {epoch}"),
            lambda _, there: {e0: one for e0, one in there.items() if e0 <= epoch},
        )

    def _reopen_after(self, epoch: int) -> None:
        self._rewrite(
            self._matching(f".z > {epoch} and .z < {NEVER}"),
            lambda _, there: {
                e0: _ended(one, NEVER) if _epochs(one)[1] > epoch else one for e0, one in there.items()
            },
        )

    def _drop_ended(self, epoch: int) -> None:
        self._rewrite(
            self._matching(f".z <= {epoch}"),
            lambda _, there: {e0: one for e0, one in there.items() if _epochs(one)[1] > epoch},
        )

    def _matching(self, condition: str) -> list[int]:
        """Find the keys of versions by their attributes, among all of a set."""
        sets = [f"{tag}:vectors" for tag in self._of_parts()]
        sizes = self._ask([("VCARD", one) for one in sets])
        filled = [(one, size) for one, size in zip(sets, sizes, strict=True) if size]
        dims = self._ask([("VDIM", one) for one, _ in filled])
        found = self._ask(
            [_all_of(one, size, dim, condition) for (one, size), dim in zip(filled, dims, strict=True)]
        )
        return list({_key_of(name) for names in found for name in names})

    def _rewrite(self, keys: Iterable[int], change: Callable[[int, _Stored], _Stored]) -> None:
        """Change the stored rows of a part, its hash and vector set in one transaction."""
        by_part = defaultdict(list)
        tags = self._of_parts()
        for key in keys:
            by_part[tags[key % len(tags)]].append(key)
        for tag, listed in by_part.items():
            for start in range(0, len(listed), _AT_ONCE):
                some = listed[start : start + _AT_ONCE]
                stored = self._talk(partial(self._client.hmget, f"{tag}:rows", some))
                there = {key: _unpacked(one) for key, one in zip(some, stored, strict=True)}
                self._commit(tag, {key: (old, change(key, old)) for key, old in there.items()})

    def _commit(self, tag: str, changes: dict[int, tuple[_Stored, _Stored]]) -> None:
        name = f"{tag}:vectors"
        gone = {
            _element(key, e0): old[e0]
            for key, (old, new) in changes.items()
            for e0 in old.keys() - new.keys()
        }

        def committed() -> None:
            with self._client.pipeline(transaction=True) as pipe:
                for key, (old, new) in changes.items():
                    if new:
                        pipe.hset(f"{tag}:rows", str(key), b"".join(new.values()))
                    else:
                        pipe.hdel(f"{tag}:rows", str(key))
                    for command in _commands(name, key, old, new):
                        pipe.execute_command(*command)
                if gone:
                    vector = _vector(next(iter(gone.values())))
                    pipe.execute_command("EVAL", _REMOVAL, 1, name, vector, *gone)
                pipe.execute()

        self._talk(committed)

    def _free(self) -> None:
        """Free memory on every primary, and have each that writes to disk write its files again.

        Raises BackendUnavailable if a node has not done so within :data:`_REWRITE` seconds.
        """
        for node in self._client.get_primaries():
            self._command(node, "MEMORY PURGE")
            if self._command(node, "INFO", "persistence")["aof_enabled"]:
                self._rewrite_file(node, "BGREWRITEAOF", "aof_rewrite", "aof_last_bgrewrite_status")
            if self._command(node, "CONFIG GET", "save")["save"]:
                self._rewrite_file(node, "BGSAVE", "rdb_bgsave", "rdb_last_bgsave_status")

    def _rewrite_file(self, node: Any, command: str, name: str, status: str) -> None:
        """Have a node write a file; one that is being written already may hold rows from before, so it is awaited."""
        until = time.monotonic() + _REWRITE
        for begin in (False, True):
            if begin:
                self._command(node, command)
            while any((said := self._command(node, "INFO", "persistence")).get(one) for one in _WRITES):
                if time.monotonic() > until:
                    raise BackendUnavailable(
                        f"a node of Redis has not written its file again within {_REWRITE:g} s ({name}), so that the "
                        "file still has deleted rows; look into its log, and try again"
                    )
                time.sleep(_PAUSE)
        if said[status] != "ok":
            raise BackendUnavailable(
                f"a node of Redis could not write its file again ({name}), so that the file still has deleted rows; "
                "look into its log, and try again"
            )

    def _command(self, node: Any, *words: str) -> Any:
        return self._talk(lambda: self._client.execute_command(*words, target_nodes=node))

    # ------------------------------------------------------------ read

    def _live(self, keys: Sequence[int], register: Register) -> Versions:
        tags = self._of_parts()
        by_part = defaultdict(list)
        for key in keys:
            by_part[tags[key % len(tags)]].append(key)
        answers = self._ask([("HMGET", f"{tag}:rows", *listed) for tag, listed in by_part.items()])
        found = [
            (key, np.frombuffer(one, "<f4", offset=_FIXED.size), *fields[2:7], *fields[:2])
            for listed, stored in zip(by_part.values(), answers, strict=True)
            for key, text in zip(listed, stored, strict=True)
            for one in _unpacked(text).values()
            if (fields := _FIXED.unpack_from(one))[0] <= register.epoch < fields[1]
        ]
        return Versions.listed(found, register.dim)

    def _counted(self, admitted: Admitted, register: Register) -> int:
        condition = _filter(admitted, register.epoch)
        filled = self._filled(register)
        sizes = self._ask([("VCARD", one) for one, _ in filled])
        if any(size < rows for size, (_, rows) in zip(sizes, filled, strict=True)):
            raise BackendFault(
                "Redis holds fewer rows than were confirmed; its memory policy must be noeviction"
            )
        found = self._ask([_all_of(one, rows, register.dim, condition) for one, rows in filled])
        return sum(map(len, found))

    def _nearest(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, register: Register
    ) -> Nearest:
        sets, condition = self._filled(register), _filter(admitted, register.epoch)
        answers = self._ask(
            [
                ("VSIM", one, "FP32", query.tobytes(), "WITHSCORES", "COUNT", k, "TRUTH", "FILTER", condition)
                for query in queries
                for one, _ in sets
            ]
        )
        keys, scores = [], []
        for start in range(0, len(answers), len(sets)):
            each = answers[start : start + len(sets)]
            # Scores are (1 + cosine) / 2.
            merged = sorted(
                (1.0 - 2.0 * score, _key_of(name)) for one in each for name, score in one.items()
            )[:k]
            keys.append([key for _, key in merged])
            scores.append([-distance for distance, _ in merged])
        named = list({key for listed in keys for key in listed})
        rows = self._live(named, register).rows
        if len(rows.keys) != len(named):
            raise BackendFault("Redis found rows that it does not hold at that epoch")
        return Nearest(keys, scores, rows)

    def _filled(self, register: Register) -> list[tuple[str, int]]:
        """Return the vector sets with rows at an epoch, and how many."""
        pairs = zip(self._of_parts(), register.rows, strict=True)
        return [(f"{tag}:vectors", rows) for tag, rows in pairs if rows]


def _all_of(vectors: str, rows: int, dim: int, condition: str) -> tuple[Any, ...]:
    """Ask for every row of a vector set that meets a condition.

    All rows are equally far from the zero vector. Redis sorts its results by insertion, so sorting them by any other
    distance takes quadratic time.
    """
    return ("VSIM", vectors, "FP32", bytes(4 * dim), "COUNT", rows, "TRUTH", "FILTER", condition)


def _connected(address: BackendAddress, timeout: float) -> Any:
    from redis.backoff import NoBackoff
    from redis.cluster import ClusterNode, RedisCluster
    from redis.maint_notifications import MaintNotificationsConfig
    from redis.retry import Retry

    return RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in address.hosts],
        username=address.user or None,
        password=address.secret or None,
        ssl=address.is_encrypted,
        socket_timeout=timeout,
        socket_connect_timeout=_CONNECT,
        require_full_coverage=True,
        retry=Retry(NoBackoff(), 0),  # retries are in one place: `patiently`
        protocol=3,
        maint_notifications_config=MaintNotificationsConfig(enabled=False),  # only hosted Redis has them
    )


def _tags(collection: str, parts: int) -> Iterator[str]:
    """Divide the slots into equal parts and yield, in order, a hash tag whose slot lies in each."""
    from redis.crc import key_slot

    for part in range(parts):
        first, last = (_SLOTS * one // parts for one in (part, part + 1))
        tags = (f"{{{collection}:{part}:{i}}}" for i in count())
        yield next(tag for tag in tags if first <= key_slot(tag.encode()) < last)


def _filter(admitted: Admitted, epoch: int) -> str:
    """Write the filter expression, of integers only, which a double holds exactly."""
    conditions = [
        f".a <= {epoch} and .z > {epoch}",
        f".p <= {admitted.as_of} and .x > {admitted.alive_at}",
        f".w in {_list(admitted.words)}",
    ]
    if admitted.allow_entities is not None:
        conditions.append(f".n in {_list(admitted.allow_entities)}")
    if admitted.deny_entities:
        conditions.append(f"not (.n in {_list(admitted.deny_entities)})")
    if admitted.audiences is not None:
        conditions.append(f".s in {_list(admitted.audiences)}")
    return " and ".join(conditions)


def _list(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def _packed(versions: Versions) -> Iterator[bytes]:
    rows = versions.rows
    columns = (versions.e0, versions.e1, *rows[2:])
    for fields, vector in zip(
        zip(*(one.tolist() for one in columns), strict=True), rows.vectors, strict=True
    ):
        yield _FIXED.pack(*fields, len(vector)) + vector.astype("<f4").tobytes()


def _unpacked(stored: bytes | None) -> _Stored:
    found, at = {}, 0
    while stored and at < len(stored):
        *_, dim = fields = _FIXED.unpack_from(stored, at)
        size = _FIXED.size + 4 * dim
        found[fields[0]] = stored[at : at + size]
        at += size
    return found


def _epochs(version: bytes) -> tuple[int, int]:
    return _FIXED.unpack_from(version)[:2]


def _ended(version: bytes, epoch: int) -> bytes:
    first, _, *others = _FIXED.unpack_from(version)
    return _FIXED.pack(first, epoch, *others) + _vector(version)


def _commands(name: str, key: int, old: _Stored, new: _Stored) -> Iterator[tuple[Any, ...]]:
    """Yield the commands that add and change versions of a row in the vector set."""
    for e0, version in new.items():
        if e0 not in old:
            element, attributes = _element(key, e0), _attributes(version)
            yield "VADD", name, "FP32", _vector(version), element, *_GRAPH, "SETATTR", attributes
        elif version != old[e0]:
            yield "VSETATTR", name, _element(key, e0), _attributes(version)


def _vector(version: bytes) -> bytes:
    return version[_FIXED.size :]


def _attributes(version: bytes) -> str:
    """Write the attributes of a version that the filter tests."""
    return json.dumps(dict(zip("azwpxns", _FIXED.unpack_from(version), strict=False)))


def _element(key: int, e0: int) -> str:
    return f"{key}:{e0}"


def _key_of(element: bytes) -> int:
    return int(element.partition(b":")[0])
