"""The interface of rerankers, and an adapter that checks the scores of a user's own one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from carag.errors import CaragError, InvalidArgument, ModelUnavailable
from carag.limits import check_label, quoted
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence


_NEEDED: Final = ("name", "rerank")
_POOL: Final = 4
"""Passages that a reranker reads for each one returned: 32 for the usual 8. A reranker can move up only what it reads,
and its time grows with the number."""
_LEAST_POOL: Final = 20
"""The fewest passages that it reads: with four or eight it would have little choice."""


class Reranker(Protocol):
    """Scores texts by how well each answers a question."""

    @property
    def name(self) -> str:
        """A stable name for records."""
        ...

    @property
    def remote(self) -> bool:
        """Whether question and texts leave this machine."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything that a score depends on except question and text."""
        ...

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite number for each text, greater for a better one.

        Raises ModelUnavailable if the model cannot be reached or fails; no other order replaces it.
        """
        ...


def pool_size(k: int) -> int:
    """Return how many passages a reranker reads so that ``k`` are returned."""
    return max(_POOL * k, _LEAST_POOL)


def own_reranker(given: object) -> Reranker:
    """Wrap your own reranker so that it keeps what :class:`Reranker` promises, or raises.

    - ``given``: with ``name`` (str) and ``rerank(question, list of str)``, which returns one number for each text,
      greater for a better one. It may have ``remote``, whether question and texts leave this machine (by default they
      do not), and ``fingerprint``.

    Raises InvalidArgument if an attribute is missing or invalid.

    Examples
    --------
    >>> class Shortest:
    ...     name = "shortest"
    ...     def rerank(self, question, texts):
    ...         return [-len(text) for text in texts]
    >>> own_reranker(Shortest()).rerank("Who?", ["long", "a"])
    [-4.0, -1.0]
    """
    if isinstance(given, OwnReranker):
        return given
    if isinstance(given, type) or not all(hasattr(given, name) for name in _NEEDED):
        raise InvalidArgument(
            f"the reranker is {quoted(given)}; want one from reranker_by_name, or an object with {', '.join(_NEEDED)}"
        )
    return OwnReranker(given)


class OwnScorer:
    """A user's own model that scores texts beside a question, whose scores are checked.

    - ``kind``: what it is called in messages.
    - ``method``: the name of the method of ``given`` that scores.
    """

    def __init__(self, given: Any, kind: str, method: str) -> None:
        self._score = getattr(given, method)
        self._kind = kind
        check_label(f"the {kind}'s name", given.name)
        stated = getattr(given, "fingerprint", None)
        if stated is not None:
            check_label(f"the fingerprint of the {kind} {given.name!r}", stated)
        self.name = str(given.name)
        self.remote = bool(getattr(given, "remote", False))
        self.fingerprint = str(stated) if stated else fingerprint("own", self.name)
        check_label(
            f"the {kind}'s name and fingerprint, which share one field of a record,",
            f"{self.name} {self.fingerprint}",
        )

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts."""
        try:
            came = self._score(question, list(texts))
        except CaragError:
            raise
        except Exception as error:
            raise ModelUnavailable(f"the {self._kind} {self.name!r} raised {type(error).__name__}") from error
        return checked_scores(f"the {self._kind} {self.name!r}", came, len(texts))


class OwnReranker(OwnScorer):
    """A user's own reranker, whose scores are checked; made by :func:`own_reranker`."""

    def __init__(self, given: Any) -> None:
        super().__init__(given, "reranker", "rerank")

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts."""
        return self.scores(question, texts)


def checked_scores(what: str, came: Any, count: int) -> list[float]:
    """Return a model's output as finite numbers, one for each text; InvalidArgument if it is anything else."""
    try:
        scores = np.asarray(came)
    except ValueError as error:
        raise InvalidArgument(f"the output of {what} is not an array: {error}") from error
    if scores.shape != (count,) or scores.dtype.kind not in "fiu":
        raise InvalidArgument(f"{what} gave {scores.dtype} of shape {scores.shape}; want {count} numbers")
    if not np.isfinite(scores).all():
        raise InvalidArgument(f"{what} gave a score that is not finite; want finite numbers")
    return [float(score) for score in scores]
