"""Load all chunks of a store with labels and vectors, and decide which of them a session may use.

The reference policy (:mod:`.reference_policy`) of the store's own profile decides once per distinct label and session,
from the labels in the store. No system under test is involved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from carag.engine.corpus import kept_profile
from carag.evaluation.cases.corpus import ChunkLocation
from carag.evaluation.cases.ngram_index import NgramIndex
from carag.evaluation.cases.reference_policy import ReferenceLabel, ReferencePolicy, reference_session
from carag.index import tokenize
from carag.labelling.naming import named
from carag.policy import Profile, as_of_minutes
from carag.retrieval import passage_of
from carag.retrieval.tables import BACK, head_of
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date, datetime
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.policy import Session
    from carag.retrieval import Passage
    from carag.store.values import StoredDocument


_BATCH: Final = 4096
"""Labels read from the store at once."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    chunk_id: str
    key: int  # from its last label in the store
    text: str
    word: int
    document: str
    start: int
    end: int
    filing: StoredDocument
    number: int  # the store's number of the filing


class GroundTruth:
    """All chunks of a store, and who may use which; a *row* is a chunk's position in the order of keys.

    - ``ids``: chunk ids, by row.
    - ``vectors``: unit vectors, by row.
    - ``documents``: the store's number of each chunk's filing.
    - ``filers``: the CIK of each chunk's filing; 0 if none is stated.
    """

    def __init__(self, store: CorpusStore, *, now: datetime) -> None:
        self.store = store
        self.now = now
        self.profile = kept_profile(store) or Profile.open()
        means, roles = self.profile.texts
        self._table = ReferencePolicy(roles, means)
        self._citation = self.profile.vocabulary.citation
        self._admissible: dict[object, NDArray[np.bool_] | None] = {}
        self._with: dict[str, tuple[int, ...]] = {}
        keys = store.labels.open()
        by_id: dict[str, int] = {}
        chunks: list[_Chunk] = []
        vectors: list[NDArray[np.float32]] = []
        labels: dict[ReferenceLabel, list[int]] = {}
        filings: dict[tuple[str, int], StoredDocument] = {}
        self._first: list[ReferenceLabel] = []
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            _, of_batch = store.labels.rows(batch)
            for key, vector, one in zip(batch.tolist(), of_batch, store.chunks(batch), strict=True):
                subjects = frozenset(one.subjects)
                names = self._table.names(one.word)
                label = ReferenceLabel(one.word, names, subjects, one.public_at, one.expires_at)
                row = by_id.setdefault(one.chunk_id, len(chunks))
                labels.setdefault(label, []).append(row)
                name = one.document_id, one.version
                if name not in filings:
                    filings[name] = store.documents.document(one.document_id, version=one.version)
                chunk = _Chunk(
                    *(one.chunk_id, key, one.text, one.word, one.document, one.start, one.end),
                    *(filings[name], one.filing),
                )
                if row == len(chunks):
                    chunks.append(chunk)
                    vectors.append(vector)
                    self._first.append(label)
                else:
                    chunks[row] = chunk
        self._chunks = chunks
        self._labels = {label: np.array(rows, np.int64) for label, rows in labels.items()}
        self.ids = [one.chunk_id for one in chunks]
        self.row_of = by_id
        self.documents = np.array([one.number for one in chunks], np.int64)
        self.vectors = np.vstack(vectors) if vectors else np.empty((0, 1), np.float32)
        self.filers = [one.filing.ciks[0] if one.filing.ciks else 0 for one in chunks]

    @classmethod
    def open(cls, path: Path, *, now: datetime) -> Self:
        """Read the store in a directory."""
        return cls(CorpusStore.open(path / "corpus.db", create=False), now=now)

    def __len__(self) -> int:
        return len(self.ids)

    # --- who may use which chunk ---

    def meant(self, session: Session, question: str) -> frozenset[str]:
        """Return the names of the intents that tighten the masks, including those in the question's words."""
        found = self.profile.vocabulary.intents.found(question)
        return frozenset(map(str, (*session.intents, *found)))

    def admissible(self, session: Session, question: str) -> NDArray[np.bool_] | None:
        """Tell for each chunk whether the session may use it for the question; None if the session is refused."""
        meant = self.meant(session, question)
        key = session.role, session.purpose, session.as_of, session.allow_entities, meant
        if key not in self._admissible:
            self._admissible[key] = self._judge(session, meant)
        return self._admissible[key]

    def _judge(self, session: Session, meant: frozenset[str]) -> NDArray[np.bool_] | None:
        said = reference_session(
            session.role,
            session.purpose,
            as_of=None
            if session.as_of is None
            else as_of_minutes(session.as_of, self.profile.vocabulary.zone),
            allow=session.allow_entities,
            intents=meant,
        )
        now = as_of_minutes(self.now)
        if self._table.refused(said, now=now) is not None:
            return None
        found = np.zeros(len(self), bool)
        for label, rows in self._labels.items():
            if self._table.admits(said, label, now=now):
                found[rows] = True
        return found

    def partition(self, role: str) -> NDArray[np.bool_] | None:
        """Tell for each chunk, by its first label, whether a role may read it for at least one purpose on some day."""
        cells = [key for key in self._table.cells if key[0] == role]
        if not cells:
            return None
        if ("partition", role) not in self._admissible:
            verdicts: dict[ReferenceLabel, bool] = {}
            for label in set(self._first):
                timeless = label._replace(public_at=0, expires_at=1, about=frozenset({1}))
                verdicts[label] = any(
                    self._table.admits(reference_session(*cell, allow={1}), timeless, now=0) for cell in cells
                )
            self._admissible["partition", role] = np.array([verdicts[one] for one in self._first], bool)
        return self._admissible["partition", role]

    # --- text ---

    def passages(self, rows: Iterable[int], similarities: Iterable[float]) -> tuple[Passage, ...]:
        """Fetch passages from the store as the engine does, so that every system spends the same time on it."""
        wanted = list(rows)
        found = self.store.chunks([self._chunks[row].key for row in wanted])
        return tuple(
            passage_of(one, float(similarity), self._citation)
            for one, similarity in zip(found, similarities, strict=True)
        )

    def with_heads(self, passages: Iterable[Passage], mask: NDArray[np.bool_]) -> tuple[Passage, ...]:
        """Give passages the head rows of split tables, taken from the preceding chunks that a mask admits."""
        return tuple(replace(one, head=head_of(one, list(self._before(one, mask)))) for one in passages)

    def _before(self, passage: Passage, mask: NDArray[np.bool_]) -> Iterator[_Chunk]:
        name, _, ordinal = passage.chunk_id.rpartition(":")
        for back in range(1, BACK + 1):
            row = self.row_of.get(f"{name}:{int(ordinal) - back:05d}")
            if row is None or not mask[row]:
                return
            yield self._chunks[row]

    def filing(self, row: int) -> StoredDocument:
        """Return a chunk's filing."""
        return self._chunks[row].filing

    def text(self, row: int) -> str:
        """Return a chunk's text."""
        return self._chunks[row].text

    @cached_property
    def terms(self) -> list[list[str]]:
        """The terms by which each chunk is found, including those of its document's heading."""
        heading = self.profile.vocabulary.heading
        return [
            [*tokenize(" ".join(named(heading, one.filing.stated))), *tokenize(one.text)]
            for one in self._chunks
        ]

    def rows_with(self, text: str) -> tuple[int, ...]:
        """Return the rows of the chunks that contain a text."""
        if text not in self._with:
            self._with[text] = tuple(row for row, one in enumerate(self._chunks) if text in one.text)
        return self._with[text]

    def words(self) -> dict[str, int]:
        """Return each chunk's policy word today, by chunk id."""
        return {one.chunk_id: one.word for one in self._chunks}

    def document(self, row: int) -> str:
        """Return the type of a chunk's document."""
        return self._chunks[row].document

    def names(self, row: int) -> frozenset[str]:
        """Return the names of the bits of a chunk's last label."""
        return self._table.names(self._chunks[row].word)

    @cached_property
    def row_at(self) -> dict[ChunkLocation, int]:
        """Row of the chunk at each location."""
        return {
            ChunkLocation(one.filing.document_id, one.document, one.start): row
            for row, one in enumerate(self._chunks)
        }

    @cached_property
    def rows_of(self) -> dict[str, tuple[int, ...]]:
        """Rows of the chunks of each document, by its id."""
        found: dict[str, list[int]] = {}
        for row, one in enumerate(self._chunks):
            found.setdefault(one.filing.document_id, []).append(row)
        return {name: tuple(rows) for name, rows in found.items()}

    def rows_at(self, places: Sequence[ChunkLocation]) -> tuple[int, ...]:
        """Return the rows of the chunks at some locations, leaving out those that the corpus does not hold."""
        return tuple(self.row_at[place] for place in places if place in self.row_at)

    @cached_property
    def ngrams(self) -> NgramIndex:
        """Index of the chunks by their 8-grams."""
        return NgramIndex([one.text for one in self._chunks])

    def public_day(self, row: int) -> date | None:
        """Return the day on which a chunk's filing was filed; None where unknown."""
        from datetime import date

        filed = self._chunks[row].filing.filed
        return date.fromisoformat(filed) if filed else None
