"""Write documents to a store, or withdraw them, and bring the collection up to the store; every store's only writer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from carag.engine.collection import no_progress
from carag.engine.results import IngestReport
from carag.errors import InvalidArgument
from carag.labelling.labelled import NotMade
from carag.labelling.naming import named
from carag.labelling.stated import stated_documents
from carag.limits import ERASED, check_id, quoted
from carag.policy import Audience
from carag.policy.audience import is_group, one_spelling
from carag.retrieval import headed
from carag.retrieval.embedder import checked_rows
from carag.store._audiences import other_spelling
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from carag.engine.collection import Collection, Progress
    from carag.labelling.document import Document
    from carag.labelling.labelled import Facts, LabelledDocument, Made
    from carag.labelling.lifecycle import StateSpan
    from carag.labelling.stated import StatedDocument
    from carag.retrieval import Embedder
    from carag.store._transaction import Transaction
    from carag.store.store import CorpusStore
    from carag.store.values import StoredDocument


_logger = logger(__name__)

_EMBED_BATCH: Final = 2048
"""How many passages are embedded together; waiting documents are stored when they have this many."""
_LISTED_BATCH: Final = 4096
"""How many documents without text one transaction stores."""


class Given(Protocol):
    """A document that was read and labelled, and is stored unless the store has it already."""

    @property
    def document(self) -> LabelledDocument:
        """Its label, from what this source states; a document with text is unchanged if its content hash is stored."""

    @property
    def has_text(self) -> bool:
        """Whether its text is known, or only facts."""

    def made(self, known: Facts | None) -> Made | NotMade | None:
        """Make its rows, given the facts that the store has about it; None if it brings nothing new."""


class Kind(NamedTuple):
    """A kind of reader, which makes the rows of a store."""

    reader: str
    """The store's note of it."""
    histories: Callable[[Iterable[Facts]], Mapping[str, tuple[StateSpan, ...]]]
    """Computes, by document id, what documents do to one another, from facts as the store keeps them."""
    removed: Callable[[StoredDocument], LabelledDocument]
    """Makes the version of a document without passages, whose effects on other documents stay."""
    remnant: Callable[[StoredDocument, str], tuple[Facts, Sequence[int]]]
    """Makes the facts that stay of an erased document, under its new name, and the numbers that it is linked by."""
    at_once: int = _EMBED_BATCH
    """Documents with text stored in one transaction, at most."""


def never() -> bool:
    """Return False: nothing stops a run."""
    return False


def write(
    collection: Collection,
    kind: Kind,
    given: Iterable[tuple[int, Given | NotMade]],
    *,
    hashes: Mapping[str, str] | None = None,
    total: int = 0,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
) -> IngestReport:
    """Store what is new or changed, in the order given, and bring the collection up to the store.

    ``given`` pairs each document with how much of ``total`` has been read; a total of 0 is not shown. ``hashes`` are
    the content hashes of the stored documents, if they were asked for at once. ``stop`` is asked before each document
    is stored; those that wait to be embedded are then left out.
    """
    _logger.info("ingest begins, with %d rows", len(collection.index))
    with collection.writing(kind.reader):
        writer = _Writer(
            collection, kind, collection.store.documents.content_hash if hashes is None else hashes.get
        )
        for done, one in given:
            if total:
                progress("filings", done, total, writer.note)
            if isinstance(one, NotMade):
                writer.reject(one)
            elif stop():
                break
            else:
                writer.add(one)
        else:
            writer.flush()
        collection.refresh(progress)
    report = writer.report
    _logger.info(
        "ingest ends: %d added, %d changed, %d unchanged, %d events, %d problems, %d quarantined",
        *(report.added, report.changed, report.unchanged, report.events),
        *(len(report.problems), report.newly_quarantined),
    )
    return report


