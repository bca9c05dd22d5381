"""Measure what an erasure takes, and how long questions wait beside it."""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from bench.documents.corpus import Hashed, documents
from carag import Engine, Index, Session
from carag.engine.corpus import open_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

COUNTS: Final = (1, 100, 1_000, 10_000)
"""Documents of one erasure; at most one in twenty of the store's."""
SESSION: Final = Session(role="employee", purpose="work")
_A_CALL: Final = 20_000
_ALONE_S: Final = 10.0


class Wide(Hashed):
    """An embedder of one's own with vectors as long as those of small models."""

    name, fingerprint, dim = "hashed-256", "hashed-256-1", 256


def build(home: Path, chunks: int, seed: int) -> None:
    """Fill a store with documents of one chunk each."""
    with Engine.open(home, profile="generic", embedder=Wide()) as engine:
        for first in range(0, chunks, _A_CALL):
            engine.add(list(documents(first, min(_A_CALL, chunks - first), seed=seed)))


class Asking(threading.Thread):
    """Asks one question after the other, until it is ended, and keeps when each began and the seconds it took."""

    def __init__(self, engine: Engine, questions: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.taken = list[tuple[float, float]]()
        self._engine, self._questions, self._ended = engine, questions, threading.Event()

    def run(self) -> None:
        """Ask."""
        while not self._ended.is_set():
            began = time.perf_counter()
            self._engine.retrieve(self._questions[len(self.taken) % len(self._questions)], SESSION)
            self.taken.append((began, time.perf_counter() - began))

    def __enter__(self) -> Asking:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def figures(self, since: float = 0.0) -> dict[str, float]:
        """Return count, median and maximum in ms of the questions that were not answered yet at an instant."""
        taken = [1000 * took for began, took in self.taken if began + took > since]
        return {"n": len(taken), "p50_ms": statistics.median(taken), "max_ms": max(taken)}


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return what a call takes: of the processor, which other processes do not lengthen, or by another clock."""
    began = clock()
    work()
    return clock() - began


def parts(home: Path, count: int) -> dict[str, float]:
    """Time what any erasure must do at least, on copies: the index without these rows, and the tables' file."""
    scratch = home.with_name("scratch")
    scratch.mkdir()
    with Index.load(home / "index.carag") as index:
        index.delete(sorted(index.keys().tolist())[-count:])
        taken = {
            "consolidate_s": seconds(index.consolidate),
            "save_s": seconds(lambda: index.save(scratch / "index.carag")),
        }
    shutil.copy(home / "corpus.db", scratch)
    with open_corpus(scratch) as store:
        taken["vacuum_s"] = seconds(store.purge)
    shutil.rmtree(scratch)
    return taken


def erased(home: Path, ids: Iterator[str], questions: Sequence[str], count: int) -> dict[str, Any]:
    """Erase that number of documents while questions are asked, and as many others alone."""
    found: dict[str, Any] = {"documents": count, **parts(home, count)}
    with Engine.open(home, embedder=Wide()) as engine:

        def erase() -> None:
            some = [next(ids) for _ in range(count)]
            engine.erase(some, basis="GDPR_17_1_D", by="officer", approver="chief")

        with Asking(engine, questions) as asking:
            time.sleep(_ALONE_S)
            found["before"] = asking.figures()
            since = time.perf_counter()
            found["asked_s"] = seconds(erase, time.perf_counter)
            found["asked"] = asking.figures(since)
        found["alone_s"] = seconds(erase)
    return found


def measured(home: Path, chunks: int, seed: int) -> Iterator[dict[str, Any]]:
    """Return a row for each count, of a store that is made unless it is there."""
    if not home.exists():
        build(home, chunks, seed)
    ids = iter([one.id for one in documents(0, chunks, seed=seed)])
    questions = [one.text for one in documents(chunks, 200, seed=seed)]
    for count in (one for one in COUNTS if 20 * one <= chunks):
        yield {
            "index": f"{chunks}/{count}",
            "chunks": chunks,
            "dim": Wide.dim,
            **erased(home, ids, questions, count),
        }
