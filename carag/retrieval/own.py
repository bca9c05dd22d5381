"""Adapt a user's own embedder, and check every vector that it gives."""

from __future__ import annotations

from operator import index as as_int
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import CaragError, InvalidArgument, ModelUnavailable
from carag.limits import check_label, quoted
from carag.retrieval.embedder import check_texts, checked_rows
from carag.retrieval.model_files import fingerprint
from carag.retrieval.registry import EMBEDDERS, is_embedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.retrieval.embedder import Embedder


_NEEDED: Final = ("name", "dim", "embed_documents", "embed_query")


def own_embedder(given: object) -> Embedder:
    """Wrap your own embedder so that it keeps what :class:`~carag.retrieval.embedder.Embedder` promises, or raises.

    - ``given``: with ``name`` (str), ``dim`` (int), ``embed_documents(list of str)`` and ``embed_query(str)``, which
      return numbers of shape ``(n, dim)`` and ``(dim,)``. It may have ``remote``, whether texts leave this machine (by
      default they do not), and ``fingerprint``, which must change whenever the vectors may change.

    Raises InvalidArgument if an attribute is missing or invalid, or the name is that of one of CARAG's own embedders.

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
        lacks = f"without {', '.join(missing)}" if missing else "which is a class, not an object"
        raise InvalidArgument(
            f"the embedder is {quoted(given)}, {lacks}; want one of {', '.join(EMBEDDERS)}, or an object with "
            f"{', '.join(_NEEDED)}"
        )
    return OwnEmbedder(given)


class OwnEmbedder:
    """A user's own embedder, whose outputs are checked; made by :func:`own_embedder`.

    If it has both ``fingerprint`` and ``remote`` it is a complete embedder and its fingerprint is kept as it is;
    otherwise the fingerprint is made from name, dim and its own, if any.
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
        if is_embedder(self.name) and not is_complete:
            raise InvalidArgument(
                f"the embedder is called {self.name!r}, like one of CARAG's own, whose gate and stores do not fit it; "
                "give it a different name"
            )
        own = str(stated or "")
        self.fingerprint = own if is_complete else fingerprint("own", self.name, self.dim, own)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        check_texts(texts)
        if not texts:
            return np.empty((0, self.dim), np.float32)
        came = self._called(self._given.embed_documents, list(texts))
        return checked_rows(self.name, came, (len(texts), self.dim))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        check_texts([text])
        came = self._called(self._given.embed_query, text)
        return checked_rows(self.name, came, (self.dim,)).reshape(self.dim)

    def _called(self, call: Callable[[Any], Any], what: list[str] | str) -> Any:
        try:
            return call(what)
        except CaragError:
            raise
        except Exception as error:
            raise ModelUnavailable(f"the embedder {self.name!r} raised {type(error).__name__}") from error
