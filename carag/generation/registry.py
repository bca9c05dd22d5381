"""Make generators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.generation.bedrock import NovaMicro
from carag.generation.extractive import Extractive
from carag.generation.local import LocalLlama
from carag.generation.openai import OpenAiGenerator
from carag.limits import quoted
from carag.retrieval import made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.generation.generator import Generator

__all__ = ["GENERATORS", "generator_by_name"]

GENERATORS: Final = ("extractive", "local", "local:PATH", "bedrock:MODEL_ID", "openai:MODEL")
"""The names that :func:`generator_by_name` takes."""


def generator_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Generator:
    """Make a generator.

    Parameters
    ----------
    name : str
        ``extractive``; ``local`` or ``local:`` with the path of a GGUF file; ``bedrock:`` with the id of a model,
        such as ``bedrock:amazon.nova-micro-v1:0``; ``openai:`` with its name on an OpenAI-compatible server.
    arguments : mapping, optional
        Named parameters of its class, such as ``url`` of :class:`~carag.generation.openai.OpenAiGenerator`.

    Raises
    ------
    InvalidArgument
        If no generator has that name, or an argument is unknown or missing.
    MissingExtra
        If it needs an extra that is not installed.
    ModelUnavailable
        If its model files are missing.

    Examples
    --------
    >>> generator_by_name("extractive").remote
    False
    """
    what = f"generator_by_name({name!r}"
    match name.split(":", 1):
        case ["extractive"]:
            return made(name, what, Extractive, arguments)
        case ["local"]:
            return made(name, what, LocalLlama, arguments)
        case ["local", path] if path:
            return made(name, what, LocalLlama, arguments, path)
        case ["bedrock", model] if model:
            return made(name, what, NovaMicro, arguments, model)
        case ["openai", model] if model:
            return made(name, what, OpenAiGenerator, arguments, model)
    raise InvalidArgument(f"there is no generator {quoted(name)}; want one of {', '.join(GENERATORS)}")
