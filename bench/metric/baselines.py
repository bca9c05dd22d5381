"""Measure the stance head on ContractNLI's test contracts beside what a reader would try first.

::

    python -m bench.metric.train_stance --data DIR --test HEAD.json
    python -m bench.metric.baselines --data DIR --head HEAD.json --nli FOLDER

Beside it stand the majority class; a logistic regression over TF-IDF, in the best of six forms by dev folds that share
no contract; and a two-class NLI model (``policy_nli_int8.onnx`` and ``policy_nli_tokenizer/tokenizer.json`` in FOLDER;
column 1 is P(conflict)) asked about the spans nearest to the claim. Thresholds are dev's. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.contracts import CHOICES, Contract, folds, read_contracts
from bench.metric.train_stance import HYPOTHESIS_PARTS, PARTS, SEED, class_f1, macro_f1
from carag.retrieval.minilm import MiniLm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FORMS: Final = ("hypothesis", "together", "blocks", "best spans", "a model each", "a model each, best spans")
PENALTIES: Final = tuple(product((1.0, 10.0), (None, "balanced")))
RESAMPLES: Final = 5000
_NEAREST: Final = 3
_SHORTEST: Final = 20
"""Characters of a span that the NLI model is asked about at least; shorter ones are numbers and headings."""
_TOKENS: Final = 160


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


def best_tfidf(
    dev: Sequence[Contract], test: Sequence[Contract]
) -> tuple[Any, float, float, NDArray[np.int64]]:
    """Choose a form by dev folds; return it, its dev macro-F1, that with hypotheses held out too, and test's labels."""
    truth = np.array([[pair.label for pair in one.pairs] for one in dev])
    by_contract = np.array(folds(len(dev), PARTS, SEED))
    held_out: dict[Any, NDArray[np.int64]] = {}
    for fold in range(PARTS):
        inside = [one for one, part in zip(dev, by_contract, strict=True) if part != fold]
        outside = [one for one, part in zip(dev, by_contract, strict=True) if part == fold]
        for key, said in tfidf(inside, outside, FORMS).items():
            held_out.setdefault(key, np.zeros_like(truth))[by_contract == fold] = said
    scores = {key: macro_f1(truth.ravel(), said.ravel()) for key, said in held_out.items()}
    for key, score in sorted(scores.items(), key=lambda item: -item[1])[:8]:
        print(f"  dev {score:.3f} {key}")
    best = max(scores, key=lambda key: scores[key])
    unseen = _tfidf_of_unseen_claims(dev, by_contract)
    return best, scores[best], macro_f1(truth.ravel(), unseen.ravel()), tfidf(dev, test, [best[0]])[best]


def _tfidf_of_unseen_claims(dev: Sequence[Contract], by_contract: NDArray[np.int64]) -> NDArray[np.int64]:
    """Judge dev with neither the contract nor the hypothesis trained on, by the form that reads both as blocks."""
    from dataclasses import replace

    claims = len(dev[0].pairs)
    by_claim = np.array(folds(claims, HYPOTHESIS_PARTS, SEED))
    said = np.zeros((len(dev), claims), np.int64)
    for fold, part in product(range(PARTS), range(HYPOTHESIS_PARTS)):
        mine = np.flatnonzero(by_claim == part).tolist()
        rest = np.flatnonzero(by_claim != part).tolist()
        inside = [one for one, number in zip(dev, by_contract, strict=True) if number != fold]
        outside = [one for one, number in zip(dev, by_contract, strict=True) if number == fold]
        # The hypotheses to judge take the places of trained ones, so that both sides have as many.
        asked = [replace(one, pairs=tuple(one.pairs[at] for at in mine)) for one in outside]
        known = [replace(one, pairs=tuple(one.pairs[at] for at in rest)) for one in inside]
        out = _blocks(known, asked)
        said[np.ix_(by_contract == fold, mine)] = out
    return said


def _blocks(train: Sequence[Contract], test: Sequence[Contract]) -> NDArray[np.int64]:
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit([" ".join(one.spans) for one in train])
    claims = TfidfVectorizer().fit([pair.hypothesis for pair in train[0].pairs])

    def columns(contracts: Sequence[Contract]) -> Any:
        return hstack(
            [
                claims.transform([pair.hypothesis for one in contracts for pair in one.pairs]),
                words.transform([" ".join(one.spans) for one in contracts for _ in one.pairs]),
            ],
            format="csr",
        )

    model = LogisticRegression(C=10.0, max_iter=200)
    model.fit(columns(train), [pair.label for one in train for pair in one.pairs])
    return np.asarray(model.predict(columns(test))).reshape(len(test), -1)


