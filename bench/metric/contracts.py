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

__all__ = ["CHOICES", "Contract", "Pair", "folds", "read_contracts"]

CHOICES: Final = ("Entailment", "Contradiction", "NotMentioned")
"""The labels in the order of the head's columns."""
_PASSAGE: Final = 1000
"""Characters of a passage at most, unless one span is longer: what the store cuts documents into."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A hypothesis, its label as an index into CHOICES, and the spans that show it."""

    hypothesis: str
    label: int
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract's name, its spans as texts, and its pairs in the order of their hypotheses."""

    name: str
    spans: tuple[str, ...]
    pairs: tuple[Pair, ...]

    def passages(self) -> list[tuple[str, list[tuple[int, int, int]]]]:
        """Join neighbouring spans, a line each, to passages; with each span's number, start and end in its passage."""
        made: list[tuple[str, list[tuple[int, int, int]]]] = []
        text, places = "", list[tuple[int, int, int]]()
        for number, span in enumerate(self.spans):
            if not any(map(str.isalnum, span)):
                continue
            if text and len(text) + 1 + len(span) > _PASSAGE:
                made.append((text, places))
                text, places = "", []
            text = f"{text}\n{span}" if text else span
            places.append((number, len(text) - len(span), len(text)))
        return [*made, (text, places)] if text else made


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
            tuple(line["text"][start:end].strip() for start, end in line["spans"]),
            tuple(
                Pair(pair["hypothesis"], CHOICES.index(pair["choice"]), frozenset(pair["evidence_spans"]))
                for pair in sorted(pairs[line["doc_id"]], key=lambda pair: str(pair["label_id"]))
            ),
        )
        for line in sorted(contracts, key=lambda line: str(line["doc_id"]))
    ]


def folds(count: int, parts: int, seed: int) -> list[int]:
    """Deal ``count`` things into ``parts`` folds of equal size to within one, by the seed."""
    import numpy as np

    dealt = [0] * count
    for turn, thing in enumerate(np.random.default_rng(seed).permutation(count).tolist()):
        dealt[thing] = turn % parts
    return dealt


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise InvalidArgument(
            f"there is no {path}; name the directory that holds the two files of ContractNLI"
        )
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
