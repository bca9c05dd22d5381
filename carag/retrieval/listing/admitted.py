"""Hold the documents of which a session may use a passage, at one instant, and read their passages under the policy.

A document without such a passage does not exist here: nothing is counted, named or compared but what is held.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from carag.labelling.naming import named
from carag.retrieval.evidence import Evidence, Topic, Withheld
from carag.retrieval.retriever import Searchable, disagreement, passage_of, shared_with

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from carag.policy import Decision, Where
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.catalogue import Catalogue, Understood
    from carag.retrieval.retriever import Retriever, Rows
    from carag.store.values import StoredChunk


PLAN: Final = "listed"
"""The plan in records of what was found without a search."""


class Catalogued(Searchable, Protocol):
    """A store with the metadata of its documents."""

    @property
    def catalogue(self) -> Catalogue:
        """The metadata."""
        ...


class Scope(NamedTuple):
    """What one request may use of a store, and how it is read."""

    collection: Catalogued
    retriever: Retriever
    decision: Decision
    where: Where
    authority: Inquiry | None

    @contextmanager
    def admitted(self) -> Iterator[Admitted]:
        """Lend the documents that may be used, at one instant, until the context ends."""
        with self.retriever.listing(self.decision, self.where) as rows:
            yield Admitted(self, rows)


class Admitted:
    """The documents that a session may use, by their numbers in the store.

    Labels that were closed since the instant of the rows do not count, so that what was withdrawn is not named.
    """

    def __init__(self, scope: Scope, rows: Rows) -> None:
        self.scope, self.known_at = scope, rows.known_at
        self._rows, store = rows, scope.collection.store
        self._until = store.known() if scope.decision.known_at is None else rows.known_at
        self._gone = store.labels.closed(after=self.known_at, until=self._until)

    @cached_property
    def _passages(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys of labels that admit, and the document of each, in the order of documents and of their passages."""
        words, searches = self._rows.words, self._rows.searches
        found = words.admissible(searches, words.documents(searches))
        is_open = ~np.isin(found.keys, self._gone)
        order = np.lexsort((found.chunks[is_open], found.documents[is_open]))
        return found.keys[is_open][order], found.documents[is_open][order]

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """(n,) int64, ascending."""
        if self._gone.size:
            return np.unique(self._passages[1])
        return self._rows.words.documents(self._rows.searches)

    def read(self, question: str) -> Understood:
        """Read a question among the documents."""
        return self.scope.collection.catalogue.read(question, self.numbers)

    def allowed(self, ids: Iterable[str]) -> Collection[str]:
        """Return those of some documents that an authority outside the store allows."""
        return [*ids] if self.scope.authority is None else self.scope.authority.allows(ids)

    def page(self, after: str | None, limit: int) -> tuple[list[int], str | None]:
        """Return the numbers of up to ``limit`` documents in the order of ids, and the last id if there are more."""
        found: list[tuple[str, int]] = []
        later = sorted(one for one in self._named if after is None or one[0] > after)
        for at in range(0, len(later), limit + 1):
            some = later[at : at + limit + 1]
            allowed = self.allowed(id_ for id_, _ in some)
            found += [one for one in some if one[0] in allowed]
            if len(found) > limit:
                return [number for _, number in found[:limit]], found[limit - 1][0]
        return [number for _, number in found], None

    def named(self, id_: str) -> list[int]:
        """Return the number of the document with an id, alone; empty if the session may use no passage of it."""
        return [number for one, number in self._named if one == id_ and one in self.allowed([one])]

    @property
    def _named(self) -> list[tuple[str, int]]:
        records = self.scope.collection.catalogue.documents(self.numbers)
        return list(zip(records.ids, self.numbers.tolist(), strict=True))

    def firsts(self, numbers: Sequence[int]) -> list[StoredChunk]:
        """Read the first passage of each of some documents, in the order given."""
        keys, of = self._passages
        return self._read(keys[np.searchsorted(of, numbers)].tolist() if len(numbers) else [])

    def whole(self, number: int) -> list[StoredChunk]:
        """Read all passages of one document that may be used, in the document's order."""
        keys, of = self._passages
        return self._read(keys[of == number].tolist())

    def _read(self, keys: Sequence[int]) -> list[StoredChunk]:
        chunks = self.scope.collection.store.chunks(keys, known_at=self._until)
        for one in chunks:  # the store tests again, as for every passage that leaves
            if self.scope.decision.reasons_for(one) or not self.scope.where.admits(one.metadata):
                raise disagreement()
        return chunks

    def evidence(self, chunks: Sequence[StoredChunk], understood: str) -> Evidence:
        """Return passages as evidence, for the record; their similarity is 0, as nothing was compared with them."""
        citation = self.scope.collection.profile.vocabulary.citation
        return Evidence(
            tuple(passage_of(one, 0.0, citation) for one in chunks),
            Withheld(self.scope.decision.withheld),
            PLAN,
            len(self._passages[0]),
            self.known_at if self.known_at >= 0 else None,
            topic=Topic(understood),
            audiences=shared_with(chunks),
        )

    def name(self, chunk: StoredChunk) -> str:
        """Name the document of a passage as citations do, without the passage's place in it, and with its date."""
        stated = {**chunk.stated, "part": "", "id": chunk.document_id}
        name = ", ".join(named(self.scope.collection.profile.vocabulary.citation, stated))
        day = str(stated.get(self.scope.collection.catalogue.declared.dated or "") or "")
        return name if day in name else f"{name}, {day}"
