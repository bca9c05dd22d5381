"""Ask the table reader the questions of TAT-QA, which bring their tables and name no company."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from carag.generation.figures import look_up
from carag.generation.figures.asked import asked_terms
from carag.generation.figures.entries import entries_of
from carag.generation.figures.rows import matches
from carag.generation.figures.times import is_of
from carag.retrieval.evidence import Passage
from carag.retrieval.reading import Mention, Naming, Reading, asking, read_question
from carag.retrieval.tables.number import read_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.generation.figures.entries import Entry

__all__ = ["Gated", "Ungated", "gated", "near", "ungated"]

_FILES: Final = {"dev": "NExTplusplus/TAT-QA dev", "reported": "NExTplusplus/TAT-QA test"}
_SIGNS: Final = re.compile(r"[\s$€£%()]|-(?=[\d.])")
_SCALES: Final[dict[str, int | Decimal]] = {
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "percent": Decimal("0.01"),
}
_FILER: Final = Mention("the filer", ("the filer",), Naming.NAME)
"""The gate wants one company. The tables are of one that nobody names, so it is given."""
_NEAR: Final = Decimal("0.005")


@dataclass(frozen=True, slots=True)
class Ungated:
    """How often the best cell is right, whatever the gate would say."""

    asked: int
    right_cell: int
    right_row: int
    none: int


@dataclass(frozen=True, slots=True)
class Gated:
    """What passes the gate."""

    asked: int
    answered: int
    right: int
    wrong: tuple[tuple[str, str, str], ...]
    """Question, answer and figure."""


def ungated(data: Path, split: str) -> Ungated:
    """Look up every question whose answer is one number that a cell of its table prints.

    These are the questions of type ``span`` with evidence in a table, one answer, which is a number and no bare year,
    and whose digits stand in a cell: signs, currencies and parentheses aside.
    """
    many = cell = row = none = 0
    for question, text in _questions(data, split):
        answers = question["answer"]
        if question["type"] != "span" or len(answers) != 1 or not question["reasoning"].startswith("table"):
            continue
        answer = _plain(answers[0])
        rows = [line.split(" | ") for line in text.split("\n") if " | " in line]
        holding = [cells for cells in rows if any(_plain(one) == answer for one in cells)]
        if read_number(answers[0]) is None or not holding:
            continue
        many += 1
        best = _best(question["question"], list(entries_of(0, text)))
        if best is None:
            none += 1
            continue
        cell += _plain(best.cell.text) == answer
        row += any(best.label.text == cells[0].strip() for cells in holding)
    return Ungated(many, cell, row, none)


def gated(data: Path, split: str) -> Gated:
    """Ask all questions of a split, of any type, and count what passes the gate and what of it is right."""
    many = answered = right = 0
    wrong = []
    for question, text in _questions(data, split):
        many += 1
        asked = asking(question["question"])
        reading = Reading(entities=(_FILER,), periods=read_question(asked).periods)
        figure = look_up(question["question"], reading, [_passage(text)])
        if figure is None:
            continue
        answered += 1
        said = question["answer"] if isinstance(question["answer"], list) else [question["answer"]]
        scale = Decimal(_SCALES.get(question.get("scale") or "", 1))
        if len(said) == 1 and _is_right(str(said[0]), scale, figure.value, is_scaled=figure.is_scaled):
            right += 1
        else:
            wrong.append((question["question"], str(question["answer"]), figure.text))
    return Gated(many, answered, right, tuple(wrong))


def near(value: Decimal, wanted: Decimal) -> bool:
    """Tell whether two figures differ by half a per cent at most."""
    return abs(value - wanted) <= abs(wanted) * _NEAR


def _is_right(answer: str, scale: Decimal, value: Decimal, *, is_scaled: bool) -> bool:
    """Compare sizes: TAT-QA writes a cost of (12) as 12 or (12), and rounds some answers to fewer digits."""
    found = re.search(r"\d[\d,]*(?:\.\d+)?", answer)
    if found is None:
        return False
    number = Decimal(found[0].replace(",", ""))
    if "%" in answer:
        scale = Decimal("0.01")
    for word, many in _SCALES.items():
        if word in answer:
            scale = Decimal(many)
    half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
    scales = (scale,) if is_scaled else (scale, Decimal(1))
    return any(
        near(abs(value), number * one) or abs(abs(value) - number * one) <= half * one for one in scales
    )


def _best(question: str, entries: list[Entry]) -> Entry | None:
    """Choose as the gate's rows are chosen, with the time as a wish: of the time asked, else with none, else any."""
    reading = read_question(question)
    found = matches(asked_terms(asking(question), reading), frozenset(), entries)
    years = {one.first.year for one in reading.periods} | {one.last.year for one in reading.periods}

    def wish(entry: Entry) -> float:
        if not years or any(is_of(entry.time, one, by_calendar=True) for one in reading.periods):
            return 2.0
        return 1.4 if entry.time.years & years else 0.6 if entry.time.years else 1.0

    best = max(found, key=lambda one: one.merit + wish(one.entry), default=None)
    return best.entry if best else None


def _questions(data: Path, split: str) -> Iterator[tuple[dict[str, Any], str]]:
    folder = data / "edgar"
    with gzip.open(folder / "qa_contexts.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {one["context_id"]: one["text"] for one in map(json.loads, lines)}
    with gzip.open(folder / "qa.jsonl.gz", "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            if one["source"] == _FILES[split]:
                yield one, texts[one["context_id"]]


def _passage(text: str) -> Passage:
    return Passage(
        chunk_id="0:0", text=text, similarity=1.0, word=0, accession_number="0", form="10-K", company="The Filer",
        filed="", document="10-K", start=0, end=len(text),
    )  # fmt: skip


def _plain(text: str) -> str:
    return _SIGNS.sub("", text)
