"""Make embedders and rerankers by name, with arguments from a configuration file."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.extras import require
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.retrieval.embedder import Embedder
    from carag.retrieval.reranker import Reranker


DEFAULT_EMBEDDER: Final = "minilm"
"""The best recall@8 within the budgets for latency and ingestion (``bench/embedders/RESULTS.md``)."""


class Model(NamedTuple):
    """A class of models, imported when a model of it is made."""

    module: str
    name: str
    extra: str = ""
    """The extra that it needs, if that is checked before it is imported."""


_EMBEDDERS: Final = {
    "minilm": Model("carag.retrieval.minilm", "MiniLm", "models"),
    "wordllama": Model("carag.retrieval.wordllama", "StaticWordLlama", "models"),
    "bedrock:cohere.embed-multilingual-v3": Model("carag.retrieval.bedrock", "Cohere"),
    "bedrock:amazon.titan-embed-text-v2:0": Model("carag.retrieval.bedrock", "Titan"),
    "openai:MODEL": Model("carag.retrieval.openai", "OpenAiEmbedder"),
    "sentence-transformers:PATH_OR_NAME": Model(
        "carag.retrieval.sentence_transformers", "SentenceTransformerEmbedder"
    ),
}
EMBEDDERS: Final = tuple(_EMBEDDERS)
"""The names that :func:`embedder_by_name` takes; words in capitals are placeholders."""

_RERANKERS: Final = {
    "jina:MODEL": Model("carag.retrieval.jina", "JinaReranker"),
    "onnx:FOLDER": Model("carag.retrieval.cross_encoder", "CrossEncoder", "models"),
    "maxsim": Model("carag.retrieval.maxsim", "MaxSim", "models"),
}
RERANKERS: Final = tuple(_RERANKERS)
"""The names that :func:`reranker_by_name` takes."""


def embedder_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Embedder:
    """Make one of :data:`EMBEDDERS`.

    - ``arguments``: keyword arguments of its class, such as ``url`` of :class:`~carag.retrieval.openai.OpenAiEmbedder`.

    Raises InvalidArgument if there is no such embedder, or an argument is unknown or missing; ModelUnavailable if its
    model files are missing or altered; MissingExtra if it needs an extra that is not installed.
    """
    embedder: Embedder = made("embedder", name, _EMBEDDERS, arguments)
    return embedder


def is_embedder(name: str) -> bool:
    """Tell whether a name is one of :data:`EMBEDDERS`, with any text for a placeholder."""
    return _meant(name, _EMBEDDERS) is not None


def reranker_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Reranker:
    """Make one of :data:`RERANKERS`; parameters and errors as for :func:`embedder_by_name`."""
    reranker: Reranker = made("reranker", name, _RERANKERS, arguments)
    return reranker


def any_reranker(given: object) -> Reranker | None:
    """Return the reranker with a name, or a user's own one adapted; None for None."""
    if isinstance(given, str):
        return reranker_by_name(given)
    if given is None:
        return None
    from carag.retrieval.reranker import own_reranker

    return own_reranker(given)


def made(kind: str, name: str, known: Mapping[str, Model], arguments: Mapping[str, object] | None) -> Any:
    """Make the model of a kind that a name stands for, with keyword arguments from a configuration file.

    Raises InvalidArgument if ``known`` has no such name, or an argument is unknown or missing.
    """
    found = _meant(name, known)
    if found is None:
        raise InvalidArgument(f"there is no {kind} {quoted(name)}; want one of {', '.join(known)}")
    model, given = found
    if model.extra:
        require(f"the {kind} {name}", model.extra)
    make = getattr(import_module(model.module), model.name)
    return make(*given, **_keywords(kind, name, signature(make).parameters, dict(arguments or {})))


def _meant(name: str, known: Mapping[str, Model]) -> tuple[Model, tuple[str, ...]] | None:
    """Return the model that a name stands for, and the text in the place of a word in capitals; None if unknown."""
    kind, _, text = name.partition(":")
    for one, model in known.items():
        own, _, rest = one.partition(":")
        if rest.isupper():
            if own == kind and text:
                return model, (text,)
        elif one == name:
            return model, ()
    return None


def _keywords(
    kind: str, name: str, parameters: Mapping[str, Parameter], stated: dict[str, Any]
) -> dict[str, Any]:
    """Check arguments against a class; those of a service that it takes as ``settings`` are put together."""
    needed = {
        one.name: one.default is Parameter.empty
        for one in parameters.values()
        if one.kind is Parameter.KEYWORD_ONLY and one.name != "settings"
    }
    settings: list[str] = []
    if "settings" in parameters:
        from carag.retrieval.bedrock import BedrockSettings

        settings = [one.name for one in fields(BedrockSettings)]
        needed |= dict.fromkeys(settings, False)
    if unknown := [one for one in stated if one not in needed]:
        wanted = f"it takes {', '.join(needed)}" if needed else "it takes no arguments"
        raise InvalidArgument(f"{name} does not take the argument {quoted(unknown[0])}; {wanted}")
    if missing := [one for one, is_needed in needed.items() if is_needed and one not in stated]:
        raise InvalidArgument(
            f"{name} needs {', '.join(missing)}; make it with {kind}_by_name({name!r}, {{'{missing[0]}': ...}})"
        )
    if of_service := {one: stated.pop(one) for one in settings if one in stated}:
        stated["settings"] = BedrockSettings(**of_service)
    return stated
