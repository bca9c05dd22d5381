"""Our own reader: all-MiniLM-L6-v2, whose file the embedder pins, with updates that were learnt; CARD.md describes it.

**The same answer on every machine.** The weights are whole numbers with a scale, and every CPU makes the same float32
of them. One thread runs the graph on one pair at a time, so no sum depends on other passages or on the number of
cores. What is left is the order in which a processor's own instructions add float32: the tests hold scores to 1e-4 of
committed ones, and a decision can differ only where a score is that near to the threshold.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.errors import ModelUnavailable
from carag.extras import require
from carag.limits import check_question
from carag.retrieval.embedder import check_texts
from carag.retrieval.minilm import MiniLm
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.reader.graph import Graph
    from carag.generation.reader.pairs import Pairs


_WEIGHTS: Final = Path(__file__).with_name("weights.npz")
_SHA256: Final = "1c2eb65c03a43815f90966b20fa70e62ee7859e682441244b22d1fd242d9cc18"
_PREPROCESSING: Final = 1
"""Version of tokens, marks and windows. Raise it when they change, so that records differ."""


class MiniLmReader:
    """The reader that ships with CARAG, for questions in English; its files are read at the first question.

    - ``threshold``: the least score that answers, instead of the profile's.

    Examples
    --------
    >>> text = "Banks shall keep the records for five years."
    >>> kept, missed = MiniLmReader().holds("How long are records kept?", [text, "Branches open at nine."])
    >>> kept > missed
    True
    """

    name: Final = "carag-reader-1"
    remote: Final = False
    fingerprint: Final = fingerprint(
        "carag-reader-1", _SHA256, *(one.sha256 for one in MiniLm.files), _PREPROCESSING
    )

    def __init__(self, *, threshold: float | None = None) -> None:
        self.threshold = threshold

    def holds(self, question: str, texts: Sequence[str]) -> list[float]:
        """Tell for each text how likely it is, from 0 to 1, that it answers the question.

        Of a long text, one window of up to 192 tokens is read, question included: the first of those that share most
        words with the question. Raises ModelUnavailable if a model file is missing or altered; MissingExtra without
        the extra ``models``.
        """
        check_question("question", question)
        check_texts(texts)
        pairs, graph = self._loaded
        return [
            graph.score(max(pairs.windows(question, text), key=lambda window: window.shared))
            for text in texts
        ]

    @cached_property
    def _loaded(self) -> tuple[Pairs, Graph]:
        require(f"the reader {self.name}", "models")
        from carag.generation.reader.graph import Graph
        from carag.generation.reader.pairs import Pairs

        content = _WEIGHTS.read_bytes()
        if (actual := hashlib.sha256(content).hexdigest()) != _SHA256:
            raise ModelUnavailable(
                f"{_WEIGHTS} has SHA-256 {actual}; want {_SHA256}: it was altered; install carag-engine again"
            )
        try:
            return Pairs(), Graph(content)
        except ModelUnavailable as absent:
            raise ModelUnavailable(
                f"the reader {self.name}: {absent}; to answer without it, open the store without a reader"
            ) from absent
