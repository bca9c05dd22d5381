"""Read ContractNLI: contracts cut into spans, and what each says of seventeen hypotheses.

Koreeda and Manning, "ContractNLI", Findings of EMNLP 2021; CC BY 4.0. Two files, ``contractnli_docs.jsonl.gz`` and
``contractnli_pairs.jsonl.gz``, hold a contract or a pair a line.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path


CHOICES: Final = ("Entailment", "Contradiction", "NotMentioned")
"""The labels in the order of the head's columns."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A hypothesis, its label as an index into CHOICES, and the spans that show it."""

    hypothesis: str
    label: int
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract: its name, its text, where its spans stand in it, and its pairs in the order of their hypotheses."""

    name: str
    text: str
    places: tuple[tuple[int, int], ...]
    pairs: tuple[Pair, ...]

    @property
    def spans(self) -> tuple[str, ...]:
        """The texts of its spans: sentences, clauses and headings."""
        return tuple(self.text[start:end].strip() for start, end in self.places)


def read_contracts(directory: Path, split: str) -> list[Contract]:
    """Read one split, ``dev`` or ``test``, with its contracts in the order of their names.

    Raises
    ------
    InvalidArgument
        If a file is missing or the split is unknown.
    """
    contracts = [line for line in _lines(directory / "contractnli_docs.jsonl.gz") if line["split"] == split]
    if not contracts:
        raise InvalidArgument(f"split {split!r} has no contract in {directory}; want 'dev' or 'test'")
    pairs: dict[str, list[dict[str, Any]]] = {}
    for line in _lines(directory / "contractnli_pairs.jsonl.gz"):
        pairs.setdefault(line["doc_id"], []).append(line)
    return [
        Contract(
            line["doc_id"],
            line["text"],
            tuple((start, end) for start, end in line["spans"]),
            tuple(
                Pair(pair["hypothesis"], CHOICES.index(pair["choice"]), frozenset(pair["evidence_spans"]))
                for pair in sorted(pairs[line["doc_id"]], key=lambda pair: str(pair["label_id"]))
            ),
        )
        for line in sorted(contracts, key=lambda line: str(line["doc_id"]))
    ]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise InvalidArgument(
            f"there is no {path}; name the directory that holds the two files of ContractNLI"
        )
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
