"""Models that cost money are estimated before they are asked, and asked the same thing once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.paid import CachedEmbedder, CachedGenerator, estimate, price_of
from carag.generation import Extractive
from carag.policy import Reason, Rule
from carag.retrieval import Withheld, embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.generation import Draft
    from carag.retrieval import Passage


def test_an_estimate_grows_with_what_is_asked() -> None:
    model = "bedrock:amazon.nova-micro-v1:0"
    assert 0 < estimate(model, 10, None, 0) < estimate(model, 20, None, 0)
    assert estimate(None, 10, None, 10) == 0
    with pytest.raises(InvalidArgument, match="no price"):
        price_of("bedrock:unknown")


class Counting:
    """An embedder and generator that count their calls."""

    name, dim, remote, fingerprint = "counting", 2, True, "1"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return np.array([[len(text), 1] for text in texts], np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.texts.append(text)
        return np.array([len(text), 2], np.float32)

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        self.texts.append(question)
        return Extractive().generate(question, passages, withheld)


def test_nothing_is_paid_for_twice_also_after_a_kill(tmp_path: Path) -> None:
    path, model = tmp_path / "kept.jsonl", Counting()
    first = CachedEmbedder(model, path)
    assert first.embed_documents(["a", "bb"]).tolist() == [[1, 1], [2, 1]]
    assert first.embed_query("a").tolist() == [1, 2]
    with path.open("ab") as file:
        file.write(b'{"key": "cut o')
    again = CachedEmbedder(model, path)
    assert again.embed_documents(["bb", "ccc", "a"]).tolist() == [[2, 1], [3, 1], [1, 1]]
    assert model.texts == ["a", "bb", "a", "ccc"]
    asked = CachedGenerator(model, tmp_path / "answers.jsonl")
    for withheld in (Withheld(()), Withheld(()), Withheld((Reason(Rule.FORBIDDEN, (), "x"),))):
        asked.generate("What?", (), withheld)
    assert model.texts[4:] == ["What?", "What?"]  # what is withheld is part of the prompt


def test_a_damaged_cache_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text("no json\n")
    with pytest.raises(CorruptFile, match="line 1"):
        CachedEmbedder(embedder_by_name("wordllama"), path)
