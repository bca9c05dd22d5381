"""Read the questions of public sets whose evidence is in the corpus, and those that ship with the project."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_SOURCES_WITH_TEXT: Final = ("patronus-ai/financebench", "VeselinL/edgar-rag")
_SOURCES_WITH_FILINGS: Final = ("docugami/KG-RAG-datasets", "skandula9273/sec-rag-eval")


@dataclass(frozen=True, slots=True)
class GoldEvidence:
    """One piece of evidence that a question needs, which any of several filings contains."""

    alternatives: tuple[tuple[str, str | None], ...]  # filings, with the evidence or None


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and all the pieces of evidence that it needs."""

    id: str
    text: str
    answer: str | None
    evidence: tuple[GoldEvidence, ...]
    kind: str = "real"


def real_questions(data: Path) -> list[Question]:
    """Read the questions of the public sets that name filings; InvalidArgument if the file is missing."""
    path = data / "edgar" / "qa.jsonl.gz"
    if not path.is_file():
        raise InvalidArgument(
            f"{path} is missing; name a directory with edgar/qa.jsonl.gz, or use the small corpus"
        )
    found = []
    for row in json_lines(path):
        if row["source"].startswith(_SOURCES_WITH_TEXT):
            pieces = [GoldEvidence(((one["doc_id"], one["text"]),)) for one in row["evidence"]]
        elif row["source"].startswith(_SOURCES_WITH_FILINGS) and row.get("doc_in_corpus"):
            pieces = [GoldEvidence(((one, None),)) for one in row.get("doc_ids") or [row["doc_id"]]]
        else:
            continue
        found.append(Question(row["id"], row["question"], _answer(row["answer"]), tuple(pieces)))
    return found


def shipped_questions(data: Path) -> list[Question]:
    """Read the questions of the small corpus, each answered by any one of its sources."""
    path = data / "questions.jsonl"
    if not path.is_file():
        raise InvalidArgument(f"{path} is missing; install CARAG again, or look for data/ in the source tree")
    return [
        Question(
            row["id"],
            row["question"],
            _answer(row["answer"]),
            (GoldEvidence(tuple((one["accession"], one["quote"]) for one in row["gold"])),)
            if row["gold"]
            else (),
        )
        for row in json_lines(path)
    ]


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file with one JSON object per line, gzipped or not."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        for line in file:
            yield json.loads(line)


def _answer(given: object) -> str | None:
    return None if given is None else str(given)
