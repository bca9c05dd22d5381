"""Measure what a question costs, from its text to passages on record: ``python -m bench.ranking`` writes RESULTS.md.

:meth:`carag.Engine.retrieve` and :meth:`~carag.Engine.ask` are asked beside what is used instead (:mod:`.peers`), and
beside the same engine with its guard switched off, in turn; the least of several times counts. Development questions
alone are asked. A peer that is not installed is left out, and the page says so: ``pip install langchain-community
faiss-cpu lancedb``, and ``--postgres URL`` of a database with pgvector, as its administrator.
"""

from __future__ import annotations

import cProfile
import pstats
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import numpy as np

from bench.edgar.generator import development_pairs
from bench.harness import about, described, in_turn, p50_p95, parser, table, write
from bench.ranking import peers
from bench.ranking.vanilla import Vanilla
from carag.engine import Engine
from carag.evaluation.cases.corpus import build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.models import TimedEmbedder
from carag.evaluation.run import NOW
from carag.policy import NEVER, Decision, Mask, Policy, as_of_minutes
from carag.retrieval import embedder_by_name

if TYPE_CHECKING:
    from argparse import Namespace

    from carag.evaluation.cases.pairs import Pair
    from carag.retrieval import Embedder

Ways = dict[str, Callable[["Pair", Collection[int]], object]]

_TIMES: Final = 3
"""How often each is asked; the least counts."""
_ROUNDS: Final = 8
"""How often all are asked to be counted, so that the log is written back into its file several times."""
_HEAD: Final = ("way", "p50, ms", "p95, ms", "retrieve's p50 is", "retrieve's p95 is")
_PAGE: Final = """\
# What a question costs

Written by `python -m bench.ranking --size {size} --embedder {embedder}`; do not edit. {described}

{chunks:,} passages, {pairs} pairs of development questions and sessions that are not refused, k 8, seed 0. Embedding
the question is part of every way, and so is the text of what is found; the record and its receipt are part of ours.
In turn, the least of {times} times each.

{rows}

Left out: {missing}.

*Without its guard* is `retrieve` with an hnswlib graph over all rows in the index's place, and without the second test
of each hit, the proofs and the record: it reads the question, ranks and shows what a session must not see.

| `Engine.retrieve`, one question | |
|---|---|
| processor time of the process | {cpu:.2f} ms |
| calls of functions, Python's own included | {calls:,.0f} |
| bytes written | {written:,.0f} |
| growth of the log's files | {growth:,.0f} bytes |
"""


def main() -> int:
    """Measure, print and write the page."""
    arguments = parser("bench.ranking", __doc__, data=True)
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--size", default="paper")
    arguments.add_argument("--embedder", default="wordllama")
    arguments.add_argument("--pairs", type=int, default=150)
    arguments.add_argument("--postgres", metavar="URL")
    given, run = arguments.parse_args(), about()
    embedder = embedder_by_name(given.embedder)
    timed = TimedEmbedder(embedder)
    built = build_corpus(given.size, cache=given.cache, embedder=timed, data=given.data)
    truth = GroundTruth.open(built.store, now=NOW)
    pairs = development_pairs(truth, built, timed, 2_400)[: given.pairs]
    truth.store.close()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        shutil.copytree(built.store, home / "store")
        engine = stack.enter_context(
            Engine.open(home / "store", create=False, embedder=embedder, clock=lambda: NOW)
        )
        rows = _rows(engine)
        asked = [
            (pair, _admitted(engine, rows, pair))
            for pair in pairs
            if engine.retrieve(pair.question.text, pair.session).outcome.value != "refuse"
        ]
        ways: Ways = {
            "`Engine.retrieve`": partial(_retrieve, engine),
            "`Engine.ask`, which quotes": lambda pair, _: engine.ask(pair.question.text, pair.session),
            "`Engine.retrieve` without its guard": _unguarded(engine, rows, asked[0][0]),
        }
        missing = _add_peers(ways, rows, embedder, given, home)
        taken = _taken(ways, asked)
        page = _PAGE.format(
            size=given.size,
            embedder=given.embedder,
            described=described(run),
            chunks=len(rows.texts),
            pairs=len(asked),
            times=_TIMES,
            rows=table(_HEAD, _lines(taken)),
            missing=", ".join(missing) or "nothing",
            **_counted(engine, asked, home / "store"),
        )
    write(page, Path(__file__).with_name("RESULTS.md"))
    return 0


def _retrieve(engine: Engine, pair: Pair, _: Collection[int]) -> object:
    return engine.retrieve(pair.question.text, pair.session)


def _admitted(engine: Engine, rows: peers.Rows, pair: Pair) -> frozenset[int]:
    """Return the words that a session's policy admits, which is what a list of words can say of it."""
    rules = engine.requests.in_force.rules
    masks = [
        mask
        for one in rules.decide(pair.question.text, pair.session, NOW).searches
        for mask in one.policy.masks
    ]
    return frozenset(word for word in set(rows.words) if any(mask.admits(word) for mask in masks))


