"""Write rows with each source's own library, and search them exactly with it."""

from __future__ import annotations

import contextlib
import json
import warnings
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.postgres.address import with_parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Search = Callable[[NDArray[np.float32], int], list[tuple[str, float]]]


LEVELS: Final = ("public", "internal", "confidential", "secret")
NAME: Final = "handbook"
MAPPING: Final = """schema = 1
model = "angles"

[facts]
classification = "level"
personal_data = "personal"
privileged = "privileged"

[metadata]
department = "department"
year = "year"
"""
_AT_ONCE: Final = 5000
"""Rows written together; Chroma takes few more."""


def drawn(rows: int, dim: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw rows of length 1 around a few hundred centres, with what the generic profile's rules read."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((300, dim))
    vectors = centres[rng.integers(0, 300, rows)] + 0.6 * rng.standard_normal((rows, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        {
            "id": f"{at}",
            "text": f"Paragraph {at} of the handbook.",
            "vector": vector,
            "level": LEVELS[int(rng.integers(4))],
            "personal": bool(rng.random() < 0.2),
            "privileged": bool(rng.random() < 0.2),
            "department": "sales" if rng.random() < 0.5 else "treasury",
            "year": int(rng.integers(2020, 2026)),
        }
        for at, vector in enumerate(vectors.astype(np.float32))
    ]


class Written(NamedTuple):
    """Rows that a source's library wrote."""

    address: str
    search: Search
    """Returns ids and cosines, the nearest first."""


def faiss(rows: list[dict[str, Any]], folder: Path, _: str = "") -> Written:
    """Write a flat index and its lines."""
    import faiss as module

    folder.mkdir(exist_ok=True)
    index = module.IndexFlatIP(len(rows[0]["vector"]))
    index.add(np.array([row["vector"] for row in rows]))
    module.write_index(index, str(folder / "index.faiss"))
    lines = [json.dumps(without(row, "vector")) for row in rows]
    (folder / "rows.jsonl").write_text("\n".join(lines))

    def search(query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        similarities, found = index.search(query[np.newaxis], k)
        return [(rows[at]["id"], float(one)) for at, one in zip(found[0], similarities[0], strict=True)]

    return Written(f"faiss:{folder / 'index.faiss'}?rows={folder / 'rows.jsonl'}", search)


def lancedb(rows: list[dict[str, Any]], folder: Path, _: str = "") -> Written:
    """Write a table without an index."""
    import lancedb as module

    listed = [{**row, "vector": row["vector"].tolist()} for row in rows]
    table = module.connect(folder).create_table(NAME, listed, mode="overwrite")

    def search(query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        found = table.search(query).distance_type("cosine").limit(k).to_list()
        return [(one["id"], 1 - one["_distance"]) for one in found]

    return Written(f"lancedb:{folder}", search)


def chroma(rows: list[dict[str, Any]], folder: Path, _: str = "") -> Written:
    """Write a collection, whose graph is exact when it is searched as wide as it is large."""
    import chromadb

    client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    with contextlib.suppress(chromadb.errors.NotFoundError):
        client.delete_collection(NAME)
    wide = {"space": "cosine", "ef_search": min(4 * len(rows), 10_000), "max_neighbors": 32}
    made = client.create_collection(NAME, configuration={"hnsw": wide}, embedding_function=None)
    for some in batches(rows):
        made.add(
            ids=[row["id"] for row in some],
            documents=[row["text"] for row in some],
            embeddings=[row["vector"] for row in some],
            metadatas=[without(row, "id", "text", "vector") for row in some],
        )

    def search(query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        found = made.query(query_embeddings=[query], n_results=k, include=["distances"])
        return [(id_, 1 - one) for id_, one in zip(found["ids"][0], found["distances"][0], strict=True)]

    return Written(f"chroma:{folder}?name={NAME}", search)


def qdrant(rows: list[dict[str, Any]], folder: Path, _: str = "") -> Written:
    """Write a folder of the client's local mode, which has one user at a time."""
    from qdrant_client import QdrantClient, models

    size = len(rows[0]["vector"])
    vectors_config = models.VectorParams(size=size, distance=models.Distance.COSINE)
    with quiet(), contextlib.closing(QdrantClient(path=str(folder))) as client:
        client.delete_collection(NAME)
        client.create_collection(NAME, vectors_config=vectors_config)
        for some in batches(rows):
            points = [
                models.PointStruct(
                    id=int(row["id"]), vector=row["vector"].tolist(), payload=without(row, "id", "vector")
                )
                for row in some
            ]
            client.upsert(NAME, points)
    searching: list[Any] = []

    def search(query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        if not searching:
            searching.append(QdrantClient(path=str(folder)))
        found = searching[0].query_points(NAME, query.tolist(), limit=k).points
        return [(str(one.id), one.score) for one in found]

    return Written(f"qdrant:{folder}", search)


def pgvector(rows: list[dict[str, Any]], _: Path, url: str) -> Written:
    """Write a table without an index, as the database's owner."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP TABLE IF EXISTS {NAME}")
        admin.execute(
            f"CREATE TABLE {NAME} (id text, text text, vector vector({len(rows[0]['vector'])}), level text, "
            "personal bool, privileged bool, department text, year int)"
        )
        with admin.cursor() as cursor, cursor.copy(f"COPY {NAME} FROM STDIN") as copy:
            for row in rows:
                copy.write_row([str(one.tolist()) if name == "vector" else one for name, one in row.items()])

    def search(query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        with psycopg.connect(url) as reader:
            found = reader.execute(
                f"SELECT id, 1 - (vector <=> %(q)s::vector) FROM {NAME} ORDER BY vector <=> %(q)s::vector LIMIT {k:d}",  # noqa: S608
                {"q": str(query.tolist())},
            )
            return [(id_, float(one)) for id_, one in found]

    return Written(with_parameter(url, "table", NAME), search)


SOURCES: Final[dict[str, Callable[..., Written]]] = {
    "pgvector": pgvector,
    "chroma": chroma,
    "qdrant": qdrant,
    "lancedb": lancedb,
    "faiss": faiss,
}


def batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows, some at a time."""
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the other fields of a row."""
    return {name: one for name, one in row.items() if name not in names}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave out what clients say about their own local modes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
