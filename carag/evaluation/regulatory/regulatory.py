"""Measure sessions against a corpus of regulation: find passages for each turn, judge it, and aggregate.

The corpus is loaded when the first session is measured, and embedded only once.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.checker import ContradictionChecker
from carag.evaluation.regulatory.corpus import CorpusConnector
from carag.evaluation.regulatory.ports import Reranker, StanceJudge, as_embedder, as_judge, as_reranker
from carag.evaluation.regulatory.retriever import DocumentRetriever
from carag.evaluation.regulatory.schemas import RegulatoryInteraction, RegulatoryMetric, SessionVerdict
from carag.evaluation.regulatory.stance import StanceChecker
from carag.evaluation.regulatory.statistical import FrequentistMode, StatisticalMode, shares
from carag.evaluation.regulatory.variants import PACKAGE_DECIMALS, Settings, Variant
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.evaluation.regulatory.checker import Checker
    from carag.evaluation.regulatory.schemas import Batch
    from carag.evaluation.regulatory.sessions import MeasuredSession


class _Kept(NamedTuple):
    assistant_id: str
    turns: dict[str, tuple[float | None, RegulatoryInteraction]]
    """The weight and the verdict, by turn id."""


class Regulatory:
    """The metric over one corpus.

    Parameters
    ----------
    embedder : object
        The paper's :class:`~carag.evaluation.regulatory.ports.Embedder`, or any that :mod:`carag.retrieval` takes.
    reranker : object
        The paper's :class:`~carag.evaluation.regulatory.ports.Reranker`, or any that :mod:`carag.retrieval` takes;
        for the variant ``stance``, a :class:`~carag.evaluation.regulatory.ports.StanceJudge`.
    statistical_mode : StatisticalMode, optional
        By default the weighted mean.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from carag.evaluation.regulatory import Batch, CosineReranker, LocalCorpusConnector
    >>> from carag.retrieval import embedder_by_name
    >>> embedder = embedder_by_name("wordllama")
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "act.md").write_text("Providers shall keep the logs for six months.")
    ...     metric = Regulatory(LocalCorpusConnector(folder), embedder, CosineReranker(embedder))
    ...     turn = Batch(qa_id="1", query="How long?", assistant="Providers keep the logs for six months.")
    ...     _ = metric.batch("s", "a", [turn])
    >>> found = metric.result("s")
    >>> found.verdict.value, found.compliance_score
    ('COMPLIANT', 1.0)
    """

    def __init__(
        self,
        corpus_connector: CorpusConnector,
        embedder: object,
        reranker: object,
        settings: Settings | None = None,
        *,
        statistical_mode: StatisticalMode | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.embedder = as_embedder(embedder)
        is_package = self.settings.variant.is_package
        self.statistical_mode = statistical_mode or FrequentistMode(is_exact_package=is_package)
        if not isinstance(corpus_connector, CorpusConnector):
            raise InvalidArgument(
                f"the corpus connector is {quoted(corpus_connector)}; want a LocalCorpusConnector, a "
                "StoreCorpusConnector, or an instance of your own subclass of CorpusConnector"
            )
        self._connector = corpus_connector
        self._kept: dict[str, _Kept] = {}
        self._model: Reranker | StanceJudge
        self._checker: Checker
        if self.settings.variant is Variant.STANCE:
            self._model = as_judge(reranker)
            self._checker = StanceChecker(self._model, self.settings)
        else:
            self._model = as_reranker(reranker)
            self._checker = ContradictionChecker(self._model, self.settings)
        self._retriever = DocumentRetriever(self.embedder, self.settings)

    def load(self) -> int:
        """Load the corpus if it is not loaded yet; return the number of its passages."""
        if not len(self._retriever):
            documents = self._connector.load_documents()
            self._retriever.load_corpus(documents, self._connector.decision)
        return len(self._retriever)

    @property
    def remote(self) -> str:
        """The names of the metric's models on other machines; empty if all of them run here."""
        return " and ".join(one.name for one in (self.embedder, self._model) if one.remote)

    @property
    def identity(self) -> dict[str, object]:
        """Everything that a result depends on except the sessions, as JSON values; this loads the corpus."""
        self.load()
        return {
            "settings": asdict(self.settings),
            "statistical_mode": repr(self.statistical_mode),
            "embedder": [self.embedder.name, self.embedder.fingerprint],
            "reranker": [self._model.name, self._model.fingerprint],
            "corpus": self._retriever.sha256,
        }

    def batch(
        self, session_id: str, assistant_id: str, batch: Iterable[Batch]
    ) -> list[RegulatoryInteraction]:
        """Judge turns of a session, and keep the verdicts until :meth:`result` is called.

        Raises
        ------
        InvalidArgument
            If a turn with the same id was judged before, or the session belongs to another assistant.
        """
        self.load()
        kept = self._kept.get(session_id, _Kept(assistant_id, {}))
        if kept.assistant_id != assistant_id:
            raise InvalidArgument(
                f"session {quoted(session_id)} belongs to the assistant {quoted(kept.assistant_id)}, but this turn "
                f"names {quoted(assistant_id)}; use one assistant per session"
            )
        judged: dict[str, tuple[float | None, RegulatoryInteraction]] = {}
        for turn in batch:
            if turn.qa_id in kept.turns or turn.qa_id in judged:
                raise InvalidArgument(
                    f"session {quoted(session_id)} has two turns with the qa_id {quoted(turn.qa_id)}; give each turn "
                    "its own"
                )
            found = self._retriever.retrieve_merged(turn.query, turn.assistant)
            judged[turn.qa_id] = turn.weight, self._checker.check(turn, found)
        kept.turns.update(judged)  # all or none, so that a batch in which one turn failed can be repeated
        self._kept[session_id] = kept
        return [one for _, one in judged.values()]

    def result(self, session_id: str) -> RegulatoryMetric:
        """Aggregate the judged turns of a session, and forget them.

        Raises
        ------
        InvalidArgument
            If there are no turns, or their weights cannot be shares; then nothing is forgotten.
        """
        kept = self._kept.get(session_id)
        if kept is None or not kept.turns:
            raise InvalidArgument(
                f"session {quoted(session_id)} has no turns; judge at least one with batch()"
            )
        weights = [weight for weight, _ in kept.turns.values()]
        judged = [one for _, one in kept.turns.values()]
        is_package = self.settings.variant.is_package
        found = self._aggregated(
            session_id, kept.assistant_id, judged, shares(weights, is_exact_package=is_package)
        )
        del self._kept[session_id]
        return found

    def measure(self, sessions: Iterable[MeasuredSession]) -> Iterator[RegulatoryMetric]:
        """Measure the sessions in turn."""
        for one in sessions:
            self.batch(one.session_id, one.assistant_id, one.turns)
            yield self.result(one.session_id)

    def _aggregated(
        self, session_id: str, assistant_id: str, judged: list[RegulatoryInteraction], weights: list[float]
    ) -> RegulatoryMetric:
        is_package, limit = self.settings.variant.is_package, self.settings.compliance_threshold
        pairs = list(zip(judged, weights, strict=True))
        covered = [(one, weight) for one, weight in pairs if one.verdict is not SessionVerdict.IRRELEVANT]
        coverage = min(math.fsum(weight for _, weight in covered), 1.0)
        mean, low, high = limit, None, None
        verdict = SessionVerdict.IRRELEVANT
        if counted := pairs if is_package else covered if coverage > 0 else []:
            scores, parts = [one.compliance_score for one, _ in counted], [weight for _, weight in counted]
            whole = 1.0 if len(counted) == len(pairs) else math.fsum(parts)
            mean, low, high = self.statistical_mode.aggregate(scores, [part / whole for part in parts])
            if covered:
                verdict = SessionVerdict.COMPLIANT if mean >= limit else _unless_undecided(covered, limit)
        return RegulatoryMetric(
            session_id=session_id,
            assistant_id=assistant_id,
            variant=self.settings.variant.value,
            n_interactions=len(judged),
            compliance_score=_shown(mean, is_package=is_package),
            compliance_score_ci_low=None if low is None else _shown(low, is_package=is_package),
            compliance_score_ci_high=None if high is None else _shown(high, is_package=is_package),
            coverage=coverage,
            verdict=verdict,
            total_supporting_chunks=sum(one.supporting_chunks for one in judged),
            total_contradicting_chunks=sum(one.contradicting_chunks for one in judged),
            interactions=judged,
        )


def _unless_undecided(covered: list[tuple[RegulatoryInteraction, float]], limit: float) -> SessionVerdict:
    """Return the verdict on a session that is not compliant: no verdict if its decided turns alone would comply."""
    decided = [(one, weight) for one, weight in covered if one.verdict is not SessionVerdict.NO_VERDICT]
    score = math.fsum(one.compliance_score * weight for one, weight in decided)
    is_open = len(decided) < len(covered) and score >= limit * math.fsum(weight for _, weight in decided)
    return SessionVerdict.NO_VERDICT if is_open else SessionVerdict.NON_COMPLIANT


def _shown(value: float, *, is_package: bool) -> float:
    return round(value, PACKAGE_DECIMALS) if is_package else value
