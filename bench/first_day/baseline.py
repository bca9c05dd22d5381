"""Measure where a gate may stand before anybody has calibrated it: ``python -m bench.first_day.baseline``.

Four corpora of ``CARAG_SHARED_DATA`` and the short documents of ``development.jsonl`` are asked questions that they
answer, and questions of the others. The nearest of many passages is nearer than that of few, so it is measured for
several sizes: a question is asked of a passage that answers it and of others drawn at random, twenty times. For each
size the threshold is the highest multiple of 0.01 that declines at most 5 % of the questions in scope of every corpus
of that size. Writes ``carag/retrieval/confidence/baseline.toml``.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

import carag
from bench.circulars.gold import holds, read_questions
from bench.embedders.pool import read_pool
from bench.first_day.__main__ import EMBEDDERS, read_set
from bench.harness import parser
from carag.evaluation.cases.questions import json_lines
from carag.labelling.chunking import chunk
from carag.retrieval import embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


OUT: Final = Path(carag.__file__).parent / "retrieval" / "confidence" / "baseline.toml"
SEED: Final = 20261128
PASSAGES: Final = 800
"""Of one corpus, those that answer among them."""
QUESTIONS: Final = 60
STRANGERS: Final = 20
"""Questions that each other corpus lends to one, and the set on other subjects."""
SIZES: Final = (1, 3, 30, 300, 800)
DRAWS: Final = 20
MOST_DECLINED: Final = 0.05
HEADER: Final = """\
# The confidence gate's thresholds for an embedder that the store's profile does not name, until the gate is
# calibrated on the store (docs/how-to/calibrate-the-gate.md). They depend on how many passages a session may use,
# because the nearest of many is nearer than that of few; between two points they are interpolated by the logarithm.
# Each is the highest multiple of 0.01 that declined at most 5 % of the questions in scope of every corpus with at
# least this number of passages; the shares are over all corpora together. Out of scope are the questions of the
# other corpora, and some on other subjects. The corpora are filings with the SEC, circulars of the RBI, the EU's AI
# Act, rules of the ADGM, and thirty short documents with thirty passages at most. Measured by python -m
# bench.first_day.baseline.
"""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages, and questions that one of them answers."""

    name: str
    passages: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[tuple[int, ...], ...]
    """Of each question, the passages that answer it."""


def corpora(data: Path) -> tuple[Corpus, ...]:
    """Read them; the passages are those that answer and a sample of the others."""
    documents, _ = read_set("development")
    short = [(one["text"], one["questions"]) for one in documents]
    return (
        _sampled("SEC filings", *_filings(data)),
        _sampled("RBI circulars", *_circulars(data)),
        _sampled("EU AI Act", *_articles(data)),
        _sampled("ADGM rules", *_rules(data)),
        _sampled(
            "short documents",
            [text for text, _ in short],
            [(question, [row]) for row, (_, questions) in enumerate(short) for question in questions],
        ),
    )


_Asked = list[tuple[str, list[int]]]
"""Questions, each with the rows of the passages that answer it."""


def _filings(data: Path) -> tuple[list[str], _Asked]:
    pool = read_pool(data)
    asked = [
        (one.text, [row for piece in one.evidence for row in sorted(piece)[:1]]) for one in pool.questions
    ]
    return [one.embedded for one in pool.chunks], asked


def _circulars(data: Path) -> tuple[list[str], _Asked]:
    places = [
        (row["id"], one.start, one.end, one.text)
        for row in json_lines(data / "rbi" / "circulars.jsonl.gz")
        for one in chunk(row["text"])
    ]
    asked = [
        (one.question, [row for row, place in enumerate(places) if holds(place[:3], one.gold)][:3])
        for one in read_questions()
        if one.kind == "on"
    ]
    return [place[3] for place in places], [one for one in asked if one[1]]


def _articles(data: Path) -> tuple[list[str], _Asked]:
    texts: list[str] = []
    rows: dict[str, list[int]] = {}
    for one in json_lines(data / "ai_act" / "articles.jsonl"):
        parts = [part.text for part in chunk("\n".join([one["title"] or "", *one["paragraphs"]]))]
        rows[one["id"]] = list(range(len(texts), len(texts) + len(parts)))
        texts += parts
    asked = [
        (one["question"], [row for unit in one["gold_units"] for row in rows.get(unit, ())])
        for one in json_lines(data / "ai_act" / "qa_set.jsonl")
    ]
    return texts, [one for one in asked if one[1]]


