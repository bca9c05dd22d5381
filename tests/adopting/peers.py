"""Write rows with each source's own library, search them exactly with it, and see whether its files change."""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.postgres import PostgresRun

DIM = 16
LEVELS = ("public", "internal", "confidential", "secret")
_NUMBERS = count()


def drawn(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of length 1, with what the generic profile's rules read."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((rows, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        {
            "id": f"row/{at}",
            "text": f"Paragraph {at} of the handbook.",
            "vector": vector,
            "level": LEVELS[int(rng.integers(4))],
            "personal": bool(rng.random() < 0.2),
            "privileged": bool(rng.random() < 0.2),
            "department": str(rng.choice(["sales", "treasury"])),
            "year": int(rng.integers(2020, 2026)),
        }
        for at, vector in enumerate(vectors)
    ]


MAPPING = """schema = 1
model = "angles"

[facts]
classification = "level"
personal_data = "personal"
privileged = "privileged"

[metadata]
department = "department"
year = "year"
"""


@dataclass
class Written:
    """A source with rows, its own exact search, and what would change if anybody wrote to it."""

    address: str
    search: Callable[[Any, int], list[tuple[str, float]]]
    folder: Path
    frozen: list[Callable[[], object]] = field(default_factory=list)

    def state(self) -> object:
        """Return a hash of each file, or what stands for it."""
        files = sorted(one for one in self.folder.rglob("*") if one.is_file())
        return [(str(one), hashlib.sha256(one.read_bytes()).hexdigest()) for one in files], [
            one() for one in self.frozen
        ]


def faiss(rows: list[dict[str, Any]], folder: Path, _: PostgresRun | None = None) -> Written:
    module = pytest.importorskip("faiss", reason="needs FAISS: pip install faiss-cpu")
    folder.mkdir(exist_ok=True)
    index = module.IndexFlatIP(DIM)
    index.add(np.array([row["vector"] for row in rows]))
    module.write_index(index, str(folder / "index.faiss"))
    lines = [json.dumps({name: one for name, one in row.items() if name != "vector"}) for row in rows]
    (folder / "rows.jsonl").write_text("\n".join(lines))

    def search(query: Any, k: int) -> list[tuple[str, float]]:
        similarities, found = index.search(query[np.newaxis], k)
        return [(rows[at]["id"], float(one)) for at, one in zip(found[0], similarities[0], strict=True)]

    return Written(f"faiss:{folder / 'index.faiss'}?rows={folder / 'rows.jsonl'}", search, folder)


def lance(rows: list[dict[str, Any]], folder: Path, _: PostgresRun | None = None) -> Written:
    module = pytest.importorskip("lancedb", reason="needs LanceDB: pip install lancedb")
    listed = [{**row, "vector": row["vector"].tolist()} for row in rows]
    table = module.connect(folder).create_table("handbook", listed, mode="overwrite")

    def search(query: Any, k: int) -> list[tuple[str, float]]:
        found = table.search(query).distance_type("cosine").limit(k).to_list()
        return [(one["id"], 1 - one["_distance"]) for one in found]

    return Written(f"lancedb:{folder}", search, folder)


def chroma(rows: list[dict[str, Any]], folder: Path, _: PostgresRun | None = None) -> Written:
    module = pytest.importorskip("chromadb", reason="needs Chroma: pip install chromadb")
    client = module.PersistentClient(str(folder), settings=module.Settings(anonymized_telemetry=False))
    with contextlib.suppress(module.errors.NotFoundError):
        client.delete_collection("handbook")
    # Its only index is a graph, which is exact when it is searched as wide as it is large.
    wide = {"space": "cosine", "ef_search": 4 * len(rows), "max_neighbors": 64}
    made = client.create_collection("handbook", configuration={"hnsw": wide}, embedding_function=None)
    known = ("id", "text", "vector")
    made.add(
        ids=[row["id"] for row in rows],
        documents=[row["text"] for row in rows],
        embeddings=[row["vector"] for row in rows],
        metadatas=[{name: one for name, one in row.items() if name not in known} for row in rows],
    )

    def search(query: Any, k: int) -> list[tuple[str, float]]:
        found = made.query(query_embeddings=[query], n_results=k, include=["distances"])
        return [(id_, 1 - one) for id_, one in zip(found["ids"][0], found["distances"][0], strict=True)]

    return Written(f"chroma:{folder}?name=handbook", search, folder)


def qdrant(rows: list[dict[str, Any]], folder: Path, _: PostgresRun | None = None) -> Written:
    module = pytest.importorskip(
        "qdrant_client", reason="needs a client of Qdrant: pip install qdrant-client"
    )
    from qdrant_client import models

    def point(at: int, row: dict[str, Any]) -> Any:
        payload = {name: one for name, one in row.items() if name not in ("id", "vector")}
        return models.PointStruct(id=number(row, at), vector=row["vector"].tolist(), payload=payload)

    def number(row: dict[str, Any], at: int) -> int:
        return int(row["id"].partition("/")[2] or at)

    with contextlib.closing(module.QdrantClient(path=str(folder))) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client.delete_collection("handbook")
        client.create_collection(
            "handbook", vectors_config=models.VectorParams(size=DIM, distance=models.Distance.COSINE)
        )
        client.upsert("handbook", [point(at, row) for at, row in enumerate(rows)])

    def search(query: Any, k: int) -> list[tuple[str, float]]:
        if not open_:  # only while nobody else has the folder
            open_.append(module.QdrantClient(path=str(folder)))
        found = open_[0].query_points("handbook", query.tolist(), limit=k).points
        return [(str(one.id), one.score) for one in found]

    open_: list[Any] = []
    return Written(f"qdrant:{folder}", search, folder)


def pgvector(rows: list[dict[str, Any]], folder: Path, run: PostgresRun) -> Written:
    """As a role that may only read, so that a write would fail."""
    database, role = (
        run.database(),
        f"reader_{next(_NUMBERS)}_{folder.parent.name[-12:]}".replace("-", "_").lower(),
    )
    with database.connect() as admin:
        admin.execute(
            f"CREATE TABLE handbook (id text, text text, vector vector({DIM}), level text, personal bool, "
            "privileged bool, department text, year int)"
        )
        with admin.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO handbook VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                [[str(v.tolist()) if n == "vector" else v for n, v in row.items()] for row in rows],
            )
        admin.execute(f'CREATE ROLE "{role}" LOGIN')
        admin.execute(f'GRANT SELECT ON handbook TO "{role}"')

    def search(query: Any, k: int) -> list[tuple[str, float]]:
        with database.connect() as reader:
            found = reader.execute(
                "SELECT id, 1 - (vector <=> %s::vector) FROM handbook ORDER BY vector <=> %s::vector LIMIT %s",
                [str(query.tolist()), str(query.tolist()), k],
            )
            return [(id_, float(one)) for id_, one in found]

    def content() -> object:
        with database.connect() as reader:
            return reader.execute("SELECT xmin::text, ctid::text, id FROM handbook ORDER BY ctid").fetchall()

    address = database.as_account(role)
    return Written(f"{address}&table=handbook", search, folder, [content])


SOURCES = {one.__name__: one for one in (pgvector, chroma, qdrant, lance, faiss)}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave out what clients say about their own local modes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
