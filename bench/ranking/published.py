"""Measure retrieval as two public tasks state it: ``python -m bench.ranking.published --task TASK --data D --work W``.

*ObliQA*: each passage of forty rulebooks is a document, and some of them state the obligation that a question asks for;
the measure is the share of these among the first ten (R@10). The default ranker is compared with words alone, that is,
BM25 with k1 1.2 and b 0.75. *FinanceBench*: the whole filings that its questions are about; a question is a hit if one
of the first eight passages overlaps a page of the evidence, in the same filing. Both are asked through
:meth:`carag.Engine.retrieve`, in a session that may use everything.
"""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.harness import parser
from bench.metric.measures import Interval, interval, mean
from carag import Document, Engine, Session, TextIndex
from carag.index import tokenize
from carag.policy import Mask, policy_word
from carag.retrieval import embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from carag.retrieval import Embedder

Row = dict[str, Any]
EMPLOYEE: Final = Session(role="employee", purpose="work")
COMPLIANCE: Final = Session(role="compliance", purpose="surveil")
K: Final = 10
PAGE_K: Final = 8


def _rows(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def recalls(found: list[list[int]], gold: list[set[int]]) -> NDArray[np.float64]:
    """Return which share of its gold each question finds."""
    return np.array([len(held.intersection(of)) / len(held) for of, held in zip(found, gold, strict=True)])


def obliqa(data: Path, work: Path, embedder: Embedder, split: str) -> Iterator[tuple[str, Interval]]:
    """Yield R@10 of the default ranker and of words alone."""
    passages = _rows(data / "legal" / "obliqa_passages.jsonl.gz")
    asked = [row for row in _rows(data / "legal" / "obliqa_questions.jsonl.gz") if row["split"] == split]
    at = {(row["document_id"], row["passage_id"]): number for number, row in enumerate(passages)}
    gold = [{at[document, passage] for document, passage in row["gold"]} for row in asked]
    filled = {number: row["text"] for number, row in enumerate(passages) if row["text"].strip()}
    with Engine.open(work / "store", profile="generic", embedder=embedder) as engine:
        engine.add(Document(id=str(number), text=text, bits=()) for number, text in filled.items())
        found = [
            [int(one.document_id) for one in engine.retrieve(row["question"], EMPLOYEE, K).passages]
            for row in asked
        ]
    yield "default ranker", _mean(recalls(found, gold))
    with TextIndex() as index:
        keys = list(filled)
        index.add(keys, keys, [tokenize(text) for text in filled.values()])
        index.label(keys, keys, [policy_word(())] * len(keys))
        found = [
            index.search(tokenize(row["question"]), K, Mask(), k1=1.2, b=0.75).keys.tolist() for row in asked
        ]
    yield "words alone", _mean(recalls(found, gold))


def financebench(data: Path, work: Path, embedder: Embedder) -> Iterator[tuple[str, Interval]]:
    """Yield page hit@8 over the filings of the questions."""
    edgar = data / "edgar"
    asked = [row for row in _rows(edgar / "qa.jsonl.gz") if "financebench" in row["source"]]
    wanted = {piece["doc_id"] for row in asked for piece in row["evidence"]}
    filings: dict[str, Row] = {}
    for path in sorted(edgar.glob("filings-*.jsonl.gz")):
        filings.update(
            (row["id"], row) for row in _rows(path) if row["id"] in wanted and row.get("page_offsets")
        )
    work.mkdir(parents=True, exist_ok=True)
    source = work / "filings.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in filings.values()), "utf-8")
    asked = [row for row in asked if all(piece["doc_id"] in filings for piece in row["evidence"])]
    asked.sort(key=lambda row: str(row["doc_id"]))
    with Engine.open(work / "store", profile="edgar", embedder=embedder) as engine:
        engine.ingest(source)
        hits = [_is_hit(engine, row, filings) for row in asked]
    documents = sorted({row["doc_id"] for row in asked})
    yield (
        f"{len(filings)} filings",
        _mean(np.array(hits, float), [documents.index(row["doc_id"]) for row in asked]),
    )


def _is_hit(engine: Engine, asked: Row, filings: dict[str, Row]) -> bool:
    """Tell whether one of the first eight passages shares a character with a page of the evidence."""
    pages = set()
    for piece in asked["evidence"]:
        filing = filings[piece["doc_id"]]
        ends = [*filing["page_offsets"][1:], len(filing["text"])]
        pages.add((filing["accession"], filing["page_offsets"][piece["page"]], ends[piece["page"]]))
    found = engine.retrieve(asked["question"], COMPLIANCE, PAGE_K).passages
    return any(
        one.document_id == filing and one.start < end and start < one.end
        for one in found
        for filing, start, end in pages
    )


def _mean(values: NDArray[np.float64], clusters: Sequence[int] | None = None) -> Interval:
    return interval(partial(mean, values.tolist()), clusters or range(len(values)))


def main() -> int:
    """Ask, and print a line for each."""
    arguments = parser("bench.ranking.published", __doc__, data=True)
    arguments.add_argument("--work", type=Path, required=True, help="where the stores are kept")
    arguments.add_argument("--embedder", default="wordllama")
    arguments.add_argument("--task", choices=("obliqa", "financebench"), required=True)
    arguments.add_argument("--split", choices=("dev", "test"), default="dev", help="of ObliQA")
    given = arguments.parse_args()
    embedder = embedder_by_name(given.embedder)
    work = given.work / given.embedder / given.task
    if given.task == "obliqa":
        title, lines = f"ObliQA {given.split} R@{K}", obliqa(given.data, work, embedder, given.split)
    else:
        title, lines = f"FinanceBench page hit@{PAGE_K}", financebench(given.data, work, embedder)
    for name, one in lines:
        print(
            f"{title}, {given.embedder}, {name}: {one.value:.3f} ({one.low:.3f} .. {one.high:.3f}), n {one.n}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
