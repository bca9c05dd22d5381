"""Define passages as returned to the asker, and the hits by which a record names them.

A hit in a record is ``[digest, word, similarity in millionths, cited]``. The digest is the first 20 bytes of
``SHA-256("carag/hit/v1" NUL chunk id NUL SHA-256 of the text)``: it binds chunk and text without repeating them. The
receipt holds both in full, and its proofs lead to the index state with all 32 bytes of the text's hash.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from carag.audit.records import _fields
from carag.audit.records.codec import Count, Positive
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import InvalidArgument
from carag.limits import quoted

_MICRO: Final = 1_000_000  # millionths in one
_MAX_SIMILARITY: Final = _MICRO + 10  # float32 cosines exceed 1 by a few units in the last place
_DIGEST_SIZE: Final = 20  # bytes
_DOMAIN: Final = b"carag/hit/v1\0"  # domain separator of hit digests


def text_hash(text: str) -> bytes:
    """Hash a passage's text: SHA-256 of its UTF-8 bytes."""
    try:
        return hashlib.sha256(text.encode("utf-8")).digest()
    except (UnicodeEncodeError, AttributeError) as error:
        raise InvalidArgument("a passage must be text without lone surrogates") from error


def hit_digest(chunk: str, text_sha256: bytes) -> bytes:
    """Return the digest by which a record names a passage, from chunk id and hash of the text."""
    return hashlib.sha256(_DOMAIN + chunk.encode("utf-8") + b"\0" + text_sha256).digest()[:_DIGEST_SIZE]


class HeadRows(NamedTuple):
    """Head rows of a table that was cut into several passages. Hits are numbered from 1, in the order of the record."""

    hit: Positive
    """The number of the hit that begins inside the table."""
    lender: Positive
    """The number of the hit whose text holds the rows."""
    start: Count
    end: Positive
    """The rows' range of characters in that text."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage in a record.

    Parameters
    ----------
    digest : bytes
        20 bytes of the digest of chunk id and text.
    similarity : int
        Cosine similarity in millionths.
    word : int
        The 32-bit policy word.
    """

    digest: bytes
    similarity: int
    word: int
    cited: bool

    def __post_init__(self) -> None:
        _fields.digest("hit digest", self.digest, _DIGEST_SIZE)
        _fields.integer("similarity in millionths", self.similarity, -_MAX_SIMILARITY, _MAX_SIMILARITY)
        _fields.integer("policy word", self.word, 0, (1 << 32) - 1)

    @property
    def name(self) -> str:
        """The name of the hit in messages."""
        return f"hit {b64url(self.digest)}"

    def is_of(self, chunk: str, text_sha256: bytes) -> bool:
        """Tell whether this is the hit of a chunk whose text has that hash."""
        return hit_digest(chunk, text_sha256) == self.digest

    def to_json(self) -> Json:
        """Return the JSON form."""
        return [b64url(self.digest), int(self.word), int(self.similarity), int(self.cited)]

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Read the JSON form."""
        digest, word, similarity, cited = fields
        return cls(unb64url(digest, _DIGEST_SIZE), similarity, word, cited == 1)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as returned to the asker. The record holds its :attr:`hit`, the receipt also id, text and proof.

    Parameters
    ----------
    chunk : str
        The chunk's id.
    text : str
        Exactly what was shown or given to the generator.
    similarity : float
        Cosine similarity to the question, in -1..1.
    word : int
        The 32-bit policy word of the chunk when it was returned.
    cited : bool
        Whether the answer cites it.
    text_sha256 : bytes, optional
        SHA-256 of the text's UTF-8, if it is already known; no receipt verifies with a different hash.
    """

    chunk: str
    text: str = field(repr=False)
    similarity: float
    word: int
    cited: bool = False
    text_sha256: bytes | None = field(default=None, repr=False)

    @property
    def hit(self) -> Hit:
        """The hit by which the record names the passage."""
        try:
            similarity = round(self.similarity * _MICRO)
        except (TypeError, ValueError, OverflowError) as error:  # NaN and infinity have no integer
            raise InvalidArgument(
                f"similarity is {quoted(self.similarity)}; want a number in -1..1"
            ) from error
        _fields.label("chunk id", self.chunk)
        digest = text_hash(self.text) if self.text_sha256 is None else self.text_sha256
        _fields.digest("hash of the text", digest)
        return Hit(hit_digest(self.chunk, digest), similarity, self.word, self.cited)
