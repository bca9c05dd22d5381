"""Ask the table reader the questions of FinanceBench, of the chunks that hold their evidence and of whole filings."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from bench.figures.tables import near
from carag.evaluation.cases.gold import holders, ngrams
from carag.evaluation.cases.pairs import split_of
from carag.generation.figures import look_up_alone
from carag.labelling.chunking import chunk
from carag.retrieval.evidence import Passage
from carag.retrieval.tables import torn_heads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from carag.generation.figures import Figure
    from carag.labelling.chunking import Chunk

__all__ = ["WAYS", "Counts", "Torn", "filings"]

WAYS: Final = ("gold", "gold, with heads", "whole filing, with heads")
"""Which passages are given: the chunks that hold the evidence, without and with the heads of torn tables, or all
chunks of the filing. The last finds what may be mistaken."""
_SOURCE: Final = "patronus-ai/financebench"
_SCALES: Final = (("billion", 10**9), ("bn", 10**9), ("million", 10**6), ("thousand", 1000))


@dataclass(slots=True)
class Counts:
    """Of one way of giving passages."""

    answered: int = 0
    right: int = 0


@dataclass(slots=True)
class Torn:
    """How many chunks begin inside a table, and how many get its heads."""

    chunks: int = 0
    headless: int = 0
    given: int = 0


def filings(data: Path, split: str, *, show: bool) -> tuple[int, int, dict[str, Counts], Torn]:
    """Ask all questions of a split; return how many, of how many the answer is a number, and the counts by way."""
    with gzip.open(data / "edgar" / "qa.jsonl.gz", "rt", encoding="utf-8") as lines:
        every = [one for one in map(json.loads, lines) if one["source"].startswith(_SOURCE)]
    asked = [one for one in every if split_of(one["id"]) == split]
    counts = {way: Counts() for way in WAYS}
    torn = Torn()
    numeric = 0
    documents = dict(_documents(data, {one["doc_id"] for one in asked}))
    for number, document in documents.items():
        text = document["text"]
        chunks = chunk(text)
        heads = torn_heads(text, [(one.start, one.end) for one in chunks])
        _count_torn(torn, chunks, heads)
        held = [ngrams(one.text) for one in chunks]
        passages = [_passage(document, one) for one in chunks]
        for question in asked:
            if question["doc_id"] != number:
                continue
            wanted = _wanted(question)
            numeric += wanted is not None
            gold = list(
                dict.fromkeys(at for one in question["evidence"] for at in holders(one["text"], held))
            )
            for way, places in zip(WAYS, (gold, gold, range(len(chunks))), strict=True):
                given = {
                    here: text[slice(*span)]
                    for here, at in enumerate(places)
                    if (span := heads[at]) and way != "gold"
                }
                figure = look_up_alone(question["question"], [passages[at] for at in places], heads=given)
                if figure is not None:
                    right = wanted is not None and _is_right(figure, wanted)
                    counts[way].answered += 1
                    counts[way].right += right
                    if show:
                        print(
                            f"{way}: {question['question']}\n  {question['answer']}\n  {right}: {figure.text}\n"
                        )
    return len(asked), numeric, counts, torn


def _count_torn(torn: Torn, chunks: list[Chunk], heads: Iterable[tuple[int, int] | None]) -> None:
    for one, head in zip(chunks, heads, strict=True):
        rows = [line for line in one.text.split("\n") if line.count(" | ") >= 2 and re.search(r"\d", line)]
        if len(rows) >= 3:
            torn.chunks += 1
            first = one.text.split("\n").index(rows[0])
            above = "\n".join(one.text.split("\n")[: first + 1])
            if not re.search(r"\b(?:19|20)\d\d\b", above):
                torn.headless += 1
                torn.given += head is not None


def _wanted(question: dict[str, Any]) -> tuple[Decimal, Decimal] | None:
    """Return the number that an answer is, in ones, and half a unit of its last digit; None if it is no number."""
    answer = str(question["answer"]).strip()
    match = re.fullmatch(r"[-(]?\$?\s?[-(]?([\d,]+(?:\.\d+)?)\)?\s?(%|[a-z]+)?\.?", answer, re.IGNORECASE)
    if match is None:
        return None
    number = Decimal(match[1].replace(",", ""))
    half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
    scale = Decimal(1)
    if match[2] == "%":
        scale = Decimal("0.01")
    else:
        about = f"{match[2] or ''} {question['question']}".lower()
        scale = Decimal(next((many for word, many in _SCALES if re.search(rf"\b{word}s?\b", about)), 1))
    sign = -1 if answer.startswith(("-", "(")) else 1
    return sign * number * scale, half * scale


def _is_right(figure: Figure, wanted: tuple[Decimal, Decimal]) -> bool:
    number, half = wanted
    value = figure.value
    # A percentage may be given and wanted as a share or in per cent, and an outflow without its sign.
    return any(
        near(one, abs(number)) or abs(one - abs(number)) <= half for one in (abs(value), abs(value) * 100)
    )


def _documents(data: Path, wanted: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((data / "edgar").glob("filings-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                if one["id"] in wanted:
                    yield one["id"], one


def _passage(document: dict[str, Any], one: Chunk) -> Passage:
    form = document["form"] or ""
    return Passage(
        chunk_id=f"{document['id']}:{one.start}",
        text=one.text,
        similarity=1.0,
        word=0,
        accession_number=document["id"],
        form=form,
        company=document["company"] or "",
        filed=document["filed"] or "",
        document=form,
        start=one.start,
        end=one.end,
    )
