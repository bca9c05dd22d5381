"""Judge stance with your own natural language inference model, from a folder in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.retrieval.cross_encoder import CrossEncoder
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_MEANT: Final = ("entail", "contradict", "neutral")
"""How the names of the three columns begin, in the order of a judge's columns."""


class NliJudge:
    """A :class:`~carag.evaluation.regulatory.ports.StanceJudge`: passages are premises, claims are hypotheses.

    If a passage is longer than the model reads, the part that contradicts most decides.

    Parameters
    ----------
    folder : str
        As for :class:`carag.retrieval.CrossEncoder`, with a ``config.json`` whose ``id2label`` names three columns:
        entailment, contradiction and neutral.

    Raises
    ------
    ModelUnavailable
        If a file is missing or invalid.
    InvalidArgument
        If the columns are different.
    """

    def __init__(self, folder: str) -> None:
        self._model = CrossEncoder(folder, label=0, first="text")
        names = self._model.labels
        places = [
            [at for at, name in enumerate(names) if str(name).lower().startswith(meant)] for meant in _MEANT
        ]
        if len(names) != len(_MEANT) or [len(one) for one in places] != [1, 1, 1]:
            raise InvalidArgument(
                f"the model in {folder} has the columns {quoted(names)}; want entailment, contradiction and neutral, "
                "named in id2label of its config.json"
            )
        self._order = [one[0] for one in places]
        self.name = self._model.name
        self.fingerprint = fingerprint("nli", self._model.fingerprint, *self._order)
        self.remote = False

    def judge(self, claim: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Return ``(n, 3)`` probabilities, in the order of :class:`~carag.evaluation.regulatory.ports.StanceJudge`."""
        rows = self._model.probabilities(claim, passages, decides=self._order[_MEANT.index("contradict")])
        return np.asarray(rows[:, self._order])
