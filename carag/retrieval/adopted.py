"""Stand in for the model that made vectors elsewhere, for a store that adopts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import check_label
from carag.retrieval.model_files import fingerprint
from carag.retrieval.registry import is_embedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class AdoptedEmbedder:
    """The embedder of a store whose vectors were made elsewhere; pass it to :meth:`carag.Engine.open`.

    Without ``encode`` the store takes vectors, and refuses questions and documents without vectors. ``encode`` can be
    given whenever the store is opened.

    Parameters
    ----------
    name : str
        The model that made the vectors; documents state it as :attr:`carag.Document.embedded_by`.
    dim : int
        The number of components of a vector.
    encode : callable, optional
        Returns the vector of one text, as ``(dim,)`` numbers.
    version : str
        What tells the vectors of this model from those of another with its name. Name, ``dim`` and ``version`` make the
        fingerprint, which never changes in a store.
    remote : bool
        Whether ``encode`` sends texts to another machine.

    Raises
    ------
    InvalidArgument
        If it has the name of one of CARAG's own embedders.

    Examples
    --------
    >>> AdoptedEmbedder("mpnet", 2).embed_query("When?")
    Traceback (most recent call last):
    carag.errors.InvalidArgument: this store holds vectors of 'mpnet', made elsewhere, and nothing here can embed ...
    >>> AdoptedEmbedder("mpnet", 2, encode=lambda text: [len(text), 1]).embed_query("When?")
    [5, 1]
    """

    def __init__(
        self,
        name: str,
        dim: int,
        *,
        encode: Callable[[str], Any] | None = None,
        version: str = "",
        remote: bool = False,
    ) -> None:
        check_label("the name of the model that made the vectors", name)
        if is_embedder(name):
            raise InvalidArgument(
                f"{name!r} is one of CARAG's own embedders; open the store with embedder={name!r}, or give the model "
                "that made the vectors a different name"
            )
        self.name, self.dim, self.remote, self._encode = name, dim, remote, encode
        self.fingerprint = fingerprint("adopted", name, dim, version)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Embed passages that come without vectors."""
        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        """Embed a question."""
        if self._encode is None:
            raise InvalidArgument(
                f"this store holds vectors of {self.name!r}, made elsewhere, and nothing here can embed a text; open "
                f"it with embedder=AdoptedEmbedder({self.name!r}, {self.dim}, encode=...), which calls this model"
            )
        return self._encode(text)
