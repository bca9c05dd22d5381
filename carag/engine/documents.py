"""Store documents and remove them, then bring the collection up to the store; order of arrival does not matter."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.engine.collection import no_progress
from carag.engine.results import AddReport
from carag.errors import InvalidArgument
from carag.labelling.acts import document_histories
from carag.labelling.chunking import CHUNKER_VERSION, chunk
from carag.labelling.clauses import CLAUSES_VERSION, chunk_by_clauses
from carag.labelling.declared import DeclaredLabel, FactProblem, label_facts, quarantined
from carag.labelling.document import Document
from carag.labelling.label import Cause
from carag.labelling.naming import named
from carag.limits import check_id, quoted
from carag.policy import NEVER, VERSION_WORD, as_of_minutes, bit_names, bits_of, in_one_form
from carag.retrieval import headed
from carag.store.values import StoredChunk, StoredFiling, content_hash
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date
    from zoneinfo import ZoneInfo

    from carag.engine.collection import Collection
    from carag.labelling.chunking import Chunk
    from carag.labelling.lifecycle import StateSpan
    from carag.policy import Value, Vocabulary
    from carag.store.store import CorpusStore

__all__ = ["READER", "DocumentWriter", "never"]

_logger = logger(__name__)

READER: Final = "documents"
"""The store's note of who makes its rows."""
_EMBED_BATCH: Final = 2048
"""Passages embedded together and stored in one transaction."""
_ROWS_VERSION: Final = "document-1"
"""Part of the content hash; must change whenever the same document may be stored differently."""
_USUAL_SIZES: Final = (1000, 1500)
"""Desired and greatest lengths of passages that a content hash does not mention."""
_LINKS: Final = 1 << 33
"""Numbers for ids, below the ten digits of a CIK. Two ids with one number cost time and change no label."""


def never() -> bool:
    """Tell that nothing stops a run."""
    return False


class _Given(NamedTuple):
    document: Document
    word: int
    filing: StoredFiling
    """Its facts include the minutes from and until which it may be found."""
    metadata: Mapping[str, Value]
    """Fields that the profile declares."""

    def chunks(self, vocabulary: Vocabulary) -> list[StoredChunk]:
        document = self.document
        return [
            StoredChunk(
                document=", ".join(filter(None, (part, _pages_of(document, piece.start, piece.end)))),
                start=piece.start,
                end=piece.end,
                text=piece.text,
                word=self.word,
                public_at=self.filing.facts["public_at"],
                expires_at=self.filing.facts["expires_at"],
                subjects=tuple(document.entities),
                metadata=self.metadata,
            )
            for piece, part in _cut(document.text, vocabulary)
        ]


def _cut(text: str, vocabulary: Vocabulary) -> Iterator[tuple[Chunk, str]]:
    """Cut a text as its profile says; yield each piece with its clauses, which a passage does not name."""
    target, limit = vocabulary.target, vocabulary.limit
    if vocabulary.by == "clauses":
        whole, overlap = vocabulary.whole, vocabulary.overlap
        for clause in chunk_by_clauses(text, target=target, limit=limit, whole=whole, overlap=overlap):
            yield clause, clause.part
    else:
        for passage in chunk(text, target=target, limit=limit):
            yield passage, ""


def _cut_version(vocabulary: Vocabulary) -> str:
    sizes = (vocabulary.target, vocabulary.limit)
    if vocabulary.by == "clauses":
        lengths = ".".join(str(one) for one in (*sizes, vocabulary.whole, vocabulary.overlap))
        return f"{CLAUSES_VERSION}.{CHUNKER_VERSION}.{lengths}"
    return CHUNKER_VERSION if sizes == _USUAL_SIZES else f"{CHUNKER_VERSION}.{sizes[0]}.{sizes[1]}"


def _label(document: Document, vocabulary: Vocabulary) -> DeclaredLabel:
    if document.facts is not None:
        if not vocabulary.rules:
            raise InvalidArgument(
                f"document {document.id!r} has facts, but the profile {vocabulary.profile!r} has no rules that "
                "turn facts "
                "into bits; give bits"
            )
        return label_facts(document.facts, vocabulary)
    bits = bits_of(document.bits or (), name=f"bits of document {document.id!r}", flags=vocabulary.flags)
    causes = (Cause(bit, "bits", "stated with the document") for bit in bit_names(bits, vocabulary.flags))
    return DeclaredLabel(bits | VERSION_WORD, tuple(causes))


def _declared(
    document: Document, label: DeclaredLabel, vocabulary: Vocabulary
) -> tuple[dict[str, Value], DeclaredLabel]:
    """Return the searchable metadata of a document, and its label; a value of the wrong kind quarantines it."""
    found: dict[str, Value] = {}
    for name, kind in vocabulary.metadata.items():
        try:
            value = in_one_form(name, document.metadata.get(name), kind)
        except InvalidArgument as error:
            return {}, label if label.quarantine else quarantined(FactProblem.UNKNOWN_VALUE, str(error))
        if value is not None:
            found[name] = value
    return found, label


