"""Ask the service that holds a store, where a command finds it held, and say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.cli._output import warn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import typer

    from carag.errors import StoreLocked
    from carag.policy import Session

__all__ = ["asked_of_holder", "words"]

_SETTINGS: Final = ("embedder", "generator", "ranker", "reranker", "retain", "not_before", "evidence")
"""Options that decide how an engine is opened."""


def words(context: typer.Context, *, all_of_them: bool = False) -> dict[str, object]:
    """Return how a command names the settings of an engine: those that somebody stated, or all."""
    found: dict[str, object] = {}
    for name in _SETTINGS:
        source = context.get_parameter_source(name)
        if name in context.params and (all_of_them or (source is not None and source.name != "DEFAULT")):
            value = context.params[name]
            found[name] = None if value is None else str(value)
    return found


def asked_of_holder(
    context: typer.Context,
    store: Path,
    locked: StoreLocked,
    text: str,
    session: Session,
    *,
    operation: str,
    where: Mapping[str, Any] | None = None,
) -> bytes:
    """Return what the service that holds the store answers; errors as of :func:`carag.service.owner.asked_there`.

    Raises
    ------
    StoreLocked
        The one given, if no service listens in the store.
    """
    from carag.service.owner import asked_there

    found = asked_there(store, operation, text, session, where=where, stated=words(context))
    if found is None:
        raise locked
    warn("the store is held by a running service; asked there")
    return found
