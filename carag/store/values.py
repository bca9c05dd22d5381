"""Define the values that the store keeps and returns, and check filings and passages before they are stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from operator import index as as_int
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.labelling.canonical_json import canonical_json
from carag.limits import check_id, check_minutes, check_text, quoted, shown
from carag.policy import MAX_LISTED, NEVER, NO_ENTITY, SCHEMA_VERSION, TOMBSTONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from carag.policy import Value

__all__ = [
    "EVER",
    "Change",
    "Counts",
    "Labels",
    "PastLabel",
    "StoredChunk",
    "StoredFiling",
    "StoredLabel",
    "content_hash",
]

EVER: Final = 2**63 - 1
"""An instant after all others, in microseconds since 1970."""
NO_METADATA: Final[Mapping[str, Value]] = MappingProxyType({})
"""Empty metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFiling:
    """A filing with its label."""

    accession_number: str
    form: str
    """Empty if unknown; so are `company` and `filed`."""
    company: str
    filed: str
    """ISO date."""
    content_hash: str
    """Hash of everything the rows depend on; see :func:`content_hash`."""
    facts: Mapping[str, Any]
    """The facts that labelling read, as JSON values; it reads them again when a later filing may change the label."""
    causes: Mapping[str, Any]
    """The causes of the label, as JSON values."""
    public_at_source: str
    """The fact that the passages' ``public_at`` comes from."""
    quarantine: tuple[str, str] | None = None
    """Stable code and explanation; None if the filing is not quarantined."""
    ciks: tuple[int, ...] = ()
    """CIKs of the filing: events concern filings that share one."""
    version: int = 0
    """1, 2, ... in order of arrival, given by the store; 0 is a filing known by metadata only."""

    @property
    def stated(self) -> Mapping[str, Any]:
        """What identifies it in a heading or citation; see :func:`stated_of`."""
        return stated_of(self.facts.get("metadata"), self.company, self.form, self.filed)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A passage with its label."""

    document: str
    """``<TYPE>`` of the document, such as ``EX-99.1``."""
    start: int
    end: int
    """Character offsets in that document's text."""
    text: str
    word: int
    """The policy word, version bits included."""
    public_at: int
    """Minutes since 1970 from which this word holds."""
    subjects: tuple[int, ...] = ()
    """CIKs of everyone the passage may be about: registrants, subject companies, issuer and owners. The store keeps
    them ascending; 0 stands for one that is not stated."""
    metadata: Mapping[str, Value] = field(default_factory=dict, hash=False)
    """The document's fields that the profile declares, in the form of :func:`carag.policy.in_one_form`."""
    expires_at: int = NEVER
    """Minutes since 1970 from which this word no longer holds."""
    key: int = -1
    """Key of the label and of its row in the index. The store sets this and all later fields."""
    entity: int = NO_ENTITY
    """The entity number for ``subjects`` in the index."""
    chunk_id: str = ""
    """``<accession number>:<ordinal>``; ``<accession number>.v2:<ordinal>`` in a second version."""
    accession_number: str = ""
    version: int = 0
    """The filing's version."""
    causes: tuple[tuple[str, str], ...] = ()
    """For every state bit of the word, its name and the accession number that sets it."""
    form: str = ""
    company: str = ""
    filed: str = ""
    """`form`, `company` and `filed` are the filing's."""
    stated: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What identifies its document in a citation; see :func:`stated_of`."""
    text_sha256: bytes = field(default=b"", repr=False, compare=False)
    """SHA-256 of the text's UTF-8; the store has computed and checked it when it read the text."""
    number: int = field(default=-1, compare=False)
    """The store's number of the passage; all its labels share it."""
    filing: int = field(default=-1, compare=False)
    """The store's number of the filing in this version."""


class StoredLabel(NamedTuple):
    """A passage's label without its text; fields as in `StoredChunk`."""

    chunk_id: str
    word: int
    public_at: int
    expires_at: int
    subjects: tuple[int, ...]
    metadata: Mapping[str, Value] = NO_METADATA


