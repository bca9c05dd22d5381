"""Label documents by the bits or facts, times and acts stated with them, under the rules of their profile."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.labelling.acts import unread
from carag.labelling.chunking import CHUNKER_VERSION, Chunk, chunk
from carag.labelling.clauses import CLAUSES_VERSION, chunk_by_clauses
from carag.labelling.declared import DeclaredLabel, FactProblem, label_facts, quarantined
from carag.labelling.document import Document
from carag.labelling.label import Cause
from carag.labelling.labelled import LabelledDocument, LabelledPassage, Made, content_hash
from carag.policy import NEVER, VERSION_WORD, Audience, as_of_minutes, bit_names, bits_of, in_one_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date
    from zoneinfo import ZoneInfo

    from carag.labelling.labelled import Facts
    from carag.policy import Value, Vocabulary


_ROWS_VERSION: Final = "document-1"
"""Part of the content hash; this must change whenever the same document may be stored differently."""
_USUAL_SIZES: Final = (1000, 1500)
"""Desired and greatest lengths of passages; a content hash does not mention these defaults."""
_LINKS: Final = 1 << 33
"""Numbers for ids, below the ten digits of a CIK. If two ids share a number, that costs time but changes no label."""


@dataclass(frozen=True, slots=True)
class StatedDocument:
    """A document with the label that follows from what is stated with it."""

    given: Document
    word: int
    document: LabelledDocument
    """The document's facts include the minutes from and until which it may be found."""
    metadata: Mapping[str, Value]
    """Fields that the profile declares."""
    vocabulary: Vocabulary
    has_text: bool = True

    def made(self, known: Facts | None) -> Made:
        """Return the document with its labelled passages, and why nothing can find it."""
        facts, quarantine = self.document.facts, self.document.quarantine
        passages = [
            LabelledPassage(
                document=", ".join(filter(None, (part, _pages_of(self.given, piece.start, piece.end)))),
                start=piece.start,
                end=piece.end,
                text=piece.text,
                word=self.word,
                public_at=facts["public_at"],
                expires_at=facts["expires_at"],
                subjects=tuple(self.given.entities),
                metadata=self.metadata,
            )
            for piece, part in _cut(self.given, self.vocabulary)
        ]
        remarks = []
        if quarantine is not None:
            why = ": ".join(quarantine)
            remarks.append(f"document {self.given.id!r} is quarantined, so nothing can find it: {why}")
        if self.given.allow == ():
            remarks.append(f"document {self.given.id!r} is shared with no one, because `allow` is empty")
        if not passages:
            remarks.append(f"document {self.given.id!r} has no text, so nothing can find it")
        return Made(
            document=self.document,
            passages=passages,
            is_new=known is None or known["removed"],
            is_quarantined=quarantine is not None,
            remarks=tuple(remarks),
            vectors=self.given.vectors,
        )


def stated_documents(documents: Iterable[Document], vocabulary: Vocabulary) -> dict[str, StatedDocument]:
    """Label documents, by id; InvalidArgument if one is not a document, or its label is impossible in this profile."""
    if isinstance(documents, (Document, str, bytes)) or not isinstance(documents, Iterable):
        raise InvalidArgument(
            f"documents is a {type(documents).__name__}; want a list of carag.Document objects"
        )
    given: dict[str, StatedDocument] = {}
    for document in documents:
        if type(document) is not Document:
            raise InvalidArgument(f"documents hold a {type(document).__name__}; want carag.Document objects")
        metadata, label = _declared(document, _label(document, vocabulary), vocabulary)
        if (
            vocabulary.audience_required
            and document.allow is None
            and not document.deny
            and not label.quarantine
        ):
            label = quarantined(
                FactProblem.MISSING_AUDIENCE, "who may see it is not stated; want allow or deny"
            )
        if document.in_force_at is not None and vocabulary.lifecycle.pending is None:
            raise InvalidArgument(
                f"document {document.id!r} has in_force_at, but the profile {vocabulary.profile!r} has no bit for "
                "what is not yet in force; leave it out, or name one as pending under [lifecycle]"
            )
        one = StatedDocument(document, label.word, _row(document, label, vocabulary), metadata, vocabulary)
        if given.setdefault(document.id, one).document.content_hash != one.document.content_hash:
            raise InvalidArgument(
                f"document {document.id!r} is given twice, with different content; give it once"
            )
    return given