class _Writer:
    def __init__(self, collection: Collection, kind: Kind, hash_of: Callable[[str], str | None]) -> None:
        self._collection, self._store = collection, collection.store
        self._kind, self._hash_of = kind, hash_of
        self.report = IngestReport()
        self._waiting: dict[str, Made] = {}
        """By id; if several of them state facts about one document, the last has the facts of the others."""
        self._has_text = True
        self._chunks = 0

    @property
    def note(self) -> str:
        """How much was read."""
        waiting = len(self._waiting) if self._has_text else 0
        return f"{self.report.filings + waiting} read, {self.report.chunks + self._chunks} chunks"

    def add(self, one: Given) -> None:
        """Store a document, or let it wait for others; the store gets them in the order in which they are given."""
        if one.has_text is not self._has_text:
            self.flush()
            self._has_text = one.has_text
        id_, report = one.document.document_id, self.report
        stored = self._hash_of(id_) if one.has_text else ""
        if stored == one.document.content_hash and one.has_text:
            report.unchanged += 1
            return
        known = self._waiting[id_].document.facts if id_ in self._waiting else None
        if known is None and stored is not None:
            known = self._store.documents.facts_of(id_)
        made = one.made(known)
        if isinstance(made, NotMade):
            self.reject(made)
        elif made is None:
            report.events_unchanged += 1
        else:
            self._waiting[id_] = made
            self._chunks += len(made.passages)
            if not one.has_text:
                report.events += 1
                self._tell(made)
            if max(len(self._waiting), self._chunks) >= (_EMBED_BATCH if one.has_text else _LISTED_BATCH):
                self.flush()

    def reject(self, one: NotMade) -> None:
        """Report what is not stored."""
        self.report.problems.append(one.text)
        self.report.failures += one.is_fault

    def flush(self) -> None:
        """Embed and store what waits."""
        several = [*self._waiting.values()]
        if self._has_text:
            self._store_texts(several)
        elif several:
            with self._store.writing() as transaction:
                transaction.put_metadata([one.document for one in several])
                self._relabel(transaction)
        self._waiting.clear()
        self._chunks = 0

    def _store_texts(self, waiting: Sequence[Made]) -> None:
        report = self.report
        vectors, hashes = self._vectors_of(waiting)
        done = 0
        for at in range(0, len(waiting), self._kind.at_once):
            several = waiting[at : at + self._kind.at_once]
            own = slice(done, done := done + sum(len(one.passages) for one in several))
            with self._store.writing() as transaction:
                rows = [(one.document, one.passages) for one in several]
                transaction.put(rows, vectors[own], embedded=hashes[own])
                self._relabel(transaction)
        for one in waiting:
            report.added += one.is_new
            report.changed += not one.is_new
            report.chunks += len(one.passages)
            self._tell(one)

    def _vectors_of(self, waiting: Sequence[Made]) -> tuple[NDArray[np.float32], list[bytes]]:
        """Return the vectors that documents bring, and embed the passages of the others."""
        heading, embedder = self._collection.profile.vocabulary.heading, self._collection.embedder
        texts = [
            headed(piece.text, " ".join(named(heading, one.document.stated)))
            for one in waiting
            if one.vectors is None
            for piece in one.passages
        ]
        made = self._collection.vectors_of(texts)
        self.report.embedded += made.embedded
        self.report.reused += len(texts) - made.embedded
        if len(texts) == sum(len(one.passages) for one in waiting):
            return made.vectors, made.hashes
        vectors, hashes, done = [], list[bytes](), 0
        for one in waiting:
            own = slice(done, done + len(one.passages))
            if one.vectors is None:
                vectors.append(made.vectors[own])
                hashes += made.hashes[own]
                done = own.stop
            else:
                vectors.append(checked_rows(embedder.name, one.vectors, one.vectors.shape))
                # The hash of no text, because a text begins with no such byte: these vectors are used for none.
                hashes += [hashlib.sha256(b"\xff" + row.data).digest() for row in vectors[-1]]
        return np.concatenate(vectors), hashes

    def _relabel(self, transaction: Transaction) -> None:
        self.report.relabelled += transaction.relabel(self._kind.histories(transaction.facts())).relabelled

    def _tell(self, made: Made) -> None:
        self.report.newly_quarantined += made.is_quarantined
        self.report.problems += made.remarks
        if audience := made.document.audience:
            self.report.problems += _unknown_groups(made.document.document_id, audience, self._groups)

    @cached_property
    def _groups(self) -> Container[str]:
        """The groups that are known, which no import changes while documents are written."""
        return self._store.groups.known()


