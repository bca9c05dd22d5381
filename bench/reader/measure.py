"""Measure the reader on questions and claims that it was not trained with.

    python -m bench.reader.measure --shared PATH --fitz fitz_gov.whl [--weights reader.npz] [--out FILE]

Near misses: the first passages that the engine finds for questions that a circular answers, and for questions on the
subject that none answers; how well the greatest score among them tells the two apart, beside a baseline that sees the
question alone. Claims: pairs about the AI Act, the expert verdicts of AIReg-Bench, requirements of ContractNLI that
were left out of the training. Order: evidence among the first eight of twenty.
"""

from __future__ import annotations

import argparse
import ast
import json
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.reader import area
from bench.reader.reader import WEIGHTS, Reader
from bench.reader.sources import (
    UNSEEN_REQUIREMENTS,
    WRITTEN,
    Nearest,
    governed,
    lines,
    part,
    passages,
    plain,
)
from carag import Engine, Session

if TYPE_CHECKING:
    from collections.abc import Sequence


PROJECT = Path(__file__).parents[1] / "circulars" / "questions.jsonl"
HELD = Path(__file__).with_name("held")
"""Written by others than those who wrote the training data, while the first run trained, without sight of it."""
_FOUND = 20


def main() -> None:
    """Measure everything and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.reader.measure", description=__doc__)
    for name in ("--shared", "--fitz"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--only", nargs="*", default=[*MEASURES])
    parser.add_argument("--every", type=int, default=1, help="for order: take every Nth question")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    reader = Reader(threads=2, weights=options.weights)
    found = {}
    for name in options.only:
        begin = time.process_time()
        found[name] = MEASURES[name](reader, options) | {"cpu_s": round(time.process_time() - begin, 1)}
        print(json.dumps({name: found[name]}), flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


# ---------------------------------------------------------------- near misses and order


def near_misses(reader: Reader, options: Any) -> dict[str, Any]:
    """Tell near misses from answerable questions by the first one and the first three passages."""
    asked = {
        "project": [one for one in lines(PROJECT) if one["kind"] in ("on", "near")],
        "another hand": lines(HELD / "near.jsonl"),
    }
    found: dict[str, Any] = {}
    written = [one for path in sorted(WRITTEN.glob("q_*.jsonl")) for one in lines(path)]
    alone = question_alone(written)
    for name, questions in asked.items():
        texts = circular_passages(options.shared, [one["question"] for one in questions])
        scores = np.array(
            [reader.holds(one["question"], some[:3]) for one, some in zip(questions, texts, strict=True)]
        )
        on = np.array([one["kind"] == "on" for one in questions])
        style = alone([one["question"] for one in questions])
        found[name] = {
            "on": int(on.sum()),
            "near": int((~on).sum()),
            "auc_question_alone": round(area(style[on], style[~on]), 3),
        }
        for first in (1, 3):
            best = scores[:, :first].max(axis=1)
            cut = np.quantile(best[on], 0.1)
            found[name][f"first {first}"] = {
                "auc": round(area(best[on], best[~on]), 3),
                "near_answered_at_10_percent_over_refusal": round(float((best[~on] >= cut).mean()), 3),
                "over_refusal_at_40_percent_answered": round(
                    float((best[on] < np.quantile(best[~on], 0.6)).mean()), 3
                ),
            }
    return found


def question_alone(written: Sequence[dict[str, Any]]) -> Any:
    """Learn from the written questions, without passages, which are near misses."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    said = [(question, kind == "yes") for one in written for kind in ("yes", "no") for question in one[kind]]
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10))
    model.fit([question for question, _ in said], [label for _, label in said])
    return lambda questions: model.decision_function(questions)


