"""Judge whole contracts in three ways as a reader would try first: a regression over TF-IDF, and a model of inference.

Each is given its best form by folds of development contracts. Needs scikit-learn.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.contracts import Contract, folds
from bench.metric.kept import key
from bench.metric.measures import confusion
from bench.metric.measures import macro_f1 as macro_f1_of
from bench.metric.models import progress
from bench.metric.train_stance import PARTS, SEED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bench.metric.kept import Kept
    from bench.metric.models import KeptEmbedder
    from carag.retrieval.cross_encoder import CrossEncoder

__all__ = ["best_tfidf", "nli_scores", "nli_verdicts"]

FORMS: Final = ("hypothesis", "together", "blocks", "best spans", "a model each", "a model each, best spans")
PENALTIES: Final = tuple(product((1.0, 10.0), (None, "balanced")))
_NEAREST: Final = 3
_SHORTEST: Final = 20
"""Characters of a span that the NLI model is asked about at least; shorter ones are numbers and headings."""


def macro_f1(truth: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    """Return the mean F1 of the classes."""
    counted = confusion(truth.ravel().tolist(), said.ravel().tolist(), np.ones(truth.size))
    return float(macro_f1_of(counted))


def tfidf(
    train: Sequence[Contract], test: Sequence[Contract], forms: Sequence[str]
) -> dict[Any, NDArray[np.int64]]:
    """Fit every form with every penalty to ``train``, and judge ``test``: (contracts, hypotheses) each."""
    from scipy.sparse import hstack  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    claims = [pair.hypothesis for pair in train[0].pairs]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit([" ".join(one.spans) for one in train] + claims)
    of_claims = words.transform(claims)

    def columns(contracts: Sequence[Contract], form: str) -> Any:
        own = TfidfVectorizer().fit(claims).transform(claims * len(contracts))
        texts = []
        for contract in contracts:
            whole = " ".join(contract.spans)
            near = (words.transform(contract.spans) @ of_claims.T).toarray()
            for number, claim in enumerate(claims):
                order = np.argsort(-near[:, number], kind="stable")[:3]
                best = " ".join(contract.spans[span] for span in order)
                texts.append(f"{claim} {whole}" if form == "together" else best if "best" in form else whole)
        if form == "hypothesis":
            return own
        found = words.transform(texts)
        return hstack([own, found], format="csr") if form in {"blocks", "best spans"} else found

    truth = np.array([[pair.label for pair in one.pairs] for one in train])
    said = {}
    for form in forms:
        known, asked = columns(train, form), columns(test, form)
        for strength, balance in PENALTIES:
            model = LogisticRegression(C=strength, class_weight=balance, max_iter=200)
            out = np.zeros((len(test), len(claims)), np.int64)
            if form.startswith("a model each"):
                for number in range(len(claims)):
                    target = truth[:, number]
                    if len(set(target.tolist())) == 1:
                        out[:, number] = target[0]
                    else:
                        model.fit(known[number :: len(claims)], target)
                        out[:, number] = model.predict(asked[number :: len(claims)])
            else:
                out = model.fit(known, truth.ravel()).predict(asked).reshape(out.shape)
            said[form, strength, balance] = out
    return said


def best_tfidf(dev: Sequence[Contract], test: Sequence[Contract]) -> tuple[Any, float, NDArray[np.int64]]:
    """Choose a form by dev folds; return it, its dev macro-F1, and what it says of test."""
    truth = np.array([[pair.label for pair in one.pairs] for one in dev])
    by_contract = np.array(folds(len(dev), PARTS, SEED))
    held_out: dict[Any, NDArray[np.int64]] = {}
    for fold in range(PARTS):
        inside = [one for one, part in zip(dev, by_contract, strict=True) if part != fold]
        outside = [one for one, part in zip(dev, by_contract, strict=True) if part == fold]
        for form, said in tfidf(inside, outside, FORMS).items():
            held_out.setdefault(form, np.zeros_like(truth))[by_contract == fold] = said
    scores = {form: macro_f1(truth, said) for form, said in held_out.items()}
    best = max(scores, key=lambda form: scores[form])
    return best, scores[best], tfidf(dev, test, [best[0]])[best]


def nli_scores(
    contracts: Sequence[Contract], model: CrossEncoder, embedder: KeptEmbedder, kept: Kept
) -> NDArray[np.float64]:
    """P(conflict) and cosine of the spans nearest to each hypothesis: (contracts, hypotheses, 3, 2)."""
    out = np.zeros((len(contracts), len(contracts[0].pairs), _NEAREST, 2))
    said = progress("nli judges contracts")
    for row, contract in enumerate(contracts):
        spans = [span for span in contract.spans if len(span) >= _SHORTEST]
        vectors = embedder.embed_documents(spans)
        for column, pair in enumerate(contract.pairs):
            cosines = vectors @ embedder.embed_query(pair.hypothesis)
            nearest = np.argsort(-cosines, kind="stable")[:_NEAREST].tolist()
            out[row, column, : len(nearest), 1] = cosines[nearest]
            out[row, column, : len(nearest), 0] = _conflicts(
                model, kept, pair.hypothesis, [spans[at] for at in nearest]
            )
        said(row + 1, len(contracts))
    return out


def _conflicts(model: CrossEncoder, kept: Kept, claim: str, spans: list[str]) -> list[float]:
    rows = kept.rows(
        f"{model.fingerprint} conflict",
        [key(claim, span) for span in spans],
        lambda places: np.array(model.rerank(claim, [spans[at] for at in places])).reshape(-1, 1),
    )
    return [float(row[0]) for row in rows]


def nli_verdicts(
    dev: NDArray[np.float64], truth: NDArray[np.int64], test: NDArray[np.float64]
) -> tuple[Any, float, NDArray[np.int64]]:
    """Contradicted where the nearest spans conflict, else supported where one is near; thresholds are dev's."""

    def said(
        scores: NDArray[np.float64], top: int, near: float, conflict: float, clear: float
    ) -> NDArray[np.int64]:
        conflicts = scores[:, :, :top, 0].max(axis=2)
        supported = (scores[:, :, 0, 1] >= near) & (conflicts <= clear)
        return np.where(conflicts >= conflict, 1, np.where(supported, 0, 2))

    nears = np.quantile(dev[:, :, 0, 1], np.linspace(0, 0.9, 19)).tolist()
    conflicts = [*np.linspace(0.02, 0.98, 25).tolist(), 0.99, 0.995, 0.999]
    grid = product(range(1, _NEAREST + 1), nears, conflicts, (1.0, 0.5, 0.2, 0.1, 0.05))
    best = max(grid, key=lambda at: macro_f1(truth.ravel(), said(dev, *at).ravel()))
    return best, macro_f1(truth.ravel(), said(dev, *best).ravel()), said(test, *best)
