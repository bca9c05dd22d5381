"""Ask the questions on circulars of CARAG and of chunks as LangChain cuts them, and keep what was found as numbers.

A row holds ids, offsets, scores and outcomes, and no word of a circular.
"""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.circulars.cuts import SEPARATORS, located
from carag import Engine, Session
from carag.generation import Extractive
from carag.retrieval import ConfidenceGate, embedder_by_name
from carag.retrieval.ranking import ranker_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.circulars.gold import Asked
    from carag.engine.results import Answer
    from carag.generation.generator import Draft
    from carag.retrieval.evidence import Passage, Withheld
    from carag.retrieval.ranking import Ranked, Ranker

__all__ = ["ask_all", "carag_rows", "done", "ingested", "mmr"]

Row = dict[str, Any]

EMBEDDERS: Final = ("minilm", "wordllama")
CELLS: Final = (("analyst", "research"), ("compliance", "surveil"))
RANKERS: Final = ("fused-1", "fused-1+mmr-0.3-20", "fused-1+mmr-0.5-20", "fused-1+mmr-0.7-20")
OWN: Final = "fused-1+mmr-0.7-20"
"""What the profile of circulars wants; with it the questions are not only searched but answered."""
K: Final = 6
"""Passages of a system that count."""
FETCH: Final = 20
"""Chunks that LangChain's MMR chooses from: its default ``fetch_k``."""
LAMBDAS: Final = (0.3, 0.5)
"""``lambda_mult`` of LangChain: the weight on relevance."""
SIZES: Final = ((2000, 200), (1000, 100))
"""Characters of LangChain's chunks, and how many are in the next again; about as long as ours are the second."""
NOW: Final = datetime(2026, 11, 2, tzinfo=UTC)


class Counting:
    """A generator that counts how often it is called."""

    def __init__(self) -> None:
        self._inner = Extractive()
        self.name, self.remote, self.fingerprint = (
            self._inner.name,
            self._inner.remote,
            self._inner.fingerprint,
        )
        self.calls = 0

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """See :class:`carag.generation.Generator`."""
        self.calls += 1
        return self._inner.generate(question, passages, withheld)


class Watched:
    """A ranker whose first order for each question is kept, with its scores."""

    def __init__(self, inner: Ranker) -> None:
        self._inner = inner
        self.name, self.fingerprint = inner.name, inner.fingerprint
        self.last: Ranked | None = None

    def rank(self, *given: Any, **more: Any) -> Ranked:
        """See :class:`carag.retrieval.ranking.Ranker`."""
        found = self._inner.rank(*given, **more)
        # Where labels ended since the index was brought up to the store, more are ranked.
        self.last = self.last or found
        return found


def ask_all(
    data: Path, questions: Sequence[Asked], out: Path, work: Path, embedders: Sequence[str] = EMBEDDERS
) -> None:
    """Read the circulars in, ask every system every question, and write the rows and how the reading went.

    Parameters
    ----------
    data : Path
        Holds ``rbi/circulars.jsonl.gz``.
    questions : sequence of Asked
    out : Path
        A directory, for ``rows.jsonl.gz`` and ``ingest.json``.
    work : Path
        A directory, for a part's rows as soon as it is done: whoever asks again with it asks only what is left. It
        knows nothing of what changed since; for another state of the code take an empty one.
    """
    packed = gzip.decompress((data / "rbi" / "circulars.jsonl.gz").read_bytes())
    texts = {row["id"]: row["text"] for row in map(json.loads, packed.decode().splitlines())}
    ids = list(texts)
    parts = []
    for name in embedders:
        home = work / name
        reading = done(home / "ingest.jsonl", partial(ingested, home, packed, name, ids))
        for ranker in RANKERS:
            rows = partial(carag_rows, home / "store", name, ranker, ids, questions)
            parts.append(done(home / f"carag-{ranker}.jsonl", rows))
        for size, again in SIZES:
            rows = partial(_of_langchain, name, size, again, texts, questions)
            parts.append(done(home / f"langchain-{size}.jsonl", rows))
    report = json.loads(reading.read_text("utf-8"))
    (out / "ingest.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    with gzip.GzipFile(out / "rows.jsonl.gz", "wb", mtime=0) as file:
        file.writelines(part.read_bytes() for part in parts)


def done(part: Path, rows: Callable[[], Iterable[Row]]) -> Path:
    """Write a part unless it is there. It gets its name when it is whole, so one that is there is done."""
    if not part.exists():
        part.parent.mkdir(parents=True, exist_ok=True)
        begun = part.with_suffix(".begun")
        begun.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows()), "utf-8")
        begun.rename(part)
    return part


def ingested(
    home: Path, circulars: bytes, embedder: str, ids: Sequence[str], profile: str | Path = "circulars"
) -> Iterator[Row]:
    """Read the circulars into a new store, and say what became of each row, and which of them a cell sees."""
    store, source = home / "store", home / "in"
    shutil.rmtree(store, ignore_errors=True)
    source.mkdir(exist_ok=True)
    (source / "circulars.jsonl").write_bytes(circulars)
    with Engine.open(store, profile=profile, embedder=embedder, clock=lambda: NOW) as engine:
        report = engine.ingest(source)
        stored = [one for one in ids if engine._collection.store.content_hash(one) is not None]  # noqa: SLF001
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
        "causes": {
            one: list(of["compliance"][one].causes)
            for one in stored
            if of["analyst"][one].why != "ADMISSIBLE"
        },
    }


