"""Count the hand-marked clauses of circulars that chunkers cut in half.

    CARAG_SHARED_DATA=DIR python -m bench.circulars.cuts --out bench/circulars/CUTS.md

A clause is cut in half where no chunk holds it whole. Chunkers cut the whole texts; only marked clauses count.
The second marking is counted with ``--fresh`` alone, for a test that is read after every change is none.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.labelling.chunking import chunk
from carag.labelling.clauses import CLAUSES_VERSION, chunk_by_clauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Spans = list[tuple[int, int]]

HOME: Final = Path(__file__).parent
DEVELOPMENT: Final = 6
"""The first circulars by id of the first marking, read for the chunker's first version; the rest for its second."""
REPLICATES: Final = 2_000
SEED: Final = 20_260_331
SEPARATORS: Final = ["\n\n", "\n", r"\d+\.", r"\(\w+\)"]
"""Blank lines, lines, and then numbers of clauses."""


@dataclass(frozen=True)
class Cut:
    """What one chunker did to the marked circulars."""

    name: str
    halved: dict[str, tuple[int, int]]
    """By circular: the clauses cut in half, and all."""
    lengths: list[int]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    parser.add_argument("--out", type=Path, help="default: print only")
    parser.add_argument("--fresh", action="store_true", help="count the second marking too")
    given = parser.parse_args()
    if given.data is None:
        parser.error("set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz")
    cutters, marks = chunkers(), read_marks()
    texts = read_texts(given.data, marks)
    page = report([measured(name, cutter, texts, marks) for name, cutter in cutters.items()], marks)
    if given.fresh:
        marks = read_marks(fresh=True)
        texts = read_texts(given.data, marks)
        cuts = [measured(name, cutter, texts, marks) for name, cutter in cutters.items()]
        page += "\n" + "\n".join(section("Fresh, with `--fresh`", cuts, marks))
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")


