"""What a run needs, asked for before it makes a directory, spends a dollar or builds a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.evaluation.corpus import source_of
from carag.extras import require

if TYPE_CHECKING:
    from carag.evaluation.run import Settings

__all__ = ["check"]

_BRINGS: Final = {"minilm": "models", "wordllama": "models", "local": "local", "bedrock": "bedrock"}
"""Which extra serves a model, by the first part of its name."""


def check(settings: Settings) -> None:
    """Ask for packages and data; a model's own files are asked for by the model.

    Raises
    ------
    MissingExtra
        If a package is not installed; the message has the one command that installs all.
    InvalidArgument
        If the corpus is unknown, or its filings are missing.
    """
    models = (str(name).partition(":")[0] for name in (settings.embedder, settings.model))
    require("the benchmark", "bench", *dict.fromkeys(_BRINGS[name] for name in models if name in _BRINGS))
    source_of(settings.size, settings.data)
