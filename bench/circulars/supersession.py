"""Measure how well statements by which circulars replace, withdraw or amend others are read, against marked ones.

    CARAG_SHARED_DATA=DIR python -m bench.circulars.supersession

Reads ``DIR/rbi/circulars.jsonl.gz`` and ``supersedes.tsv`` beside this file, prints the tables and writes them to
``SUPERSESSION.md``. The patterns were written on the circulars whose id has an even SHA-256; the others are held out.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.labelling.document import ActKind
from carag.profiles.circulars.references import number_key
from carag.profiles.circulars.supersession import Statement, in_force_from, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Marked", "Tally", "is_right", "wilson"]

_HERE: Final = Path(__file__).parent
_NONE: Final = "-"
"""Stands in the table for what is not stated."""
_READ_WHOLE: Final = 6400
"""Circulars of at most this many characters were read whole by hand; of longer ones some places were."""
_Z: Final = 1.959964  # two-sided 95 %


@dataclass(frozen=True, slots=True)
class Marked:
    """A statement that was found by hand; fields as in ``supersedes.tsv``, None where nothing is stated."""

    circular: str
    start: int
    end: int
    act: str
    number: str | None
    title: str | None
    """Its first forty characters."""
    dated: date | None
    effective: date | None

    @classmethod
    def of(cls, row: Mapping[str, str]) -> Marked:
        """Read a row of the table."""
        said = {name: None if value == _NONE else value for name, value in row.items()}
        return cls(
            circular=row["circular"],
            start=int(row["start"]),
            end=int(row["end"]),
            act=row["act"],
            number=said["other_number"],
            title=said["other_title"],
            dated=date.fromisoformat(said["other_date"]) if said["other_date"] else None,
            effective=date.fromisoformat(said["effective"]) if said["effective"] else None,
        )

    @property
    def is_held_out(self) -> bool:
        """Whether its circular was left aside while the patterns were written."""
        return bool(int(hashlib.sha256(self.circular.encode()).hexdigest(), 16) % 2)


@dataclass(slots=True)
class Tally:
    """How many of several are right."""

    right: int = 0
    of: int = 0

    def add(self, is_right: bool) -> None:
        """Count one more."""
        self.of += 1
        self.right += is_right

    def __str__(self) -> str:
        low, high = wilson(self.right, self.of)
        share = self.right / self.of if self.of else math.nan
        return f"{self.right} of {self.of}: {share:.3f} ({low:.3f} to {high:.3f})"


@dataclass(slots=True)
class _Half:
    found: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """By act: statements marked by hand, and those read right."""
    correct: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """By act: statements read where all is marked, and those that are right."""
    effective: Tally = field(default_factory=Tally)
    """Statements read right of which a day is marked, and those with that day."""


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return the ends of Wilson's 95 % interval of a share.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(9, 10)]
    [0.596, 0.982]
    """
    if not of:
        return 0.0, 1.0
    share, square = right / of, _Z * _Z
    middle = share + square / (2 * of)
    half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return (middle - half) / (1 + square / of), (middle + half) / (1 + square / of)


def is_right(marked: Marked, read: Statement) -> bool:
    """Tell whether a statement that was read is the marked one: the same act on the same other.

    The other is the same if its number is; where none is marked, if its date is, or else the beginning of its title. If
    neither is marked, as where a list was lost, the words must overlap.
    """
    if marked.act != read.kind.value:
        return False
    other = read.other
    if not (marked.number or marked.title or marked.dated):
        return read.start < marked.end and read.end > marked.start
    if other is None:
        return False
    if marked.number:
        return number_key(marked.number) in [number_key(one) for one in other.numbers] or (
            not other.numbers and other.date is not None and other.date == marked.dated
        )
    if marked.dated and marked.dated == other.date:
        return True
    return bool(marked.title) and any(
        _words(marked.title or "") in _words(one) for one in (other.title, other.word) if one
    )


