"""Define the values that the store keeps and returns, and check documents and passages before they are stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from operator import index as as_int
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.labelling.labelled import LabelledDocument, LabelledPassage
from carag.limits import check_id, check_minutes, check_text, quoted, shown
from carag.policy import MAX_LISTED, NO_ENTITY, NO_LISTS, SCHEMA_VERSION, TOMBSTONE, Audience

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from numpy.typing import NDArray

    from carag.policy import Value

    Reading: TypeAlias = Callable[[], AbstractContextManager[sqlite3.Connection]]
    """Lends a store's connection for reading."""
    Snapshot: TypeAlias = Callable[[str, Any], Iterator[Any]]
    """Streams the rows of a statement, over a connection that later writes do not change."""


EVER: Final = 2**63 - 1
"""An instant after all others, in microseconds since 1970."""
NO_METADATA: Final[Mapping[str, Value]] = MappingProxyType({})
"""Empty metadata."""


class GroupReport(NamedTuple):
    """What an import of groups changed, or would change."""

    opened: int
    """Memberships that are new, or have another window than before."""
    closed: int
    """Memberships that are no longer known, or have another window now."""
    added: int
    """Groups stated for the first time."""
    undefined: tuple[str, ...]
    """Groups among the members stated that were never stated themselves, so no members of them are known."""
    sha256: str
    """Of what was stated, in hexadecimal."""
    known_at: int | None
    """Microseconds since 1970: when the change became known; None if nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument(LabelledDocument):
    """A document with its label, in one version."""

    version: int = 0
    """1, 2, ... in order of arrival; 0 is a document known by its facts alone."""

    @property
    def accession_number(self) -> str:
        """The document's id, under the name that it once had in :class:`carag.engine.results.LabelHistory`."""
        return self.document_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk(LabelledPassage):
    """A passage with its label, as the store returns it."""

    key: int = -1
    """Key of the label and of its row in the index."""
    entity: int = NO_ENTITY
    """The entity number for ``subjects`` in the index."""
    chunk_id: str = ""
    """``<document id>:<ordinal>``; ``<document id>.v2:<ordinal>`` in a second version."""
    document_id: str = ""
    version: int = 0
    """The document's version."""
    causes: tuple[tuple[str, str], ...] = ()
    """For every state bit of the word, its name and the id of the document that sets it."""
    form: str = ""
    company: str = ""
    filed: str = ""
    """`form`, `company` and `filed` are the document's."""
    stated: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What identifies the document in a citation; see :func:`stated_of`."""
    text_sha256: bytes = field(default=b"", repr=False, compare=False)
    """SHA-256 of the text's UTF-8, which was checked when the text was read."""
    number: int = field(default=-1, compare=False)
    """The store's number of the passage; all its labels share it."""
    filing: int = field(default=-1, compare=False)
    """The store's number of the document in this version."""
    audience: Audience = NO_LISTS
    """Who may see it."""


class StoredLabel(NamedTuple):
    """A passage's label without its text; fields as in `StoredChunk`."""

    chunk_id: str
    word: int
    public_at: int
    expires_at: int
    subjects: tuple[int, ...]
    metadata: Mapping[str, Value] = NO_METADATA
    audience: Audience = NO_LISTS


class PastLabel(NamedTuple):
    """A label on both time axes: which word held between which minutes, and between which instants this was known."""

    word: int
    valid_from: int
    """Minutes since 1970; so is `valid_to`, which is the greatest 32-bit number if it has no end."""
    valid_to: int
    known_from: int
    """Microseconds since 1970; so is `known_to`, which is None as long as the label is open."""
    known_to: int | None
    causes: tuple[tuple[str, str], ...]
    """For every state bit of the word, its name and the id of the document that sets it."""
    audience: Audience = NO_LISTS
    """Who could see it."""


class PastAudience(NamedTuple):
    """Who could see a document in one of its versions; the times are as in :class:`PastLabel`."""

    version: int
    valid_from: int
    valid_to: int
    known_from: int
    known_to: int | None
    audience: Audience


class Labels(NamedTuple):
    """Labels as columns, from which an index is built."""

    keys: NDArray[np.int64]
    words: NDArray[np.uint32]
    public_at: NDArray[np.uint32]
    expires_at: NDArray[np.uint32]
    entities: NDArray[np.uint32]
    passages: NDArray[np.int64]
    """The store's number of each label's passage."""
    audiences: NDArray[np.uint32]
    """The number of each label's audience; 0 is everybody."""


