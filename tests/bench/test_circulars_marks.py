"""The clauses marked in circulars are of the texts as they are, lie in their stretches, and do not overlap."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOME = Path(__file__).parents[2] / "bench" / "circulars"

KINDS = {"clause", "definition", "table", "list", "heading-with-text"}

TEXTS_SHA256 = "1499225aeb7bcc0b77e37f389674e47a4969021d2e1ab134f21bcdd8391a6018"
"""Of the marked circulars' texts, in the order of their ids; other texts need other offsets."""


@dataclass(frozen=True)
class Span:
    """Characters ``[start, end)`` of a circular's text; a stretch has no path and no kind."""

    circular: str
    start: int
    end: int
    path: str = ""
    kind: str = ""


def read(name: str) -> list[Span]:
    with (HOME / name).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
    return [
        Span(row["circular"], int(row["start"]), int(row["end"]), row.get("path", ""), row.get("kind", ""))
        for row in rows
    ]


def wrong(clauses: Sequence[Span], stretches: Sequence[Span]) -> list[str]:
    """What is wrong with the marks, whatever the texts are."""
    found = [f"{one}: kind" for one in clauses if one.kind not in KINDS]
    found += [f"{one}: path" for one in clauses if not one.path or one.path != one.path.strip()]
    for spans in (clauses, stretches):
        found += [f"{one}: empty or before the text" for one in spans if not 0 <= one.start < one.end]
        for one, after in pairwise(spans):
            if (one.circular, one.start) >= (after.circular, after.start):
                found.append(f"{after}: out of order")
            elif one.circular == after.circular and one.end > after.start:
                found.append(f"{after}: overlaps")
    where = {one.circular: one for one in stretches}
    if len(where) != len(stretches):
        found.append("a circular has two stretches")
    for one in clauses:
        stretch = where.get(one.circular)
        if stretch is None or not stretch.start <= one.start <= one.end <= stretch.end:
            found.append(f"{one}: outside its stretch")
    found += [f"{circular}: no clause" for circular in where.keys() - {one.circular for one in clauses}]
    if len(where) < 20:
        found.append(f"{len(where)} circulars, fewer than 20")
    return found


def test_marks_lie_in_their_stretches_and_do_not_overlap() -> None:
    assert wrong(read("clauses.tsv"), read("stretches.tsv")) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c, s: ([replace(c[0], kind="chapter"), *c[1:]], s), "kind"),
        (lambda c, s: ([replace(c[0], path=""), *c[1:]], s), "path"),
        (lambda c, s: ([replace(c[0], end=c[0].start), *c[1:]], s), "empty"),
        (lambda c, s: ([replace(c[0], end=c[1].start + 1), *c[1:]], s), "overlaps"),
        (lambda c, s: ([c[1], c[0], *c[2:]], s), "out of order"),
        (lambda c, s: ([*c[:-1], replace(c[-1], end=s[-1].end + 1)], s), "outside"),
        (lambda c, s: (c, s[1:]), "outside"),
        (lambda c, s: (c, [*s, replace(s[-1], start=s[-1].end, end=s[-1].end + 1)]), "two stretches"),
        (lambda c, s: ([one for one in c if one.circular != s[0].circular], s), "no clause"),
        (lambda c, s: (c, s[:19]), "fewer than 20"),
    ],
)
def test_marks_that_are_wrong_are_told(
    change: Callable[[list[Span], list[Span]], tuple[list[Span], list[Span]]], complaint: str
) -> None:
    assert any(complaint in one for one in wrong(*change(read("clauses.tsv"), read("stretches.tsv"))))


def test_marks_begin_and_end_with_characters_of_the_texts_they_were_made_on(shared_data: Path) -> None:
    clauses, stretches = read("clauses.tsv"), read("stretches.tsv")
    with gzip.open(shared_data / "rbi" / "circulars.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {row["id"]: row["text"] for row in map(json.loads, lines)}
    marked = hashlib.sha256()
    for one in stretches:
        marked.update(texts[one.circular].encode())
        assert one.end <= len(texts[one.circular])
    assert marked.hexdigest() == TEXTS_SHA256
    for one in clauses:
        span = texts[one.circular][one.start : one.end]
        assert span == span.strip(), one
    whole = [one for one in stretches if (one.start, one.end) == (0, len(texts[one.circular]))]
    parts = [one for one in stretches if one not in whole]
    assert (len(whole), len(parts)) == (12, 12)
    assert all(8_000 <= one.end - one.start <= 15_000 for one in parts)
