"""Measure sessions against a corpus, and record the result before it is shown.

The result is JSON Lines, one session per line. The record of an evaluation holds the SHA-256 of the result and of
everything that it depends on, so a file kept elsewhere can be shown to be what was measured then, and with what.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import carag
from carag.engine import NO_EMBEDDER, Engine
from carag.errors import InvalidArgument
from carag.evaluation.regulatory.corpus import LocalCorpusConnector, StoreCorpusConnector
from carag.evaluation.regulatory.regulatory import Regulatory
from carag.evaluation.regulatory.schemas import SessionVerdict
from carag.evaluation.regulatory.sessions import read_sessions
from carag.evaluation.regulatory.variants import Variant
from carag.labelling.canonical_json import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carag.evaluation.regulatory.corpus import CorpusConnector
    from carag.evaluation.regulatory.statistical import StatisticalMode
    from carag.evaluation.regulatory.variants import Settings
    from carag.policy import Session


SUITE: Final = "regulatory-metric"
"""Name of the suite in the record."""
_MILLION: Final = 1_000_000


class MetricRun(NamedTuple):
    """The outcome of a run."""

    sessions: dict[str, int]
    """Number of sessions by verdict."""
    turns: int
    passages: int
    """The number of passages in the part of the corpus that may be read."""
    sha256: str
    """The SHA-256 of the result."""
    record: int | None
    """The record's number in the store's log; None if no store was named."""

    @property
    def passed(self) -> bool:
        """Whether no session is NON_COMPLIANT or without a verdict."""
        return not self.sessions.keys() & {SessionVerdict.NON_COMPLIANT, SessionVerdict.NO_VERDICT}


def is_store(path: Path) -> bool:
    """Tell whether a path is a store rather than a folder of documents."""
    return (path / "corpus.db").is_file()


def run_metric(
    corpus: Path,
    sessions: Path,
    settings: Settings,
    out: IO[bytes],
    *,
    embedder: object,
    reranker: object,
    statistical_mode: StatisticalMode | None = None,
    store: Path | None = None,
    reader: Session | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> MetricRun:
    """Measure all sessions of a file, and record the result.

    Parameters
    ----------
    corpus : Path
        A folder of regulation, or a store.
    sessions : Path
        As :func:`~carag.evaluation.regulatory.sessions.read_sessions` reads it.
    out : binary file
        The result is written here as it is made; show it only after this function has returned.
    embedder, reranker : object
        As for :class:`~carag.evaluation.regulatory.regulatory.Regulatory`.
    store : Path, optional
        Where the record goes; if the corpus is a store, only its own log.
    reader : Session, optional
        The session under whose policy a store is read; required for a store, and only for one.
    progress : callable
        Called with the number of turns judged so far and the number of all turns.

    Raises
    ------
    InvalidArgument
        If corpus, sessions or models are not valid; nothing is recorded.
    Refused
        If that session may not read the store; the refusal is recorded.
    AuditUnavailable
        If the record cannot be written; do not show the result.
    """
    started = datetime.now(UTC)
    asked = hashlib.sha256()
    read = read_sessions(sessions, asked)
    turns = sum(len(one.turns) for one in read)
    with ExitStack() as opened:
        engine: Engine | None = None
        if (home := _home(corpus, store)) is not None:
            engine = opened.enter_context(Engine.open(home, create=False, embedder=NO_EMBEDDER))
        connector = _connector(corpus, engine, reader)
        metric = Regulatory(connector, embedder, reranker, settings, statistical_mode=statistical_mode)
        if metric.remote and reader is not None:
            raise InvalidArgument(
                f"{metric.remote} runs on another machine, and what {reader.role}/{reader.purpose} may read would be "
                "sent there without a record; name models that run here"
            )
        passages, digest, counted, done = metric.load(), hashlib.sha256(), Counter[str](), 0
        for found in metric.measure(read):
            line = (json.dumps(found.model_dump(mode="json")) + "\n").encode("ascii")
            digest.update(line)
            out.write(line)
            counted[found.verdict.value] += 1
            done += found.n_interactions
            progress(done, turns)
        run = MetricRun(dict(counted), turns, passages, digest.hexdigest(), None)
        if engine is None:
            return run
        means = {
            "version": carag.__version__,
            "sessions": asked.hexdigest(),
            "reader": None if reader is None else [reader.role, reader.purpose],
            **metric.identity,
        }
        receipt = engine.evaluations.record(
            SUITE,
            hashlib.sha256(canonical_json(means, "the settings").encode()).digest(),
            digest.digest(),
            started=started,
            passed=run.passed,
            thresholds=_thresholds(settings),
        )
    return run._replace(record=receipt.seq)


def _home(corpus: Path, store: Path | None) -> Path | None:
    """Return the store whose log receives the record."""
    if not is_store(corpus):
        return store
    if store is not None and store.resolve() != corpus.resolve():
        raise InvalidArgument(
            f"the corpus {corpus} is a store, which records what is read in its own log; leave --store out"
        )
    return corpus


def _connector(corpus: Path, engine: Engine | None, reader: Session | None) -> CorpusConnector:
    if engine is not None and is_store(corpus):
        if reader is None:
            raise InvalidArgument(f"the corpus {corpus} is a store; name the role and purpose that read it")
        return StoreCorpusConnector(engine, reader)
    if reader is not None:
        raise InvalidArgument(f"the corpus {corpus} is a folder, which is public; leave role and purpose out")
    return LocalCorpusConnector(corpus)


def _thresholds(settings: Settings) -> dict[str, int]:
    """Return the settings that decide, as records hold them; a stance judge has its own thresholds."""
    names = ["similarity_threshold", "compliance_threshold"]
    if settings.variant is not Variant.STANCE:
        names.append("contradiction_threshold")
    millionths = {f"{name}_millionths": round(getattr(settings, name) * _MILLION) for name in names}
    return {"top_k": settings.top_k, **millionths}
