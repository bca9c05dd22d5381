"""Ask the development questions of circulars cut to several lengths, and count what is found, right and shown.

    CARAG_SHARED_DATA=DIR python -m bench.circulars.lengths WORK

Of compliance/surveil, with the profile's ranker and the embedder that is fast. What is asked is kept in the directory
WORK part by part. The table is one of ``README.md``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.circulars.asking import carag_rows, done, ingested
from bench.circulars.gold import families, is_held_out, read_questions
from bench.circulars.kept import OWN, K, gold_of, read_rows
from carag.policy import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.circulars.kept import Run

EMBEDDER: Final = "wordllama"
LENGTHS: Final = (
    (1000, 1500, 1500),
    (1000, 1500, 2000),
    (1000, 1500, 3000),
    (1500, 2000, 2000),
    (1500, 2000, 3000),
)
"""Target, limit and ``whole``, in characters; where the last two are equal, no clause may be longer than a passage."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    given = parser.parse_args()
    if given.data is None:
        parser.error("set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz")
    packed = gzip.decompress((given.data / "rbi" / "circulars.jsonl.gz").read_bytes())
    ids = [json.loads(line)["id"] for line in packed.decode().splitlines()]
    every = read_questions()
    family = families(every)
    questions = [one for one in every if not is_held_out(family[one.id])]
    heads = (
        "target, limit, whole",
        "passages",
        "Hit@6",
        "answered",
        "right",
        "share right",
        "quote holds a fact",
    )
    print(f"| {' | '.join(heads)} | characters of the first six |")
    print(f"|{' --- |' * (len(heads) + 1)}")
    for lengths in LENGTHS:
        home = given.work / "-".join(map(str, lengths))
        reading = done(
            home / "ingest.jsonl", partial(ingested, home, packed, EMBEDDER, ids, cut_to(home, *lengths))
        )
        rows = done(home / "rows.jsonl", partial(carag_rows, home / "store", EMBEDDER, OWN, ids, questions))
        with reading.open(encoding="utf-8") as lines:
            ingest = json.loads(lines.readline())
        with rows.open(encoding="utf-8") as lines:
            run = read_rows(lines, ingest, questions)
        figures = " | ".join(_counted(run))
        print(
            f"| {', '.join(f'{one:,}' for one in lengths)} | {ingest['chunks']:,} | {figures} |", flush=True
        )


def cut_to(home: Path, target: int, limit: int, whole: int) -> Path:
    """Write the profile of circulars with other lengths, and return its folder."""
    profile = Profile.open("circulars")
    folder = home / "profile"
    folder.mkdir(parents=True, exist_ok=True)
    said = profile.texts[0]
    for name, value in (("target", target), ("limit", limit), ("whole", whole)):
        said, changed = re.subn(rf"^{name} = \d+$", f"{name} = {value}", said, flags=re.MULTILINE)
        if changed != 1:
            raise ValueError(f"the profile of circulars states {name} {changed} times; want once")
    for name, text in {"profile.toml": said, "roles.toml": profile.texts[1], **profile.reading}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _counted(run: Run) -> Iterable[str]:
    rows = run.rows[f"carag {EMBEDDER} compliance {OWN}"].values()
    on = [row for row in rows if run.questions[row["id"]].kind == "on"]
    hits = sum(any(gold_of(run, row)[:K]) for row in on)
    answered = [row for row in rows if row["code"] == "ANSWERED"]
    right = [row for row in answered if any(gold_of(run, row)[at] for at in row["cited"])]
    shown = np.mean([sum(end - start for _, start, end in row["top"][:K]) for row in rows])
    share = len(right) / len(answered)
    yield from (f"{hits} of {len(on)}", f"{len(answered)}", f"{len(right)}", f"{100 * share:.1f} %")
    yield f"{sum(bool(row['said']) for row in right)}"
    yield f"{shown:,.0f}"


if __name__ == "__main__":
    main()
