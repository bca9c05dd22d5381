"""The variant ``reference`` gives what the published package gaussia 1.2.0 gives, from passages to intervals.

What the package made of the inputs is kept in ``golden/golden.json.gz``; ``golden/make_golden.py`` wrote it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import pytest

from carag.evaluation.regulatory import (
    Batch,
    BayesianMode,
    CorpusConnector,
    Embedder,
    MeasuredSession,
    Regulatory,
    RegulatoryDocument,
    Reranker,
    Settings,
)
from tests.evaluation.regulatory.golden.inputs import CASES, Case, case
from tests.evaluation.regulatory.golden.make_golden import GOLDEN, by_gaussia, packed

if TYPE_CHECKING:
    import numpy as np


def by_carag(given: Case) -> list[Any]:
    """Measure a case with the variant ``reference``."""

    class Corpus(CorpusConnector):
        def load_documents(self) -> list[RegulatoryDocument]:
            return [RegulatoryDocument(text, source) for source, text in given.documents]

    class Vectors(Embedder):
        def encode(self, sentences: list[str]) -> np.ndarray:
            return given.embedded(sentences)

    class Scores(Reranker):
        def score(self, query: str, documents: list[str]) -> list[float]:
            return given.scores(query, documents)

    mode = None
    if given.mc_samples:
        mode = BayesianMode(given.mc_samples, rng_seed=given.rng_seed, is_exact_package=True)
    metric = Regulatory(
        Corpus(),
        Vectors(),
        Scores(),
        Settings(variant="reference", **given.settings),  # type: ignore[arg-type] - as from a command line
        statistical_mode=mode,
    )
    turns = [
        [
            Batch(qa_id=one.qa_id, query=one.query, assistant=one.assistant, weight=one.weight)
            for one in several
        ]
        for _, several in given.sessions
    ]
    names = [name for name, _ in given.sessions]
    return packed(
        metric.measure(MeasuredSession(name, "a", one) for name, one in zip(names, turns, strict=True))
    )


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(gzip.decompress(GOLDEN.read_bytes()))


@pytest.fixture(scope="module")
def ours() -> list[list[Any]]:
    return [by_carag(case(seed)) for seed in range(CASES)]


def on_the_edge(session: list[Any], threshold: float) -> bool:
    """Whether a session's mean is within rounding of the threshold, where Python 3.12 adds more exactly than 3.11."""
    return abs(session[3] - threshold) < 1e-9


def test_every_passage_verdict_and_score_is_the_packages(
    golden: dict[str, Any], ours: list[list[Any]]
) -> None:
    assert golden["gaussia"] == "1.2.0"
    same_python = list(sys.version_info[:2]) == golden["python"]
    for seed, (theirs, found) in enumerate(zip(golden["cases"], ours, strict=True)):
        threshold = case(seed).settings["compliance_threshold"]
        assert [one[:3] for one in found] == [one[:3] for one in theirs], seed
        assert [one[7:] for one in found] == [one[7:] for one in theirs], seed
        for mine, its in zip(found, theirs, strict=True):
            if same_python or not on_the_edge(its, threshold):
                assert mine[6] == its[6], (seed, mine[0])
            for score, wanted in zip(mine[3:6], its[3:6], strict=True):
                assert score == (wanted if wanted is None else pytest.approx(wanted, abs=1e-9)), seed


def test_the_cases_reach_what_could_differ(golden: dict[str, Any]) -> None:
    """Each verdict, irrelevant turns among others, more than ``top_k`` passages, and thresholds that are just met."""
    counted: Counter[str] = Counter()
    for seed, sessions in enumerate(golden["cases"]):
        given = case(seed)
        for session in sessions:
            counted[session[6]] += 1
            counted["interval"] += session[4] is not None
            counted["edge"] += on_the_edge(session, given.settings["compliance_threshold"])
            verdicts = {turn[2] for turn in session[9]}
            counted["mixed"] += len(verdicts) > 1 and "IRRELEVANT" in verdicts
            for turn in session[9]:
                counted["turns"] += 1
                counted["more"] += len(turn[5]) > given.settings["top_k"]
                for chunk in turn[5]:
                    counted["similarity met"] += chunk[3] == given.settings["similarity_threshold"]
                    counted["score met"] += chunk[4] == given.settings["contradiction_threshold"]
    assert counted["turns"] >= 1_000
    assert min(counted[one] for one in ("COMPLIANT", "NON_COMPLIANT", "IRRELEVANT", "interval", "mixed")) > 50
    assert min(counted[one] for one in ("edge", "more", "similarity met", "score met")) > 30


def test_other_settings_do_not_agree(golden: dict[str, Any]) -> None:
    """The comparison can fail."""
    for name, value, share in (
        ("contradiction_threshold", 0.45, 0.3),
        ("top_k", 1, 0.3),
        ("chunk_size", 7, 0.6),
    ):
        differing = 0
        for seed in range(40):
            given = case(seed)
            moved = {**given.settings, name: value, "chunk_overlap": 0}
            differing += by_carag(replace(given, settings=moved)) != golden["cases"][seed]
        assert differing / 40 > share, name


def _has_gaussia() -> bool:
    try:
        return version("gaussia") == "1.2.0"
    except PackageNotFoundError:
        return False


@pytest.mark.skipif(not _has_gaussia(), reason="gaussia 1.2.0 is not installed")
@pytest.mark.parametrize(
    "start",
    [10_000, 10_100, *(pytest.param(one, marks=pytest.mark.release) for one in range(20_000, 24_000, 100))],
)
def test_the_installed_package_agrees_to_the_last_digit(start: int) -> None:
    """New cases, and vectors of 32 bits whose products depend on the machine, but not on the side."""
    for seed in range(start, start + 100):
        given = case(seed, is_live=True)
        assert by_carag(given) == by_gaussia(given), seed
