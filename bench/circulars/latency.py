"""Measure what a request costs over 31,000 passages of circulars: ``python -m bench.circulars.latency --out FILE``.

The corpus of the seed document has about that many chunks. The circulars of ``CARAG_SHARED_DATA`` are repeated until
there are as many, each copy under an id and number of its own. The questions are those of ``questions.jsonl``, in the
cell analyst/research. Each is asked three times in a row and the least counts; percentiles are over questions.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.commit import commit
from carag import Session
from carag.engine import Engine
from carag.evaluation.models import TimedEmbedder
from carag.evaluation.run_metadata import processor_name
from carag.index import kernels
from carag.retrieval import FUSED, ConfidenceGate, embedder_by_name
from carag.retrieval.ranking import DENSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNKS: Final = 31_000
"""Passages at least, as many as the document states."""
_TIMES: Final = 3
"""How often each question is asked; the least counts."""
_SESSION: Final = Session(role="analyst", purpose="research")
_PAGE: Final = """\
# What a request over circulars costs

Written by `python -m bench.circulars.latency`; do not edit. Commit {commit}, {cpu}, kernel {kernel}, {cores} cores,
load {load:.1f} at the end. {chunks:,} passages ({copies} copies of each circular), embedder {embedder}, {questions}
questions, least of {times} times each.

| ms | p50 | p95 | goal (p95) |
|---|---|---|---|
{rows}

*Retrieval* goes from a question's vector to passages with their texts: ranking under the policy, every hit checked
again against the store. *Declined* is `Engine.ask` below the gate, with embedding, retrieval and the record committed
to the log; no generator ran in any of them ({calls} calls). The first ranker is the profile's.
"""


def main() -> int:
    """Build the store unless it is there, measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.circulars.latency", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    parser.add_argument("--store", type=Path, help="keep the store here, to measure it again")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.data is None:
        parser.error("set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz")
    with tempfile.TemporaryDirectory() as scratch:
        page = _measured(given.store or Path(scratch, "store"), Path(given.data), given.embedder)
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    return 0


def _measured(store: Path, data: Path, embedder: str) -> str:
    copies = build(store, data, embedder)
    asked = questions()
    calls: list[str] = []

    def counted(question: str, *_: object) -> str:
        calls.append(question)
        return ""

    rows = []
    for ranker in (None, f"{DENSE}+mmr-0.7-20", FUSED, DENSE):
        gate, wrapped = ConfidenceGate(1.0), TimedEmbedder(embedder_by_name(embedder))
        settings: dict[str, Any] = {"ranker": ranker, "gate": gate, "accept_gate": True, "embedder": wrapped}
        with Engine.open(store, create=False, generator=counted, **settings) as engine:
            retriever = engine._retriever  # noqa: SLF001 - to time it apart
            for one in asked:
                wrapped.embed_query(one)
            inside = Inside(retriever.retrieve)
            retriever.retrieve = inside  # type: ignore[method-assign]
            whole = timed(lambda one: engine.retrieve(one, _SESSION), asked)
            declined = timed(lambda one: engine.ask(one, _SESSION), asked)
            chunks = len(engine._collection.index)  # noqa: SLF001 - live rows
            name = retriever.ranker.name
        embedding = [wrapped.milliseconds[one] for one in asked]
        rows += [
            _row(f"retrieval, `{name}`", inside.least(), "2"),
            _row("the same through `Engine.retrieve`, record included", whole, ""),
            _row("declined by the gate", [a + b for a, b in zip(declined, embedding, strict=True)], "20"),
        ]
    rows.append(_row("embedding a question", embedding, ""))
    return _PAGE.format(
        commit=commit(),
        cpu=processor_name(),
        kernel=kernels.active(),
        cores=os.cpu_count(),
        load=os.getloadavg()[0],
        chunks=chunks,
        copies=copies,
        embedder=embedder,
        questions=len(asked),
        times=_TIMES,
        rows="\n".join(rows),
        calls=len(calls),
    )


class Inside:
    """Times the calls of a function that another one makes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._taken: dict[str, float] = {}

    def __call__(self, question: str, *given: Any, **named: Any) -> Any:
        """Call it, and keep the least time of a question."""
        start = time.perf_counter()
        found = self._function(question, *given, **named)
        taken = 1000 * (time.perf_counter() - start)
        self._taken[question] = min(taken, self._taken.get(question, taken))
        return found

    def least(self) -> list[float]:
        """Return the least milliseconds of each question."""
        return list(self._taken.values())


def build(store: Path, data: Path, embedder: str) -> int:
    """Make the store unless it is there, and return how many copies it holds of each circular."""
    kept = store.with_suffix(".copies")
    if kept.exists():
        return int(kept.read_text())
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine.open(store, profile="circulars", embedder=embedder) as engine,
    ):
        number = 0
        while len(engine._collection.index) < CHUNKS:  # noqa: SLF001 - live rows
            one = Path(folder, f"copy-{number}")
            one.mkdir()
            with (one / "circulars.jsonl").open("w", encoding="utf-8") as lines:
                lines.writelines(json.dumps(row) + "\n" for row in copy_of(data, number))
            engine.ingest(one)
            number += 1
    kept.write_text(str(number))
    return number


def copy_of(data: Path, number: int) -> Iterator[dict[str, Any]]:
    """Yield every circular with a text, from the second copy on under an id and number of its own."""
    with gzip.open(data / "rbi" / "circulars.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if not row["text"].strip():
                continue
            kept = {name: value for name, value in row.items() if isinstance(value, str) and value}
            if number:
                kept["id"] += f"~{number}"
                kept.pop("department_number", None)
                kept["circular_number"] = f"{kept.get('circular_number', 'none')}/copy-{number}"
            yield kept


def questions() -> list[str]:
    """Return all questions, on the subject and off it."""
    path = Path(__file__).with_name("questions.jsonl")
    return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]


def timed(ask: Callable[[str], object], asked: list[str]) -> list[float]:
    """Return the least milliseconds of each question."""
    taken = []
    for one in asked:
        least = float("inf")
        for _ in range(_TIMES):
            start = time.perf_counter()
            ask(one)
            least = min(least, 1000 * (time.perf_counter() - start))
        taken.append(least)
    return taken


def _row(name: str, taken: list[float], goal: str) -> str:
    return f"| {name} | {np.median(taken):.2f} | {np.quantile(taken, 0.95):.2f} | {goal} |"


if __name__ == "__main__":
    raise SystemExit(main())
