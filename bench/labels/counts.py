"""Count the bits of real filings and passages, and what each role may see before and after narrowing.

*Before* gives every passage its filing's whole word; *after* is the word ingest stores. State bits are those that all
the filings cause in each other::

    CARAG_SHARED_DATA=DIR python -m bench.labels.counts
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument
from carag.labelling.chunking import chunk
from carag.labelling.rule import Level
from carag.policy import QUARANTINE, PolicyBit, PolicyTable
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.metadata_only import KnownFacts
from carag.profiles.edgar.rules.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.profiles.edgar.facts.filing import Filing


@dataclass(slots=True)
class Counts:
    """Words of filings and passages, each with how many carry it."""

    filings: Counter[int] = field(default_factory=Counter)
    before: Counter[int] = field(default_factory=Counter)
    """Of passages, as if each had its filing's word."""
    after: Counter[int] = field(default_factory=Counter)
    metadata_only: int = 0
    """Filings known by their facts alone: events, and nothing to search."""
    differing: int = 0
    """Filings whose passages have words of their own."""


def count(path: Path) -> Counts:
    """Label every filing under a path, and every passage."""
    known = KnownFacts()
    for outcome in read_filings(path):
        if outcome.metadata is not None:
            known.add_row(outcome.metadata)
        elif outcome.filing is not None:
            known.add_text(outcome.filing, label(outcome.filing))
    states = known.states()
    counts = Counts(metadata_only=known.metadata_only)
    for filing in _filings(path):
        said, state = label(filing), states[filing.accession_number].bits
        state |= QUARANTINE if known.quarantine(filing.accession_number) else 0
        whole = said.word | state
        words = Counter(
            chunk_word(said, filing, document, piece.text, piece.start) | state
            for document in filing.documents
            for piece in chunk(document.text)
        )
        counts.filings[whole] += 1
        counts.before[whole] += words.total()
        counts.after += words
        counts.differing += len(words) > 1 or (bool(words) and whole not in words)
    return counts


def table(counts: Counts) -> str:
    """Return both tables as Markdown."""
    level = {rule.bit: rule.level for rule in RULES}
    passages = counts.after.total()
    lines = [
        f"{counts.filings.total():,} filings, {passages:,} passages; {counts.differing:,} filings have passages with "
        "words of their own.",
        "",
        f"{counts.metadata_only:,} more filings are known by their facts alone: "
        "they add no passage, and act as events.",
        "",
        "| bit | name | level | filings | passages before | passages after |",
        "|---|---|---|---|---|---|",
    ]
    for bit in PolicyBit:
        found = [_carrying(words, bit.value) for words in (counts.filings, counts.before, counts.after)]
        lines.append(
            f"| {bit.number} | {bit.name} | {level.get(bit, Level.STATE)} | "
            + " | ".join(f"{n:,}" for n in found)
            + " |"
        )
    aside = [_carrying(words, QUARANTINE) for words in (counts.filings, counts.before, counts.after)]
    lines.append("| 30 | quarantine | | " + " | ".join(f"{n:,}" for n in aside) + " |")
    lines += ["", "| role / purpose | may see before | may see after | opened |", "|---|---|---|---|"]
    for cell in PolicyTable.shipped().cells:
        seen = [
            sum(n for word, n in words.items() if cell.policy.admits(word))
            for words in (counts.before, counts.after)
        ]
        shares = " | ".join(f"{n / passages:.2%}" for n in seen)
        lines.append(f"| {cell.role}/{cell.purpose} | {shares} | {seen[1] - seen[0]:+,} |")
    return "\n".join(lines)


def _filings(path: Path) -> Iterator[Filing]:
    return (outcome.filing for outcome in read_filings(path) if outcome.filing is not None)


def _carrying(words: Counter[int], flag: int) -> int:
    return sum(n for word, n in words.items() if word & flag)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.labels.counts", description=__doc__)
    parser.add_argument("--out", type=Path, help="write them here as well")
    out: Path | None = parser.parse_args(arguments).out
    shared = os.environ.get("CARAG_SHARED_DATA", "")
    if not shared or not Path(shared, "edgar").is_dir():
        raise InvalidArgument(f"CARAG_SHARED_DATA is {shared!r}; want a directory that holds edgar/")
    told = table(count(Path(shared, "edgar")))
    print(told)
    if out is not None:
        out.write_text(f"# Labels of the real filings, counted\n\n{told}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