def _cut(given: Document, vocabulary: Vocabulary) -> Iterator[tuple[Chunk, str]]:
    """Cut a text as its profile says; yield each piece with its clauses, which a passage does not name.

    What brings vectors is cut where they say.
    """
    text = given.text
    if given.vectors is not None:
        for start, piece in zip([*given.cuts] or [0], given.passages, strict=True):
            yield Chunk(start, start + len(piece), piece), ""
        return
    target, limit = vocabulary.target, vocabulary.limit
    if vocabulary.by == "clauses":
        whole, overlap = vocabulary.whole, vocabulary.overlap
        for clause in chunk_by_clauses(text, target=target, limit=limit, whole=whole, overlap=overlap):
            yield clause, clause.part
    else:
        for passage in chunk(text, target=target, limit=limit):
            yield passage, ""


def _cut_version(given: Document, vocabulary: Vocabulary) -> str:
    if given.vectors is not None:
        return f"{given.embedded_by}.{hashlib.sha256(given.vectors.data).hexdigest()}"
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


def _row(document: Document, label: DeclaredLabel, vocabulary: Vocabulary) -> LabelledDocument:
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
    # These are included only if stated, so that a document without them keeps the content hash that it always had.
    if audience := Audience(document.allow, document.deny):
        facts["audience"] = json.loads(audience.text)
    if document.names:
        facts["names"] = list(document.names)
    if document.acts:
        facts["acts"] = [[act.kind.value, act.name, _first_minute(act.since, zone)] for act in document.acts]
    if document.read_by is not None:
        facts["read_by"] = document.read_by
    if document.retain_until is not None:
        facts["retain_until"] = _minute(document.retain_until, 0, zone)
    if document.erase_after is not None:
        facts["erase_after"] = _minute(document.erase_after, 0, zone)
    if document.in_force_at is not None:
        facts["in_force_at"] = _first_minute(document.in_force_at, zone)
    return _labelled(
        facts,
        content=content_hash(
            {**facts, "word": label.word},
            [document.text] if document.vectors is None else document.passages,
            version=f"{_cut_version(document, vocabulary)}.{_ROWS_VERSION}",
        ),
        causes={"bits": [list(cause) for cause in label.causes]},
        quarantine=None if label.quarantine is None else (label.quarantine.code.value, label.quarantine.text),
    )


def removed(known: Facts) -> LabelledDocument:
    """Return the version of a document without passages. What it superseded stays superseded, so nothing is widened."""
    facts = {**known, "removed": True}
    return _labelled(
        facts, content=content_hash(facts, (), version=_ROWS_VERSION), causes={"bits": []}, quarantine=None
    )


def remnant(known: Facts, name: str) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Return what stays of an erased document's facts, and its links: only what it did to other documents."""
    facts = {"id": name, "removed": True, "public_at": known["public_at"], "supersedes": known["supersedes"]}
    facts |= {one: known[one] for one in ("acts", "in_force_at") if one in known}
    acted = [other for _, other, _ in facts.get("acts", ())]
    linked = [_link(one) for one in (facts["supersedes"], *acted) if one is not None]
    if acted:
        facts["acts"] = [[kind, unread(other), since] for kind, other, since in facts["acts"]]
    return facts, tuple(dict.fromkeys(linked))


def _labelled(
    facts: Mapping[str, Any],
    *,
    content: str,
    causes: Mapping[str, Any],
    quarantine: tuple[str, str] | None,
) -> LabelledDocument:
    acted = [name for _, name, _ in facts.get("acts", ())]
    linked = (facts["id"], facts["supersedes"], *facts.get("names", ()), *acted)
    return LabelledDocument(
        document_id=facts["id"],
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
    # The passage is on a page that begins where it does; a blank page begins and ends there.
    first, last = bisect_right(pages, start), bisect_left(pages, end)
    return f"page {max(first, 1)}" if last <= first else f"pages {max(first, 1)}-{last}"


def _minute(value: datetime | date | None, absent: int, zone: ZoneInfo) -> int:
    return absent if value is None else as_of_minutes(value, zone)


def _first_minute(value: datetime | date | None, zone: ZoneInfo) -> int | None:
    """Return the minute of a moment, or the first minute of a day, because a day takes effect as a whole."""
    if value is None:
        return None
    return as_of_minutes(value if isinstance(value, datetime) else datetime.combine(value, time(), zone))
