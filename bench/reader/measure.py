"""Measure the reader on questions that it was not trained with, alone and as the engine uses it.

    python -m bench.reader.measure --shared PATH --fitz fitz_gov.whl [--embedder NAME] [--work DIR] [--out FILE]

Near misses: questions that a circular answers, and questions on the subject that none answers. How well the greatest
score among the first passages tells the two apart, beside a baseline that sees the question alone; and what
``Engine.ask`` answers with the gate of the profile of circulars, without the reader and with it. Cases: fitz-gov.
"""

from __future__ import annotations

import argparse
import json
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.circulars.asking import NOW
from bench.circulars.gold import holds
from bench.reader import area
from bench.reader.sources import WRITTEN, governed, lines, part
from carag import Engine, Session
from carag.generation.reader.minilm import MiniLmReader
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from collections.abc import Sequence


PROJECT: Final = Path(__file__).parents[1] / "circulars" / "questions.jsonl"
HELD: Final = Path(__file__).with_name("held")
"""Written by others than those who wrote the training data, while the first run trained, without sight of it."""
SESSION: Final = Session(role="compliance", purpose="surveil")
_REFUSED: Final = 0.1
"""The share of answerable questions that the threshold may decline."""


class Question(NamedTuple):
    """A question, and the places that answer it; none for a near miss."""

    text: str
    gold: tuple[tuple[str, int, int], ...]


class Timed:
    """The reader as a user's own that declines nothing, which keeps scores and times."""

    name = "timed"
    threshold = 0.0

    def __init__(self) -> None:
        self._reader = MiniLmReader()
        self.last: list[float] = []
        self.ms: list[float] = []

    def holds(self, question: str, texts: Sequence[str]) -> list[float]:
        """Judge texts, and keep the scores."""
        begin = time.process_time()
        self.last = self._reader.holds(question, texts)
        self.ms.append(1000 * (time.process_time() - begin))
        return self.last


def main() -> None:
    """Measure everything and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.reader.measure", description=__doc__)
    for name in ("--shared", "--fitz"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--work", type=Path, help="keeps the store, which is made again otherwise")
    parser.add_argument("--only", nargs="*", default=[*MEASURES])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {}
    for name in options.only:
        found[name] = MEASURES[name](options)
        print(json.dumps({name: found[name]}), flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def near_misses(options: Any) -> dict[str, Any]:
    """Tell near misses from answerable questions by their scores, and ask the engine without and with the reader."""
    asked = {"another hand": of_another_hand(), "project": of_the_project()}
    everything = [one for some in asked.values() for one in some]
    alone = question_alone([one for path in sorted(WRITTEN.glob("q_*.jsonl")) for one in lines(path)])
    with TemporaryDirectory() as home:
        store = stored(options.work or Path(home), options)
        timed = Timed()
        scores = scored(store, everything, timed)
        without, used = (answers(store, everything, reader=name) for name in (None, "carag-reader-1"))
    found: dict[str, Any] = {"ms": np.percentile(timed.ms[1:], [50, 95, 100]).round(0).tolist()}
    for name, questions in asked.items():
        read = [one for one in questions if scores[one.text]]
        on = np.array([bool(one.gold) for one in read])
        style = alone([one.text for one in read])
        found[name] = {
            "read": [int(on.sum()), int((~on).sum())],
            "auc_question_alone": round(area(style[on], style[~on]), 3),
        }
        for first in (1, 3):
            best = np.array([max(scores[one.text][:first]) for one in read])
            found[name][f"first {first}"] = told_apart(best, on)
        found[name] |= {how: counted(questions, some) for how, some in (("without", without), ("with", used))}
    return found


def of_another_hand() -> list[Question]:
    """Return the 70 and 70 questions that were written for no other use."""
    return [
        Question(one["question"], ((one["source"], one["start"], one["end"]),) if one["kind"] == "on" else ())
        for one in lines(HELD / "near.jsonl")
    ]


def of_the_project() -> list[Question]:
    """Return the questions of ``bench/circulars`` on the subject."""
    return [
        Question(
            one["question"],
            (*((one["circular"], *span) for span in one["spans"]), *map(tuple, one["also"])),
        )
        for one in lines(PROJECT)
        if one["kind"] in ("on", "near")
    ]


def told_apart(best: np.ndarray[Any, Any], on: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return the area, and what passes at the highest threshold that declines one answerable question in ten."""
    cut = float(np.sort(best[on])[int(_REFUSED * on.sum())])
    return {
        "auc": round(area(best[on], best[~on]), 3),
        "threshold": round(cut, 4),
        "near_answered": round(float((best[~on] >= cut).mean()), 3),
    }


