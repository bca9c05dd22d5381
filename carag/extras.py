"""Check that an extra's packages are installed before work starts, so that no import fails in the middle of it.

The packages of an extra are read from CARAG's own metadata, so that ``pyproject.toml`` is the only list.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import TYPE_CHECKING, Final

from carag.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator


_PROJECT: Final = "carag-engine"
_REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[([^]]*)\])?.*; extra == ['\"](.+)['\"]")


def require(what: str, *extras: str) -> None:
    """Raise MissingExtra unless all packages of the extras are installed; the message begins with ``what`` needs them.

    Examples
    --------
    >>> require("the index", "verify")
    """
    absent = {extra: names for extra in extras if (names := [*filter(_absent, _brings(extra))])}
    if absent:
        all_names = dict.fromkeys(name for names in absent.values() for name in names)
        raise MissingExtra(
            f"{what} needs {', '.join(all_names)}; run: pip install '{_PROJECT}[{','.join(absent)}]'"
        )


def _brings(extra: str) -> Iterator[str]:
    for line in _declared():
        if (found := _REQUIREMENT.fullmatch(line)) and found[3] == extra:
            if found[1] == _PROJECT:
                for other in (found[2] or "").split(","):
                    yield from _brings(other)
            else:
                yield found[1]


@cache  # this takes milliseconds, and is asked for with every HTML document
def _declared() -> list[str]:
    try:
        return requires(_PROJECT) or []
    except PackageNotFoundError:  # a source tree on the path, never installed, has no metadata to check
        return []


def _absent(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return True
    return False
