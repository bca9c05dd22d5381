"""Read the real questions, their gold chunks, and the pool of chunks they are searched in.

Read from the directory in ``CARAG_SHARED_DATA``; nothing from it is stored here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from carag.evaluation.cases.gold import holders, ngrams
from carag.evaluation.cases.questions import json_lines
from carag.labelling.chunking import chunk
from carag.labelling.naming import named
from carag.policy import Vocabulary
from carag.retrieval.embedder import headed

if TYPE_CHECKING:
    from pathlib import Path


SEED: Final = 20261121
FROM_GOLD_FILINGS: Final = 7_000
FROM_OTHER_FILINGS: Final = 3_000
CHUNKS_PER_OTHER_FILING: Final = 10
NEAR_QUESTIONS: Final = 150

_SETS: Final = ("patronus-ai/financebench", "VeselinL/edgar-rag mobileye_retrieval_gold")
"""The sets whose questions come with the text of their evidence inside the filings."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of the pool."""

    text: str
    embedded: str
    """The passage under its filing's facts, as a store embeds it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question; for each piece of its evidence, the rows of the pool that hold it."""

    text: str
    evidence: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """What is searched, and what is asked."""

    chunks: tuple[Chunk, ...]
    questions: tuple[Question, ...]
    dropped: int
    """Questions left out because no chunk of the filings holds any of their evidence."""


def read_pool(data: Path) -> Pool:
    """Build the pool: every gold chunk, a sample of their filings' other chunks, and of other filings'."""
    rows = [row for row in json_lines(data / "edgar" / "qa.jsonl.gz") if row["source"].startswith(_SETS)]
    wanted = {piece["doc_id"] for row in rows for piece in row["evidence"]}
    rng = random.Random(SEED)  # noqa: S311 - sampling, not secrets
    gold: dict[str, list[Chunk]] = {}
    others: list[list[Chunk]] = []
    for path in sorted((data / "edgar").glob("filings-*.jsonl.gz")):
        for filing in json_lines(path):
            if filing["id"] in wanted:
                gold[filing["id"]] = _chunks(filing)
            elif rng.random() < 0.1:
                chunks = _chunks(filing)
                others.append(rng.sample(chunks, min(CHUNKS_PER_OTHER_FILING, len(chunks))))
    held_grams = {name: [ngrams(one.text) for one in chunks] for name, chunks in gold.items()}
    held = [
        [
            [(piece["doc_id"], at) for at in holders(piece["text"], held_grams.get(piece["doc_id"], ()))]
            for piece in row["evidence"]
        ]
        for row in rows
    ]
    kept = {place for pieces in held for piece in pieces for place in piece}
    rest = [
        (name, at) for name, chunks in gold.items() for at in range(len(chunks)) if (name, at) not in kept
    ]
    places = sorted(kept) + sorted(rng.sample(rest, min(FROM_GOLD_FILINGS, len(rest))))
    row_of = {place: row for row, place in enumerate(places)}
    spread = [one for chunks in rng.sample(others, len(others)) for one in chunks][:FROM_OTHER_FILINGS]
    questions = [
        Question(
            row["question"], tuple(frozenset(row_of[place] for place in piece) for piece in pieces if piece)
        )
        for row, pieces in zip(rows, held, strict=True)
    ]
    asked = tuple(question for question in questions if question.evidence)
    return Pool(
        chunks=(*(gold[name][at] for name, at in places), *spread),
        questions=asked,
        dropped=len(questions) - len(asked),
    )


def out_of_scope_questions(data: Path) -> dict[str, list[str]]:
    """Read questions that SEC filings do not answer, by what they are about."""
    far = (data / "rbi" / "golden_questions.jsonl", data / "ai_act" / "qa_set.jsonl")
    near = [row["question"] for row in json_lines(data / "legal" / "obliqa_questions.jsonl.gz")]
    rng = random.Random(SEED)  # noqa: S311 - sampling, not secrets
    return {
        "RBI circulars, EU AI Act": [row["question"] for path in far for row in json_lines(path)],
        "ADGM financial regulation": rng.sample(near, NEAR_QUESTIONS),
    }


def _chunks(filing: dict[str, Any]) -> list[Chunk]:
    facts = {name: filing.get(name) or "" for name in ("company", "form", "filed")}
    heading = " ".join(named(Vocabulary.shipped().heading, facts))
    return [Chunk(one.text, headed(one.text, heading)) for one in chunk(filing["text"])]