def scored(store: Path, questions: Sequence[Question], timed: Timed) -> dict[str, list[float]]:
    """Return the scores of the first passages without a gate; none for what is settled before a reader is asked."""
    with Engine.open(store, reader=timed, gate=ConfidenceGate(-1.0), clock=lambda: NOW) as engine:
        found = {}
        for one in questions:
            timed.last = []
            engine.ask(one.text, SESSION)
            found[one.text] = timed.last
        return found


def answers(store: Path, questions: Sequence[Question], **opening: Any) -> dict[str, Any]:
    """Ask every question; return whether it is answered, and whether a cited passage holds the clause."""
    with Engine.open(store, clock=lambda: NOW, **opening) as engine:
        found = {}
        for one in questions:
            answer = engine.ask(one.text, SESSION)
            cited = [(each.document_id, each.start, each.end) for each in answer.citations]
            found[one.text] = answer.why, any(holds(each, one.gold) for each in cited)
        return found


def counted(questions: Sequence[Question], found: dict[str, Any]) -> dict[str, Any]:
    """Count answers of near misses, declines of answerable questions, wrong answers and coverage."""
    rows = [(bool(one.gold), *found[one.text]) for one in questions]
    given = [(on, right) for on, why, right in rows if why == "ANSWERED"]
    return {
        "near_answered": sum(not on for on, _ in given),
        "answerable_declined": sum(on and why != "ANSWERED" for on, why, _ in rows),
        "wrong": sum(not right for _, right in given),
        "answers": len(given),
        "questions": len(rows),
        "declined_by_reader": sum(why == "READER_DECLINED" for _, why, _ in rows),
    }


def question_alone(written: Sequence[dict[str, Any]]) -> Any:
    """Learn from the written questions, without passages, which are near misses."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    said = [(question, kind == "yes") for one in written for kind in ("yes", "no") for question in one[kind]]
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10))
    model.fit([question for question, _ in said], [label for _, label in said])
    return lambda questions: model.decision_function(questions)


def stored(home: Path, options: Any) -> Path:
    """Make a store of the circulars unless it is there; return its place."""
    store, source = home / f"store-{options.embedder}", home / "in"
    if not store.exists():
        source.mkdir(parents=True, exist_ok=True)
        (source / "circulars.jsonl.gz").write_bytes((options.shared / "rbi/circulars.jsonl.gz").read_bytes())
        with Engine.open(store, profile="circulars", embedder=options.embedder, clock=lambda: NOW) as engine:
            engine.ingest(source)
    return store


def cases(options: Any) -> dict[str, Any]:
    """Tell direct answers from cases to abstain on, in the 30 of 100 cases of fitz-gov that were left out."""
    scores: dict[str, list[float]] = {}
    reader = MiniLmReader()
    with zipfile.ZipFile(options.fitz) as wheel:
        for name in ("trustworthy_direct", "trustworthy_hedged", "abstention", "relevance"):
            some = [one for one in governed(wheel, name) if part(f"f{one['id']}") >= 0.7]
            scores[name] = [max(reader.holds(one["query"], one["contexts"])) for one in some]
    direct = scores["trustworthy_direct"]
    return {
        name: round(area(direct, some), 3) for name, some in scores.items() if name != "trustworthy_direct"
    }


MEASURES: Final = {"near_misses": near_misses, "cases": cases}


if __name__ == "__main__":
    main()
