"""Measure embedders: whether a question finds the article, or the passage, that answers it."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.measures import interval, mean, ndcg_at, recall_at, reciprocal_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bench.metric.corpora import Searched
    from bench.metric.models import KeptEmbedder


KS: Final = (1, 5, 10)
DECIDES: Final = "recall@10"
"""What models are compared by: the paper's primary metric, at the number of passages that it forwards."""


def ranked(similarities: NDArray[np.floating[Any]], owners: Sequence[str]) -> list[str]:
    """Return the owners of chunks, each where its best chunk stands; of equal chunks, the first in the corpus is first.

    Examples
    --------
    >>> ranked(np.array([0.1, 0.9, 0.5, 0.9]), ["a", "b", "a", "c"])
    ['b', 'c', 'a']
    """
    order = np.argsort(-similarities, kind="stable")
    return list(dict.fromkeys(owners[at] for at in order))


def retrieval(searched: Searched, embedders: Sequence[KeptEmbedder]) -> dict[str, Any]:
    """Return the figures of each embedder over one corpus, and the paired differences of each two."""
    values: dict[str, dict[str, list[float]]] = {}
    tops: dict[str, list[float]] = {}
    for embedder in embedders:
        rows = _unit(embedder.embed_documents(searched.chunks))
        asked = _unit(embedder.embed_documents([one.text for one in searched.questions]))
        orders = [ranked(rows @ vector, searched.owners) for vector in asked]
        golds = [one.gold for one in searched.questions]
        pairs = list(zip(orders, golds, strict=True))
        values[embedder.name] = {
            **{f"recall@{k}": [recall_at(order, gold, k) for order, gold in pairs] for k in KS},
            "MRR": [reciprocal_rank(order, gold) for order, gold in pairs],
            **{f"nDCG@{k}": [ndcg_at(order, gold, k) for order, gold in pairs] for k in KS[1:]},
        }
        tops[embedder.name] = [float((rows @ vector).max()) for vector in asked]
        if searched.strangers:
            strange = _unit(embedder.embed_documents([one.text for one in searched.strangers]))
            tops[f"{embedder.name}, unanswerable"] = [float((rows @ vector).max()) for vector in strange]
    each = list(range(len(searched.questions)))  # a question is its own cluster
    return {
        "corpus": searched.name,
        "chunks": len(searched.chunks),
        "owners": len({*searched.owners}),
        "questions": len(searched.questions),
        "unanswerable": len(searched.strangers),
        "figures": {
            name: {figure: interval(partial(mean, one), each) for figure, one in of_one.items()}
            for name, of_one in values.items()
        },
        "differences": {
            f"{one} - {other}": interval(partial(_gap, values[one][DECIDES], values[other][DECIDES]), each)
            for one, other in combinations(values, 2)
        },
        "top similarity": {
            name: {
                "n": len(some),
                "least": min(some),
                "median": float(np.median(some)),
                "greatest": max(some),
            }
            for name, some in tops.items()
        },
    }


def _gap(one: Sequence[float], other: Sequence[float], weights: NDArray[np.float64]) -> Any:
    return mean(one, weights) - mean(other, weights)


def _unit(rows: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    wide = np.asarray(rows, np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))