def circular_passages(shared: Path, questions: Sequence[str]) -> list[list[str]]:
    """Return what an engine finds for each question, in its order."""
    with TemporaryDirectory() as home:
        source = Path(home, "in")
        source.mkdir()
        (source / "circulars.jsonl.gz").write_bytes((shared / "rbi/circulars.jsonl.gz").read_bytes())
        with Engine.open(Path(home, "store"), profile="circulars", embedder="wordllama") as engine:
            engine.ingest(source)
            session = Session(role="compliance", purpose="surveil")
            return [
                [one.text for one in engine.retrieve(question, session, k=_FOUND).passages]
                for question in questions
            ]


def order(reader: Reader, options: Any) -> dict[str, Any]:
    """Count how often a fact of the answer is in the first eight of twenty passages, before and after."""
    questions = [one for one in lines(PROJECT) if one["kind"] == "on" and one["facts"]][:: options.every]
    texts = circular_passages(options.shared, [one["question"] for one in questions])
    counts = np.zeros((2, 3))
    for one, some in zip(questions, texts, strict=True):
        facts = [plain(fact).lower() for fact in one["facts"]]
        holds = np.array([all(fact in plain(text).lower() for fact in facts) for text in some])
        ranked = np.argsort(-np.array(reader.rerank(one["question"], some)), kind="stable")
        for row, rows in enumerate((np.arange(len(some)), ranked)):
            counts[row] += [holds[rows][:first].any() for first in (1, 8, 20)]
    shares = np.round(counts / len(questions), 3).tolist()
    return {"n": len(questions), "at": [1, 8, 20], "before": shares[0], "after": shares[1]}


def cases(reader: Reader, options: Any) -> dict[str, Any]:
    """Tell direct answers from cases to abstain on, in the 30 of 100 cases of fitz-gov that were left out."""
    scores: dict[str, list[float]] = {}
    with zipfile.ZipFile(options.fitz) as wheel:
        for name in ("trustworthy_direct", "trustworthy_hedged", "abstention", "relevance"):
            some = [one for one in governed(wheel, name) if part(f"f{one['id']}") >= 0.7]
            scores[name] = [max(reader.holds(one["query"], [" ".join(one["contexts"])])) for one in some]
    direct = scores["trustworthy_direct"]
    return {
        name: round(area(direct, some), 3) for name, some in scores.items() if name != "trustworthy_direct"
    }


# ---------------------------------------------------------------- claims


def pairs(reader: Reader, options: Any) -> dict[str, Any]:
    """Judge claims about articles of the AI Act, of which one keeps the article and its twin breaks it."""
    articles = {one["id"]: one["paragraphs"] for one in lines(options.shared / "ai_act/articles.jsonl")}
    rows = []
    for one in lines(HELD / "claims.jsonl"):
        said = judged(reader, one["claim"], articles[one["article"]])
        rows.append((one["label"] == "compliant", said[0] - said[1], said[0] + said[1]))
    right = np.array([label for label, *_ in rows])
    lean, sure = (np.array([row[at] for row in rows]) for at in (1, 2))
    twins = [
        lean[at] > lean[at + 1] if right[at] else lean[at] < lean[at + 1] for at in range(0, len(rows), 2)
    ]
    decided = np.abs(lean) > 0.2
    return {
        "n": len(rows),
        "auc": round(area(lean[right], lean[~right]), 3),
        "sign_right": int(((lean > 0) == right).sum()),
        "twins_in_order": int(sum(twins)),
        "decided": int(decided.sum()),
        "right_of_decided": int(((lean > 0) == right)[decided].sum()),
        "violations_called_compliant": int((decided & ~right & (lean > 0)).sum()),
        "said_something": round(float(sure.mean()), 3),
    }


def judged(reader: Reader, claim: str, paragraphs: Sequence[str]) -> np.ndarray[Any, Any]:
    """Return the stance of the passage, of the three nearest of an article, that says most about a claim."""
    cut = [one for paragraph in paragraphs for one in passages(plain(paragraph), 80)]
    near = [cut[row] for row in Nearest(cut).rows(claim, 3)]
    rows = reader.stance(claim, near)
    said: np.ndarray[Any, Any] = rows[np.abs(rows[:, 0] - rows[:, 1]).argmax()]
    return said


