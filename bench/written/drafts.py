"""Make pairs of sentences about real passages: a right one, and the same one with exactly one change.

From tables, both are made here: label, period, value and unit come from a table that a reader of this file's own finds,
so that what it can read does not depend on the reader under test. From prose, both were written by hand
(``prose.jsonl``: the document, the place of the figure in it, and the two sentences). No text of a document is kept.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.labelling.chunking import chunk
from carag.labelling.clauses import chunk_by_clauses
from carag.retrieval.evidence import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGES: Final = ("value", "label", "unit", "period")
PAIRS: Final = 200
SEED: Final = 20
_HERE: Final = Path(__file__).parent
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_VALUE: Final = re.compile(r"\$?\s?\(?\d{1,3}(?:,\d{3})*(?:\.\d+)?\s?%?\)?")
_UNIT: Final = re.compile(r"\bin (thousands|millions)\b", re.IGNORECASE)
_ANY_UNIT: Final = re.compile(r"thousand|million|billion|000s", re.IGNORECASE)
_COUNTS: Final = re.compile(r"\bshares\b|number|employees|workforce|headcount", re.IGNORECASE)
"""Rows that are not in the unit and currency that the lines above the table state."""
_LABEL: Final = re.compile(r"[A-Z][A-Za-z,'’& ()-]{5,70}")
_FEW: Final = 3
_TEMPLATES: Final = (
    "{label} was {value} in {year}.",
    "In {year}, {label} amounted to {value}.",
    "The company reported {label} of {value} for {year}.",
    "For {year}, {label} came to {value}.",
)
_OTHER: Final = {"thousand": "million", "million": "billion"}


class Fact(NamedTuple):
    """One cell of a table, as a sentence states it."""

    label: str
    year: str
    number: str
    """As printed, without signs."""
    is_negative: bool
    is_percent: bool
    has_sign: bool
    """Whether the table prints dollar signs."""
    unit: str
    """``thousand`` or ``million``; empty for plain figures."""

    @property
    def said(self) -> str:
        """The value as a sentence writes it."""
        if self.is_percent:
            return f"{'-' if self.is_negative else ''}{self.number}%"
        number = f"({self.number})" if self.is_negative else self.number
        return f"{'$' if self.has_sign else ''}{number}{' ' if self.unit else ''}{self.unit}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A right sentence and a wrong one about the same passage; both cite it as [1]."""

    passage: Passage
    right: str
    wrong: str
    change: str
    source: str
    """``table`` or ``prose``."""

    @property
    def half(self) -> int:
        """0 for the documents on which rules may be tuned, 1 for the others."""
        return hashlib.sha256(self.passage.accession_number.encode()).digest()[0] & 1


def pairs(data: Path, *, seed: int = SEED, count: int = PAIRS) -> list[Pair]:
    """Return the pairs of sentences; the same seed and data give the same pairs."""
    written = [json.loads(line) for line in (_HERE / "prose.jsonl").read_text("utf-8").splitlines()]
    by_document: dict[str, list[dict[str, Any]]] = {}
    for one in written:
        by_document.setdefault(one["document"], []).append(one)
    prose: list[Pair] = []
    tables: list[Pair] = []
    draw = random.Random(seed)  # noqa: S311
    for row in _documents(data):
        for one in by_document.get(row["id"], ()):
            found = next(it for it in _passages(row) if it.start <= one["at"] < it.end)
            prose.append(Pair(found, _cited(one["right"]), _cited(one["wrong"]), one["change"], "prose"))
        if row["id"].startswith("rbi:") or draw.random() > 0.5:
            continue
        pair = next(filter(None, (_of_table(it, draw, len(tables)) for it in _passages(row))), None)
        if pair is not None:
            tables.append(pair)
    draw.shuffle(tables)
    return [*prose, *tables[: count - len(prose)]]


def _documents(data: Path) -> Iterator[dict[str, Any]]:
    for path in (data / "rbi" / "circulars.jsonl.gz", *sorted((data / "edgar").glob("filings-0*.jsonl.gz"))):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _passages(row: dict[str, Any]) -> Iterator[Passage]:
    text = row["text"]
    for number, one in enumerate(chunk_by_clauses(text) if row["id"].startswith("rbi:") else chunk(text)):
        yield Passage(
            chunk_id=f"{row['id']}:{number:05}",
            text=one.text,
            similarity=0.7,
            word=0,
            accession_number=row["id"],
            form=row.get("form") or "",
            company=row.get("company") or "",
            filed=row.get("filed") or row.get("date") or "",
            document="main",
            start=one.start,
            end=one.end,
            source=row.get("title") or f"{row.get('company') or ''} {row.get('form') or ''}".strip(),
        )