class DocumentWriter:
    """Writes documents into a collection, whose profile says what bits and facts mean."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._vocabulary = collection.profile.vocabulary

    def add(self, documents: Iterable[Document], *, stop: Callable[[], bool] = never) -> AddReport:
        """Store what is new or changed; see :meth:`carag.Engine.add`."""
        given, report = self._read(documents), AddReport()
        with self._collection.writing(READER):
            store = self._collection.store
            wrong = _superseding_wrongly({id_: one.document.supersedes for id_, one in given.items()}, store)
            if wrong:
                raise InvalidArgument(next(iter(wrong.values())))
            waiting: list[tuple[_Given, list[StoredChunk]]] = []
            size = 0
            stored = store.content_hashes(given)
            for one in given.values():
                if stop():
                    waiting.clear()
                    break
                if stored.get(one.document.id) == one.filing.content_hash:
                    report.unchanged += 1
                    continue
                chunks = one.chunks(self._vocabulary)
                waiting.append((one, chunks))
                size += max(1, len(chunks))
                if size >= _EMBED_BATCH:
                    self._store(waiting, stored, report)
                    size = 0
            self._store(waiting, stored, report)
            self._collection.refresh(no_progress)
        _logger.info(
            "added: %d new, %d changed, %d unchanged, %d quarantined",
            report.added,
            report.changed,
            report.unchanged,
            report.quarantined,
        )
        return report

    def without_lost(self, documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
        """Leave out documents that supersede unknown ones, and those that supersede these; say which, and why."""
        several = list(documents)
        supersedes = {one.id: one.supersedes for one in several}
        problems: list[str] = []
        while wrong := _superseding_wrongly(supersedes, self._collection.store):
            problems += wrong.values()
            supersedes = {id_: old for id_, old in supersedes.items() if id_ not in wrong}
        return [one for one in several if one.id in supersedes], problems

    def remove(self, ids: Iterable[str]) -> int:
        """Close the labels of documents and return their number; see :meth:`carag.Engine.remove`."""
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise InvalidArgument(f"ids is {quoted(ids)}; want a list of document ids")
        named = list(ids)
        for one in named:
            check_id("id of a document", one)
        wanted = list(dict.fromkeys(named))
        with self._collection.writing(READER):
            store = self._collection.store
            known = {one: store.facts_of(one) for one in wanted}
            if absent := [one for one, facts in known.items() if facts is None or facts["removed"]]:
                raise InvalidArgument(
                    f"document {quoted(absent[0])} is not in the store, or was removed before, as are "
                    f"{len(absent)} of the {len(wanted)} ids; nothing was removed: leave these ids out"
                )
            if wanted:
                nothing = np.empty((0, self._collection.embedder.dim), np.float32)
                with store.writing() as transaction:
                    transaction.put([(_removed(store.filing(one)), []) for one in wanted], nothing)
                    transaction.relabel(self._histories(transaction.facts()))
                self._collection.refresh(no_progress)
        _logger.info("removed %d documents", len(wanted))
        return len(wanted)

    def _histories(self, facts: Iterable[Mapping[str, Any]]) -> dict[str, tuple[StateSpan, ...]]:
        return document_histories(facts, self._vocabulary.lifecycle)

    def _read(self, documents: Iterable[Document]) -> dict[str, _Given]:
        if isinstance(documents, (Document, str, bytes)) or not isinstance(documents, Iterable):
            raise InvalidArgument(
                f"documents is a {type(documents).__name__}; want a list of carag.Document objects"
            )
        given: dict[str, _Given] = {}
        for document in documents:
            if type(document) is not Document:
                raise InvalidArgument(
                    f"documents hold a {type(document).__name__}; want carag.Document objects"
                )
            label = _label(document, self._vocabulary)
            metadata, label = _declared(document, label, self._vocabulary)
            if document.in_force_at is not None and self._vocabulary.lifecycle.pending is None:
                raise InvalidArgument(
                    f"document {document.id!r} has in_force_at, but the profile {self._vocabulary.profile!r} has "
                    "no bit for "
                    "what is not yet in force; leave it out, or name one as pending under [lifecycle]"
                )
            one = _Given(document, label.word, _row(document, label, self._vocabulary), metadata)
            first = given.setdefault(document.id, one)
            if first.filing.content_hash != one.filing.content_hash:
                raise InvalidArgument(
                    f"document {document.id!r} is given twice, with different content; give it once"
                )
        return given

    def _store(
        self, waiting: list[tuple[_Given, list[StoredChunk]]], stored: Mapping[str, str], report: AddReport
    ) -> None:
        """Embed and store what waits, in one transaction, and empty the list; ``stored`` has the ids of the store."""
        if not waiting:
            return
        store = self._collection.store
        texts = [
            headed(piece.text, " ".join(named(self._vocabulary.heading, one.document.metadata)))
            for one, chunks in waiting
            for piece in chunks
        ]
        vectors, hashes, embedded = self._collection.vectors_of(texts)
        report.embedded += embedded
        report.reused += len(texts) - embedded
        ids = (one.document.id for one, _ in waiting)
        before = [store.facts_of(id_) if id_ in stored else None for id_ in ids]
        with store.writing() as transaction:
            transaction.put([(one.filing, chunks) for one, chunks in waiting], vectors, embedded=hashes)
            transaction.relabel(self._histories(transaction.facts()))
        for known, (one, chunks) in zip(before, waiting, strict=True):
            is_new = known is None or known["removed"]
            report.added += is_new
            report.changed += not is_new
            report.chunks += len(chunks)
            report.quarantined += one.filing.quarantine is not None
            if one.filing.quarantine is not None:
                code, why = one.filing.quarantine
                report.problems.append(
                    f"document {one.document.id!r} is quarantined, so nothing can find it: {code}: {why}"
                )
            if not chunks:
                report.problems.append(f"document {one.document.id!r} has no text, so nothing can find it")
        waiting.clear()


def _row(document: Document, label: DeclaredLabel, vocabulary: Vocabulary) -> StoredFiling:
    metadata, zone = dict(document.metadata), vocabulary.zone
    facts = {
        "id": document.id,
        "removed": False,
        "public_at": _minute(document.public_at, 0, zone),
        "expires_at": _minute(document.expires_at, NEVER, zone),
        "supersedes": document.supersedes,
        "metadata": metadata,
        "facts": None if document.facts is None else dict(document.facts),
        "entities": list(document.entities),
        "language": document.language,
        "pages": list(document.pages),
    }
    # Only if stated, so that a document without them keeps the content hash that it always had.
    if document.names:
        facts["names"] = list(document.names)
    if document.acts:
        facts["acts"] = [[act.kind.value, act.name, _first_minute(act.since, zone)] for act in document.acts]
    if document.read_by is not None:
        facts["read_by"] = document.read_by
    if document.in_force_at is not None:
        facts["in_force_at"] = _first_minute(document.in_force_at, zone)
    return _filing(
        facts,
        content=content_hash(
            {**facts, "word": label.word},
            [document.text],
            version=f"{_cut_version(vocabulary)}.{_ROWS_VERSION}",
        ),
        causes={"bits": [list(cause) for cause in label.causes]},
        quarantine=None if label.quarantine is None else (label.quarantine.code.value, label.quarantine.text),
    )


def _removed(filing: StoredFiling) -> StoredFiling:
    """Return the version of a document without passages. What it superseded stays so: removing widens nothing."""
    facts = {**filing.facts, "removed": True}
    return _filing(
        facts, content=content_hash(facts, (), version=_ROWS_VERSION), causes={"bits": []}, quarantine=None
    )


def _filing(
    facts: Mapping[str, Any],
    *,
    content: str,
    causes: Mapping[str, Any],
    quarantine: tuple[str, str] | None,
) -> StoredFiling:
    acted = [name for _, name, _ in facts.get("acts", ())]
    linked = (facts["id"], facts["supersedes"], *facts.get("names", ()), *acted)
    return StoredFiling(
        accession_number=facts["id"],
        form="",
        company="",
        filed="",
        content_hash=content,
        facts=facts,
        causes=causes,
        public_at_source="always public" if facts["public_at"] == 0 else "stated with the document",
        quarantine=quarantine,
        # The store labels again whatever shares one of these numbers with a new row.
        ciks=tuple(dict.fromkeys(_link(one) for one in linked if one is not None)),
    )


def _link(id_: str) -> int:
    """Return the number under which the store connects a document with those that name it."""
    return int.from_bytes(hashlib.sha256(id_.encode()).digest()[:8]) % _LINKS


def _pages_of(document: Document, start: int, end: int) -> str:
    """Name the pages that a passage is on, as a citation shows them; empty if the document has no pages."""
    pages = tuple(document.pages)
    if not pages:
        return ""
    # A page that begins where the passage does is the one it is on; a blank page begins and ends there.
    first, last = bisect_right(pages, start), bisect_left(pages, end)
    return f"page {max(first, 1)}" if last <= first else f"pages {max(first, 1)}-{last}"


def _minute(value: datetime | date | None, absent: int, zone: ZoneInfo) -> int:
    return absent if value is None else as_of_minutes(value, zone)


def _first_minute(value: datetime | date | None, zone: ZoneInfo) -> int | None:
    """Return the minute of a moment, or the first minute of a day, because a day takes effect as a whole."""
    if value is None:
        return None
    return as_of_minutes(value if isinstance(value, datetime) else datetime.combine(value, time(), zone))


def _superseding_wrongly(supersedes: Mapping[str, str | None], store: CorpusStore) -> dict[str, str]:
    """Return, by id, why a document cannot supersede what it states: that is unknown, or leads back to it."""
    wrong: dict[str, str] = {}

    def next_of(id_: str) -> str | None:
        if id_ not in supersedes:
            return (store.facts_of(id_) or {}).get("supersedes")
        next_ = supersedes[id_]
        if next_ is not None and next_ not in supersedes and store.facts_of(next_) is None:
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