def carag_rows(
    store: Path, embedder: str, ranker: str, ids: Sequence[str], questions: Sequence[Asked]
) -> Iterator[Row]:
    """Ask with a ranker, and with the profile's own once more behind a gate."""
    place = {one: number for number, one in enumerate(ids)}
    model = Counting()
    with Engine.open(
        store, ranker=ranker, generator=model, gate=ConfidenceGate(-1.0), clock=lambda: NOW
    ) as engine:
        watched = Watched(ranker_by_name(ranker, engine._collection.catalogue))  # noqa: SLF001
        engine._retriever.ranker = watched  # noqa: SLF001 - no result holds the scores
        for role, purpose in CELLS:
            session = Session(role=role, purpose=purpose)
            nearest = []
            for one in questions:
                row: Row = {"system": f"carag {embedder} {role} {ranker}", "id": one.id}
                watched.last, model.calls = None, 0
                passages: Sequence[Passage]
                if ranker == OWN:
                    answer = engine.ask(one.question, session)
                    passages = answer.passages
                    row |= _outcome(one, answer, watched.last, model.calls)
                    nearest.append(row["nearest"])
                else:
                    passages = engine.retrieve(one.question, session, K).passages
                places = [
                    [place[passage.accession_number], passage.start, passage.end] for passage in passages
                ]
                yield row | {
                    "top": places,
                    "facts": [_held(one, passage.text) for passage in passages],
                }
            if ranker == OWN:
                yield from _gated(engine, model, f"gated {embedder} {role}", session, questions, nearest)


def _outcome(one: Asked, answer: Answer, ranked: Ranked | None, calls: int) -> Row:
    assert ranked is not None
    assert ranked.words is not None
    cited = [citation.number - 1 for citation in answer.citations]
    return {
        "cosines": [round(similarity, 6) for similarity in ranked.similarities],
        "scores": [round(score, 6) for score in ranked.scores],
        "nearest": round(ranked.nearest or 0.0, 6),
        "words": round(ranked.words.share, 6),
        "code": answer.why,
        "cited": cited,
        "said": _held(one, answer.text) if cited else [],
        "from metadata": all(
            (said.chunk_id, said.accession_number, said.start, said.end, said.source)
            == (meant.chunk_id, meant.accession_number, meant.start, meant.end, meant.source)
            for said, meant in zip(answer.citations, [answer.passages[at] for at in cited], strict=True)
        ),
        "calls": calls,
    }


def _gated(
    engine: Engine,
    model: Counting,
    system: str,
    session: Session,
    questions: Sequence[Asked],
    nearest: Sequence[float],
) -> Iterator[Row]:
    """Ask again behind a gate that half of the questions stay below, and count what reaches the generator."""
    guarded = engine._guarded  # noqa: SLF001 - one store, two gates
    opened, guarded.gate = guarded.gate, ConfidenceGate(float(np.median(nearest)))
    try:
        for one in questions:
            model.calls = 0
            answer = engine.ask(one.question, session)
            yield {"system": system, "id": one.id, "code": answer.why, "calls": model.calls}
    finally:
        guarded.gate = opened


def _of_langchain(
    embedder: str, size: int, again: int, texts: dict[str, str], questions: Sequence[Asked]
) -> Iterator[Row]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    model = embedder_by_name(embedder)
    number = {one: at for at, one in enumerate(texts)}
    splitter = RecursiveCharacterTextSplitter(
        separators=SEPARATORS, is_separator_regex=True, chunk_size=size, chunk_overlap=again
    )
    places = [
        (circular, start, end)
        for circular, text in texts.items()
        for start, end in located(text, splitter.split_text(text))
    ]
    vectors = model.embed_documents([texts[circular][start:end] for circular, start, end in places])
    for one in questions:
        query = model.embed_query(one.question)
        similar = vectors @ query
        best = np.argsort(-similar, kind="stable")[:FETCH]
        orders = {"top": list(range(len(best)))[:K]}
        for weight in LAMBDAS:
            orders[f"mmr-{weight}"] = mmr(vectors[best], query, weight, K)
        for order, chosen in orders.items():
            top = [int(best[at]) for at in chosen]
            yield {
                "system": f"langchain-{size} {embedder} everyone {order}",
                "id": one.id,
                "top": [[number[places[at][0]], *places[at][1:]] for at in top],
                "facts": [
                    _held(one, texts[circular][start:end])
                    for circular, start, end in (places[at] for at in top)
                ],
            }


def mmr(vectors: NDArray[np.float32], query: NDArray[np.float32], weight: float, k: int) -> list[int]:
    """Choose rows as LangChain's ``maximal_marginal_relevance`` does, ``weight`` being its ``lambda_mult``.

    The first is the row most similar to the query; each next one has the greatest
    ``weight * similarity - (1 - weight) * likeness``, likeness being the greatest similarity to a row already chosen.
    Vectors are of unit length.

    Examples
    --------
    >>> rows = np.array([[1, 0], [0.99, 0.141], [0, 1]], np.float32)
    >>> mmr(rows, rows[0], 0.9, 2), mmr(rows, rows[0], 0.1, 2)
    ([0, 1], [0, 2])
    """
    similar = vectors @ query
    chosen = [int(np.argmax(similar))]
    while len(chosen) < min(k, len(vectors)):
        merit = weight * similar - (1 - weight) * (vectors @ vectors[chosen].T).max(axis=1)
        merit[chosen] = -np.inf
        chosen.append(int(np.argmax(merit)))
    return chosen


def _held(asked: Asked, text: str) -> list[int]:
    return [number for number, fact in enumerate(asked.facts) if fact in text]
