"""Judge whole contracts in three ways as a reader would try first: a regression over TF-IDF, and a model of inference.

Their forms and thresholds were chosen by folds of development contracts; the search is at tag ``evidence-0.3``.
Needs scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bench.metric.kept import key
from bench.metric.models import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bench.metric.contracts import Contract
    from bench.metric.kept import Kept
    from bench.metric.models import KeptEmbedder
    from carag.retrieval.cross_encoder import CrossEncoder


TFIDF: Final = "a model each, 10.0, balanced; 0.675 on development contracts"
NLI: Final = "1 spans, cosine from 0.647, conflict from 0.990; 0.449, in sample"
_STRENGTH: Final = 10.0
_NEAR: Final = 0.647
_CONFLICT: Final = 0.990
_SHORTEST: Final = 20
"""Characters of a span that the NLI model is asked about at least; shorter ones are numbers and headings."""


def tfidf(train: Sequence[Contract], test: Sequence[Contract]) -> NDArray[np.int64]:
    """Fit a model for each requirement to ``train``, and judge ``test``: ``(contracts, requirements)``."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    claims = [pair.hypothesis for pair in train[0].pairs]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit([" ".join(one.spans) for one in train] + claims)
    known, asked = (words.transform([" ".join(one.spans) for one in some]) for some in (train, test))
    truth = np.array([[pair.label for pair in one.pairs] for one in train])
    said = np.zeros((len(test), len(claims)), np.int64)
    for number in range(len(claims)):
        target = truth[:, number]
        if len(set(target.tolist())) == 1:
            said[:, number] = target[0]
        else:
            model = LogisticRegression(C=_STRENGTH, class_weight="balanced", max_iter=200)
            said[:, number] = model.fit(known, target).predict(asked)
    return said


def nli_verdicts(
    contracts: Sequence[Contract], model: CrossEncoder, embedder: KeptEmbedder, kept: Kept
) -> NDArray[np.int64]:
    """Return contradicted where the span nearest to a requirement conflicts with it, else supported if near."""
    out = np.full((len(contracts), len(contracts[0].pairs)), 2)
    said = progress("nli judges contracts")
    for row, contract in enumerate(contracts):
        spans = [span for span in contract.spans if len(span) >= _SHORTEST]
        vectors = embedder.embed_documents(spans)
        for column, pair in enumerate(contract.pairs):
            cosines = vectors @ embedder.embed_query(pair.hypothesis)
            nearest = int(np.argmax(cosines))
            if _conflict(model, kept, pair.hypothesis, spans[nearest]) >= _CONFLICT:
                out[row, column] = 1
            elif cosines[nearest] >= _NEAR:
                out[row, column] = 0
        said(row + 1, len(contracts))
    return out


def _conflict(model: CrossEncoder, kept: Kept, claim: str, span: str) -> float:
    rows = kept.rows(
        f"{model.fingerprint} conflict",
        [key(claim, span)],
        lambda _: np.array(model.rerank(claim, [span])).reshape(-1, 1),
    )
    return float(rows[0][0])