def nli_scores(contracts: Sequence[Contract], folder: Path) -> NDArray[np.float64]:
    """P(conflict) and cosine of the spans nearest to each hypothesis: (contracts, hypotheses, 3, 2)."""
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(folder / "policy_nli_int8.onnx"), options)
    tokenizer = Tokenizer.from_file(str(folder / "policy_nli_tokenizer/tokenizer.json"))
    tokenizer.enable_truncation(_TOKENS, strategy="only_first")
    tokenizer.enable_padding(length=_TOKENS)
    minilm = MiniLm()
    out = np.zeros((len(contracts), len(contracts[0].pairs), _NEAREST, 2))
    for row, contract in enumerate(contracts):
        spans = [span for span in contract.spans if len(span) >= _SHORTEST]
        vectors = minilm.embed_documents(spans)
        for column, pair in enumerate(contract.pairs):
            cosines = vectors @ minilm.embed_query(pair.hypothesis)
            for rank, span in enumerate(np.argsort(-cosines, kind="stable")[:_NEAREST].tolist()):
                one = tokenizer.encode(spans[span], pair.hypothesis)
                feed = {"input_ids": np.array([one.ids]), "attention_mask": np.array([one.attention_mask])}
                none, conflict = session.run(None, feed)[0][0].tolist()
                out[row, column, rank] = 1 / (1 + np.exp(none - conflict)), cosines[span]
    return out


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


def intervals(
    truth: NDArray[np.int64], said: dict[str, NDArray[np.int64]], first: str, classes: Sequence[int]
) -> dict[str, tuple[list[float], list[float]]]:
    """95 % intervals of each macro-F1 and of ``first``'s lead, by resampling whole contracts."""
    tables = {}  # of each contract: right, true and said, by class
    for name, one in said.items():
        counts = [
            [(truth == c) & (one == c), truth == c, (one == c) & np.isin(truth, classes)] for c in classes
        ]
        tables[name] = np.array(counts).sum(axis=-1)
    picks = np.random.default_rng(SEED).integers(0, len(truth), (RESAMPLES, len(truth)))
    drawn = {}
    for name, table in tables.items():
        right, true, called = np.moveaxis(table[:, :, picks].sum(axis=-1), 1, 0)
        drawn[name] = (2 * right / np.maximum(1, true + called)).mean(axis=0)
    ends = (2.5, 97.5)
    return {
        name: (np.percentile(one, ends).tolist(), np.percentile(drawn[first] - one, ends).tolist())
        for name, one in drawn.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--head", type=Path, required=True)
    parser.add_argument("--nli", type=Path, required=True)
    options = parser.parse_args(argv)
    dev, test = read_contracts(options.data, "dev"), read_contracts(options.data, "test")
    known, truth = (np.array([[pair.label for pair in one.pairs] for one in part]) for part in (dev, test))
    said = {f"head, {name}": np.array(one) for name, one in json.loads(options.head.read_text()).items()}
    said["majority"] = np.full_like(truth, np.bincount(known.ravel()).argmax())
    form, score, unseen, said["TF-IDF"] = best_tfidf(dev, test)
    print(f"TF-IDF: {form}, dev {score:.3f}; by blocks with hypotheses held out too {unseen:.3f}")
    setting, score, said["NLI"] = nli_verdicts(
        nli_scores(dev, options.nli), known, nli_scores(test, options.nli)
    )
    print(f"NLI: {setting}, dev {score:.3f}")
    for classes in ((0, 1, 2), (0, 1)):
        print([CHOICES[one] for one in classes], f"{truth.size} pairs, {len(truth)} contracts, seed {SEED}")
        for first in ("head, seen", "head, general"):
            for name, (ends, lead) in intervals(truth, said, first, classes).items():
                _print(name, first, truth, said, classes, ends, lead)
    return 0


def _print(
    name: str,
    first: str,
    truth: NDArray[np.int64],
    said: dict[str, NDArray[np.int64]],
    classes: Sequence[int],
    ends: Sequence[float],
    lead: Sequence[float],
) -> None:
    inside = np.isin(truth, classes)
    score = macro_f1(truth[inside], said[name][inside], classes)
    gap = macro_f1(truth[inside], said[first][inside], classes) - score
    each = " ".join(f"{one:.3f}" for one in class_f1(truth[inside], said[name][inside], classes))
    print(
        f"{name:14} {score:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]  {each}  "
        f"{first} leads by {gap:+.3f} [{lead[0]:+.3f}, {lead[1]:+.3f}]"
    )


if __name__ == "__main__":
    raise SystemExit(main())