def _rules(data: Path) -> tuple[list[str], _Asked]:
    found = [*json_lines(data / "legal" / "obliqa_passages.jsonl.gz")]
    row_of = {(one["document_id"], one["passage_id"]): row for row, one in enumerate(found)}
    asked = [
        (one["question"], [row_of[tuple(place)] for place in one["gold"] if tuple(place) in row_of])
        for one in json_lines(data / "legal" / "obliqa_questions.jsonl.gz")
    ]
    texts = [one["text"] if one["text"].strip() else "-" for one in found]
    return texts, [one for one in asked if one[1]]


def _sampled(name: str, passages: Sequence[str], asked: _Asked) -> Corpus:
    rng = random.Random(SEED)  # noqa: S311 - sampling, not secrets
    some = rng.sample(asked, min(QUESTIONS, len(asked)))
    answering = sorted({row for _, rows in some for row in rows})
    others = [row for row in range(len(passages)) if row not in set(answering)]
    kept = answering + rng.sample(others, min(max(PASSAGES - len(answering), 0), len(others)))
    place = {row: at for at, row in enumerate(kept)}
    return Corpus(
        name,
        tuple(passages[row] for row in kept),
        tuple(question for question, _ in some),
        tuple(tuple(place[row] for row in rows) for _, rows in some),
    )


def measured(embedder: str, found: Sequence[Corpus], off: Sequence[str]) -> Iterator[str]:
    """Yield the tables of an embedder, as the file has them."""
    model = embedder_by_name(embedder)
    asked = {one.name: np.array([model.embed_query(text) for text in one.questions]) for one in found}
    strange = np.array([model.embed_query(text) for text in off])
    near: dict[int, list[tuple[NDArray[np.float32], NDArray[np.float32]]]] = {size: [] for size in SIZES}
    for one in found:
        vectors = model.embed_documents(list(one.passages))
        others = [asked[other.name][:STRANGERS] for other in found if other is not one]
        for size in SIZES:
            if size <= len(vectors):
                near[size].append(
                    _nearest(one, vectors, asked[one.name], np.vstack([*others, strange]), size)
                )
    for size, parts in near.items():
        threshold = min(int(100 * np.quantile(on, MOST_DECLINED)) for on, _ in parts) / 100
        inside, outside = (
            np.concatenate([part.ravel() for part in column]) for column in zip(*parts, strict=True)
        )
        yield (
            f"[[embedder.{embedder}]]\npassages = {size}\nthreshold = {threshold:.2f}\ncorpora = {len(parts)}\n"
            f"in_scope = {sum(on.shape[1] for on, _ in parts)}\n"
            f"in_scope_declined = {np.mean(inside < threshold):.2f}\n"
            f"out_of_scope = {sum(out.shape[1] for _, out in parts)}\n"
            f"out_of_scope_declined = {np.mean(outside < threshold):.2f}\n"
        )


def _nearest(
    one: Corpus,
    vectors: NDArray[np.float32],
    asked: NDArray[np.float32],
    strangers: NDArray[np.float32],
    size: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how near the nearest of ``size`` passages is to each question, in scope and out of it, by draw."""
    rng = np.random.default_rng(SEED)
    to_asked, to_strangers = asked @ vectors.T, strangers @ vectors.T
    inside, outside = [], []
    for _ in range(DRAWS):
        order = rng.permutation(len(vectors))
        outside.append(to_strangers[:, order[:size]].max(axis=1))
        beside = order[: size - 1]
        inside.append(
            [
                row[[rng.choice(answers), *beside]].max()
                for row, answers in zip(to_asked, one.answers, strict=True)
            ]
        )
    return np.array(inside), np.array(outside)


def main() -> None:
    """Measure, print, write."""
    options = parser("bench.first_day.baseline", __doc__)
    options.add_argument("--out", type=Path, default=OUT)
    arguments = options.parse_args()
    found = corpora(Path(os.environ["CARAG_SHARED_DATA"]))
    off = read_set("development")[1]
    tables = [table for embedder in EMBEDDERS for table in measured(embedder, found, off)]
    written = f'{HEADER}\nschema = 1\nmeasured_on = "five corpora"\n\n' + "\n".join(tables)
    print(written)
    arguments.out.write_text(written, "utf-8")


if __name__ == "__main__":
    main()
