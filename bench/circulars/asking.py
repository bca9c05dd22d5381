"""Ask the questions on circulars of CARAG, and keep what was found as numbers.

A row holds ids, offsets, scores and outcomes, and no word of a circular.
"""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from carag import Engine, Session
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from bench.circulars.gold import Asked
    from carag.engine.results import Answer


Row = dict[str, Any]

EMBEDDERS: Final = ("minilm", "wordllama")
CELLS: Final = (("analyst", "research"), ("compliance", "surveil"))
OWN: Final = "fused-1+mmr-0.7-20"
"""The ranker of the profile of circulars."""
NOW: Final = datetime(2026, 11, 2, tzinfo=UTC)


def ask_all(
    data: Path, questions: Sequence[Asked], out: Path, work: Path, embedders: Sequence[str] = EMBEDDERS
) -> None:
    """Ingest the circulars, ask every question, and write the rows and how the ingest went.

    Parameters
    ----------
    data : Path
        Holds ``rbi/circulars.jsonl.gz``.
    questions : sequence of Asked
    out : Path
        A directory, for ``rows.jsonl.gz`` and ``ingest.json``.
    work : Path
        A directory that keeps each part's rows once the part is done, so that a run that was stopped goes on. It does
        not notice that the code has changed since: then use an empty one.
    """
    packed = gzip.decompress((data / "rbi" / "circulars.jsonl.gz").read_bytes())
    ids = [row["id"] for row in map(json.loads, packed.decode().splitlines())]
    parts = []
    for name in embedders:
        home = work / name
        reading = done(home / "ingest.jsonl", partial(ingested, home, packed, name, ids))
        parts.append(done(home / "carag.jsonl", partial(_rows, home / "store", name, ids, questions)))
    report = json.loads(reading.read_text("utf-8"))
    (out / "ingest.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    with gzip.GzipFile(out / "rows.jsonl.gz", "wb", mtime=0) as file:
        file.writelines(part.read_bytes() for part in parts)


def done(part: Path, rows: Callable[[], Iterable[Row]]) -> Path:
    """Write a part unless it is there; it gets its name only when it is complete."""
    if not part.exists():
        part.parent.mkdir(parents=True, exist_ok=True)
        begun = part.with_suffix(".begun")
        begun.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows()), "utf-8")
        begun.rename(part)
    return part


def ingested(home: Path, circulars: bytes, embedder: str, ids: Sequence[str]) -> Iterator[Row]:
    """Ingest the circulars into a new store, and say which rows were stored and which are hidden."""
    store, source = home / "store", home / "in"
    shutil.rmtree(store, ignore_errors=True)
    source.mkdir(exist_ok=True)
    (source / "circulars.jsonl").write_bytes(circulars)
    with Engine.open(store, profile="circulars", embedder=embedder, clock=lambda: NOW) as engine:
        report = engine.ingest(source)
        stored = [one for one in ids if engine._collection.store.documents.content_hash(one) is not None]  # noqa: SLF001
        of = {
            role: {one: engine.explain(f"{one}:00000", Session(role=role, purpose=purpose)) for one in stored}
            for role, purpose in CELLS
        }
    yield {
        "ids": list(ids),
        "not stored": [one for one in ids if one not in stored],
        "problems": report.problems,
        "quarantined": report.quarantined,
        "chunks": report.chunks,
        "hidden": {
            role: [one for one, found in those.items() if found.why != "ADMISSIBLE"]
            for role, those in of.items()
        },
    }


def _rows(store: Path, embedder: str, ids: Sequence[str], questions: Sequence[Asked]) -> Iterator[Row]:
    """Ask without a gate and without a reader."""
    place = {one: number for number, one in enumerate(ids)}
    with Engine.open(store, ranker=OWN, gate=ConfidenceGate(-1.0), clock=lambda: NOW) as engine:
        for role, purpose in CELLS:
            session = Session(role=role, purpose=purpose)
            for one in questions:
                answer = engine.ask(one.question, session)
                yield {
                    "system": f"carag {embedder} {role}",
                    "id": one.id,
                    **_outcome(one, answer),
                    "top": [[place[each.accession_number], each.start, each.end] for each in answer.passages],
                    "facts": [_held(one, each.text) for each in answer.passages],
                }


def _outcome(one: Asked, answer: Answer) -> Row:
    cited = [citation.number - 1 for citation in answer.citations]
    return {
        "nearest": round(answer.top_similarity or 0.0, 6),
        "code": answer.why,
        "cited": cited,
        "said": _held(one, answer.text) if cited else [],
    }


def _held(asked: Asked, text: str) -> list[int]:
    return [number for number, fact in enumerate(asked.facts) if fact in text]