def _unknown_groups(id_: str, audience: Audience, known: Container[str]) -> Iterator[str]:
    """Name the groups of a document's lists that no import has stated, and what follows from that."""
    if denied := audience.unknown(known):
        yield (
            f"document {id_!r} is denied to {quoted(denied[0])}, a group that was never imported, so nothing can find "
            "it; import the group with: carag groups import"
        )
    if unknown := [one for one in audience.allow or () if is_group(one) and one not in known]:
        yield (
            f"document {id_!r} is shared with {quoted(unknown[0])}, a group that was never imported; only sessions "
            "that state this group themselves find it"
        )


def add(
    collection: Collection,
    kind: Kind,
    documents: Iterable[Document],
    *,
    problems: Sequence[str] = (),
    stop: Callable[[], bool] = never,
) -> IngestReport:
    """Store what is new or changed, all of it checked before; see :meth:`carag.Engine.add`."""
    labelled = stated_documents(documents, collection.profile.vocabulary)
    for one in labelled.values():
        check_vectors(one.given, collection.embedder)
    with collection.writing(kind.reader):
        given = checked(labelled, collection.store, problems)
        hashes = collection.store.documents.content_hashes(labelled)
        return write(collection, kind, ((0, one) for one in given), hashes=hashes, stop=stop)


def checked(
    labelled: Mapping[str, StatedDocument], store: CorpusStore, problems: Sequence[str]
) -> list[Given | NotMade]:
    """Return problems and documents to be stored; InvalidArgument if a document does not go with the store."""
    supersedes = {id_: one.given.supersedes for id_, one in labelled.items()}
    wrong = _superseding_wrongly(supersedes, store)
    wrong |= _misspelt([one.given for one in labelled.values()], store)
    for message in wrong.values():
        raise InvalidArgument(message)
    return [*map(NotMade, problems), *labelled.values()]


def stream(collection: Collection, kind: Kind, read: Iterable[Document | NotMade]) -> IngestReport:
    """Store what is new or changed as it is read, a few thousand documents at a time, each id once.

    A document that cannot be added is a problem; nothing that was read is kept in memory but ids.
    """
    vocabulary, several = collection.profile.vocabulary, iter(read)

    def labelled() -> Iterator[tuple[int, Given | NotMade]]:
        while some := list(islice(several, _EMBED_BATCH)):
            documents = [one for one in some if not isinstance(one, NotMade)]
            for document in documents:
                check_vectors(document, collection.embedder)
            kept, lost = without_lost(documents, collection.store)
            yield from ((0, one) for one in some if isinstance(one, NotMade))
            yield from ((0, NotMade(one)) for one in lost)
            yield from ((0, one) for one in stated_documents(kept, vocabulary).values())

    return write(collection, kind, labelled())


def check_vectors(document: Document, embedder: Embedder) -> None:
    """Raise InvalidArgument unless the vectors that a document brings can be compared with the store's."""
    if document.vectors is None:
        return
    if document.embedded_by != embedder.name:
        raise InvalidArgument(
            f"the vectors of document {document.id!r} were made by {document.embedded_by!r}, and the store's embedder "
            f"is {embedder.name!r}; vectors of different models cannot be compared: use a store of its own"
        )
    if (dim := document.vectors.shape[1]) != embedder.dim:
        raise InvalidArgument(
            f"the vectors of document {document.id!r} have {dim} components, and those of the store's embedder "
            f"{embedder.name!r} have {embedder.dim}; give vectors that this model made"
        )