def _cited(sentence: str) -> str:
    return f"{sentence.removesuffix('.')} [1]."


def _facts(text: str) -> list[Fact]:
    """Read a table whose head is a row of bare years; rows with another number of figures are left out."""
    above = text[: max(0, text.find(" | "))]
    unit = _UNIT.search(above)
    if len(_ANY_UNIT.findall(text)) != (unit is not None):
        return []  # it is not plain to which figures a unit belongs
    years: list[str] = []
    found: list[Fact] = []
    for line in text.splitlines():
        cells = [one.strip() for one in line.split(" | ") if one.strip() not in ("", "$", ")", "%", ")%")]
        named = [one for one in cells if _YEAR.fullmatch(one)]
        if len(named) > 1 and len(cells) - len(named) <= 1:
            if years and named != years:
                return []
            years = named
        elif (
            years
            and len(cells) == len(years) + 1
            and _LABEL.fullmatch(cells[0])
            and not _COUNTS.search(cells[0])
        ):
            values = [one for one in cells[1:] if _VALUE.fullmatch(one)]
            if len(values) == len(years):
                found += [_fact(cells[0], *each, text, unit) for each in zip(years, values, strict=True)]
    return found


def _fact(label: str, year: str, value: str, text: str, unit: re.Match[str] | None) -> Fact:
    number = re.sub(r"[^\d.,]", "", value)
    is_percent = "%" in value
    is_small = is_percent or "share" in label.lower() or "per " in label.lower()
    scale = "" if unit is None or is_small else unit[1].lower().removesuffix("s")
    return Fact(
        label.strip(" ,:"), year, number, "(" in value, is_percent, "$" in text and not is_percent, scale
    )


def _of_table(passage: Passage, draw: random.Random, number: int) -> Pair | None:
    facts = _facts(passage.text)
    rows = {one.label.lower() for one in facts}
    if len(rows) < _FEW or len(rows) * len({one.year for one in facts}) != len(facts):
        return None  # a label occurs twice, so a sentence could mean either row
    fact = draw.choice(facts)
    if not re.search(r"[1-9]\d", fact.number) or "%" in fact.label:
        return None
    change = CHANGES[number % len(CHANGES)]
    wrong = _changed(fact, change, facts, draw)
    if wrong is None:
        return None
    template = draw.choice(_TEMPLATES)
    is_rounded = (
        fact.unit == "million" and len(fact.number) >= 5 and "." not in fact.number and draw.random() < 0.3
    )
    right, other = (_cited(_sentence(template, one, is_rounded=is_rounded)) for one in (fact, wrong))
    return None if right == other else Pair(passage, right, other, change, "table")


def _sentence(template: str, fact: Fact, *, is_rounded: bool) -> str:
    said = fact.said
    if is_rounded and fact.unit in _OTHER and not fact.is_negative:
        said = f"${round(float(fact.number.replace(',', '')) / 1000, 1)} {_OTHER[fact.unit]}"
    label = fact.label[0].lower() + fact.label[1:]
    text = template.format(label=label, value=said, year=fact.year)
    return text[0].upper() + text[1:]


def _changed(fact: Fact, change: str, facts: list[Fact], draw: random.Random) -> Fact | None:
    """Return the fact with one change to what the same table holds, or None if that is true or says the same."""
    if change == "unit":
        if fact.is_percent:
            return fact._replace(is_percent=False, has_sign=True)
        if fact.unit:
            return fact._replace(unit=draw.choice(("", _OTHER[fact.unit])))
        return fact._replace(unit="million") if draw.random() < 0.5 else fact._replace(is_percent=True)
    others = [
        one
        for one in facts
        if (one.number, one.is_negative) != (fact.number, fact.is_negative)
        and (one.year == fact.year) == (change == "label" or (change == "value" and draw.random() < 0.5))
        and (one.label == fact.label or change != "period")
        and (change == "label" or one.is_percent == fact.is_percent)
    ]
    if change == "label":
        others = [one for one in others if not fact.number.startswith(one.number)]
    if not others:
        return None
    other = draw.choice(others)
    if change == "value":
        return fact._replace(number=other.number, is_negative=other.is_negative)
    return fact._replace(label=other.label) if change == "label" else fact._replace(year=other.year)
