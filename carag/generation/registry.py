"""Make generators and readers by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.retrieval.registry import Model, made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.generation.generator import Generator
    from carag.generation.reader.port import Reader


_GENERATORS: Final = {
    "extractive": Model("carag.generation.extractive", "Extractive"),
    "local": Model("carag.generation.local", "LocalLlama"),
    "local:PATH": Model("carag.generation.local", "LocalLlama"),
    "bedrock:MODEL_ID": Model("carag.generation.bedrock", "NovaMicro"),
    "openai:MODEL": Model("carag.generation.openai", "OpenAiGenerator"),
}
GENERATORS: Final = tuple(_GENERATORS)
"""The names that :func:`generator_by_name` takes."""

_READERS: Final = {
    "carag-reader-1": Model("carag.generation.reader.minilm", "MiniLmReader"),
    "onnx:FOLDER": Model("carag.generation.reader.onnx", "OnnxReader", "models"),
}
READERS: Final = tuple(_READERS)
"""The names that :func:`reader_by_name` takes."""


def generator_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Generator:
    """Make a generator.

    Parameters
    ----------
    name : str
        ``extractive``; ``local`` or ``local:`` with the path of a GGUF file; ``bedrock:`` with the id of a model,
        such as ``bedrock:amazon.nova-micro-v1:0``; ``openai:`` with the name of a model on an OpenAI-compatible server.
    arguments : mapping, optional
        Named parameters of the generator's class, such as ``url`` of :class:`~carag.generation.openai.OpenAiGenerator`.

    Raises
    ------
    InvalidArgument
        If no generator has that name, or an argument is unknown or missing.
    MissingExtra
        If the generator needs an extra that is not installed.
    ModelUnavailable
        If the generator's model files are missing.

    Examples
    --------
    >>> generator_by_name("extractive").remote
    False
    """
    generator: Generator = made("generator", name, _GENERATORS, arguments)
    return generator


def reader_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Reader:
    """Make one of :data:`READERS`; parameters and errors as for :func:`generator_by_name`.

    Examples
    --------
    >>> reader_by_name("carag-reader-1", {"threshold": 0.5}).remote
    False
    """
    reader: Reader = made("reader", name, _READERS, arguments)
    return reader
