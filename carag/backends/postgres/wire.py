"""Send vectors and rows to PostgreSQL and back in its binary format, so that no bit of a vector changes.

A ``vector`` of pgvector is its length and 0, as big-endian 16-bit integers, and big-endian float32 numbers (pgvector,
``vector_send``). A row in a binary COPY is the number of its fields, and each field after its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.backends.protocol import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


COLUMNS: Final = ("key", "word", "public_at", "expires_at", "entity", "audience", "v")
"""A row's columns, in the order in which they are read."""
_HEAD: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TAIL: Final = b"\xff\xff"
_BLOCK: Final = 4096
"""Rows encoded at a time."""


def adapt_vectors(db: Any) -> None:
    """Register the type ``vector`` with a connection, if it exists, as numpy arrays."""
    from psycopg.adapt import Dumper, Loader
    from psycopg.pq import Format

    # Using the type loads the extension, whose settings are unknown before that.
    found = db.execute("SELECT oid FROM pg_type WHERE oid = to_regtype('vector')").fetchone()
    if found is None:
        return
    db.execute("SELECT '[0]'::vector")

    class VectorDumper(Dumper):
        format = Format.BINARY
        oid = found[0]

        def dump(self, obj: Any) -> bytes:
            return bytes(len(obj).to_bytes(2, "big") + b"\0\0" + obj.astype(">f4").tobytes())

    class VectorLoader(Loader):
        format = Format.BINARY

        def load(self, data: Any) -> Any:
            return np.frombuffer(bytes(data), ">f4", offset=4)

    db.adapters.register_dumper(np.ndarray, VectorDumper)
    db.adapters.register_loader(found[0], VectorLoader)


def copy_blocks(rows: Rows, collection: int, epoch: int) -> Iterator[bytes]:
    """Yield the bytes of a binary COPY of (collection, key, e0, word, public_at, expires_at, entity, audience, v)."""
    dim = rows.vectors.shape[1]
    fields: list[tuple[str, str, int]] = [("collection", ">i4", 4)]
    fields += [(name, ">i8", 8) for name in ("key", "e0", *COLUMNS[1:-1])]
    layout: list[Any] = [("fields", ">i2")]
    for name, kind, _ in fields:
        layout += [(f"{name} size", ">i4"), (name, kind)]
    layout += [("v size", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("v", ">f4", (dim,))]
    yield _HEAD
    for start in range(0, len(rows.keys), _BLOCK):
        part = Rows._make(column[start : start + _BLOCK] for column in rows)
        block = np.zeros(len(part.keys), dtype=layout)
        block["fields"], block["v size"], block["dim"] = len(fields) + 1, 4 + 4 * dim, dim
        for name, _, size in fields:
            block[f"{name} size"] = size
        block["collection"], block["e0"] = collection, epoch
        block["key"], block["word"], block["v"] = part.keys, part.words, part.vectors
        block["public_at"], block["expires_at"] = part.public_at, part.expires_at
        block["entity"], block["audience"] = part.entities, part.audiences
        yield block.tobytes()
    yield _TAIL


def rows_from(found: Sequence[tuple[Any, ...]], dim: int) -> Rows:
    """Make rows from tuples in the order of :data:`COLUMNS`."""
    keys, *numbers, vectors = zip(*found, strict=True) if found else [()] * len(COLUMNS)
    return Rows(
        np.array(keys, np.int64),
        np.array(vectors, np.float32).reshape(len(keys), dim),
        *(np.array(column, np.uint32) for column in numbers),
    )
