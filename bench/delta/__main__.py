"""Edit clauses of circulars, and count what a run embeds: ``python -m bench.delta``.

A folder of circulars, repeated under other titles until they make 31,000 passages, goes into a store; then one clause
at a time is edited, and the folder is synced. The circulars are those of ``CARAG_SHARED_DATA``/rbi, or else invented.
Prints a report, and writes it to ``RESULTS.md`` beside this file, or as ``--out`` says.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import carag
from bench.commit import commit
from carag.engine.documents import _cut
from carag.evaluation.run_metadata import processor_name
from carag.policy import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

HERE: Final = Path(__file__).parent
_PARAGRAPH: Final = re.compile(r"[^\n]{50,}")
"""What is edited: a line long enough to be no heading, number or cell."""
_SENTENCE: Final = " Regulated entities shall keep a record of each such case for eight years."
_VERBS: Final = ("report", "assess", "disclose", "retain", "verify", "publish", "limit", "review")
_NOUNS: Final = (
    "deposits",
    "exposures",
    "complaints",
    "outages",
    "collateral",
    "balances",
    "loans",
    "accounts",
)


_PAGE: Final = """\
# What one edited clause costs

Written by `{command}`; do not edit.

{source}, repeated under other titles: {documents:,} documents in {passages:,} passages, each document a file. The first
run embedded {embedded:,} texts in {building:.1f} s. A run that finds nothing changed takes {idle:.2f} s, and
{idle_all:.2f} s with opening and closing the store. Then {edits} edits of each kind, each with a run of its own; and
{cuts:,} of each kind that were only cut, to count the passages that an edit makes new.

| edit of one paragraph | embedded: median, most | reused: median, most | run, s | with opening, s | only cut: median, 99th percentile, most |
|---|---|---|---|---|---|
{kinds}

*Run* is all of `Engine.sync`: every file is hashed, read, parsed and hashed again, for no date is believed. Passages
are whole clauses, put together while they fit (`carag/labelling/clauses.py`): those before an edited clause keep their
bytes, and so do those after it from where the cuts meet the earlier ones again, at the latest where the clause's parent
ends, unless the edit changes what counts as a number or a running head.

