"""Let a package offer names that are imported on first use, so that asking for one does not load all the others."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes`` maps each module below the package to the names that it defines, separated by spaces.

    Examples
    --------
    >>> get, names, offered = lazily("carag", {"errors": "CaragError Refused"})
    >>> get("Refused"), offered
    (<class 'carag.errors.Refused'>, ['CaragError', 'Refused'])
    """
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, found)  # from now on found there without this function
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, names, sorted(home)
