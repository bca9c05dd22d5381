"""Make embedders by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.extras import require
from carag.retrieval.bedrock import Cohere
from carag.retrieval.minilm import MiniLm
from carag.retrieval.wordllama import StaticWordLlama

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.retrieval.embedder import Embedder

__all__ = ["DEFAULT_EMBEDDER", "EMBEDDERS", "embedder_by_name"]

DEFAULT_EMBEDDER: Final = "minilm"
"""It has the best recall@8 of those within the budgets for latency and ingestion (``bench/embedders/RESULTS.md``)."""

EMBEDDERS: Final = ("minilm", "wordllama", "bedrock:cohere.embed-multilingual-v3")
"""The names that :func:`embedder_by_name` takes."""


def embedder_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Embedder:
    """Make an embedder with its default settings.

    Parameters
    ----------
    name : str
        One of :data:`EMBEDDERS`.
    arguments : mapping, optional
        None of these takes any.

    Raises
    ------
    InvalidArgument
        If no embedder has that name, or it takes no such argument.
    ModelUnavailable
        If its model files are missing or altered.
    MissingExtra
        If it needs an extra that is not installed.

    Examples
    --------
    >>> embedder_by_name("wordllama").embed_query("total revenue").shape
    (256,)
    """
    if arguments:
        raise InvalidArgument(
            f"the embedder {name!r} takes no {', '.join(map(repr, arguments))}; leave it out"
        )
    match name:
        case "minilm":
            require("the embedder minilm", "models")
            return MiniLm()
        case "wordllama":
            require("the embedder wordllama", "models")
            return StaticWordLlama()
        case "bedrock:cohere.embed-multilingual-v3":
            return Cohere()
    raise InvalidArgument(f"there is no embedder {name!r}; want one of {', '.join(EMBEDDERS)}")
