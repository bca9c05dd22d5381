"""Hold the documents of which a session may use a passage, at one instant, and read their passages under the policy.

A document without such a passage does not exist here: nothing is counted, named or compared but what is held.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from carag.labelling.naming import named
from carag.retrieval.evidence import Evidence, Topic, Withheld
from carag.retrieval.retriever import Searchable, disagreement, passage_of, shared_with
from carag.retrieval.successors import was_admitted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from carag.policy import Decision, Where
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.catalogue import Catalogue, Understood
    from carag.retrieval.retriever import Retriever, Rows
    from carag.store.values import StoredChunk


T = TypeVar("T")
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
        """Hold the documents that the policy admits, at one instant; no authority has been asked about them."""
        with self.retriever.listing(self.decision, self.where) as rows:
            yield Admitted(self, rows)

    def told(self, of: Callable[[Admitted], T]) -> T:
        """Return what is made of the documents that may be used, at one instant; None if nothing is.

        An authority is asked about all documents, but only once something is made of those that the policy admits: a
        document that it does not allow has then no part in it, and its words are not known.
        """
        with self.admitted() as admitted:
            found = of(admitted)
            if found is None or self.authority is None:
                return found
            admitted.ask(self.authority)
            return of(admitted)


class Admitted:
    """The documents that a session may use, by their numbers in the store.

    Labels that were closed since the instant of the rows do not count, so that what was withdrawn is not named.
    """

    def __init__(self, scope: Scope, rows: Rows) -> None:
        self.scope, self.known_at = scope, rows.known_at
        self._rows, store = rows, scope.collection.store
        self._until = store.known() if scope.decision.known_at is None else rows.known_at
        self._gone = store.labels.closed(after=self.known_at, until=self._until)
        self._authority: Inquiry | None = None

    def ask(self, authority: Inquiry) -> None:
        """From now on, hold only documents that an authority allows."""
        self._authority = authority
        self.__dict__.pop("numbers", None)

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
        admitted = (
            np.unique(self._passages[1])
            if self._gone.size
            else self._rows.words.documents(self._rows.searches)
        )
        return self._allowed(admitted)

    @property
    def ever(self) -> NDArray[np.int64]:
        """(n,) int64, ascending: also those that the session could use at an earlier instant."""
        decision, where = self.scope.decision, self.scope.where
        ended = self.scope.collection.store.labels.ended(decision.as_of, known_at=self.known_at)
        was = [of for of, one in ended if where.admits(one.metadata) and was_admitted(decision, one)]
        return np.union1d(self.numbers, self._allowed(np.unique(np.array(was, np.int64))))

    def _allowed(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._authority is None:
            return numbers
        ids = self.read("documents", numbers).records.ids
        allowed = self._authority.allows(ids)
        return numbers[[one in allowed for one in ids]]

    def read(self, question: str, numbers: NDArray[np.int64] | None = None) -> Understood:
        """Read a question among the documents, or others."""
        return self.scope.collection.catalogue.read(question, self.numbers if numbers is None else numbers)

    def page(self, after: str | None, limit: int) -> tuple[list[int], str | None]:
        """Return the numbers of up to ``limit`` documents in the order of ids, and the last id if there are more."""
        found: list[tuple[str, int]] = []
        later = sorted(one for one in self._named if after is None or one[0] > after)
        for at in range(0, len(later), limit + 1):
            some = later[at : at + limit + 1]
            allowed = self._permitted([id_ for id_, _ in some])
            found += [one for one in some if one[0] in allowed]
            if len(found) > limit:
                return [number for _, number in found[:limit]], found[limit - 1][0]
        return [number for _, number in found], None

    def named(self, id_: str) -> list[int]:
        """Return the number of the document with an id, alone; empty if the session may use no passage of it."""
        return [number for one, number in self._named if one == id_ and one in self._permitted([one])]

    def _permitted(self, ids: Sequence[str]) -> Collection[str]:
        """Ask an authority about the documents that are about to be shown, instead of all of them."""
        return ids if self.scope.authority is None else self.scope.authority.allows(ids)

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
