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

from bench.circulars.cuts import read_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOME = Path(__file__).parents[2] / "bench" / "circulars"

KINDS = {"clause", "definition", "table", "list", "heading-with-text"}

TEXTS_SHA256 = "1499225aeb7bcc0b77e37f389674e47a4969021d2e1ab134f21bcdd8391a6018"
"""Of the texts of the first marking, in the order of their ids; other texts need other offsets."""

FRESH_SHA256 = "fadb191a86c6fb8b512fbcdfc4d10c77bf8b1806983a895e90c4b38f5300ea0c"
"""Of the texts of the second marking, likewise."""


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


def read_texts(shared_data: Path) -> dict[str, str]:
    with gzip.open(shared_data / "rbi" / "circulars.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {row["id"]: row["text"] for row in map(json.loads, lines)}


def fresh() -> list[str]:
    return (HOME / "fresh.txt").read_text(encoding="utf-8").split()


def test_the_two_markings_are_counted_apart_and_the_published_count_is_of_the_first() -> None:
    first, second = read_marks(), read_marks(fresh=True)
    assert list(second) == fresh() == sorted(set(fresh()))
    assert sorted([*first, *second]) == [one.circular for one in read("stretches.tsv")]
    published = f"## Development: {sum(map(len, first.values()))} clauses of {len(first)} circulars\n"
    assert published in (HOME / "CUTS.md").read_text(encoding="utf-8")


def test_marks_begin_and_end_with_characters_of_the_texts_they_were_made_on(shared_data: Path) -> None:
    texts, second = read_texts(shared_data), fresh()
    marked = {False: hashlib.sha256(), True: hashlib.sha256()}
    for one in read("stretches.tsv"):
        marked[one.circular in second].update(texts[one.circular].encode())
        assert one.end <= len(texts[one.circular])
    assert (marked[False].hexdigest(), marked[True].hexdigest()) == (TEXTS_SHA256, FRESH_SHA256)
    for one in read("clauses.tsv"):
        span = texts[one.circular][one.start : one.end]
        assert span == span.strip(), one


def test_the_first_marking_is_of_twelve_whole_texts_and_twelve_stretches(shared_data: Path) -> None:
    texts = read_texts(shared_data)
    first = [one for one in read("stretches.tsv") if one.circular not in fresh()]
    parts = [one for one in first if (one.start, one.end) != (0, len(texts[one.circular]))]
    assert (len(first), len(parts)) == (24, 12)
    assert all(8_000 <= one.end - one.start <= 15_000 for one in parts)


def test_the_second_marking_is_chosen_by_hashes_of_ids_and_lengths_alone(shared_data: Path) -> None:
    texts, stretches = read_texts(shared_data), {one.circular: one for one in read("stretches.tsv")}
    left = [one for one in texts if len(texts[one]) >= 600 and (one in fresh() or one not in stretches)]
    chosen: list[str] = []
    for one in sorted(left, key=lambda circular: hashlib.sha256(circular.encode()).hexdigest()):
        if len(chosen) >= 20 and sum(":pdf:" in each for each in chosen) >= 6:
            break
        chosen.append(one)
    assert sorted(chosen) == fresh()
    clauses = read_marks(fresh=True)
    for one in chosen:
        stretch, length = stretches[one], len(texts[one])
        if length <= 8_000:
            assert (stretch.start, stretch.end) == (0, length)
            continue
        assert (stretch.start, stretch.end) == (clauses[one][0][0], clauses[one][-1][1])
        assert length / 3 <= stretch.start < length / 3 + 1_500
        assert clauses[one][-1][0] <= stretch.start + 6_000 < clauses[one][-1][1]
