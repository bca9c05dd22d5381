"""Search files for vectors of rows that were erased: byte for byte, in every form in which a peer writes them.

That it finds the same vectors before is shown beside it.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import optional
from bench.erasing.drift import world
from bench.erasing.peers import (
    Carag,
    FaissFlat,
    FaissHnsw,
    FaissIvf,
    Hnswlib,
    HnswlibReplaced,
    Kept,
    PgVector,
    QdrantEdge,
    QdrantLocal,
    server,
)
from carag import Document, Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

ERASED: Final = 100


class Given:
    """An embedder whose texts name their vectors."""

    name, fingerprint, remote = "given", "given-1", False

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors, self.dim = vectors, vectors.shape[1]

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the vector that each text names."""
        return self._vectors[[int(text.split()[-1]) for text in texts]]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector that a text names."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


class Store(Kept):
    """A store of CARAG's: each row is a document."""

    name, means = "carag, store", "Engine.erase"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        self._engine = Engine.open(self.home / "store", profile="generic", embedder=Given(vectors))
        self._engine.add([Document(id=f"row/{one}", text=f"Row {one}", bits=()) for one in ids])

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._engine.erase([f"row/{one}" for one in ids], basis="GDPR_17_1_D", by="officer", approver="chief")

    def save(self) -> None:
        """Save."""
        self._engine.close()


class QdrantKept(QdrantLocal):
    """The local mode of Qdrant's client with a directory, where it keeps rows in SQLite."""

    name = "qdrant-local"

    def _opened(self, client: Any) -> Any:
        return client.QdrantClient(path=str(self.home / "qdrant"))


class PgVectorFull(PgVector):
    """The table written again."""

    name, means = "pgvector, table", "DELETE, VACUUM FULL"

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        super().erase(ids)
        self._db.execute("VACUUM FULL rows")


class PgVectorAll(PgVectorFull):
    """The server's whole directory, with its journal."""

    name = "pgvector, directory"

    def files(self) -> list[Path]:
        """Return every file of the server."""
        return [one for one in (server().directory / "data").rglob("*") if one.is_file()]


class LanceDb(Kept):
    """LanceDB."""

    name, means = "lancedb", "delete, optimize (compact, and clean all older versions up)"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        arrow = optional("pyarrow")
        rows = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), vectors.shape[1])
        table = arrow.table({"id": arrow.array(ids), "vector": rows})
        self._table = optional("lancedb").connect(str(self.home)).create_table("rows", table)

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._table.delete(f"id IN ({', '.join(map(str, ids))})")
        self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    def save(self) -> None:
        """Do nothing: each call wrote its files."""


class LanceDbRewritten(LanceDb):
    """LanceDB through Lance's own interface, which writes files with fewer erased rows again, too."""

    name, means = "lancedb, lance", "delete, compact_files with materialize_deletions_threshold=0, clean up"

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._table.delete(f"id IN ({', '.join(map(str, ids))})")
        self._table.to_lance().optimize.compact_files(materialize_deletions_threshold=0.0)
        self._table.checkout_latest()
        self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)


class Chroma(Kept):
    """Chroma."""

    name, means = "chroma", "delete"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        self._rows = optional("chromadb").PersistentClient(str(self.home)).create_collection("rows")
        self._rows.add([str(one) for one in ids], vectors)

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._rows.delete([str(one) for one in ids])

    def save(self) -> None:
        """Do nothing: it writes when it likes."""


class ChromaVacuumed(Chroma):
    """Chroma, and what it offers to shrink its files."""

    name, means = "chroma, vacuumed", "delete, `chroma vacuum`"

    def save(self) -> None:
        """Save."""
        program = Path(sys.executable).with_name("chroma")
        subprocess.run([program, "vacuum", "--path", self.home, "--force"], check=True, stdout=sys.stderr)


KINDS: Final[tuple[type[Kept], ...]] = (
    *(Store, Carag, Hnswlib, HnswlibReplaced, FaissHnsw, FaissIvf, FaissFlat, QdrantKept, QdrantEdge),
    *(PgVector, PgVectorFull, PgVectorAll, LanceDb, LanceDbRewritten, Chroma, ChromaVacuumed),
)


def forms(vector: NDArray[np.float32]) -> list[bytes]:
    r"""Return a vector as given, of unit length again, as CBOR, and as a pickle of Python's floats.

    Examples
    --------
    >>> forms(np.array([-2], np.float32))[:3]
    [b'\x00\x00\x00\xc0', b'\x00\x00\x80\xbf', b'\xfa\xc0\x00\x00\x00']
    """
    long = vector.astype(np.float64)
    unit = (long / np.linalg.norm(long)).astype(np.float32)
    cbor = b"".join(b"\xfa" + struct.pack(">f", one) for one in long)
    return [vector.tobytes(), unit.tobytes(), cbor, b"".join(b"G" + struct.pack(">d", one) for one in long)]


def standing(marks: list[bytes], content: bytes) -> set[bytes]:
    """Return those of some marks that stand anywhere in a file, by their first eight bytes at each of eight shifts.

    Examples
    --------
    >>> standing([b"abcdefgh.", b"bcdefghi."], b"-abcdefghi.")
    {b'bcdefghi.'}
    """
    starts = np.sort(np.frombuffer(b"".join(one[:8] for one in marks), np.uint64))
    seen = set[bytes]()
    for shift in range(8):
        words = np.frombuffer(content, np.uint64, max(0, len(content) - shift) // 8, min(shift, len(content)))
        near = starts[np.minimum(np.searchsorted(starts, words), len(starts) - 1)]
        for at in (8 * np.flatnonzero(near == words) + shift).tolist():
            seen |= {one for one in marks if content.startswith(one, at)}
    return seen


def found(kind: type[Kept], seed: int, *, erase: bool) -> float:
    """Return the share of some rows' vectors that are in the files of an index, after they were erased or without."""
    drawn = world(seed)
    rows, ids = drawn.rows, np.arange(len(drawn.rows))
    gone = ids[:: len(ids) // ERASED]
    with tempfile.TemporaryDirectory() as home:
        peer = kind(Path(home))
        peer.add(rows, ids)
        if erase:
            peer.erase(gone)
            if kind.replaces:
                peer.add(world(seed + 1).rows[:ERASED], ids[:ERASED] + len(ids))
        peer.save()
        marks = {form: one for one in gone.tolist() for form in forms(rows[one])}
        seen = {marks[one] for file in peer.files() for one in standing([*marks], file.read_bytes())}
        peer.close()
    return len(seen) / len(gone)


def measured(kind: type[Kept]) -> Iterator[dict[str, Any]]:
    """Search the files of one index, without an erasure and, of other rows, after one."""
    at = 10 * KINDS.index(kind)  # a server keeps what others wrote
    shares = found(kind, at, erase=False), found(kind, at + 2, erase=True)
    yield {"index": kind.name, "means": kind.means, "before": shares[0], "after": shares[1]}
