"""Train the stance head on ContractNLI's dev contracts, and measure it there and, at the end, on the test contracts.

::

    python -m bench.metric.train_stance --data DIR                      # writes the weights, prints dev's figures
    python -m bench.metric.train_stance --data DIR --test OUT.json      # judges the test contracts with them

Everything is chosen by dev folds that share no contract. What is meant for claims never seen is fitted to folds that
share neither a contract nor a hypothesis; what is meant for the seventeen hypotheses themselves is kept by their hash.
The weights hold no text.
"""

from __future__ import annotations

import argparse
import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.contracts import CHOICES, Contract, folds, read_contracts
from carag.evaluation.regulatory.stance_head import (
    FOR_POLARITY,
    StanceHead,
    claim_hash,
    features,
    lead_cues,
    negated,
    pooled,
    relevance_and_polarity,
    sentences,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SEED: Final = 20
PARTS: Final = 5
"""Folds of contracts."""
HYPOTHESIS_PARTS: Final = 6
"""Folds of hypotheses, where a head is measured on claims it never saw."""
NEGATIVES: Final = 14
"""Sentences without evidence that are trained on, of each pair: the half nearest to the claim, and as many by lot."""
RIDGE: Final = {"relevance": 20.0, "polarity": 20.0, "known": 1.0, "verdict": 10.0}
"""L2 penalties, of standardised columns."""
OWN: Final = 3.0
"""Scale of a sentence vector beside the general score, in what is fitted to one claim."""
WEIGHTS: Final = Path(__file__).parents[2] / "carag/evaluation/regulatory/stance_head.json"


@dataclass(frozen=True, slots=True)
class Table:
    """All pairs of a sentence and a hypothesis, contract by contract."""

    rows: NDArray[np.float64]  # (sentences, hypotheses, features)
    vectors: NDArray[np.float64]
    contract: NDArray[np.int64]
    passage: NDArray[np.int64]  # numbered over all contracts
    labels: NDArray[np.int64]  # (sentences, hypotheses), indices of CHOICES
    verdicts: NDArray[np.int64]  # (contracts, hypotheses)
    claims: tuple[str, ...]


def tabulate(head: StanceHead, contracts: Sequence[Contract]) -> Table:
    """Encode every sentence of the contracts' passages and compare it with every hypothesis."""
    claims = tuple(pair.hypothesis for pair in contracts[0].pairs)
    sides = [(head.encode(claim), head.encode(negated(claim))) for claim in claims]
    rows, vectors, owners, passages, labels, count = [], [], [], [], [], 0
    for number, contract in enumerate(contracts):
        assert claims == tuple(pair.hypothesis for pair in contract.pairs), contract.name
        for text, places in contract.passages():
            cut = sentences(text)
            encoded = [head.encode(text[start:end]) for start, end in cut]
            leads = lead_cues([text[start:end] for start, end in cut], encoded)
            for (start, end), one, lead in zip(cut, encoded, leads, strict=True):
                shows = {span for span, first, last in places if first < end and start < last}
                rows.append([features(*side, one, lead) for side in sides])
                labels.append([pair.label if shows & pair.evidence else 2 for pair in contract.pairs])
                vectors.append(one.sentence)
                owners.append(number)
                passages.append(count)
            count += 1
    verdicts = [[pair.label for pair in contract.pairs] for contract in contracts]
    return Table(
        rows=np.array(rows),
        vectors=np.array(vectors),
        contract=np.array(owners),
        passage=np.array(passages),
        labels=np.array(labels),
        verdicts=np.array(verdicts),
        claims=claims,
    )


def logistic(columns: NDArray[np.float64], target: NDArray[np.bool_], ridge: float) -> NDArray[np.float64]:
    """Fit a logistic regression with an L2 penalty by Newton's method, as (intercept, weights)."""
    inputs = np.c_[np.ones(len(columns)), columns]
    penalty = np.full(inputs.shape[1], ridge)
    penalty[0] = min(ridge, 0.1)  # all but free; where every target is the same it keeps the fit finite
    fitted = np.zeros(inputs.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-(inputs @ fitted).clip(-30, 30)))
        slope = inputs.T @ (chance - target) + penalty * fitted
        bend = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        fitted -= step * min(1.0, 4 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return fitted


def general(
    columns: NDArray[np.float64], target: NDArray[np.bool_], groups: NDArray[np.int64], ridge: float
) -> list[float]:
    """Fit what holds for every claim: each hypothesis has an intercept of its own here, and the mean is kept.

    Without them, how often a hypothesis holds would be learnt as the meaning of its words.
    """
    centre, scale = columns.mean(axis=0), columns.std(axis=0) + 1e-9
    own = (groups[:, None] == np.unique(groups)).astype(np.float64)
    fitted = logistic(np.c_[(columns - centre) / scale, own * 3], target, ridge)
    slopes = fitted[1 : 1 + columns.shape[1]] / scale
    level = fitted[0] + float((own @ fitted[1 + columns.shape[1] :] * 3).mean()) - float(slopes @ centre)
    return [level, *slopes.tolist()]


def fit_sentences(table: Table, use: NDArray[np.bool_]) -> dict[str, Any]:
    """Fit the general weights to the marked (sentence, hypothesis) pairs."""
    where, which = np.nonzero(use)
    rows, evidence = table.rows[where, which], table.labels[where, which]
    shown = evidence < 2
    return {
        "relevance": general(rows[:, :17], shown, which, RIDGE["relevance"]),
        "polarity": general(
            rows[shown][:, FOR_POLARITY], evidence[shown] == 1, which[shown], RIDGE["polarity"]
        ),
    }


def fit_known(table: Table, use: NDArray[np.bool_], weights: dict[str, Any]) -> list[dict[str, Any]]:
    """Fit each hypothesis's own weights, over the general score and the sentence vectors."""
    fitted = []
    for number in range(len(table.claims)):
        mine = use[:, number]
        rows, vectors, evidence = table.rows[mine, number], table.vectors[mine], table.labels[mine, number]
        parts = {}
        for part, columns, marked, target in (
            ("relevance", slice(0, 17), evidence < 3, evidence < 2),
            ("polarity", FOR_POLARITY, evidence < 2, evidence == 1),
        ):
            fit = np.asarray(weights[part])
            score = rows[:, columns] @ fit[1:] + fit[0]
            own = logistic(np.c_[score / 3, vectors * OWN][marked], target[marked], RIDGE["known"])
            own[1] /= 3
            own[2:] *= OWN
            # half precision is enough, and leaves out the last bits of the sums
            parts[part] = base64.b64encode(own.astype("<f2").tobytes()).decode()
        fitted.append(parts)
    return fitted


def judge(
    table: Table, weights: dict[str, Any], known: Sequence[dict[str, Any] | None]
) -> NDArray[np.float64]:
    """Pool every contract's passages for every hypothesis, as the head does: (contracts, hypotheses, 5)."""
    made = []
    for number, own in enumerate(known):
        bears, against = relevance_and_polarity(weights, own, table.rows[:, number], table.vectors)
        order = np.lexsort((-np.arange(len(bears)), bears, table.passage))
        last = order[np.r_[np.flatnonzero(np.diff(table.passage[order])), len(order) - 1]]
        rows = np.c_[bears * (1 - against), bears * against, 1 - bears][last]
        owner = table.contract[last]
        made.append([pooled(rows[owner == one]) for one in range(len(table.verdicts))])
    return np.array(made).transpose(1, 0, 2)


def fit_verdict(
    pools: NDArray[np.float64], verdicts: NDArray[np.int64], *, own: bool
) -> tuple[dict[str, Any], list[list[float]]]:
    """Fit the verdict to pooled rows; with ``own``, each hypothesis is also given a shift."""
    contracts, claims, width = pools.shape
    flat, truth = pools.reshape(-1, width), verdicts.ravel()
    centre, scale = flat.mean(axis=0), flat.std(axis=0) + 1e-9
    columns = (flat - centre) / scale
    if own:
        columns = np.c_[columns, np.tile(np.eye(claims) * 2, (contracts, 1))]
    fit: dict[str, Any] = {}
    shifts = []
    for part, marked, target in (("relevance", truth < 3, truth < 2), ("polarity", truth < 2, truth == 1)):
        fitted = logistic(columns[marked], target[marked], RIDGE["verdict"])
        slopes = fitted[1 : 1 + width] / scale
        fit[part] = [float(fitted[0] - slopes @ centre), *slopes.tolist()]
        shifts.append(fitted[1 + width :] * 2 if own else np.zeros(claims))
    owns = np.array(shifts).T
    chances = verdict_chances(pools, fit, owns)
    best = (-1.0, 0.0, 0.0)
    for bears_from in np.arange(0.2, 0.81, 0.05):
        for contradicts_from in np.arange(0.2, 0.81, 0.05):
            score = macro_f1(truth, decide(chances, bears_from, contradicts_from).ravel())
            best = max(best, (score, round(float(bears_from), 2), round(float(contradicts_from), 2)))
    return {**fit, "bears_from": best[1], "contradicts_from": best[2]}, owns.tolist()


def verdict_chances(
    pools: NDArray[np.float64], fit: dict[str, Any], shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """P(the passages bear on the claim) and P(against it, if they do): (contracts, hypotheses, 2)."""
    scores = [pools @ np.asarray(fit[part][1:]) + fit[part][0] for part in ("relevance", "polarity")]
    return np.asarray(1 / (1 + np.exp(-(np.stack(scores, axis=-1) + shifts))))


def decide(chances: NDArray[np.float64], bears_from: float, contradicts_from: float) -> NDArray[np.int64]:
    """Turn chances into indices of CHOICES."""
    return np.where(chances[..., 0] < bears_from, 2, (chances[..., 1] >= contradicts_from).astype(np.int64))


def class_f1(
    truth: NDArray[np.int64], said: NDArray[np.int64], classes: Sequence[int] = (0, 1, 2)
) -> list[float]:
    """F1 of each class; 0 where a class was neither right nor said."""
    found = []
    for one in classes:
        both = int(((truth == one) & (said == one)).sum())
        found.append(2 * both / max(1, int((truth == one).sum() + (said == one).sum())))
    return found


def macro_f1(truth: NDArray[np.int64], said: NDArray[np.int64], classes: Sequence[int] = (0, 1, 2)) -> float:
    """Average the classes' F1."""
    return float(np.mean(class_f1(truth, said, classes)))


def train(table: Table) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
    """Return the weights, and what held-out dev pairs were judged: contracts unseen, and hypotheses unseen too."""
    contracts, claims = table.verdicts.shape
    by_contract = np.array(folds(contracts, PARTS, SEED))
    by_claim = np.array(folds(claims, HYPOTHESIS_PARTS, SEED))
    use = _used(table)
    seen, unseen = np.zeros((contracts, claims, 5)), np.zeros((contracts, claims, 5))
    for fold in range(PARTS):
        train_on = use & (by_contract != fold)[table.contract][:, None]
        weights = fit_sentences(table, train_on)
        held = by_contract == fold
        seen[held] = judge(table, weights, fit_known(table, train_on, weights))[held]
        for part in range(HYPOTHESIS_PARTS):
            weights = fit_sentences(table, train_on & (by_claim != part))
            pools = judge(table, weights, [None] * claims)
            unseen[np.ix_(held, by_claim == part)] = pools[np.ix_(held, by_claim == part)]
    said = {
        "seen": np.zeros((contracts, claims), np.int64),
        "unseen": np.zeros((contracts, claims), np.int64),
    }
    for fold in range(PARTS):
        held = by_contract == fold
        fit, shifts = fit_verdict(seen[~held], table.verdicts[~held], own=True)
        chances = verdict_chances(seen[held], fit, np.array(shifts))
        said["seen"][held] = decide(chances, fit["bears_from"], fit["contradicts_from"])
        for part in range(HYPOTHESIS_PARTS):
            mine = by_claim == part
            fit, _ = fit_verdict(
                unseen[np.ix_(~held, ~mine)], table.verdicts[np.ix_(~held, ~mine)], own=False
            )
            chances = verdict_chances(unseen[np.ix_(held, mine)], fit, np.zeros((int(mine.sum()), 2)))
            said["unseen"][np.ix_(held, mine)] = decide(chances, fit["bears_from"], fit["contradicts_from"])
    weights = fit_sentences(table, use)
    known = fit_known(table, use, weights)
    verdict_known, shifts = fit_verdict(seen, table.verdicts, own=True)
    verdict, _ = fit_verdict(unseen, table.verdicts, own=False)
    for own, shift in zip(known, shifts, strict=True):
        own["verdict"] = shift
    provenance = {
        "data": "ContractNLI (Koreeda and Manning 2021, CC BY 4.0), split dev",
        "script": "bench/metric/train_stance.py",
        "seed": SEED,
        "contracts": contracts,
        "pairs": contracts * claims,
        "sentences": len(table.rows),
    }
    weights |= {"verdict": verdict, "verdict_known": verdict_known}
    named = {claim_hash(claim): own for claim, own in zip(table.claims, known, strict=True)}
    return {"provenance": provenance, **_rounded(weights), "known": _rounded(named)}, said


def predict(table: Table, weights: dict[str, Any], *, known: bool) -> NDArray[np.int64]:
    """Judge all contracts with finished weights, with or without what they remember of the hypotheses."""
    owns = [weights["known"].get(claim_hash(claim)) if known else None for claim in table.claims]
    fit = weights["verdict_known" if known else "verdict"]
    shifts = np.array([own["verdict"] if own else (0.0, 0.0) for own in owns])
    return decide(
        verdict_chances(judge(table, weights, owns), fit, shifts), fit["bears_from"], fit["contradicts_from"]
    )


def _used(table: Table) -> NDArray[np.bool_]:
    """Mark all evidence, and of each pair's other sentences the nearest and some by lot."""
    use = table.labels < 2
    lot = np.random.default_rng(SEED).random(table.labels.shape)
    for contract in range(len(table.verdicts)):
        mine = np.flatnonzero(table.contract == contract)
        for scores in (-table.rows[mine, :, 0], lot[mine]):
            order = np.argsort(scores, axis=0, kind="stable")[: NEGATIVES // 2]
            use[mine[order], np.arange(use.shape[1])] = True
    return use


def _rounded(value: Any) -> Any:
    """Round to five digits, which another machine's sums do not change."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def main(argv: Sequence[str] | None = None) -> int:
    """Train, or judge the test contracts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--test", type=Path, help="judge the test contracts and write what was said here")
    options = parser.parse_args(argv)
    blank: dict[str, Any] = {"known": {}}
    if options.test:
        weights = json.loads(options.out.read_text())
        table = tabulate(StanceHead(weights), read_contracts(options.data, "test"))
        said = {name: predict(table, weights, known=name == "seen") for name in ("seen", "general")}
        options.test.write_text(json.dumps({name: one.tolist() for name, one in said.items()}))
    else:
        begun = time.process_time()
        table = tabulate(StanceHead(blank), read_contracts(options.data, "dev"))
        print(f"tabulated {table.labels.size} sentences x claims in {time.process_time() - begun:.0f} CPU-s")
        weights, said = train(table)
        options.out.write_text(json.dumps(weights, indent=1) + "\n")
    for name, one in said.items():
        scores = " ".join(f"{score:.3f}" for score in class_f1(table.verdicts.ravel(), one.ravel()))
        print(
            f"{name}: macro-F1 {macro_f1(table.verdicts.ravel(), one.ravel()):.3f}; {' '.join(CHOICES)} {scores}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
