"""wardowl over its own backend in memory, with its authorizer of names in metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import wardowl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.evaluation.attack import Document


class target:  # noqa: N801 - the factory that a command names
    """A retriever with the defaults."""

    def __init__(self) -> None:
        self._rows = wardowl.InMemoryBackend()
        self._retriever = wardowl.PermissionedRetriever(self._rows, wardowl.MetadataACLAuthorizer())

    def add(self, documents: Sequence[Document]) -> None:
        """Store chunks."""
        self._rows.add([wardowl.Document(one.id, one.text, _label(one.audience)) for one in documents])

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Retrieve as a subject; without a reader, with None in its place."""
        subject = None if as_whom is None else wardowl.Subject(as_whom)
        return [(one.id, one.score) for one in self._retriever.retrieve(query, subject, k=k).hits]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Replace the metadata."""
        self._rows.set_metadata({name: _label(audience)})

    def delete(self, ids: Sequence[str]) -> None:
        """Remove chunks."""
        self._rows.delete(ids)


def _label(audience: frozenset[str]) -> dict[str, list[str]]:
    return {"allowed_users": sorted(audience)}
