"""Judge whole contracts in three ways: one supports a requirement, contradicts it, or does not mention it.

ContractNLI's test part: each contract is a corpus of its own, and each of its requirements a response. The metric runs
with its defaults; beside it stands what a reader would try first (:mod:`bench.metric.baselines`). Clusters are
contracts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.baselines import NLI, TFIDF, nli_verdicts, tfidf
from bench.metric.contracts import CHOICES, Contract, read_contracts
from bench.metric.measures import Interval, confusion, interval, macro_f1
from bench.metric.models import progress
from carag.evaluation.regulatory import (
    Batch,
    CorpusConnector,
    Regulatory,
    RegulatoryDocument,
    SessionVerdict,
    Settings,
    Variant,
)
from carag.evaluation.regulatory.stance_head import StanceHead
from carag.retrieval.cross_encoder import CrossEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.metric.kept import Kept
    from bench.metric.models import KeptEmbedder
    from carag.evaluation.regulatory import Reranker


OURS: Final = "stance"
_MEANT: Final = {
    SessionVerdict.COMPLIANT: CHOICES.index("Entailment"),
    SessionVerdict.NON_COMPLIANT: CHOICES.index("Contradiction"),
    SessionVerdict.IRRELEVANT: CHOICES.index("NotMentioned"),
    SessionVerdict.NO_VERDICT: CHOICES.index("NotMentioned"),
}


class _OneContract(CorpusConnector):
    def __init__(self, contract: Contract) -> None:
        self._contract = contract

    def load_documents(self) -> list[RegulatoryDocument]:
        return [RegulatoryDocument(self._contract.text, self._contract.name)]


def three_way(
    data: Path,
    embedder: KeptEmbedder,
    reranker: Reranker,
    kept: Kept,
    nli: tuple[Path, int] | None,
    part: int,
) -> dict[str, Any]:
    """Return the figures of every system, and the paired lead of ours over each.

    Parameters
    ----------
    data : Path
    embedder : KeptEmbedder
        Of the metric, in each variant.
    reranker : Reranker
        Of the variants ``paper`` and ``reference``.
    kept : Kept
    nli : (Path, int), optional
        Folder of a model of inference, and its column of conflict.
    part : int
        1 judges all contracts, 10 every tenth.
    """
    dev = read_contracts(data / "legal", "dev")
    test = read_contracts(data / "legal", "test")[::part]
    known, truth = (np.array([[pair.label for pair in one.pairs] for one in some]) for some in (dev, test))
    said: dict[str, NDArray[np.int64]] = {
        OURS: by_metric(test, Variant.STANCE, embedder, StanceHead()),
        f"{OURS}, requirements not learnt": by_metric(
            test, Variant.STANCE, embedder, StanceHead(knows_requirements=False)
        ),
        **{one.value: by_metric(test, one, embedder, reranker) for one in (Variant.PAPER, Variant.REFERENCE)},
        "always the majority": np.full_like(truth, np.bincount(known.ravel()).argmax()),
    }
    said["TF-IDF regression"], chosen = tfidf(dev, test), {"TF-IDF regression": TFIDF}
    if nli is not None:
        model = CrossEncoder(str(nli[0]), label=nli[1], first="text")
        said["nli"], chosen["nli"] = nli_verdicts(test, model, embedder, kept), NLI
    clusters = np.repeat(np.arange(len(test)), truth.shape[1]).tolist()
    labels = truth.ravel().tolist()
    return {
        "contracts": len(test),
        "pairs": truth.size,
        "truth": {name: int((truth == at).sum()) for at, name in enumerate(CHOICES)},
        "chosen": chosen,
        "reranker": reranker.name,
        "figures": {
            name: {
                "macro-F1": figure(labels, one, clusters, None, binary=False),
                "binary macro-F1": figure(labels, one, clusters, None, binary=True),
                "confusion": _counted(labels, one, np.ones(truth.size)).tolist(),
            }
            for name, one in said.items()
        },
        "differences": {
            name: {
                "macro-F1": figure(labels, said[OURS], clusters, one, binary=False),
                "binary macro-F1": figure(labels, said[OURS], clusters, one, binary=True),
            }
            for name, one in said.items()
            if name != OURS
        },
    }


def by_metric(
    contracts: Sequence[Contract], variant: Variant, embedder: KeptEmbedder, model: object
) -> NDArray[np.int64]:
    """Return what a variant says of each requirement, with its defaults."""
    found, done = [], progress(f"{variant.value} judges contracts")
    for number, contract in enumerate(contracts, start=1):
        metric = Regulatory(_OneContract(contract), embedder, model, Settings(variant=variant))
        turns = [
            Batch(qa_id=str(at), query="", assistant=pair.hypothesis)
            for at, pair in enumerate(contract.pairs)
        ]
        found.append([_MEANT[one.verdict] for one in metric.batch(contract.name, "", turns)])
        done(number, len(contracts))
    return np.array(found)


def _counted(truth: list[int], said: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Count pairs of labels with all three labels in the table, whichever occur."""
    every = list(range(len(CHOICES)))
    nothing = np.zeros((*weights.shape[:-1], len(every)))
    return confusion(
        [*truth, *every], [*said.ravel().tolist(), *every], np.concatenate([weights, nothing], axis=-1)
    )


def figure(
    truth: list[int],
    said: NDArray[np.int64],
    clusters: list[int],
    other: NDArray[np.int64] | None,
    *,
    binary: bool,
) -> Interval:
    """Return a macro-F1, or how far one leads another; where it is binary, of pairs that the contract mentions."""

    def of(one: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:
        table = _counted(truth, one, weights)
        return _binary(table) if binary else macro_f1(table)

    return interval(
        lambda weights: of(said, weights) - (0 if other is None else of(other, weights)), clusters
    )


def _binary(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean F1 of support and contradiction over the rows of both; neutral is a miss of either."""
    mentioned = table[..., :2, :]
    right = np.diagonal(mentioned, axis1=-2, axis2=-1)
    both = mentioned.sum(axis=-1) + mentioned.sum(axis=-2)[..., :2]
    return np.asarray((2 * right / np.maximum(both, 1e-12)).mean(axis=-1))
