"""Rerank by comparing each token of a question with the most similar token of a passage.

This is ColBERT's late interaction (Khattab and Zaharia, *ColBERT*, SIGIR 2020, section 3), on the token vectors of the
default embedder, which were not trained for it. Nothing else is installed, and nothing leaves this machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from carag.retrieval.embedder import check_texts, unit_rows
from carag.retrieval.minilm import MiniLm
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence


_SCORING: Final = 1
"""Version of the score. Raise it when the score changes, so that records differ."""


class MaxSim:
    """The mean over a question's tokens of the greatest cosine with a token of a passage, from 0 to 1.

    All tokens of all windows of :class:`~carag.retrieval.minilm.MiniLm` count, special ones included. Scores do not
    depend on the number of threads. ModelUnavailable if a model file is missing or altered.
    """

    name: Final = "maxsim"
    remote: Final = False
    fingerprint: Final = fingerprint("maxsim", MiniLm.fingerprint, _SCORING)

    def __init__(self, *, threads: int | None = None) -> None:
        self._model = MiniLm(threads=threads)

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts from 0 to 1; InvalidArgument if the question or a text is blank."""
        check_texts(texts)
        asked, *passages = (
            np.concatenate(windows) for windows in self._model.of_windows([question, *texts], unit_rows)
        )
        return [float(np.clip((asked @ one.T).max(axis=1).mean(), 0, 1)) for one in passages]
