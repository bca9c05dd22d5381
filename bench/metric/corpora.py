"""Read the corpora of the benchmark, and state how each becomes chunks, questions and turns; no text is written.

The data directory holds ``ai_act/articles.jsonl``, ``ai_act/qa_set.jsonl``, ``ai_act/aireg_bench.jsonl.gz`` and
``legal/obliqa_*.jsonl.gz``.
"""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import ChunkerConfig, CorpusConnector, RegulatoryDocument
from carag.evaluation.regulatory.chunks import paper_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SEED: Final = 20_260_401
"""Of every draw; no other was tried."""
_HEADING_WORDS: Final = 20
"""A block of fewer words is a heading or the lead of a list, which says nothing alone: it opens the block below it."""


_DRAWN: Final = 5
"""Turns that stand first, drawn."""


class Asked(NamedTuple):
    """A question, and what answers it; nothing, if the corpus does not."""

    id: str
    text: str
    gold: frozenset[str]


class Searched(NamedTuple):
    """What is searched: chunks, whose each is, and questions."""

    name: str
    chunks: list[str]
    owners: list[str]
    """The article or passage of each chunk."""
    questions: list[Asked]
    strangers: list[Asked]
    """Questions that the corpus does not answer."""


class Excerpt(NamedTuple):
    """A piece of technical documentation, the article it is held against, and what three experts said of it."""

    id: str
    use: int
    scenario: str
    article: str
    query: str
    turns: tuple[str, ...]
    scores: tuple[int, ...]
    """From 1, surely not compliant, to 5."""
    median: int

    @property
    def is_compliant(self) -> bool | None:
        """Whether the median expert holds it compliant; None where that is undecided."""
        return None if self.median == 3 else self.median > 3


class ActCorpus(CorpusConnector):
    """Articles and annexes of the AI Act, each one document under its number and title."""

    def __init__(self, articles: dict[str, str]) -> None:
        self._articles = articles

    def load_documents(self) -> list[RegulatoryDocument]:
        """Return all documents, public as the Official Journal is."""
        return [RegulatoryDocument(text, source) for source, text in self._articles.items()]


def act(data: Path) -> dict[str, str]:
    """Return articles and annexes of the AI Act by id, each headed by its citation and title.

    Recitals are left out: they are not binding.
    """
    return {
        row["id"]: f"{_headed(row)}\n{row['text']}"
        for row in _rows(data / "ai_act" / "articles.jsonl")
        if row["kind"] in ("article", "annex")
    }


def ai_act(data: Path) -> Searched:
    """Return the AI Act in windows of the paper's size, with the questions on it.

    An article is found as soon as its best chunk is: the order of articles is that of their first chunks.
    """
    articles = act(data)
    cut = [one for source, text in articles.items() for one in paper_chunks(text, source, ChunkerConfig())]
    asked = [
        Asked(row["id"], row["question"], frozenset(row["gold_units"]))
        for row in _rows(data / "ai_act" / "qa_set.jsonl")
    ]
    if missing := {name for one in asked for name in one.gold} - {*articles}:
        raise InvalidArgument(
            f"ai_act/qa_set.jsonl names {sorted(missing)[0]!r}, which is in no row of articles.jsonl"
        )
    return Searched(
        "EU AI Act",
        [one.text for one in cut],
        [one.source for one in cut],
        [one for one in asked if one.gold],
        [one for one in asked if not one.gold],
    )


def obliqa(data: Path, *, questions: int, passages: int) -> Searched:
    """Return drawn questions on the rulebooks of ADGM, all their gold, and drawn passages beside it.

    A passage is one chunk, as the set has it, and is its own owner.
    """
    texts: dict[str, str] = {}
    for row in _rows(data / "legal" / "obliqa_passages.jsonl.gz"):
        if row["text"].strip():
            texts.setdefault(f"{row['document_id']}/{row['passage_id']}", row["text"])
    asked = [
        Asked(
            row["id"],
            row["question"],
            frozenset(f"{document}/{passage}" for document, passage in row["gold"]),
        )
        for row in _rows(data / "legal" / "obliqa_questions.jsonl.gz")
    ]
    whole = [one for one in asked if one.gold and one.gold <= {*texts}]
    draw = random.Random(SEED)  # noqa: S311 - sampling, not secrets
    chosen = draw.sample(whole, min(questions, len(whole)))
    gold = sorted({name for one in chosen for name in one.gold})
    others = sorted({*texts} - {*gold})
    names = sorted([*gold, *draw.sample(others, max(0, min(passages - len(gold), len(others))))])
    return Searched("ObliQA", [texts[name] for name in names], names, chosen, [])


def excerpts(data: Path, most: int | None = None) -> list[Excerpt]:
    """Return the excerpts of AIReg-Bench, ordered by use, so that those of one use are adjacent.

    Parameters
    ----------
    data : Path
    most : int, optional
        Turns kept of each; of all turns a few drawn ones stand first, so fewer are always the first ones.
    """
    headings = {row["id"]: _headed(row) for row in _rows(data / "ai_act" / "articles.jsonl")}
    found = []
    for row in _rows(data / "ai_act" / "aireg_bench.jsonl.gz"):
        said = row["annotations"]
        scores = tuple(int(one["compliance"]) for one in said.values())
        found.append(
            Excerpt(
                *(row["id"], row["use"], row["scenario"], row["article"], headings[row["article"]]),
                turns=tuple(_drawn_first(row["id"], [*turns(row["excerpt"])])[:most]),
                scores=scores,
                median=int(row["median_compliance"]),
            )
        )
    return sorted(found, key=lambda one: (one.use, one.scenario, one.article, one.id))


def turns(text: str) -> Iterator[str]:
    r"""Yield the turns of an excerpt: its blocks between empty lines, a short one together with that below it.

    Examples
    --------
    >>> list(turns("**Logging**\n\n" + "It logs. " * 12 + "\n\nEnd."))[0][:21]
    '**Logging**\n\nIt logs.'
    """
    blocks: list[str] = []
    for block in (one.strip() for one in text.split("\n\n")):
        if not block:
            continue
        blocks.append(block)
        if len(block.split()) >= _HEADING_WORDS:
            yield "\n\n".join(blocks)
            blocks = []
    if blocks:
        yield "\n\n".join(blocks)


def _drawn_first(name: str, every: list[str]) -> list[str]:
    draw = random.Random(f"{SEED}/{name}")  # noqa: S311 - sampling, not secrets
    first = draw.sample(every, min(_DRAWN, len(every)))
    return [*first, *(one for one in every if one not in first)]


def _headed(row: dict[str, Any]) -> str:
    return f"{row['citation']}: {row['title']}" if row.get("title") else str(row["citation"])


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as lines
        ):
            return [json.loads(line) for line in lines]
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be read: {error.strerror}; want the data directory in --data"
        ) from error