@dataclass(frozen=True, slots=True)
class Change:
    """The changes that one transaction made to labels."""

    known_at: int
    """Microseconds since 1970 at which the store knew them."""
    keys: NDArray[np.int64]
    """Labels of the documents' own passages, by passage and then by time."""
    opened: int
    closed: int
    """Labels opened and closed, including those of other documents."""
    relabelled: int
    """Passages of other documents whose labels changed."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of documents and passages in the store, without superseded versions."""

    filings: int
    chunks: int
    quarantined: Mapping[str, int]
    """Documents by quarantine code."""
    metadata_only: int = 0
    """Documents known by facts alone, which are not among ``filings``."""


def hash_of_text(text: str) -> bytes:
    """Hash a passage's text: SHA-256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


# --- checks of values to be stored; each raises InvalidArgument -------------------------------------------

_UINT32: Final = 1 << 32
MAX_CIK: Final = MAX_LISTED + 1
"""One more than the greatest CENTRAL INDEX KEY, which has ten digits."""


def check_document(document: LabelledDocument) -> None:
    """Check that a document can be stored and found again."""
    check_id("id of a document", document.document_id)
    what = f"of document {document.document_id!r}"
    for name in ("form", "company", "filed", "content_hash", "public_at_source"):
        check_text(f"{name} {what}", getattr(document, name))
    for part in document.quarantine or ():
        check_text(f"quarantine {what}", part)
    for cik in document.ciks:
        if not 0 <= check_integer(cik, f"cik {what}") < MAX_CIK:
            raise InvalidArgument(f"the CIK {what} is {cik}; want at most ten digits")


def check_chunk(chunk: LabelledPassage) -> None:
    """Check one passage: text, offsets, label and time."""
    check_text("document of a passage", chunk.document)
    what = f"passage {shown(chunk.document)} {chunk.start}:{chunk.end}"
    check_text(f"text of {what}", chunk.text)
    check_integer(chunk.start, f"start of {what}")
    check_integer(chunk.end, f"end of {what}")
    if not chunk.text or chunk.start < 0 or chunk.end - chunk.start != len(chunk.text):
        raise InvalidArgument(
            f"{what} has {len(chunk.text)} characters; want end - start characters, and at least one"
        )
    check_word(chunk.word, what)
    for name in ("public_at", "expires_at"):
        check_minutes(f"{name} of {what}", check_integer(getattr(chunk, name), f"{name} of {what}"))
    if chunk.expires_at < chunk.public_at:
        raise InvalidArgument(f"{what} expires at {chunk.expires_at}, before it is public")
    if not isinstance(chunk.subjects, tuple):
        raise InvalidArgument(f"{what} has subjects {quoted(chunk.subjects)}; want a tuple of CIKs")
    for cik in chunk.subjects:
        if not 0 <= check_integer(cik, f"cik of {what}") < MAX_CIK:
            raise InvalidArgument(f"{what} is about CIK {cik}; want at most ten digits")


def check_word(word: int, what: str) -> None:
    """Check that a word has the current schema version."""
    if not 0 <= check_integer(word, f"word of {what}") < _UINT32 or word >> 27 & 7 != SCHEMA_VERSION:
        raise InvalidArgument(
            f"{what} has word {word:#x}, which is not a label of vocabulary version {SCHEMA_VERSION}; "
            "label it, or set the quarantine bit on a labelled word"
        )
    if word & TOMBSTONE:
        raise InvalidArgument(
            f"{what} carries the tombstone, but nothing that is stored is ever deleted; store it without the "
            "tombstone"
        )


def check_vectors(vectors: object, count: int) -> None:
    """Check that there is one finite float32 vector per passage."""
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.ndim != 2:
        shape = (
            f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray) else type(vectors).__name__
        )
        raise InvalidArgument(f"vectors are {shape}; want a float32 array (n, dim)")
    if len(vectors) != count or (count and not vectors.shape[1]):
        raise InvalidArgument(
            f"vectors are {vectors.shape} for {count} passages; want one vector per passage"
        )
    if not np.isfinite(vectors).all():
        raise InvalidArgument("a vector holds NaN or infinity; the embedder failed on one of the passages")


def check_integer(value: int, what: str) -> int:
    """Check for an integer, including numpy's integers."""
    try:
        return as_int(value)
    except TypeError:
        raise InvalidArgument(f"{what} is {quoted(value)}; want an integer") from None