def without_lost(documents: Iterable[Document], store: CorpusStore) -> tuple[list[Document], list[str]]:
    """Leave out documents that cannot be added; say which, and why.

    They supersede an unknown document or one that is left out, or spell a principal otherwise than is known.
    """
    several = list(documents)
    misspelt = _misspelt(several, store)
    supersedes = {one.id: one.supersedes for one in several if one.id not in misspelt}
    problems = [*misspelt.values()]
    while wrong := _superseding_wrongly(supersedes, store):
        problems += wrong.values()
        supersedes = {id_: old for id_, old in supersedes.items() if id_ not in wrong}
    return [one for one in several if one.id in supersedes], problems


def remove(collection: Collection, kind: Kind, ids: Iterable[str]) -> int:
    """Close the labels of documents and return their number; see :meth:`carag.Engine.remove`."""
    with collection.writing(kind.reader):
        wanted = removable(collection.store, ids)
        withdraw(collection, kind, wanted)
    return len(wanted)


def removable(store: CorpusStore, ids: Iterable[str]) -> list[str]:
    """Return the ids of a list, each once; InvalidArgument if a document is not in the store, or was removed before."""
    wanted = listed_ids(ids)
    known = {one: store.documents.facts_of(one) for one in wanted}
    if absent := [one for one, facts in known.items() if facts is None or facts["removed"]]:
        raise InvalidArgument(
            f"document {quoted(absent[0])} is not in the store, or was removed before, as with {len(absent)} of "
            f"the {len(wanted)} ids; nothing was removed: leave these ids out"
        )
    return wanted


def listed_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids of a list, each once; InvalidArgument if it is not a list of ids."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InvalidArgument(f"ids is {quoted(ids)}; want a list of document ids")
    listed = list(ids)
    for one in listed:
        check_id("id of a document", one)
    return list(dict.fromkeys(listed))


def withdraw(collection: Collection, kind: Kind, ids: Sequence[str]) -> None:
    """Close the labels of documents that are in the store; see :meth:`carag.Engine.remove`."""
    if ids:
        with collection.writing(kind.reader):
            store, nothing = collection.store, np.empty((0, collection.embedder.dim), np.float32)
            gone = [kind.removed(store.documents.document(one)) for one in ids]
            with store.writing() as transaction:
                transaction.put([(one, []) for one in gone], nothing)
                transaction.relabel(kind.histories(transaction.facts()))
            collection.refresh(no_progress)
    _logger.info("removed %d documents", len(ids))


def _misspelt(documents: Sequence[Document], store: CorpusStore) -> dict[str, str]:
    """Return, by id, which principal a document spells otherwise than the store, or a document before it, does."""
    named = {one.id: Audience(one.allow, one.deny).named for one in documents if one.allow or one.deny}
    known = store.spelled({name for names in named.values() for name in names}) if named else {}
    wrong = {}
    for id_, names in named.items():
        if said := other_spelling(names, known):
            wrong[id_] = f"document {id_!r}: {said}"
        else:
            known |= {one_spelling(name): name for name in names}
    return wrong


def _superseding_wrongly(supersedes: Mapping[str, str | None], store: CorpusStore) -> dict[str, str]:
    """Return, by id, why a document cannot supersede what it names: that document is unknown, or leads back to it."""
    wrong: dict[str, str] = {}

    def next_of(id_: str) -> str | None:
        if id_ not in supersedes:
            return (store.documents.facts_of(id_) or {}).get("supersedes")
        next_ = supersedes[id_]
        if next_ is not None and next_ not in supersedes and store.documents.facts_of(next_) is None:
            before = (store.documents.facts_of(id_) or {}).get("supersedes") or ""
            if before.startswith(ERASED):  # it was in the store when this document came
                return None
            wrong[id_] = (
                f"document {id_!r} supersedes {quoted(next_)}, which is neither among those given nor in the store; "
                "add that one first, or with it"
            )
            return None
        return next_

    ends: set[str] = set()
    for start in supersedes:
        chain: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in ends:
            if at in chain:
                wrong[at] = (
                    f"document {at!r} supersedes itself through {len(chain)} documents; want chains that end"
                )
                break
            chain[at] = None
            at = next_of(at)
        ends.update(chain)
    return wrong