def excerpts(reader: Reader, options: Any) -> dict[str, Any]:
    """Judge the excerpts of AIReg-Bench by their sentences: agreement with the experts' median, no label used."""
    articles = {one["id"]: one["paragraphs"] for one in lines(options.shared / "ai_act/articles.jsonl")}
    leans, labels = [], []
    for one in lines(options.shared / "ai_act/aireg_bench.jsonl.gz"):
        median = ast.literal_eval(str(one["median_compliance"]))
        if median == 3:
            continue
        cut = [text for paragraph in articles[one["article"]] for text in passages(plain(paragraph), 80)]
        near, said = Nearest(cut), []
        for sentence in passages(plain(one["excerpt"].replace("*", "")), 45)[:8]:
            row = reader.stance(sentence, [cut[near.rows(sentence, 1)[0]]])[0]
            said.append(row[0] - row[1])
        leans.append(float(np.mean(said)))
        labels.append(median > 3)
    lean, label = np.array(leans), np.array(labels)
    draw = np.random.default_rng(1)
    drawn = [draw.integers(len(lean), size=len(lean)) for _ in range(2000)]
    spread = (
        np.percentile([kappa(label[rows], lean[rows] > 0) for rows in drawn], [2.5, 97.5]).round(3).tolist()
    )
    return {
        "n": len(label),
        "auc": round(area(lean[label], lean[~label]), 3),
        "kappa": round(kappa(label, lean > 0), 3),
        "interval": spread,
    }


def kappa(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """Return Cohen's kappa of two columns of verdicts."""
    same = float((one == other).mean())
    chance = float(one.mean() * other.mean() + (~one).mean() * (~other).mean())
    return (same - chance) / (1 - chance) if chance < 1 else 0.0


def contracts(reader: Reader, options: Any) -> dict[str, Any]:
    """Judge requirements of ContractNLI's test part, seen in training and not, by the two nearest spans."""
    documents = {one["doc_id"]: one for one in lines(options.shared / "legal/contractnli_docs.jsonl.gz")}
    known = {"Entailment": 0, "Contradiction": 1, "NotMentioned": 2}
    rows: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    spans: dict[str, tuple[list[str], Nearest]] = {}
    for one in lines(options.shared / "legal/contractnli_pairs.jsonl.gz"):
        document = one["doc_id"]
        unseen = one["label_id"] in UNSEEN_REQUIREMENTS
        if one["split"] != "test" or part(f"k{document}") >= (0.5 if unseen else 0.1):
            continue
        if document not in spans:
            held = documents[document]
            texts = [plain(held["text"][start:end]) for start, end in held["spans"]]
            spans[document] = texts, Nearest([*texts, "nothing"])
        texts, near = spans[document]
        found = [texts[row] for row in near.rows(one["hypothesis"], 3) if row < len(texts) and texts[row]]
        said = reader.stance(one["hypothesis"], found)
        rows[unseen].append((known[one["choice"]], int(said[said[:, 2].argmin()].argmax())))
    return {"unseen" if unseen else "seen": macro_f1(some) for unseen, some in rows.items()}


def macro_f1(rows: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Return the mean F1 of three labels, and how many rows there are."""
    parts = []
    for label in range(3):
        hits = sum(one == label == said for one, said in rows)
        parts.append(
            2 * hits / max(1, sum(one == label for one, _ in rows) + sum(said == label for _, said in rows))
        )
    return {"macro_f1": round(float(np.mean(parts)), 3), "n": len(rows)}


MEASURES = {
    "near_misses": near_misses,
    "order": order,
    "cases": cases,
    "pairs": pairs,
    "excerpts": excerpts,
    "contracts": contracts,
}


if __name__ == "__main__":
    main()
