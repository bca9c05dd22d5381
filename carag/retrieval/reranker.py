"""Define the interface of rerankers, and adapt one of the caller's own whose scores are checked.

A reranker reads the question with each passage, and so orders passages better than vectors that were made apart. It
sees admissible passages alone and only orders them: it can add none, and how many are returned does not depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from carag.errors import CaragError, InvalidArgument, ModelUnavailable
from carag.limits import check_label, quoted
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OwnReranker", "Reranker", "checked_scores", "own_reranker", "pool_size"]

_NEEDED: Final = ("name", "rerank")
_POOL: Final = 4
"""Passages that a reranker reads for each that is returned. It can lift only what it reads, and its time grows with
that: 32 for the 8 of a question."""
_LEAST_POOL: Final = 20
"""Passages that it reads at least: four times one or two passages would leave it hardly a choice."""


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
        """A hash of all that a score depends on except question and text."""
        ...

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite number for each text, greater for a better one.

        Raises
        ------
        ModelUnavailable
            If the model cannot be reached or fails. No other order takes its place.
        """
        ...


def pool_size(k: int) -> int:
    """Return how many passages a reranker reads so that ``k`` are returned.

    Examples
    --------
    >>> pool_size(1), pool_size(8)
    (20, 32)
    """
    return max(_POOL * k, _LEAST_POOL)


def own_reranker(given: object) -> Reranker:
    """Return a reranker that gives what :class:`Reranker` promises, or raises.

    Parameters
    ----------
    given : object
        With ``name`` (str) and ``rerank(question, list of str)``, which returns one number for each text, greater for a
        better one. It may have ``remote``, whether they leave this machine (False if it has not), and ``fingerprint``.

    Raises
    ------
    InvalidArgument
        If an attribute is missing or not of its kind.

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
            f"the reranker is {quoted(given)}; want what reranker_by_name makes, or an object with {', '.join(_NEEDED)}"
        )
    return OwnReranker(given)


class OwnReranker:
    """A reranker of the caller's own, whose scores are checked; see :func:`own_reranker`."""

    def __init__(self, given: Any) -> None:
        self._given = given
        check_label("the reranker's name", given.name)
        stated = getattr(given, "fingerprint", None)
        if stated is not None:
            check_label(f"the fingerprint of the reranker {given.name!r}", stated)
        self.name = str(given.name)
        self.remote = bool(getattr(given, "remote", False))
        self.fingerprint = str(stated) if stated else fingerprint("own", self.name)
        check_label(
            "the reranker's name and fingerprint, which are one entry of a record,",
            f"{self.name} {self.fingerprint}",
        )

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts; see :class:`Reranker`."""
        try:
            came = self._given.rerank(question, list(texts))
        except CaragError:
            raise
        except Exception as error:
            raise ModelUnavailable(f"the reranker {self.name!r} raised {type(error).__name__}") from error
        return checked_scores(self.name, came, len(texts))


def checked_scores(name: str, came: Any, count: int) -> list[float]:
    """Return what a reranker gave as finite numbers, one a text.

    Raises
    ------
    InvalidArgument
        If it is anything else.
    """
    try:
        scores = np.asarray(came)
    except ValueError as error:
        raise InvalidArgument(f"the reranker {name!r} gave no array: {error}") from error
    if scores.shape != (count,) or scores.dtype.kind not in "fiu":
        raise InvalidArgument(
            f"the reranker {name!r} gave {scores.dtype} of shape {scores.shape}; want {count} numbers"
        )
    if not np.isfinite(scores).all():
        raise InvalidArgument(f"the reranker {name!r} gave a score that is not finite")
    return [float(score) for score in scores]
