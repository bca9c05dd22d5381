"""The interface of readers, and an adapter that checks what a user's own one returns.

A reader here is a model that judges texts; what reads files to documents is in :mod:`carag.readers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.retrieval.reranker import OwnScorer

if TYPE_CHECKING:
    from collections.abc import Sequence


_NEEDED: Final = ("name", "holds")


class Reader(Protocol):
    """Tells how likely each of some texts answers a question.

    It may have two more attributes. ``threshold`` is the least score that answers, from 0 to 1; by default it is what
    the store's profile states for its name. ``every_language`` says that it reads more than English; by default it is
    asked only questions in English.

    Examples
    --------
    >>> class Shares:
    ...     name, remote, fingerprint, threshold = "shares", False, "1", 0.5
    ...     def holds(self, question, texts):
    ...         asked = set(question.lower().split())
    ...         return [len(asked & set(text.lower().split())) / len(asked) for text in texts]
    >>> Shares().holds("records kept", ["Records are kept.", "Records"])
    [0.5, 0.5]
    """

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

    def holds(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return for each text how likely it is, from 0 to 1, that it answers the question.

        Raises ModelUnavailable if the model cannot be reached or fails; then the question fails too.
        """
        ...


def own_reader(given: object) -> OwnReader:
    """Wrap a reader so that it keeps what :class:`Reader` promises, or raises.

    - ``given``: with ``name`` (str) and ``holds(question, list of str)``; it may have ``remote``, ``fingerprint``,
      ``threshold`` and ``every_language``.

    Raises InvalidArgument if an attribute is missing or invalid.

    Examples
    --------
    >>> class Always:
    ...     name, threshold = "always", 0.5
    ...     def holds(self, question, texts):
    ...         return [1] * len(texts)
    >>> own_reader(Always()).holds("Who?", ["A.", "B."])
    [1.0, 1.0]
    """
    if isinstance(given, OwnReader):
        return given
    if isinstance(given, type) or not all(hasattr(given, name) for name in _NEEDED):
        raise InvalidArgument(
            f"the reader is {quoted(given)}; want one from reader_by_name, or an object with {', '.join(_NEEDED)}"
        )
    return OwnReader(given)


class OwnReader(OwnScorer):
    """A reader whose scores are checked; made by :func:`own_reader`."""

    def __init__(self, given: Any) -> None:
        super().__init__(given, "reader", "holds")
        self.threshold = checked_threshold(getattr(given, "threshold", None))
        self.every_language = bool(getattr(given, "every_language", False))

    def holds(self, question: str, texts: Sequence[str]) -> list[float]:
        """Judge texts; InvalidArgument unless the reader gave a number from 0 to 1 for each."""
        scores = self.scores(question, texts)
        if bad := [one for one in scores if not 0 <= one <= 1]:
            raise InvalidArgument(
                f"the reader {self.name!r} gave the score {bad[0]}; want numbers from 0 to 1"
            )
        return scores


def checked_threshold(given: object) -> float | None:
    """Return a threshold; InvalidArgument unless it is a number from 0 to 1, or None."""
    if given is None:
        return None
    if type(given) not in (int, float) or not 0 <= given <= 1:  # type: ignore[operator] # one of the two types
        raise InvalidArgument(f"the reader's threshold is {quoted(given)}; want a number from 0 to 1")
    return float(given)  # type: ignore[arg-type] # checked above