{settings}
"""  # noqa: E501 - a table's line


def _seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a benchmark's choice


def _word(text: str, at: re.Match[str], chance: random.Random) -> str:
    words = [*re.finditer(r"\w{4,}", at[0])]
    one = chance.choice(words) if words else at
    return text[: at.start() + one.start()] + "amended" + text[at.start() + one.end() :]


def _sentence(text: str, at: re.Match[str], _: random.Random) -> str:
    return text[: at.end()] + _SENTENCE + text[at.end() :]


def _deletion(text: str, at: re.Match[str], _: random.Random) -> str:
    return text[: at.start()] + text[at.end() :]


EDITS: Final[dict[str, Callable[[str, re.Match[str], random.Random], str]]] = {
    "a word replaced": _word,
    "a sentence added": _sentence,
    "a paragraph deleted": _deletion,
}


def invented(count: int, seed: int) -> list[dict[str, Any]]:
    """Make circulars of 5 to 60 clauses, some with items."""
    chance = _seeded(seed)
    rows = []
    for number in range(count):
        clauses = []
        for clause in range(1, chance.randint(5, 60)):
            said = [
                f"A bank shall {chance.choice(_VERBS)} its {chance.choice(_NOUNS)} of class {chance.randint(1, 9999)} "
                f"within {chance.randint(2, 90)} days."
                for _ in range(chance.randint(1, 7))
            ]
            items = [f"({item}) {one}" for item, one in zip("abcdefg", said[1:], strict=False)]
            clauses.append(
                "\n".join([f"{clause}. {said[0]}", *(items if chance.random() < 0.4 else said[1:])])
            )
        rows.append(
            {
                "id": f"i{number}",
                "title": f"Circular {number}",
                "date": "2024-01-02",
                "text": "\n\n".join(clauses),
            }
        )
    return rows


def real(shared: str) -> list[dict[str, Any]]:
    """Read the circulars of the shared data."""
    with gzip.open(Path(shared, "rbi", "circulars.jsonl.gz"), "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [{name: one[name] for name in ("id", "title", "date", "text")} for one in found]


def edited(text: str, kind: str, chance: random.Random) -> str:
    """Edit one paragraph."""
    at = chance.choice([*_PARAGRAPH.finditer(text)])
    return EDITS[kind](text, at, chance)


def touched(rows: list[dict[str, Any]], edits: int, seed: int) -> dict[str, list[int]]:
    """Count, without a store, the passages that an edit makes new."""
    vocabulary, chance = Profile.open("circulars").vocabulary, _seeded(seed)
    long = [one["text"] for one in rows if _PARAGRAPH.search(one["text"])]
    found: dict[str, list[int]] = {}
    for kind in EDITS:
        for _ in range(edits):
            text = chance.choice(long)
            before, after = (
                Counter(piece.text for piece, _ in _cut(one, vocabulary))
                for one in (text, edited(text, kind, chance))
            )
            found.setdefault(kind, []).append(len([*(after - before)]))
    return found


def synced(store: Path, folder: Path) -> tuple[carag.engine.SyncReport, float, float]:
    """Open, sync and close; return the report, the seconds of all, and those of the run alone."""
    began = time.perf_counter()
    with carag.Engine.open(store, profile="circulars", embedder="wordllama") as engine:
        opened = time.perf_counter()
        report = engine.sync(folder)
        run = time.perf_counter() - opened
    return report, time.perf_counter() - began, run


def main() -> None:
    """Build, edit, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.delta", description=__doc__)
    parser.add_argument("--chunks", type=int, default=31_000)
    parser.add_argument("--edits", type=int, default=10, help="of each kind, each with a run of its own")
    parser.add_argument("--cuts", type=int, default=1000, help="edits of each kind that are only cut")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    given = parser.parse_args()
    shared, load = os.environ.get("CARAG_SHARED_DATA"), os.getloadavg()[0]
    rows = real(shared) if shared else invented(200, given.seed)
    vocabulary, chance = Profile.open("circulars").vocabulary, _seeded(given.seed)
    each = [sum(1 for _ in _cut(one["text"], vocabulary)) for one in rows]
    with tempfile.TemporaryDirectory() as scratch:
        folder, store, count = Path(scratch, "folder"), Path(scratch, "store"), 0
        folder.mkdir()
        long = []
        for number in range(given.chunks * len(rows) // sum(each) + len(rows)):
            if count >= given.chunks:
                break
            turn, which = divmod(number, len(rows))
            row = rows[which] | {"id": f"d{number}", "title": f"{rows[which]['title']} ({turn + 1})"}
            path = folder / f"d{number}.jsonl"
            path.write_text(json.dumps(row) + "\n", encoding="utf-8")
            count += each[which]
            long += [path] if _PARAGRAPH.search(row["text"]) else []
        built, _, building = synced(store, folder)
        _, idle_all, idle = synced(store, folder)
        runs: dict[str, list[tuple[int, int, float, float]]] = {}
        for kind in EDITS:
            for _ in range(given.edits):
                path = chance.choice(long)
                row = json.loads(path.read_text(encoding="utf-8"))
                path.write_text(
                    json.dumps(row | {"text": edited(row["text"], kind, chance)}) + "\n", encoding="utf-8"
                )
                report, whole, run = synced(store, folder)
                assert (report.changed, report.added, report.left) == (1, 0, []), report
                runs.setdefault(kind, []).append((report.embedded, report.reused, whole, run))
    cuts = touched(rows, given.cuts, given.seed)
    kinds = "\n".join(
        f"| {kind} | {median(one[0] for one in runs[kind]):g}, {max(one[0] for one in runs[kind])} "
        f"| {median(one[1] for one in runs[kind]):g}, {max(one[1] for one in runs[kind])} "
        f"| {median(one[3] for one in runs[kind]):.2f} | {median(one[2] for one in runs[kind]):.2f} "
        f"| {median(cuts[kind]):g}, {sorted(cuts[kind])[len(cuts[kind]) * 99 // 100]}, {max(cuts[kind])} |"
        for kind in EDITS
    )
    settings = (
        f"Embedder `wordllama`; profile `circulars`; seed {given.seed}. {processor_name()}, {os.cpu_count()} "
        f"processors, load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end: seconds are no best case. "
        f"Python {platform.python_version()}; {commit()}."
    )
    written = _PAGE.format(
        command=f"{'CARAG_SHARED_DATA=DIR ' if shared else ''}python -m bench.delta",
        source=f"{len(rows)} circulars of {'the Reserve Bank of India' if shared else 'an invented authority'}",
        documents=built.added,
        passages=built.chunks,
        embedded=built.embedded,
        building=building,
        idle=idle,
        idle_all=idle_all,
        edits=given.edits,
        cuts=given.cuts,
        kinds=kinds,
        settings=settings,
    )
    print(written)
    given.out.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
