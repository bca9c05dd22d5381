"""Open what is to be adopted by its address; the package that reads it is imported only then."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.adopting.sources.port import Row, Source, Wanted
from carag.errors import CaragError, InvalidArgument, type_and_place
from carag.extras import require
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["Row", "Source", "Wanted", "source_of"]

_SOURCES: Final = {
    "postgresql": ("pgvector", "postgres"),
    "chroma": ("chroma", "chroma"),
    "qdrant": ("qdrant", "qdrant"),
    "qdrant+tls": ("qdrant", "qdrant"),
    "lancedb": ("lance", "lancedb"),
    "faiss": ("faiss", "faiss"),
}
"""Module here, and the extra that it needs, by what an address begins with."""
_WANTED: Final = (
    "postgresql://ACCOUNT@HOST/DATABASE?table=NAME, chroma:FOLDER, qdrant:FOLDER, qdrant://HOST:PORT/COLLECTION, "
    "lancedb:FOLDER or faiss:FILE?rows=FILE"
)


@contextmanager
def source_of(address: str, wanted: Wanted) -> Iterator[Source]:
    """Open what an address names, to be read only; for a folder, ``?name=`` chooses among several collections.

    Raises
    ------
    InvalidArgument
        If the address is not valid, or what it names cannot be read. The message does not quote the address, which may
        hold a password.
    MissingExtra
        If the package that reads it is not installed.

    Examples
    --------
    >>> with source_of("oracle://me:secret@host", Wanted()):
    ...     pass
    Traceback (most recent call last):
    carag.errors.InvalidArgument: nothing can be adopted from 'oracle'; want postgresql://ACCOUNT@HOST/...
    """
    scheme, colon, rest = address.partition(":")
    if not colon or scheme not in _SOURCES:
        raise InvalidArgument(
            f"nothing can be adopted from {quoted(scheme) if colon else 'this address'}; want {_WANTED}"
        )
    module, extra = _SOURCES[scheme]
    require(f"adopting from {module}", extra)
    is_folder = not rest.startswith("//")
    place, _, asked = rest.partition("?")
    if is_folder and not Path(place).exists():
        raise InvalidArgument(f"{quoted(place)} is not there; want {_WANTED}")
    opened = import_module(f"carag.adopting.sources.{module}").opened
    try:
        with opened(Path(place) if is_folder else address, asked, wanted) as source:
            yield source
    except (CaragError, OSError):
        raise
    except Exception as error:
        # Its own message could hold an address, or rows of the source.
        raise InvalidArgument(
            f"the source cannot be read: {type_and_place(error)}; want {_WANTED}"
        ) from error