def _rows(engine: Engine) -> peers.Rows:
    """Read the passages with the labels that hold now."""
    store, now = engine._collection.store, as_of_minutes(NOW)  # noqa: SLF001 - one engine may hold a store
    labels, vectors = store.labels.rows(store.labels.open())
    holds = (labels.public_at <= now) & (now < labels.expires_at)
    chunks = store.chunks(labels.keys[holds].tolist())
    return peers.Rows([one.text for one in chunks], labels.words[holds].tolist(), vectors[holds])


def _unguarded(engine: Engine, rows: peers.Rows, pair: Pair) -> Callable[[Pair, Collection[int]], object]:
    """Make a retrieval that searches everything, and neither tests, proves nor records what it found."""
    retriever, recorder = engine.requests.retriever, engine.requests.recorder
    index: Any = engine._collection.index  # noqa: SLF001 - as below
    labels = engine._collection.store.labels  # noqa: SLF001
    _, vectors = labels.rows(keys := labels.open())
    stats = index.search(rows.vectors[0], 1, Policy(Mask()), as_of=NEVER - 1).stats
    instead, rank = Vanilla(index, keys, vectors, stats), retriever.ranker.rank
    kept = engine.retrieve(pair.question.text, pair.session)
    assert kept.asked is not None
    receipt, searched = kept.receipt, kept.asked.searched

    def ranked(_: object, *asked: Any, **how: Any) -> Any:
        return rank(instead, *asked, **how)  # type: ignore[arg-type]

    def ask(pair: Pair, _: Collection[int]) -> object:
        with (
            patch.object(retriever.ranker, "rank", ranked),
            patch.object(Decision, "reasons_for", lambda *_: ()),
            patch.object(recorder, "access", lambda *_, **__: receipt),
            patch.object(recorder, "check", lambda *_: None),
            patch("carag.engine.requests.proven", lambda *_: searched),
        ):
            return engine.retrieve(pair.question.text, pair.session)

    return ask


def _add_peers(ways: Ways, rows: peers.Rows, embedder: Embedder, given: Namespace, home: Path) -> list[str]:
    """Make those that are installed; return the names of the others."""
    made: dict[str, Callable[[], peers.Ask]] = {
        "LangChain over FAISS, flat, no policy": lambda: peers.langchain(rows, embedder, filters=False),
        "LangChain over FAISS, filtered afterwards": lambda: peers.langchain(rows, embedder, filters=True),
        "hnswlib and a list of texts, no policy": lambda: peers.hnswlib(rows, embedder),
        "LanceDB, filtered before": lambda: peers.lancedb(rows, embedder, home / "lancedb"),
    }
    missing = []
    if given.postgres:
        made["pgvector, filtered graph"] = lambda: peers.pgvector(rows, embedder, given.postgres)
    else:
        missing.append("pgvector, filtered graph")
    for name, make in made.items():
        try:
            ask = make()
        except ImportError as error:
            missing.append(f"{name} ({error.name} is not installed)")
        else:
            ways[name] = partial(_asked, ask)
    return missing


def _asked(ask: peers.Ask, pair: Pair, admitted: Collection[int]) -> object:
    return ask(pair.question.text, admitted)


def _taken(ways: Ways, asked: list[tuple[Pair, frozenset[int]]]) -> dict[str, list[float]]:
    """Ask all ways in turn; return the milliseconds of each, a pair each.

    Each pair has an order of its own, since threads of one way may still run when the next is asked.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    draw = np.random.default_rng(0)
    for pair, admitted in asked:
        order = [str(name) for name in draw.permutation(list(ways))]
        works = [partial(ways[name], pair, admitted) for name in order]
        for name, milliseconds in zip(order, in_turn(works, _TIMES), strict=True):
            taken[name].append(milliseconds)
    return taken


def _lines(taken: dict[str, list[float]]) -> list[list[str]]:
    ours = next(iter(taken.values()))
    lines = []
    for name, theirs in taken.items():
        middle = statistics.median(ours) / statistics.median(theirs)
        tail = np.quantile(ours, 0.95) / np.quantile(theirs, 0.95)
        lines.append([name, *p50_p95(theirs), f"{middle:.2f} times this", f"{tail:.2f} times this"])
    return lines


def _counted(engine: Engine, asked: list[tuple[Pair, frozenset[int]]], store: Path) -> dict[str, float]:
    """Count what a retrieval takes of what does not depend on the machine's load, and its processor time."""

    def every(rounds: int = 1) -> None:
        for pair, _ in rounds * asked:
            engine.retrieve(pair.question.text, pair.session)

    files, written, start = _log_bytes(store), _written(), time.process_time()
    every(_ROUNDS)
    cpu, written = time.process_time() - start, _written() - written
    with cProfile.Profile() as profile:
        every()
    calls = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    of = len(asked)
    return {
        "cpu": 1000 * cpu / (_ROUNDS * of),
        "calls": calls / of,
        "written": written / (_ROUNDS * of),
        "growth": (_log_bytes(store) - files) / ((_ROUNDS + 1) * of),
    }


def _written() -> int:
    """Return the bytes that this process has handed to the kernel."""
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def _log_bytes(store: Path) -> int:
    """Return the size of the log's file, what is still in its write-ahead log included."""
    with closing(sqlite3.connect(f"file:{store / 'audit.db'}?mode=ro", uri=True)) as db:
        return int(
            db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
        )


if __name__ == "__main__":
    raise SystemExit(main())
