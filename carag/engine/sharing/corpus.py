"""Open the documents of a store, wherever they are: in its directory, or in PostgreSQL for several processes."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from carag.audit._files import write_atomically
from carag.audit._notes import SHARED_AT, remembered
from carag.store.postgres import PostgresStore
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_CORPUS: Final = "corpus.db"
_OWN: Final = "shared.id"
"""The file that tells the notes about this directory's own files from those of other directories, on any machine."""


def has_store(directory: Path) -> bool:
    """Tell whether a directory has a store, its own or a shared one."""
    return (directory / _CORPUS).exists() or (directory / SHARED_AT).exists()


def open_corpus(
    directory: Path, *, create: bool = False, clock: Callable[[], int] | None = None
) -> CorpusStore:
    """Open the documents of a store, from the file in its directory or shared."""
    more: dict[str, Any] = {} if clock is None else {"clock": clock}
    if (address := remembered(directory, SHARED_AT)) is None:
        return CorpusStore.open(directory / _CORPUS, create=create, **more)
    file = directory / SHARED_AT
    return PostgresStore(address.url, address.schema, file, own=_own(directory), **more)


def _own(directory: Path) -> str:
    file = directory / _OWN
    if not file.exists():
        write_atomically(file, secrets.token_hex(16).encode("ascii"))
    return file.read_text("ascii")
