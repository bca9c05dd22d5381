"""Embedders, rerankers, judges and corpora whose every answer a test states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.evaluation.regulatory import (
    Batch,
    CorpusConnector,
    Embedder,
    Regulatory,
    RegulatoryDocument,
    Reranker,
    Settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SUPPORTS, CONTRADICTS, NEUTRAL = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.05, 0.05, 0.9)
"""Rows of a judge that is sure."""


class Toward(Embedder):
    """Places each text at a stated cosine from one direction, the direction of every query not named."""

    def __init__(
        self, cosines: Mapping[str, float], queries: Mapping[str, Sequence[float]] | None = None
    ) -> None:
        self._cosines = cosines
        self._queries = queries or {}
        self.seen: list[str] = []

    def encode(self, sentences: list[str]) -> Any:
        self.seen += sentences
        cosines = np.array([self._cosines[one] for one in sentences])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)

    def encode_query(self, sentences: list[str]) -> Any:
        return np.array([self._queries.get(one, (1.0, 0.0)) for one in sentences])


class Everywhere(Embedder):
    """Finds everything: all texts are in one place. Keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, sentences: list[str]) -> Any:
        self.seen += sentences
        return np.ones((len(sentences), 1))


class Said(Reranker):
    """Gives each document its stated score; keeps what it was given."""

    def __init__(self, scores: Mapping[str, float] | Callable[[str], Any]) -> None:
        self._score = scores if callable(scores) else scores.__getitem__
        self.seen: list[str] = []
        self.queries: list[str] = []

    def score(self, query: str, documents: list[str]) -> list[float]:
        self.seen += documents
        self.queries.append(query)
        return [self._score(one) for one in documents]


class Judge:
    """Gives the stated row for a claim and a passage, and NEUTRAL for all others."""

    name, fingerprint, remote = "stated", "0", False

    def __init__(
        self,
        rows: Mapping[tuple[str, str], Sequence[float]],
        thresholds: tuple[float, float] | None = None,
        otherwise: Sequence[float] = NEUTRAL,
    ) -> None:
        self._rows, self._otherwise = rows, otherwise
        self.asked: list[tuple[str, str]] = []
        if thresholds is not None:
            self.thresholds = thresholds

    def judge(self, claim: str, passages: Sequence[str]) -> Any:
        self.asked += [(claim, one) for one in passages]
        return np.array([self._rows.get((claim, one), self._otherwise) for one in passages])


class Held(CorpusConnector):
    """Holds documents; texts alone are named d0, d1 and so on."""

    def __init__(self, *documents: str | RegulatoryDocument) -> None:
        self._documents = [
            RegulatoryDocument(one, f"d{number}") if isinstance(one, str) else one
            for number, one in enumerate(documents)
        ]
        self.loads = 0

    def load_documents(self) -> list[RegulatoryDocument]:
        self.loads += 1
        return self._documents


def turn(qa_id: str = "1", query: str = "q", assistant: str = "a", weight: float | None = None) -> Batch:
    """A turn."""
    return Batch(qa_id=qa_id, query=query, assistant=assistant, weight=weight)


def metric(
    corpus: Mapping[str, float] | Iterable[str], *, variant: str = "paper", mode: Any = None, **changed: Any
) -> Regulatory:
    """The metric over documents of one window each, all of which every turn finds; of each, its rerank score."""
    scores = dict(corpus) if hasattr(corpus, "keys") else dict.fromkeys(corpus, 1.0)
    settings = Settings(variant=variant, **changed)  # type: ignore[arg-type] - as from a command line
    return Regulatory(Held(*scores), Everywhere(), Said(scores), settings, statistical_mode=mode)
