"""What retrieval returns: admissible passages with text, and withheld ones without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from carag.limits import document_of_chunk
from carag.policy import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.backends import IndexState
    from carag.policy import Audience, Reason


@dataclass(frozen=True, slots=True)
class Head:
    """The head rows of a table that continues in a passage, as another admissible passage has them word for word."""

    chunk_id: str
    """The passage that has those rows."""
    start: int
    end: int
    """Character offsets in the text of the document part that both passages come from."""
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An admissible chunk with its text and the metadata for its citation."""

    chunk_id: str
    """``<accession number>:<ordinal>``."""
    text: str = field(repr=False)
    similarity: float
    """Cosine similarity to the question."""
    word: int
    """The policy word that the search admitted."""
    accession_number: str
    """The same as :attr:`document_id`, which should be used; `form`, `company` and `filed` are empty except for a
    filing."""
    form: str
    company: str
    filed: str
    """ISO date, or empty if unknown."""
    document: str
    """The part that the chunk is from: ``<TYPE>`` of a filing's document, such as ``EX-99.1``, or ``page 3``."""
    start: int
    end: int
    """Character offsets of the chunk in that document's text."""
    public_at: int = 0
    """Start of the word's validity, in minutes since 1970 UTC."""
    expires_at: int = NEVER
    """End of the word's validity, in minutes since 1970 UTC."""
    text_sha256: bytes = field(default=b"", repr=False, compare=False)
    """SHA-256 of the text's UTF-8, as checked by the store; empty if the passage is not from a store."""
    source: str = ""
    """The name of the document and its part in prompts and citations, as the profile says."""
    head: Head | None = None
    """The head rows of the table that the text begins inside, if a passage that the session may use has them."""

    @property
    def document_id(self) -> str:
        """The id under which the document was added; for a filing, its accession number."""
        return document_of_chunk(self.chunk_id)[0]

    @property
    def version(self) -> int:
        """The version of the document's text, from 1."""
        return document_of_chunk(self.chunk_id)[1]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A chunk that the question would have found but the policy hides; never its text."""

    chunk_id: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question names, and how much of it the documents that the session may use are about."""

    understood: str = ""
    """In the question's own words; empty if the question names nothing."""
    absent: str = ""
    """What the question names, if no document is about any of it: then no passage is shown to a generator."""
    missing: str = ""
    """The part of what the question names that no document is about, if some document is about the rest."""
    is_particular: bool = False
    """Whether the question names an entity, a title or a time, so that an answer must come from particular
    documents."""
    similar: str = ""
    """A word one letter from an absent name that some of the documents hold: the name may be misspelt."""


NOTHING_NAMED: Final = Topic()


@dataclass(frozen=True, slots=True)
class Withheld:
    """What the policy withholds."""

    kinds: tuple[Reason, ...]
    """The rules by which this policy hides passages, derived from the policy alone."""
    hidden: tuple[Hidden, ...] = ()
    """The hidden passages nearest to the question, if the role may know that they exist. Never shown to a model."""
    topic: Topic = NOTHING_NAMED
    """Set only for a generator, which learns from it what its passages say nothing about."""


@dataclass(frozen=True, slots=True)
class Words:
    """How well the best passage by words matches the question's words, as a share of the greatest possible score."""

    share: float
    """From 0 to 1."""
    least: float = 0.0
    """With a smaller share the passages are not about the question; this is the profile's ``least_words``."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a search found, what is withheld, and how it was searched."""

    passages: tuple[Passage, ...]
    """Admissible, best first, in the order of the reranker if there is one, else of the ranker."""
    withheld: Withheld
    plan: str
    """The search plan that ran."""
    admissible: int
    """The number of passages that the policy admits at the as-of time."""
    known_at: int | None = None
    """The store's instant that was searched, in microseconds since 1970 UTC; None for an empty store."""
    topic: Topic = NOTHING_NAMED
    words: Words | None = None
    """None if the ranker does not search by words."""
    nearest: float | None = None
    """The greatest similarity of any admissible passage; None if it is among ``passages``."""
    about: int | None = None
    """How many of the passages, from the first, are about the topic; None for all."""
    lenders: tuple[Passage, ...] = ()
    """Admissible passages that were not found themselves but have the head rows of some that were."""
    backend: IndexState | None = None
    """The state of the backend that was searched, unless it was this process's own index."""
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    """Who may see passages that are not for everybody, by chunk id: for proofs, and kept apart from what is shown."""
    respelt: str = ""
    """The question that was asked in place of the given one, if misspelt words were mended."""

    @property
    def shown(self) -> tuple[Passage, ...]:
        """The passages that a generator may read: if the question names a company, only those about that company."""
        return () if self.topic.absent else self.passages[: self.about]
