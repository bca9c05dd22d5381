"""Keep an engine's notes in a store: short texts by name, such as the fingerprint of its embedder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import check_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager


CHANGE: Final = "configuration"
"""The note that every change of what is in force replaces, so that each process notices it."""

_NOTE: Final = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class Notes(ABC):
    """The part of :class:`~carag.store.store.CorpusStore` that keeps notes."""

    def meta_get(self, name: str) -> str | None:
        """Return a note, or None."""
        with self._reading() as sql:
            row = sql.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def meta_set(self, name: str, value: str) -> None:
        """Keep one note; see :meth:`meta_update`."""
        self.meta_update({name: value})

    def meta_update(self, notes: Mapping[str, str]) -> None:
        """Keep several notes, all or none; each replaces an older note of the same name.

        Raises InvalidArgument if a name is ``epoch``, which is the store's own, or a name or value is not text.
        """
        for name, value in notes.items():
            check_text("meta name", name)
            check_text(f"meta {name}", value)
        if "epoch" in notes:
            raise InvalidArgument(
                "a note cannot have the name epoch, which the store uses itself; choose another name"
            )
        with self._noting() as sql:
            sql.executemany(_NOTE, notes.items())

    def own_note(self, name: str) -> str:
        """Return the name of a note about a file that only this process has."""
        return name

    def own_get(self, name: str) -> str | None:
        """Return a note about a file of this process, or None."""
        return self.meta_get(self.own_note(name))

    def own_update(self, notes: Mapping[str, str]) -> None:
        """Keep several notes about files of this process; see :meth:`meta_update`."""
        self.meta_update({self.own_note(name): value for name, value in notes.items()})

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let one process at a time change or read what is in force, which takes several transactions."""
        yield

    def standing(self) -> tuple[int, str]:
        """Return the store's last instant and the note :data:`CHANGE`, read by one statement."""
        with self._reading() as sql:
            known, change = sql.execute(
                "SELECT (SELECT coalesce(max(known_at), -1) FROM changes), "
                "coalesce((SELECT value FROM meta WHERE name = ?), '')",
                (CHANGE,),
            ).fetchone()
        return int(known), str(change)

    @abstractmethod
    def _reading(self) -> AbstractContextManager[sqlite3.Connection]: ...

    @abstractmethod
    def _noting(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction that changes no row of documents."""