def _words(title: str) -> str:
    words = re.sub(r"\bdirections\b", "direction", " ".join(re.findall(r"[^\W_]+", title.casefold())))
    return re.sub(r"^(?:(?:the|our|said|master|circulars?|direction|on|md)\s)+(?=\S)", "", words)


def _measure(rows: Iterable[Mapping[str, Any]], marks: list[Marked]) -> dict[bool, _Half]:
    by_circular: dict[str, list[Marked]] = defaultdict(list)
    for one in marks:
        by_circular[one.circular].append(one)
    halves = {False: _Half(), True: _Half()}
    for row in rows:
        of_row = by_circular[row["id"]]
        text = row["text"] or ""
        issued = date.fromisoformat(row["date"]) if row["date"] else None
        read = statements(text, issued=issued)
        half = halves[bool(int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 2)]
        whole = in_force_from(text, issued)
        for one in of_row:
            if one.act == "none":
                continue
            right = [said for said in read if is_right(one, said)]
            half.found[one.act].add(bool(right))
            if right and one.effective:
                days = {said.effective or (whole[0] if whole else None) for said in right}
                half.effective.add(one.effective in days)
        for said in read:
            near = [one for one in of_row if said.start < one.end and said.end > one.start]
            if len(text) <= _READ_WHOLE or near:
                half.correct[said.kind.value].add(
                    any(is_right(one, said) for one in of_row if one.act != "none")
                )
    return halves


def _table(title: str, halves: dict[bool, _Half], which: str) -> str:
    lines = [f"| {title} | written on (even) | held out (odd) |", "|---|---|---|"]
    for act in ActKind:
        cells = [str(getattr(halves[is_held_out], which)[act.value]) for is_held_out in (False, True)]
        lines.append(f"| {act.value} | {' | '.join(cells)} |")
    sums = []
    for is_held_out in (False, True):
        several = getattr(halves[is_held_out], which).values()
        sums.append(str(Tally(sum(one.right for one in several), sum(one.of for one in several))))
    return "\n".join([*lines, f"| all | {' | '.join(sums)} |"])


def main() -> int:
    """Measure, print and write the page."""
    if not (shared := os.environ.get("CARAG_SHARED_DATA")):
        print("set CARAG_SHARED_DATA to the directory with rbi/circulars.jsonl.gz", file=sys.stderr)
        return 2
    with (_HERE / "supersedes.tsv").open(encoding="utf-8", newline="") as file:
        marks = [Marked.of(row) for row in csv.DictReader(file, delimiter="\t")]
    with gzip.open(Path(shared, "rbi", "circulars.jsonl.gz"), "rt", encoding="utf-8") as lines:
        halves = _measure(map(json.loads, lines), marks)
    page = f"""# How well statements of supersession are read

<!-- Written by `python -m bench.circulars.supersession`. -->

`carag/profiles/circulars/supersession.py` against the {sum(one.act != "none" for one in marks)} statements and
{sum(one.act == "none" for one in marks)} lines that are none of [supersedes.tsv](supersedes.md). The patterns were
written on the circulars whose id has an even SHA-256. Of the others no marked statement was read; openings of some were
seen, and how many of their statements were missed was counted about nine times meanwhile, by act, length and circular:
they are held out, and not untouched. Shares with Wilson's 95 % interval.

A statement is read right if act and other are the marked ones: the other by its number, else by its date or the
beginning of its title; where a list was lost, by its place.

{_table("of those marked, read right", halves, "found")}

What was read and is not marked counts as wrong, in circulars of at most {_READ_WHOLE:,} characters, which were read
whole by hand; in longer ones only where it overlaps a marked line, one marked `none` included.

{_table("of those read, right", halves, "correct")}

Of those read right of which a day is marked, the day is right in {halves[False].effective} (even) and
{halves[True].effective} (held out).
"""
    print(page)
    (_HERE / "SUPERSESSION.md").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
