"""What is used instead of an engine: the same passages, vectors and embedder behind a vector store, without a record.

Each is asked for the text of the eight nearest passages. A policy is, as far as one can be stated, the list of words
that the session admits. Each runs in this process on one thread, except PostgreSQL, whose server is another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from carag.evaluation.systems.baselines import EF_CONSTRUCTION, EF_SEARCH, Hnsw, M
from carag.postgres.connection import connected

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.retrieval import Embedder

K: Final = 8
_FETCHED: Final = 200
"""How many passages the filter of LangChain's store chooses among."""

Ask: TypeAlias = Callable[[str, Collection[int]], object]
"""Take a question and the words admitted; return the passages found."""


class Rows(NamedTuple):
    """The passages of a store, with the words that hold now."""

    texts: list[str]
    words: list[int]
    vectors: NDArray[Any]


def langchain(rows: Rows, embedder: Embedder, *, filters: bool) -> Ask:
    """Make LangChain's store over FAISS, flat; a filter is a callable that sees what was fetched."""
    import faiss
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy
    from langchain_core.embeddings import Embeddings

    class Adapted(Embeddings):  # type: ignore[misc]  # which is read only where it is installed
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            found: list[float] = embedder.embed_query(text).tolist()
            return found

    faiss.omp_set_num_threads(1)
    store = FAISS.from_embeddings(
        list(zip(rows.texts, rows.vectors.tolist(), strict=True)),
        Adapted(),
        metadatas=[{"word": word} for word in rows.words],
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )

    def ask(question: str, admitted: Collection[int]) -> object:
        if not filters:
            return store.similarity_search_with_score(question, k=K)
        return store.similarity_search_with_score(
            question, k=K, fetch_k=_FETCHED, filter=lambda metadata: metadata["word"] in admitted
        )

    return ask


def hnswlib(rows: Rows, embedder: Embedder) -> Ask:
    """Make a graph over all rows, with the paper's settings, and a list of texts."""
    graph = Hnsw(rows.vectors, seed=0)
    return lambda question, _: [
        rows.texts[row] for row in graph.nearest(embedder.embed_query(question), K)[0]
    ]


def lancedb(rows: Rows, embedder: Embedder, place: Path) -> Ask:
    """Make a table that is filtered before it is searched, without an index, as LanceDB advises at this size."""
    import lancedb
    import pyarrow

    vectors = pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array(rows.vectors.ravel()), rows.vectors.shape[1]
    )
    columns = {"vector": vectors, "word": pyarrow.array(rows.words, pyarrow.int64()), "text": rows.texts}
    table = lancedb.connect(place).create_table("rows", pyarrow.table(columns))

    def ask(question: str, admitted: Collection[int]) -> object:
        search = table.search(embedder.embed_query(question)).distance_type("dot").limit(K)
        return search.where(f"word IN ({', '.join(map(str, admitted)) or 'NULL'})", prefilter=True).to_list()

    return ask


def pgvector(rows: Rows, embedder: Embedder, url: str) -> Ask:
    """Make a table with a graph that goes on until it has enough admitted rows; an earlier one is dropped."""
    db, dim = connected(url), rows.vectors.shape[1]
    for statement in (
        "CREATE EXTENSION IF NOT EXISTS vector",
        "DROP TABLE IF EXISTS bench_ranking",
        f"CREATE TABLE bench_ranking (word bigint, text text, vector vector({dim}))",
    ):
        db.execute(statement)
    with db.cursor().copy("COPY bench_ranking FROM STDIN") as copy:
        for word, text, vector in zip(rows.words, rows.texts, rows.vectors.tolist(), strict=True):
            copy.write_row((word, text, str(vector)))
    for statement in (
        f"CREATE INDEX ON bench_ranking USING hnsw (vector vector_ip_ops) WITH (m = {M}, "
        f"ef_construction = {EF_CONSTRUCTION})",
        "ANALYZE bench_ranking",
        "CHECKPOINT",  # so that the server writes nothing while others are timed
        f"SET hnsw.ef_search = {EF_SEARCH}",
        "SET hnsw.iterative_scan = strict_order",
    ):
        db.execute(statement)
    query = (
        "SELECT text, vector <#> %(near)s::vector FROM bench_ranking WHERE word = ANY(%(words)s) "
        "ORDER BY vector <#> %(near)s::vector LIMIT %(k)s"
    )

    def ask(question: str, admitted: Collection[int]) -> object:
        near = str(embedder.embed_query(question).tolist())
        return db.execute(query, {"near": near, "words": list(admitted), "k": K}, prepare=True).fetchall()

    return ask
