"""Adapt an embedder of the caller's own, and check every vector that it gives."""

from __future__ import annotations

from operator import index as as_int
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import CaragError, InvalidArgument, ModelUnavailable
from carag.limits import check_label, quoted
from carag.retrieval.embedder import check_texts
from carag.retrieval.model_files import fingerprint
from carag.retrieval.registry import EMBEDDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.retrieval.embedder import Embedder

__all__ = ["OwnEmbedder", "own_embedder"]

_NEEDED: Final = ("name", "dim", "embed_documents", "embed_query")
_UNIT: Final = 1e-5
"""Greatest difference of a row's length from 1 that is rounding; such rows stay as they are, bit for bit."""


def own_embedder(given: object) -> Embedder:
    """Return an embedder that gives what :class:`~carag.retrieval.embedder.Embedder` promises, or raises.

    Parameters
    ----------
    given : object
        With ``name`` (str), ``dim`` (int), ``embed_documents(list of str)`` and ``embed_query(str)``, which return
        numbers of shape ``(n, dim)`` and ``(dim,)``. It may have ``remote``, whether texts leave this machine (False
        if it has not), and ``fingerprint``, which must change whenever its vectors may.

    Raises
    ------
    InvalidArgument
        If an attribute is missing or not of its kind, or the name is that of one of CARAG's own embedders.

    Examples
    --------
    >>> class Letters:
    ...     name, dim = "letters", 2
    ...     def embed_documents(self, texts):
    ...         return [[len(text), text.count("e")] for text in texts]
    ...     def embed_query(self, text):
    ...         return self.embed_documents([text])[0]
    >>> own_embedder(Letters()).embed_documents(["three", "four"]).shape
    (2, 2)
    """
    if isinstance(given, OwnEmbedder):
        return given
    missing = [name for name in _NEEDED if not hasattr(given, name)]
    if missing or isinstance(given, type):
        lacks = f"without {', '.join(missing)}" if missing else "a class and not an object of it"
        raise InvalidArgument(
            f"the embedder is {quoted(given)}, {lacks}; want one of {', '.join(EMBEDDERS)}, or an object with "
            f"{', '.join(_NEEDED)}"
        )
    return OwnEmbedder(given)


class OwnEmbedder:
    """An embedder of the caller's own, whose outputs are checked; see :func:`own_embedder`.

    One that has both ``fingerprint`` and ``remote`` is a complete embedder, and its fingerprint is kept as it is;
    otherwise the fingerprint is made of name, dim and its own, if it has one.
    """

    def __init__(self, given: Any) -> None:
        self._given = given
        check_label("the embedder's name", given.name)
        self.name = str(given.name)
        try:
            self.dim = as_int(given.dim)
        except TypeError:
            self.dim = 0
        if self.dim < 1:
            raise InvalidArgument(f"the embedder {self.name!r} has dim {quoted(given.dim)}; want 1 or more")
        self.remote = bool(getattr(given, "remote", False))
        stated = getattr(given, "fingerprint", None)
        if stated is not None:
            check_label(f"the fingerprint of the embedder {self.name!r}", stated)
        is_complete = stated is not None and hasattr(given, "remote")
        if self.name in EMBEDDERS and not is_complete:
            raise InvalidArgument(
                f"the embedder is called {self.name!r}, as one of CARAG's own, whose gate and stores are not for it; "
                "give it another name"
            )
        own = str(stated or "")
        self.fingerprint = own if is_complete else fingerprint("own", self.name, self.dim, own)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store; see :class:`~carag.retrieval.embedder.Embedder`."""
        check_texts(texts)
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return self._unit(self._called(self._given.embed_documents, list(texts)), (len(texts), self.dim))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question; see :class:`~carag.retrieval.embedder.Embedder`."""
        check_texts([text])
        vector: NDArray[np.float32] = self._unit(
            self._called(self._given.embed_query, text), (self.dim,)
        ).reshape(self.dim)
        return vector

    def _called(self, call: Callable[[Any], Any], what: list[str] | str) -> Any:
        try:
            return call(what)
        except CaragError:
            raise
        except Exception as error:
            raise ModelUnavailable(f"the embedder {self.name!r} raised {type(error).__name__}") from error

    def _unit(self, came: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Check what came against the shape that must come, and return it as unit rows."""
        try:
            vectors = np.asarray(came)
        except ValueError as error:  # rows of different lengths
            raise InvalidArgument(f"the embedder {self.name!r} gave no array: {error}") from error
        if vectors.shape != shape or vectors.dtype.kind not in "fiu":
            raise InvalidArgument(
                f"the embedder {self.name!r} gave {vectors.dtype} of shape {vectors.shape}; want numbers of "
                f"shape {shape}"
            )
        rows = np.atleast_2d(vectors.astype(np.float64))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if bad := np.flatnonzero(~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))).tolist():
            raise InvalidArgument(
                f"the embedder {self.name!r} gave rows {bad[:5]} that are zero or not finite, and so no direction"
            )
        are_units = np.abs(lengths - 1) <= _UNIT
        return np.where(are_units, rows, rows / lengths).astype(np.float32)
