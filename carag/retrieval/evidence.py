"""Define what retrieval returns: admissible passages with text, and withheld ones without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from carag.limits import document_of_chunk
from carag.policy import NEVER

if TYPE_CHECKING:
    from carag.backends import IndexState
    from carag.policy import Reason

__all__ = ["NOTHING_NAMED", "Evidence", "Head", "Hidden", "Passage", "Topic", "Withheld", "Words"]


@dataclass(frozen=True, slots=True)
class Head:
    """The head rows of the table that a passage was torn from, which another admissible passage holds word for word."""

    chunk_id: str
    """Of the passage that holds them."""
    start: int
    end: int
    """Character offsets in the text of the document, or the part of it, that both passages are of."""
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An admissible chunk with its text and the metadata a citation is made of."""

    chunk_id: str
    """``<accession number>:<ordinal>``."""
    text: str = field(repr=False)
    similarity: float
    """Cosine similarity to the question."""
    word: int
    """The policy word the search admitted."""
    accession_number: str
    form: str
    company: str
    filed: str
    """ISO date, or empty where unknown."""
    document: str
    """The part that the chunk is of: ``<TYPE>`` of a filing's document, such as ``EX-99.1``, or ``page 3``."""
    start: int
    end: int
    """Character offsets of the chunk in that document's text."""
    public_at: int = 0
    """Minutes since 1970 UTC, from which the word holds."""
    expires_at: int = NEVER
    """Minutes since 1970 UTC, until which it holds."""
    text_sha256: bytes = field(default=b"", repr=False, compare=False)
    """SHA-256 of the text's UTF-8, as the store checked it; empty of a passage that comes from no store."""
    source: str = ""
    """How the store's profile names the document and the part of it, in a prompt and a citation."""
    head: Head | None = None
    """Where the text begins inside a table: its head rows, if a passage that the session may use holds them."""

    @property
    def document_id(self) -> str:
        """The id under which the document was added; of a filing its accession number."""
        return document_of_chunk(self.chunk_id)[0]

    @property
    def version(self) -> int:
        """Which text of the document this is from: 1 is the first that the store held."""
        return document_of_chunk(self.chunk_id)[1]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A chunk that the question would have found and the policy hides; never its text."""

    chunk_id: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question names, and what of it this session's documents are about; nothing here tells of hidden ones.

    Attributes
    ----------
    understood : str
        In the question's own words; empty if it names nothing.
    absent : str
        What of it none of the documents that the session may use is about, where that is all it asks about: then no
        passage is shown to a generator.
    missing : str
        The same, where they are about the rest.
    is_particular : bool
        Whether it names somebody, a title or a time, so that it matters of which documents an answer is.
    similar : str
        Words one letter from what is absent that some of the documents hold, in small letters: it may be misspelt.
    """

    understood: str = ""
    absent: str = ""
    missing: str = ""
    is_particular: bool = False
    similar: str = ""


NOTHING_NAMED: Final = Topic()


@dataclass(frozen=True, slots=True)
class Withheld:
    """What the policy withholds.

    Attributes
    ----------
    kinds : tuple of Reason
        The rules by which this policy hides passages, derived from the policy alone.
    hidden : tuple of Hidden
        The hidden passages nearest to the question, if the role may know that they exist. Never shown to a model.
    topic : Topic
        What the question names, and what of it there is nothing about: set for a generator alone, which is so told on
        which documents its passages are silent.
    """

    kinds: tuple[Reason, ...]
    hidden: tuple[Hidden, ...] = ()
    topic: Topic = NOTHING_NAMED


@dataclass(frozen=True, slots=True)
class Words:
    """How many of the question's words the best passage by words holds, as a share of what it could, 0 to 1."""

    share: float
    least: float = 0.0
    """Below this the passages do not speak of what is asked; the profile's (``least_words``)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a search found, what is withheld, and how it was searched."""

    passages: tuple[Passage, ...]
    """Admissible, best first: in the order of the ranker, or of the reranker if there is one."""
    withheld: Withheld
    plan: str
    """The search plan that ran."""
    admissible: int
    """How many passages the policy admits at the as-of time."""
    known_at: int | None = None
    """The store's instant that was searched, in microseconds since 1970 UTC; None for an empty store."""
    topic: Topic = NOTHING_NAMED
    """What the question names."""
    words: Words | None = None
    """None where a ranker without words found the passages."""
    nearest: float | None = None
    """Similarity of the admissible passage most similar to the question; None if that of the passages is meant."""
    about: int | None = None
    """How many of the passages, the first ones, are about it; None for all."""
    lenders: tuple[Passage, ...] = ()
    """Admissible passages that are not among those found and hold the head rows of some of them."""
    backend: IndexState | None = None
    """What was searched, where that is a backend and not the index of this process."""
    respelt: str = ""
    """The question that was asked, if misspelt words of the one given were mended."""

    @property
    def shown(self) -> tuple[Passage, ...]:
        """The passages that a generator may read: none of another company than the one that the question names."""
        return () if self.topic.absent else self.passages[: self.about]
