"""Find the passages of a corpus for a turn: one lookup for the query, one for the response, merged.

(Regulatory Compliance Metric, Merged Chunk Retrieval.) The corpus is searched with our own index, under the policy of
the session that measures. Only ``reference`` multiplies matrices itself, because its scores are rounded to four
decimals, and the last bit of a product decides some of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.chunks import Chunk, package_chunks, paper_chunks
from carag.evaluation.regulatory.ports import Embedder, checked_vectors
from carag.evaluation.regulatory.variants import PACKAGE_DECIMALS, Settings, Variant
from carag.index import Index
from carag.labelling.canonical_json import canonical_json
from carag.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from carag.evaluation.regulatory.corpus import RegulatoryDocument
    from carag.policy import Decision, Search


_CUTTERS: Final[dict[Variant, Callable[..., list[Chunk]]]] = {
    Variant.PAPER: paper_chunks,
    Variant.REFERENCE: package_chunks,
    Variant.STANCE: partial(paper_chunks, keeps_lines=True),
}


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A passage with its cosine."""

    chunk: Chunk
    similarity: float

    @property
    def name(self) -> tuple[str, int]:
        """Its source and index, which identify it."""
        return self.chunk.source, self.chunk.chunk_index


class DocumentRetriever:
    """The passages of a corpus, and those that the policy admits and that are nearest to a text.

    Attributes
    ----------
    sha256 : str
        Hash of the passages and their positions.
    """

    def __init__(self, embedder: Embedder, settings: Settings) -> None:
        self.sha256 = ""
        self._embedder = embedder
        self._settings = settings
        self._searches: tuple[Search, ...] = ()
        self._chunks: list[Chunk] = []
        self._dim = 0
        self._index: Index | None = None
        self._rows: NDArray[np.floating[Any]] | None = None

    def __len__(self) -> int:
        """Count the passages."""
        return len(self._chunks)

    def load_corpus(self, documents: Iterable[RegulatoryDocument], decision: Decision) -> int:
        """Cut and embed the documents that the decision admits; return the number of passages.

        Raises
        ------
        InvalidArgument
            If no document may be read, or none contains text.
        """
        cut = _CUTTERS[self._settings.variant]
        chunks: list[Chunk] = []
        labels: list[RegulatoryDocument] = []
        counted: dict[str, int] = {}
        for one in documents:
            if not decision.admits_labelled(one):
                continue
            first = counted.get(one.source, 0)
            found = cut(one.text, one.source, self._settings.chunker, first, one.start)
            counted[one.source] = found[-1].chunk_index + 1 if found else first
            chunks += found
            labels += [one] * len(found)
        if not chunks:
            raise InvalidArgument(
                f"the corpus contains no text that {decision.role}/{decision.purpose} may read; name a folder "
                "or a store with regulatory documents"
            )
        rows = checked_vectors(
            self._embedder.name, self._embedder.encode([one.text for one in chunks]), len(chunks)
        )
        self._chunks, self._searches, self._dim = chunks, decision.searches, rows.shape[1]
        passages = canonical_json(
            [[one.source, one.start, one.end, one.text] for one in chunks], "the corpus"
        )
        self.sha256 = hashlib.sha256(passages.encode()).hexdigest()
        if self._settings.variant.is_package:
            self._rows = rows
            return len(chunks)
        index = Index(rows.shape[1])
        index.add(
            rows.astype(np.float32),
            [one.word for one in labels],
            public_at=[one.public_at for one in labels],
            expires_at=[one.expires_at for one in labels],
        )
        self._index = index
        return len(chunks)

    def retrieve(self, query: str) -> list[RetrievedChunk]:
        """Return the passages nearest to a text, most similar first: at most ``top_k``, at or above the threshold.

        Raises
        ------
        InvalidArgument
            If no corpus is loaded, or the embedder returns anything but a vector with the passages' dimension.
        """
        if not self._chunks:
            raise InvalidArgument("no corpus is loaded, so it cannot be searched; call load_corpus first")
        vector = checked_vectors(self._embedder.name, self._embedder.encode_query([query]), 1)
        if vector.shape[1] != self._dim:
            raise InvalidArgument(
                f"the embedder {self._embedder.name!r} returned {vector.shape[1]} dimensions for a query and "
                f"{self._dim} for passages; want the same number"
            )
        found: list[tuple[RetrievedChunk, float]] = []
        if self._rows is not None:
            found = self._products(self._rows, vector)
        elif self._index is not None:
            found = self._searched(self._index, vector[0])
        return [one for one, cosine in found if cosine >= self._settings.similarity_threshold]

    def retrieve_merged(self, user_query: str, agent_response: str) -> list[RetrievedChunk]:
        """Return the passages for a turn, most similar first; a passage found twice keeps the greater similarity."""
        best: dict[tuple[str, int], RetrievedChunk] = {}
        for one in self.retrieve(user_query) + self.retrieve(agent_response):
            if one.name not in best or one.similarity > best[one.name].similarity:
                best[one.name] = one
        merged = sorted(best.values(), key=lambda one: one.similarity, reverse=True)
        return merged if self._settings.variant.is_package else merged[: self._settings.top_k]

    def _searched(
        self, index: Index, vector: NDArray[np.floating[Any]]
    ) -> list[tuple[RetrievedChunk, float]]:
        asked = vector.astype(np.float32)
        if not asked.any():
            return []
        hits: dict[int, float] = {}
        for search in self._searches:
            # Entity lists were applied when the corpus was loaded.
            policy = Policy(*search.policy.masks, audiences=search.policy.audience_list)
            found = index.search(
                asked,
                self._settings.top_k,
                policy,
                as_of=search.as_of,
                alive_at=search.alive_at,
                plan="exact",
            )
            count = int(found.counts[0])
            hits.update(
                zip(found.keys[0, :count].tolist(), found.similarities[0, :count].tolist(), strict=True)
            )
        best = sorted(hits.items(), key=lambda hit: (-hit[1], hit[0]))[: self._settings.top_k]
        return [(RetrievedChunk(self._chunks[key], min(cosine, 1.0)), cosine) for key, cosine in best]

    def _products(
        self, rows: NDArray[np.floating[Any]], vector: NDArray[np.floating[Any]]
    ) -> list[tuple[RetrievedChunk, float]]:
        """Compute what the published package computes, with its own expression; ties keep the order of the corpus."""
        products = (vector @ rows.T).flatten()
        best: Sequence[int] = np.argsort(-products, kind="stable")[: self._settings.top_k].tolist()
        return [
            (
                RetrievedChunk(self._chunks[at], _rounded(float(products[at]), self._embedder.name)),
                float(products[at]),
            )
            for at in best
        ]


def _rounded(product: float, name: str) -> float:
    """Round a similarity; the schema does not allow one above 1."""
    if product > 1 + 0.5 * 10**-PACKAGE_DECIMALS:
        raise InvalidArgument(
            f"the embedder {name!r} returned vectors whose product is {product:.6g}, which the variant reference takes "
            "for a cosine; want vectors of length 1"
        )
    return min(round(product, PACKAGE_DECIMALS), 1.0)
