"""The small corpus as the benchmark sees it, built once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from carag.evaluation.corpus import Built, build_corpus
from carag.evaluation.models import Remembered
from carag.evaluation.run import NOW
from carag.evaluation.world import World
from carag.retrieval import embedder_by_name


@dataclass(frozen=True)
class Small:
    """The corpus, what is known of it, and the embedder that both were made with."""

    built: Built
    world: World
    embedder: Remembered


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small corpus."""
    embedder = Remembered(embedder_by_name("wordllama"))
    built = build_corpus("small", cache=tmp_path_factory.mktemp("corpora"), embedder=embedder)
    for question in built.questions:
        embedder.embed_query(question.text)
    return Small(built, World.open(built.store, now=NOW), embedder)
