"""Make an embedder, a generator, a reranker or a reader from its name: one of CARAG's, or your own ``module:factory``.

Pass only names that the caller gives, never one that a store keeps, because importing runs code.
"""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from carag.errors import CaragError, InvalidArgument, type_and_place
from carag.generation import (
    GENERATORS,
    READERS,
    generator_by_name,
    own_generator,
    own_reader,
    reader_by_name,
)
from carag.limits import quoted
from carag.retrieval import (
    EMBEDDERS,
    RERANKERS,
    embedder_by_name,
    own_embedder,
    own_reranker,
    reranker_by_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import TypeAlias

    from carag.generation import Generator, Reader
    from carag.retrieval import Embedder, Reranker

    _Model: TypeAlias = Embedder | Generator | Reranker | Reader


_FACTORY: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_KINDS: Final = {name.partition(":")[0] for name in (*EMBEDDERS, *GENERATORS, *RERANKERS, *READERS)}
"""Prefixes before the colon in names of CARAG's own models; no module is looked for under these."""
_OWN: Final[Mapping[str, Callable[[object], _Model]]] = {
    "embedder": own_embedder,
    "generator": own_generator,
    "reranker": own_reranker,
    "passage_reader": own_reader,
}
_BY_NAME: Final[Mapping[str, Callable[[str, Mapping[str, object] | None], _Model]]] = {
    "embedder": embedder_by_name,
    "generator": generator_by_name,
    "reranker": reranker_by_name,
    "passage_reader": reader_by_name,
}


def is_factory(name: str) -> bool:
    """Tell whether a name is ``module:factory``, which stands for code outside CARAG."""
    found = _FACTORY.fullmatch(name)
    return found is not None and found[1] not in _KINDS


def made_by_name(
    what: Literal["embedder", "generator", "reranker", "passage_reader"],
    name: str,
    arguments: Mapping[str, object] | None = None,
    *,
    not_in: str | PathLike[str] | None = None,
) -> _Model:
    """Make an embedder, a generator, a reranker or a reader; no module is imported from ``not_in``, such as a store."""
    if is_factory(name):
        made = _made(what, name, dict(arguments or {}), not_in)
        return _OWN[what](made)
    return _BY_NAME[what](name, arguments)


def imported(what: str, name: str, *, not_in: str | PathLike[str] | None = None) -> Callable[..., Any]:
    """Import ``module:function`` and return the function."""
    if not is_factory(name):
        raise InvalidArgument(f"the {what} is {quoted(name)}; want MODULE:FUNCTION")
    where, _, attribute = name.partition(":")
    if not_in is not None:
        check_outside(name, where.partition(".")[0], Path(not_in).resolve())
    found: Callable[..., Any] | None = getattr(
        _called(f"importing {where}", name, importlib.import_module, where), attribute, None
    )
    if not callable(found):
        raise InvalidArgument(
            f"the {what} {name}: {where} has no callable {attribute}; want a class or a function"
        )
    return found


def _made(what: str, name: str, arguments: dict[str, Any], not_in: str | PathLike[str] | None) -> object:
    factory = imported(what.replace("_", " "), name, not_in=not_in)
    return _called(f"{factory.__name__}()", name, factory, **arguments)


def _called(doing: str, name: str, call: Callable[..., Any], *given: object, **arguments: object) -> Any:
    try:
        return call(*given, **arguments)
    except CaragError:
        raise
    except (Exception, SystemExit) as error:
        # The error's message could hold a key that the factory was given; that of an import error cannot.
        why = str(error) if isinstance(error, ModuleNotFoundError) else type_and_place(error)
        raise InvalidArgument(
            f"{quoted(name)}: {doing} raised {why}; want a module on sys.path, such as PYTHONPATH"
        ) from error


def check_outside(name: str, package: str, store: Path) -> None:
    """Refuse a module in a store's directory before any of its code runs: only a parent package would be imported."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return
    places = [
        *(spec.submodule_search_locations or ()),
        *([spec.origin] if spec.has_location and spec.origin else ()),
    ]
    if any(Path(place).resolve().is_relative_to(store) for place in places):
        raise InvalidArgument(
            f"{quoted(name)}: {package} is inside the store {store}, and code from a store is never run; install it "
            "elsewhere"
        )
