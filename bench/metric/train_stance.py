"""Train the stance head on ContractNLI's development contracts: ``python -m bench.metric.train_stance --data DIR``.

Everything is chosen by folds of contracts. Sentences are scored by kernel ridge regression over TF-IDF of words and
pairs of words, one target for "is evidence" and one for "is evidence against" each requirement; a multinomial logistic
regression over the pooled scores, found out of fold, and over how often each requirement holds gives the verdict. For
claims that were not learnt, one logistic curve turns the share of words covered into a probability. The weights hold
numbers of terms, and no text. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.contracts import CHOICES, Contract, folds, read_contracts
from bench.metric.measures import confusion, macro_f1
from carag.evaluation.regulatory.stance_head import BITS, POOLED, StanceHead, claim_hash, pooled, term_counts
from carag.labelling.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SEED: Final = 20
PARTS: Final = 5
"""Folds of contracts."""
RIDGE: Final = 1.0
"""Penalty of the sentence scores; 0.3 and 3 were no better."""
STRENGTH: Final = 0.3
"""Inverse penalty of the verdict; of 0.1, 0.3 and 1."""
WEIGHTS: Final = Path(__file__).parents[2] / "carag/evaluation/regulatory/stance_head.npz"


class Table:
    """The sentences of contracts as TF-IDF rows, whether each is evidence, and the verdicts."""

    def __init__(self, contracts: Sequence[Contract]) -> None:
        units = [(at, *span) for at, one in enumerate(contracts) for span in sentences(one.text)]
        self.texts = [contracts[at].text[start:end] for at, start, end in units]
        self.owner = np.array([at for at, _, _ in units])
        self.verdicts = np.array([[pair.label for pair in one.pairs] for one in contracts])
        claims = self.verdicts.shape[1]
        self.targets = np.zeros((len(units), 2 * claims))
        for row, (at, start, end) in enumerate(units):
            for claim, pair in enumerate(contracts[at].pairs):
                spans = [contracts[at].places[one] for one in pair.evidence]
                if any(_shares(start, end, *span) for span in spans):
                    self.targets[row, claim] = 1
                    self.targets[row, claims + claim] = pair.label == CHOICES.index("Contradiction")
        self.counts = [term_counts(text) for text in self.texts]

    def of(self, contracts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of some contracts."""
        return np.flatnonzero(np.isin(self.owner, contracts))

    def rows(self, idf: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return unit rows of TF-IDF."""
        out = np.zeros((len(self.counts), 1 << BITS), np.float32)
        for row, counts in enumerate(self.counts):
            for place, count in counts.items():
                out[row, place] = (1 + np.log(count)) * idf[place]
        lengths = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / np.where(lengths > 0, lengths, 1))


def _shares(start: int, end: int, first: int, last: int) -> bool:
    """Tell whether a sentence and a span share half of the shorter one."""
    return min(end, last) - max(start, first) >= max(1.0, 0.5 * min(end - start, last - first))


def rarity(counts: Sequence[Any]) -> NDArray[np.float64]:
    """Return the inverse document frequency of every term, in half precision as it is kept."""
    held = np.zeros(1 << BITS)
    for one in counts:
        held[list(one)] += 1
    return (np.log((1 + len(counts)) / (1 + held)) + 1).astype(np.float16).astype(np.float64)


def scored(
    kernel: NDArray[np.float64], table: Table, known: NDArray[np.int64], asked: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the scores of the sentences of some contracts, learnt from those of others."""
    rows, wanted = table.of(known), table.of(asked)
    bent = kernel[np.ix_(rows, rows)] + RIDGE * np.eye(len(rows))
    return np.asarray(kernel[np.ix_(wanted, rows)] @ np.linalg.solve(bent, table.targets[rows]))


def columns(
    table: Table, scores: NDArray[np.float64], contracts: NDArray[np.int64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the verdict is made from: (contracts x claims, pooled scores and prior)."""
    claims = table.verdicts.shape[1]
    pairs = np.stack([scores[:, :claims], scores[:, claims:]], axis=2)
    return np.array(
        [
            [*pooled(pairs[table.owner == contract, claim]), *prior[claim]]
            for contract in contracts
            for claim in range(claims)
        ]
    )


def prior_of(verdicts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the logarithms of how often each claim has each verdict, half a contract added to each."""
    counts = np.stack([(verdicts == one).sum(axis=0) + 0.5 for one in range(len(CHOICES))], axis=1)
    return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))


def out_of_fold(
    kernel: NDArray[np.float64], table: Table, contracts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the columns of contracts, each scored by what was learnt from the others, and their verdicts."""
    part = np.array(folds(len(contracts), PARTS, SEED))
    made, truth = [], []
    for fold in range(PARTS):
        known, asked = contracts[part != fold], contracts[part == fold]
        scores = np.zeros_like(table.targets)
        scores[table.of(asked)] = scored(kernel, table, known, asked)
        made.append(columns(table, scores, asked, prior_of(table.verdicts[known])))
        truth.append(table.verdicts[asked].ravel())
    return np.vstack(made), np.concatenate(truth)


def fitted(found: NDArray[np.float64], truth: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weights of the verdict, ``(3, 1 + POOLED + 3)``."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    centre, scale = found.mean(axis=0), found.std(axis=0) + 1e-9
    model = LogisticRegression(C=STRENGTH, max_iter=5000, tol=1e-8).fit((found - centre) / scale, truth)
    slopes = model.coef_ / scale
    return np.asarray(np.c_[model.intercept_ - slopes @ centre, slopes])


def held_out(kernel: NDArray[np.float64], table: Table) -> NDArray[np.int64]:
    """Return what would be said of each contract by all that was learnt from the others."""
    every = np.arange(len(table.verdicts))
    part = np.array(folds(len(every), PARTS, SEED + 1))
    said = np.zeros_like(table.verdicts)
    for fold in range(PARTS):
        known, asked = every[part != fold], every[part == fold]
        weights = fitted(*out_of_fold(kernel, table, known))
        scores = np.zeros_like(table.targets)
        scores[table.of(asked)] = scored(kernel, table, known, asked)
        found = columns(table, scores, asked, prior_of(table.verdicts[known]))
        said[asked] = (found @ weights[:, 1:].T + weights[:, 0]).argmax(axis=1).reshape(len(asked), -1)
    return said


def coverage(head: StanceHead, table: Table, claims: Sequence[str]) -> tuple[float, float]:
    """Fit P(a document bears on a claim) to the greatest share of words covered: slope and level."""
    from sklearn.linear_model import LogisticRegression

    best = np.array(
        [
            [
                max(head.covered(claim, table.texts[row]) for row in np.flatnonzero(table.owner == one))
                for claim in claims
            ]
            for one in range(len(table.verdicts))
        ]
    )
    model = LogisticRegression(C=1e6).fit(best.reshape(-1, 1), table.verdicts.ravel() < 2)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def packed(**arrays: Any) -> bytes:
    """Write arrays as numpy's compressed file, with no date in it, so that the same arrays make the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, array in sorted(arrays.items()):
            named = zipfile.ZipInfo(f"{name}.npy")
            named.compress_type = zipfile.ZIP_DEFLATED
            with file.open(named, "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return out.getvalue()


def main() -> None:
    """Train, write the weights, and print what folds of contracts say."""
    parser = argparse.ArgumentParser(prog="python -m bench.metric.train_stance", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a directory with legal/")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    given = parser.parse_args()
    contracts = read_contracts(given.data / "legal", "dev")
    claims = [pair.hypothesis for pair in contracts[0].pairs]
    table = Table(contracts)
    idf = rarity(table.counts)
    rows = table.rows(idf)
    kernel = (rows @ rows.T).astype(np.float64)
    truth, said = table.verdicts.ravel(), held_out(kernel, table).ravel()
    counted = confusion(truth.tolist(), said.tolist(), np.ones(len(truth)))
    print(f"held-out dev: macro-F1 {float(macro_f1(counted)):.3f}; {', '.join(CHOICES)}: {counted.tolist()}")
    every = np.arange(len(contracts))
    found = out_of_fold(kernel, table, every)
    dual = np.linalg.solve(kernel + RIDGE * np.eye(len(kernel)), table.targets)
    primal = (rows.T.astype(np.float64) @ dual).T.reshape(2, len(claims), -1).transpose(1, 0, 2)
    scale = np.maximum(np.abs(primal).max(axis=2), 1e-9) / 127  # no document contradicts some requirements
    arrays = {
        "idf": idf.astype(np.float16),
        "terms": np.round(primal / scale[..., None]).astype(np.int8),
        "scale": scale.astype(np.float32),
        "prior": prior_of(table.verdicts).astype(np.float32),
        "pooled": fitted(*found).astype(np.float32),
        "claims": np.array([list(bytes.fromhex(claim_hash(one))) for one in claims], np.uint8),
        "provenance": np.frombuffer(
            json.dumps(
                {
                    "data": "ContractNLI (Koreeda and Manning 2021, CC BY 4.0), split dev",
                    "script": "bench/metric/train_stance.py",
                    "seed": SEED,
                    "contracts": len(contracts),
                    "pairs": len(contracts) * len(claims),
                    "sentences": len(table.texts),
                }
            ).encode(),
            np.uint8,
        ),
    }
    blank = StanceHead(packed(**arrays, coverage=np.zeros(2)))
    arrays["coverage"] = np.round(coverage(blank, table, claims), 4)
    given.out.write_bytes(packed(**arrays))
    print(
        f"{given.out}: {given.out.stat().st_size} bytes; {POOLED} pooled scores, coverage {arrays['coverage']}"
    )


if __name__ == "__main__":
    main()
