"""Wrap the models that all systems share, and record what they were shown and how long they took."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from carag.generation import Draft
from carag.generation.generator import Stop
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.policy import Reason, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from carag.generation import Generator
    from carag.retrieval import ConfidenceGate, Embedder, Passage, Withheld


class TimedEmbedder:
    """Embedder that embeds each question once and keeps the time it took."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name, self.dim, self.fingerprint = embedder.name, embedder.dim, embedder.fingerprint
        self.remote = embedder.remote
        self.vectors: dict[str, NDArray[np.float32]] = {}
        self.milliseconds: dict[str, float] = {}

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages."""
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question, or return the vector kept from before."""
        if text not in self.vectors:
            start = time.perf_counter()
            self.vectors[text] = self._embedder.embed_query(text)
            self.milliseconds[text] = (time.perf_counter() - start) * 1000
        return self.vectors[text]


@dataclass(frozen=True, slots=True)
class Models:
    """The models that all systems of a run share; ``once`` is as for :class:`RecordingGenerator`."""

    embedder: TimedEmbedder
    generator: Generator
    gate: ConfidenceGate
    once: bool = False


class RecordingGenerator:
    """Generator that records the passages it was shown, which is all that can reach a model or a prompt.

    - ``once``: whether the same question with the same passages, withheld kinds and topic is asked only once, which
      suits a slow and deterministic model. Systems that retrieve the same passages then share one answer.

    - ``shown``: ids of the passages, followed by those whose head rows came with them.
    - ``milliseconds``: time the answer took when the model was asked.
    - ``saved``: milliseconds saved by a shared answer.
    """

    def __init__(self, generator: Generator, *, once: bool = False) -> None:
        self._generator = generator
        self._drafts: dict[tuple[object, ...], tuple[Draft, float]] | None = {} if once else None
        self.name, self.remote, self.fingerprint = generator.name, generator.remote, generator.fingerprint
        self._most: int | None = getattr(generator, "most_passages", None)
        self.forget()

    def forget(self) -> None:
        """Clear what was recorded; the gate may keep the generator from being called at all."""
        self.shown: tuple[str, ...] = ()
        self.milliseconds = self.saved = 0.0

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer, and record what was shown."""
        read = passages[: self._most]
        heads = (one.head.chunk_id for one in read if one.head is not None)
        self.shown = tuple(dict.fromkeys([*(one.chunk_id for one in read), *heads]))
        if self._drafts is None:
            return self._timed(question, passages, withheld)
        same = (
            question,
            tuple((one.chunk_id, one.text, one.head) for one in passages),
            withheld.kinds,
            withheld.topic,
        )
        if same in self._drafts:
            draft, self.milliseconds = self._drafts[same]
            self.saved = self.milliseconds
            return draft
        draft = self._timed(question, passages, withheld)
        self._drafts[same] = draft, self.milliseconds
        return draft

    def _timed(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        start = time.perf_counter()
        try:
            return self._generator.generate(question, passages, withheld)
        finally:
            self.milliseconds = (time.perf_counter() - start) * 1000


class ShowingWithheld:
    """Generator of the paper's variant: its model is also shown inadmissible text, and is told not to use that text.

    The text takes the place of the kinds of withheld document, under the same instruction. For measurement only: the
    engine never does this.
    """

    def __init__(self, generator: RecordingGenerator) -> None:
        self._generator = generator
        self.name, self.remote = generator.name, generator.remote
        self.fingerprint = f"{generator.fingerprint}+withheld-text"
        self.withheld: tuple[Passage, ...] = ()

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer with both admissible and inadmissible passages in the prompt."""
        texts = tuple(Reason(Rule.FORBIDDEN, (), one.text) for one in self.withheld)
        draft = self._generator.generate(
            question, passages, replace(withheld, kinds=(*withheld.kinds, *texts))
        )
        self._generator.shown += tuple(one.chunk_id for one in self.withheld)
        return draft


class AlwaysAnswering:
    """Generator that overrules refusals by quoting the best passage."""

    def __init__(self, generator: RecordingGenerator) -> None:
        self._generator = generator
        self.name, self.remote = generator.name, generator.remote
        self.fingerprint = f"{generator.fingerprint}+never-silent"

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer, whatever the evidence."""
        draft = self._generator.generate(question, passages, withheld)
        if passages and (INSUFFICIENT_EVIDENCE in draft.text or not draft.text.strip() or not draft.cited):
            return Draft(f"{passages[0].text} [1]", (0,), Stop.END)
        return draft
