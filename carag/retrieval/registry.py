"""Make embedders and rerankers by name, with arguments from a configuration file."""

from __future__ import annotations

from dataclasses import fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carag.errors import InvalidArgument
from carag.extras import require
from carag.limits import quoted
from carag.retrieval.bedrock import BedrockSettings, Cohere, Titan
from carag.retrieval.cross_encoder import CrossEncoder
from carag.retrieval.jina import JinaReranker
from carag.retrieval.maxsim import MaxSim
from carag.retrieval.minilm import MiniLm
from carag.retrieval.openai import OpenAiEmbedder
from carag.retrieval.reranker import own_reranker
from carag.retrieval.sentence_transformers import SentenceTransformerEmbedder
from carag.retrieval.wordllama import StaticWordLlama

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from carag.retrieval.embedder import Embedder
    from carag.retrieval.reranker import Reranker

__all__ = [
    "DEFAULT_EMBEDDER",
    "EMBEDDERS",
    "RERANKERS",
    "any_reranker",
    "embedder_by_name",
    "is_embedder",
    "made",
    "reranker_by_name",
]

_Made = TypeVar("_Made")

DEFAULT_EMBEDDER: Final = "minilm"
"""The best recall@8 within the budgets for latency and ingestion (``bench/embedders/RESULTS.md``)."""

EMBEDDERS: Final = (
    "minilm",
    "wordllama",
    "bedrock:cohere.embed-multilingual-v3",
    "bedrock:amazon.titan-embed-text-v2:0",
    "openai:MODEL",
    "sentence-transformers:PATH_OR_NAME",
)
"""The names that :func:`embedder_by_name` takes; words in capitals are placeholders."""

RERANKERS: Final = ("jina:MODEL", "onnx:FOLDER", "maxsim")
"""The names that :func:`reranker_by_name` takes."""


def embedder_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Embedder:
    """Make one of :data:`EMBEDDERS`.

    - ``arguments``: keyword arguments of its class, such as ``url`` of :class:`~carag.retrieval.openai.OpenAiEmbedder`.

    Raises InvalidArgument if there is no such embedder, or an argument is unknown or missing; ModelUnavailable if its
    model files are missing or altered; MissingExtra if it needs an extra that is not installed.
    """
    what = f"embedder_by_name({name!r}"
    match name.split(":", 1):
        case ["minilm"]:
            require("the embedder minilm", "models")
            return made(name, what, MiniLm, arguments)
        case ["wordllama"]:
            require("the embedder wordllama", "models")
            return made(name, what, StaticWordLlama, arguments)
        case ["bedrock", "cohere.embed-multilingual-v3"]:
            return made(name, what, Cohere, arguments)
        case ["bedrock", "amazon.titan-embed-text-v2:0"]:
            return made(name, what, Titan, arguments)
        case ["openai", model] if model:
            return made(name, what, OpenAiEmbedder, arguments, model)
        case ["sentence-transformers", model] if model:
            return made(name, what, SentenceTransformerEmbedder, arguments, model)
    raise InvalidArgument(f"there is no embedder {quoted(name)}; want one of {', '.join(EMBEDDERS)}")


def is_embedder(name: str) -> bool:
    """Tell whether a name is one of :data:`EMBEDDERS`, with any text for a placeholder."""
    kind, _, model = name.partition(":")
    return name in EMBEDDERS or (kind in ("openai", "sentence-transformers") and model != "")


def reranker_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Reranker:
    """Make one of :data:`RERANKERS`; parameters and errors as for :func:`embedder_by_name`."""
    what = f"reranker_by_name({name!r}"
    match name.split(":", 1):
        case ["jina", model] if model:
            return made(name, what, JinaReranker, arguments, model)
        case ["onnx", folder] if folder:
            require("a reranker in ONNX", "models")
            return made(name, what, CrossEncoder, arguments, folder)
        case ["maxsim"]:
            require("the reranker maxsim", "models")
            return made(name, what, MaxSim, arguments)
    raise InvalidArgument(f"there is no reranker {quoted(name)}; want one of {', '.join(RERANKERS)}")


def any_reranker(given: object) -> Reranker | None:
    """Return the reranker with a name, or a user's own one adapted; None for None."""
    if isinstance(given, str):
        return reranker_by_name(given)
    return None if given is None else own_reranker(given)


def made(
    name: str, what: str, make: Callable[..., _Made], arguments: Mapping[str, object] | None, *given: str
) -> _Made:
    """Call a class with keyword arguments from a configuration file; InvalidArgument for unknown or missing ones.

    A class that takes ``settings`` takes the fields of :class:`~carag.retrieval.bedrock.BedrockSettings` instead.
    """
    parameters = signature(make).parameters
    known = {
        one.name: one.default is Parameter.empty
        for one in parameters.values()
        if one.kind is Parameter.KEYWORD_ONLY and one.name != "settings"
    }
    settings = [one.name for one in fields(BedrockSettings)] if "settings" in parameters else []
    known |= dict.fromkeys(settings, False)
    stated: dict[str, Any] = dict(arguments or {})
    if unknown := [one for one in stated if one not in known]:
        wanted = f"it takes {', '.join(known)}" if known else "it takes no arguments"
        raise InvalidArgument(f"{name} does not take the argument {quoted(unknown[0])}; {wanted}")
    if missing := [one for one, is_needed in known.items() if is_needed and one not in stated]:
        raise InvalidArgument(
            f"{name} needs {', '.join(missing)}; make it with {what}, {{'{missing[0]}': ...}})"
        )
    of_service = {one: stated.pop(one) for one in settings if one in stated}
    if of_service:
        stated["settings"] = BedrockSettings(**of_service)
    return make(*given, **stated)
