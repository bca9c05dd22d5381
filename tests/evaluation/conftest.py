"""The small corpus as the benchmark sees it, built once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from carag.evaluation.cases.corpus import BuiltCorpus, build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.pairs import cross
from carag.evaluation.cases.synthetic import built_pairs
from carag.evaluation.models import Models, TimedEmbedder
from carag.evaluation.run import NOW
from carag.evaluation.systems.systems import Systems
from carag.generation import Extractive
from carag.retrieval import ConfidenceGate, embedder_by_name
from tests.evaluation.rows import few_draws

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.evaluation.cases.pairs import Pair


@dataclass(frozen=True)
class Small:
    """The corpus, what is known of it, and the embedder that both were made with."""

    built: BuiltCorpus
    truth: GroundTruth
    embedder: TimedEmbedder


@pytest.fixture(scope="session", autouse=True)
def _few_draws() -> Iterator[None]:
    with few_draws(200):
        yield


@pytest.fixture(scope="session", autouse=True)
def _built_once() -> Iterator[None]:
    """Whole runs take the corpus that the first of them built: only reading it again takes half a second.

    ``tests/evaluation/cases/test_corpus.py`` has what is built, and that it is completed in the cache.
    """
    built: dict[tuple[str, Path], BuiltCorpus] = {}

    def once(size: str, *, cache: Path, **more: Any) -> BuiltCorpus:
        if (size, cache) not in built:
            built[size, cache] = build_corpus(size, cache=cache, **more)
        return built[size, cache]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carag.evaluation.run.build_corpus", once)
        yield


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the small corpus is built once, for `small` and for whole runs."""
    return tmp_path_factory.mktemp("corpora")


@pytest.fixture(scope="session")
def small(cache: Path) -> Small:
    """The small corpus."""
    embedder = TimedEmbedder(embedder_by_name("wordllama"))
    built = build_corpus("small", cache=cache, embedder=embedder)
    for question in built.questions:
        embedder.embed_query(question.text)
    return Small(built, GroundTruth.open(built.store, now=NOW), embedder)


@pytest.fixture(scope="session")
def models(small: Small) -> Models:
    """The models of every system: none that costs money or time."""
    return Models(small.embedder, Extractive(), ConfidenceGate(0.3))


@pytest.fixture(scope="module")
def pairs(small: Small) -> list[Pair]:
    """Real questions and built ones, in sessions."""
    real = cross(
        small.truth, small.built.questions, small.built.gold, small.embedder.vectors, count=60, seed=0
    )
    return real + built_pairs(small.truth, small.embedder, count=12, seed=0)


@pytest.fixture(scope="module")
def systems(small: Small, models: Models) -> Iterator[Systems]:
    """Every system over the small corpus; its engine holds the store."""
    with Systems(small.built.store, small.truth, models, seed=0) as opened:
        yield opened
