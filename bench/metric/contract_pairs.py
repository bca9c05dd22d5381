"""Take pairs of ContractNLI as items to classify: a statement, and the spans of a contract that were marked for it."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any, Final

from bench.metric.classification import Judged
from bench.metric.corpora import SEED

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DRAWN", "contract_pairs"]

DRAWN: Final = {"dev": 200, "test": 400}
"""Pairs of each part, drawn of those with evidence: what all models of the benchmark can read in its time."""


def contract_pairs(data: Path) -> list[Judged]:
    """Return the drawn pairs: entailment supports, contradiction contradicts; what is not mentioned is left out."""
    documents = {row["doc_id"]: row for row in _rows(data / "legal" / "contractnli_docs.jsonl.gz")}
    places = {name: at for at, name in enumerate(sorted(documents))}
    pairs = [
        row
        for row in sorted(
            _rows(data / "legal" / "contractnli_pairs.jsonl.gz"),
            key=lambda row: (row["doc_id"], row["label_id"]),
        )
        if row["choice"] in ("Entailment", "Contradiction") and row["evidence_spans"]
    ]
    found = []
    for part, count in DRAWN.items():
        of_part = [row for row in pairs if row["split"] == part]
        draw = random.Random(SEED)  # noqa: S311 - sampling, not secrets
        for row in draw.sample(of_part, min(count, len(of_part))):
            document = documents[row["doc_id"]]
            spans = [document["spans"][at] for at in sorted(row["evidence_spans"])]
            evidence = " ".join(document["text"][start:end].strip() for start, end in spans)
            found.append(
                Judged(
                    id=f"{row['doc_id']}/{row['label_id']}",
                    cluster=places[row["doc_id"]],
                    claims=(row["hypothesis"],),
                    passages=(evidence,),
                    contradicts=row["choice"] == "Contradiction",
                    is_dev=part == "dev",
                )
            )
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
