"""Make generators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.generation.bedrock import NovaMicro
from carag.generation.extractive import Extractive
from carag.generation.local import LocalLlama

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.generation.generator import Generator

__all__ = ["GENERATORS", "generator_by_name"]

GENERATORS: Final = ("extractive", "local", "local:PATH", "bedrock:MODEL_ID")
"""The names that :func:`generator_by_name` takes."""


def generator_by_name(name: str, arguments: Mapping[str, object] | None = None) -> Generator:
    """Make a generator with its default settings.

    Parameters
    ----------
    name : str
        ``extractive``; ``local`` or ``local:`` with the path of a GGUF file; ``bedrock:`` with a model id, such
        as ``bedrock:amazon.nova-micro-v1:0``.
    arguments : mapping, optional
        None of these takes any.

    Raises
    ------
    InvalidArgument
        If no generator has that name, or it takes no such argument.
    MissingExtra
        If it needs an extra that is not installed.
    ModelUnavailable
        If its model files are missing.

    Examples
    --------
    >>> generator_by_name("extractive").remote
    False
    """
    if arguments:
        raise InvalidArgument(
            f"the generator {name!r} takes no {', '.join(map(repr, arguments))}; leave it out"
        )
    kind, _, what = name.partition(":")
    if name == "extractive":
        return Extractive()
    if name == "local" or (kind == "local" and what):
        return LocalLlama(what or None)
    if kind == "bedrock" and what:
        return NovaMicro(what)
    raise InvalidArgument(f"there is no generator {name!r}; want one of {', '.join(GENERATORS)}")