def read_marks(*, fresh: bool = False) -> dict[str, Spans]:
    """Return the clauses of every circular of the first marking, or of the second, by its id and sorted by it."""
    second = set((HOME / "fresh.txt").read_text(encoding="utf-8").split())
    found: dict[str, Spans] = {}
    with (HOME / "clauses.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True):
            if (row["circular"] in second) == fresh:
                found.setdefault(row["circular"], []).append((int(row["start"]), int(row["end"])))
    return dict(sorted(found.items()))


def read_texts(data: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Return the texts of circulars by their ids."""
    with gzip.open(data / "rbi" / "circulars.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {row["id"]: row["text"] for row in map(json.loads, lines)}
    return {one: texts[one] for one in wanted}


def chunkers() -> dict[str, Callable[[str], Spans]]:
    """Return every chunker by its name, as a function from a text to spans of it."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from carag.retrieval.minilm import MiniLm

    tokenizer = MiniLm(threads=1)._tokenizer  # noqa: SLF001 - counts tokens as the default embedder does

    def by_clauses(size: int) -> Callable[[str], Spans]:
        splitter = RecursiveCharacterTextSplitter(
            separators=SEPARATORS, is_separator_regex=True, chunk_size=size, chunk_overlap=size // 10
        )
        return lambda text: located(text, splitter.split_text(text))

    by_tokens = RecursiveCharacterTextSplitter(
        chunk_size=500, chunk_overlap=50, length_function=lambda text: len(tokenizer.encode(text).ids)
    )
    return {
        "clauses, 1,000 to 1,500": lambda text: _ours(chunk_by_clauses(text)),
        "clauses, 1,000 to 1,500, one clause to 3,000": lambda text: _ours(
            chunk_by_clauses(text, whole=3000)
        ),
        "clauses, 2,000": lambda text: _ours(chunk_by_clauses(text, target=2000, limit=2000)),
        "clauses, 2,000, one clause to 3,000": lambda text: _ours(
            chunk_by_clauses(text, target=2000, limit=2000, whole=3000)
        ),
        "passages, 1,000 to 1,500": lambda text: _ours(chunk(text)),
        "passages, 2,000": lambda text: _ours(chunk(text, target=2000, limit=2000)),
        **{
            f"LangChain, clause separators, {size:,} with {size // 10:,} again": by_clauses(size)
            for size in (1290, 2000, 3000)
        },
        "LangChain, defaults, 500 tokens with 50 again": lambda text: located(
            text, by_tokens.split_text(text)
        ),
    }


def _ours(chunks: Iterable[object]) -> Spans:
    return [(one.start, one.end) for one in chunks]  # type: ignore[attr-defined]


def located(text: str, pieces: Sequence[str]) -> Spans:
    """Find where pieces of a text stand, each of which begins after the one before it began."""
    spans: Spans = []
    after = 0
    for piece in pieces:
        at = text.index(piece, after)
        spans.append((at, at + len(piece)))
        after = at + 1
    return spans


def measured(
    name: str, cutter: Callable[[str], Spans], texts: Mapping[str, str], marks: Mapping[str, Spans]
) -> Cut:
    """Cut every text, and count the marked clauses that no chunk holds whole."""
    halved, lengths = {}, []
    for circular, clauses in marks.items():
        spans = cutter(texts[circular])
        lengths += [end - start for start, end in spans]
        whole = [any(a <= start and end <= b for a, b in spans) for start, end in clauses]
        halved[circular] = (whole.count(False), len(whole))
    return Cut(name, halved, lengths)


def shares(counts: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Return the share over all clauses and the mean of the circulars' shares, with bootstrap intervals by circular."""
    table = np.array(counts, dtype=np.float64)
    drawn = np.random.Generator(np.random.PCG64(SEED)).integers(len(table), size=(REPLICATES, len(table)))
    pooled = table[drawn, 0].sum(axis=1) / table[drawn, 1].sum(axis=1)
    each = table[:, 0] / table[:, 1]
    return (
        _shown(table[:, 0].sum() / table[:, 1].sum(), pooled),
        _shown(each.mean(), each[drawn].mean(axis=1)),
    )


def _shown(value: float, drawn: Iterable[float]) -> str:
    low, high = np.percentile(np.asarray(drawn), [2.5, 97.5])
    return f"{100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def report(cuts: Sequence[Cut], marks: Mapping[str, Spans]) -> str:
    """Write the page of the figures."""
    ids = list(marks)
    parts = {"Development": ids, "Development, without the first six": ids[DEVELOPMENT:]}
    lines = [
        "# Clauses that chunkers cut in half",
        "",
        "Written by `python -m bench.circulars.cuts --out bench/circulars/CUTS.md`. Change the command, not this page.",
        "",
        f"A marked clause is cut in half where no chunk holds it whole. Cut by {CLAUSES_VERSION} and by "
        f"langchain-text-splitters {version('langchain-text-splitters')}; tokens are those of the default embedder.",
        f"In parentheses: 95 % intervals, circulars drawn again {REPLICATES:,} times.",
        "",
    ]
    for part, circulars in parts.items():
        lines += section(part, cuts, {one: marks[one] for one in circulars})
    lines += [
        "## Chunks of the 24 whole texts",
        "",
        "| chunker, characters | chunks | mean length | median | 95th percentile | greatest |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {cut.name} | {len(cut.lengths):,} | {np.mean(cut.lengths):,.0f} | {np.median(cut.lengths):,.0f} "
            f"| {np.percentile(cut.lengths, 95):,.0f} | {max(cut.lengths):,} |"
            for cut in cuts
        ),
    ]
    return "\n".join(lines) + "\n"


def section(part: str, cuts: Sequence[Cut], marks: Mapping[str, Spans]) -> list[str]:
    """Write the figures of some of the marked circulars."""
    clauses = [end - start for spans in marks.values() for start, end in spans]
    too_long = ", ".join(f"{sum(one > n for one in clauses)} are longer than {n:,}" for n in (1500, 2000))
    lines = [
        f"## {part}: {len(clauses)} clauses of {len(marks)} circulars",
        "",
        f"Of the clauses {too_long} characters.",
        "",
        "| chunker, characters | clauses cut in half | mean of the circulars' shares |",
        "| --- | --- | --- |",
    ]
    for cut in cuts:
        pooled, mean = shares([cut.halved[one] for one in marks])
        lines.append(f"| {cut.name} | {pooled} | {mean} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