class PastLabel(NamedTuple):
    """A label on both time axes: which word held from when to when, and from when to when the store knew this."""

    word: int
    valid_from: int
    """Minutes since 1970; so is `valid_to`, which is the greatest 32-bit number if it has no end."""
    valid_to: int
    known_from: int
    """Microseconds since 1970; so is `known_to`, which is None as long as the label is open."""
    known_to: int | None
    causes: tuple[tuple[str, str], ...]
    """For every state bit of the word, its name and the accession number that sets it."""


class Labels(NamedTuple):
    """Labels as columns, from which an index is built."""

    keys: NDArray[np.int64]
    words: NDArray[np.uint32]
    public_at: NDArray[np.uint32]
    expires_at: NDArray[np.uint32]
    entities: NDArray[np.uint32]
    passages: NDArray[np.int64]
    """The store's number of each label's passage."""


@dataclass(frozen=True, slots=True)
class Change:
    """The changes that one transaction made to labels."""

    known_at: int
    """Microseconds since 1970 at which the store knew them."""
    keys: NDArray[np.int64]
    """Labels of the filing's own passages, by passage and then by time."""
    opened: int
    closed: int
    """Labels opened and closed, those of other filings included."""
    relabelled: int
    """Passages of other filings whose labels changed."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of filings and passages in the store, without superseded versions."""

    filings: int
    chunks: int
    quarantined: Mapping[str, int]
    """Filings by quarantine code."""
    metadata_only: int = 0
    """Filings known by metadata only, which are not among ``filings``."""


def stated_of(metadata: Mapping[str, Any] | None, company: str, form: str, filed: str) -> Mapping[str, Any]:
    """Return what identifies a document: its metadata; for a filing, company, form and date."""
    return metadata or {"company": company, "form": form, "filed": filed}


def content_hash(facts: Mapping[str, Any], texts: Iterable[str], *, version: str) -> str:
    """Hash everything a filing's rows depend on, so that a second run can detect changes.

    A modification date would miss the second of two changes in one day. The result is the SHA-256, in hex, of the
    canonical JSON of ``version`` (of chunker and labeller), ``facts`` (JSON values) and the documents' texts in order.

    Examples
    --------
    >>> content_hash({"form": "10-K"}, ["Item 1."], version="1")[:16]
    'd78c9cc114413c38'
    """
    text = canonical_json([version, facts, list(texts)], "content")
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_text(text: str) -> bytes:
    """Hash a passage's text: SHA-256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


# --- checks of values to be stored; each raises InvalidArgument -------------------------------------------

_UINT32: Final = 1 << 32
MAX_CIK: Final = MAX_LISTED + 1
"""One more than the greatest CENTRAL INDEX KEY, which has ten digits."""


def check_filing(filing: StoredFiling) -> None:
    """Check that a filing can be stored and found again."""
    number = filing.accession_number
    check_id("accession number", number)
    for name in ("form", "company", "filed", "content_hash", "public_at_source"):
        check_text(f"{name} of filing {number!r}", getattr(filing, name))
    for part in filing.quarantine or ():
        check_text(f"quarantine of filing {number!r}", part)
    for cik in filing.ciks:
        if not 0 <= check_integer(cik, f"cik of filing {number!r}") < MAX_CIK:
            raise InvalidArgument(f"filing {number!r} has CIK {cik}; want at most ten digits")


def check_chunk(chunk: StoredChunk) -> None:
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
    if chunk.entity != NO_ENTITY:
        raise InvalidArgument(
            f"{what} has entity {chunk.entity}; the store numbers sets of subjects: give the CIKs in subjects"
        )


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
    """Check for an integer, numpy's integers included."""
    try:
        return as_int(value)
    except TypeError:
        raise InvalidArgument(f"{what} is {quoted(value)}; want an integer") from None
