"""Measure a store of your own with your own questions, and record the result in the store's log.

The store itself is asked, not a copy: a copy would take its signing key to another place, and what was asked would not
be recorded. All sessions are judged at the instant at which the run began, which their records state too.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import carag
from carag.engine import Engine
from carag.errors import InvalidArgument
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.own_questions import own_pairs, read_canaries, read_questions
from carag.evaluation.models import Models, TimedEmbedder
from carag.evaluation.report.files import write_files
from carag.evaluation.report.page import Verdict, verdict
from carag.evaluation.report.strata import EVERYTHING, SliceName
from carag.evaluation.row import ORACLE, rows_sha256
from carag.evaluation.run_metadata import OWN_STORE, RunMetadata, machine_name
from carag.evaluation.searched import Searched
from carag.evaluation.systems.runner import PartialRows, Runner
from carag.evaluation.systems.systems import Systems
from carag.extras import require
from carag.generation import generator_by_name, own_generator
from carag.retrieval import embedder_by_name, gate_for, own_embedder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from carag.evaluation.report.report import Report
    from carag.evaluation.systems.own import OwnSystem
    from carag.generation import Generator
    from carag.retrieval import Embedder


OURS: Final = "carag-certified"
"""The store's own engine, whose verdict decides whether the store passes."""
SUITE: Final = "own-questions"
"""Name of the suite in the record of the evaluation."""
_SYSTEMS: Final = (ORACLE, "vanilla", OURS)
_LIMITS: Final = {"cvr_query": 0, "cvr_touch": 0, "odr_canary": 0}
"""What the store must not exceed in order to pass, in millionths."""


class StoreResult(NamedTuple):
    """The figures of a store, whether it passed, and the number of the record that says so."""

    report: Report
    passed: bool
    record: int


def run_store(
    store: Path,
    questions: Path,
    out: Path,
    *,
    canaries: Path | None = None,
    embedder: str | Embedder | None = None,
    generator: str | Generator = "extractive",
    own: Sequence[OwnSystem] = (),
    backend: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> StoreResult:
    """Ask a store, ordinary retrieval over the same vectors and the oracle, and write rows and a report.

    - ``store``: directory of a store that no engine holds.
    - ``questions``, ``canaries``: as :mod:`carag.evaluation.cases.own_questions` reads them.
    - ``out``: a directory; an interrupted run of the same store, files and models there is resumed.
    - ``embedder``: the embedder that the store was made with, if the store cannot open it by itself.
    - ``generator``: a generator that runs on this machine.
    - ``own``: systems that are asked in addition. Their factories are given every passage of the store.
    - ``backend``: URL of the backend that holds the store's rows, as for :meth:`carag.Engine.open`.

    Raises InvalidArgument if a file is not valid, the store is missing or empty or changes meanwhile, a model runs on
    another machine, or the directory contains another run; MissingExtra if hnswlib is not installed; StoreLocked if an
    engine holds the store.
    """
    require("the benchmark", "bench")
    started = datetime.now(UTC)
    truth = GroundTruth.open(store, now=started)
    with truth.store:
        known = truth.store.known()
        if not len(truth):
            raise InvalidArgument(f"the store in {store} contains no passages; ingest documents first")
        asked = read_questions(questions, truth)
        planted = {} if canaries is None else read_canaries(canaries, truth)
        searched = Searched.already(store, backend)
        model = generator_by_name(generator) if isinstance(generator, str) else own_generator(generator)
        _check_local("generator", model)
        # Opened and closed once, so that the index file matches the labels just read.
        opening = {"create": False, "generator": model, **searched.settings(store)}
        Engine.open(store, embedder=embedder, **opening).close()
        kept = embedder or truth.store.meta_get("embedder") or ""
        chosen = TimedEmbedder(embedder_by_name(kept) if isinstance(kept, str) else own_embedder(kept))
        _check_local("embedder", chosen)
        identity = {
            "store": (store / "vkey").read_text("utf-8").strip(),
            "known_at": known,
            "table": truth.profile.table.sha256,
            "questions": _sha256(questions),
            "canaries": "" if canaries is None else _sha256(canaries),
            "models": [chosen.fingerprint, model.name, model.fingerprint],
            "version": carag.__version__,
        }
        with PartialRows(out, identity, {one.name: one.source_sha256 for one in own}) as rows:
            runner = Runner(rows, chosen, 0, say)
            pairs = own_pairs(asked, planted, truth, chosen)
            models = Models(chosen, model, gate_for(truth.profile, chosen.name))
            with Systems(store, truth, models, seed=0, names=_SYSTEMS, own=own, searched=searched) as systems:
                _check_unchanged(store, truth, known)
                runner.ask(truth, pairs, systems, systems.names, model.name)
            found = rows.finish(out / "rows.jsonl")
        metadata = RunMetadata(
            corpus=OWN_STORE,
            chunks=len(truth),
            filings=len(truth.rows_of),
            filers=0,
            machine=machine_name(),
            version=carag.__version__,
            rows_sha256=rows_sha256(found),
            notes=_notes(truth, started, identity, own),
        )
        (out / "run.json").write_text(metadata.to_json(), "utf-8")
        report = write_files(out / "rows.jsonl", out)
        passed = verdict(report.sections[0].slices[SliceName(EVERYTHING)], OURS) is Verdict.NO_LEAK_SEEN
        with Engine.open(store, embedder=chosen, **opening) as engine:
            _check_unchanged(store, truth, known)
            receipt = engine.evaluations.record(
                SUITE,
                bytes.fromhex(_sha256(out / "settings.json")),
                bytes.fromhex(_sha256(out / "rows.jsonl")),
                started=started,
                passed=passed,
                thresholds=_LIMITS,
            )
    return StoreResult(report, passed, receipt.seq)


def _notes(
    truth: GroundTruth, started: datetime, identity: Mapping[str, Any], own: Sequence[OwnSystem]
) -> tuple[str, ...]:
    files = [
        f"SHA-256 of the {name}: {identity[name]}" for name in ("questions", "canaries") if identity[name]
    ]
    return (
        f"profile {truth.profile.name}; every session judged at {started.isoformat(timespec='seconds')}",
        *files,
        *(f"{one.name} comes from a file with SHA-256 {one.source_sha256}" for one in own),
    )


def _check_local(what: str, model: Embedder | Generator | TimedEmbedder) -> None:
    """Refuse a model on another machine: ordinary retrieval shows the model what is closed, without a begin record."""
    if model.remote:
        raise InvalidArgument(
            f"the {what} {model.name} runs on another machine, and the compared systems would send it closed passages "
            f"without a record; name a {what} that runs on this machine"
        )


def _check_unchanged(store: Path, truth: GroundTruth, known: int) -> None:
    if truth.store.known() != known:
        raise InvalidArgument(
            f"the store in {store} changed while it was measured; run the same command again"
        )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
