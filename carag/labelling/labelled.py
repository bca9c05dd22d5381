"""Define what a profile makes of a document for the store: its label, its facts and its labelled passages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from carag.labelling.canonical_json import canonical_json
from carag.policy import NEVER, NO_LISTS, Audience

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from carag.policy import Value


Facts: TypeAlias = "Mapping[str, Any]"
"""What is known about one document, as JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDocument:
    """A document with its label."""

    document_id: str
    """The document's id; for a filing, its accession number."""
    form: str = ""
    """The form of a filing; empty if unknown, and for any other document, as `company` and `filed` are."""
    company: str = ""
    filed: str = ""
    """ISO date."""
    content_hash: str
    """Hash of everything the rows depend on; see :func:`content_hash`."""
    facts: Mapping[str, Any] = field(repr=False)  # which say who may see the document
    """The facts that labelling read, as JSON values; labelling reads them again when a later document may change the
    label."""
    causes: Mapping[str, Any]
    """The causes of the label, as JSON values."""
    public_at_source: str
    """The fact that the passages' ``public_at`` comes from."""
    quarantine: tuple[str, str] | None = None
    """Stable code and explanation; None if the document is not quarantined."""
    ciks: tuple[int, ...] = ()
    """The numbers by which documents concern each other, if they share one: CIKs of a filing, hashes of other names."""

    @property
    def audience(self) -> Audience:
        """Who may see it."""
        lists = self.facts.get("audience")
        return Audience(**lists) if lists else NO_LISTS

    @property
    def stated(self) -> Mapping[str, Any]:
        """What identifies it in a heading or citation; see :func:`stated_of`."""
        return stated_of(self.facts.get("metadata"), self.company, self.form, self.filed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPassage:
    """A passage with its label."""

    document: str
    """The part of its document: ``<TYPE>`` of a filing's document, such as ``EX-99.1``, or a page."""
    start: int
    end: int
    """Character offsets in the text of that part."""
    text: str
    word: int
    """The policy word, version bits included."""
    public_at: int
    """Minutes since 1970 from which this word holds."""
    subjects: tuple[int, ...] = ()
    """The entities that the passage may be about: of a filing, CIKs of registrants, subject companies, issuer and
    owners. The store keeps them ascending; 0 stands for an entity that is not stated."""
    metadata: Mapping[str, Value] = field(default_factory=dict, hash=False)
    """The document's fields that the profile declares, in the form of :func:`carag.policy.in_one_form`."""
    expires_at: int = NEVER
    """Minutes since 1970 from which this word no longer holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is to be stored of one document."""

    document: LabelledDocument
    passages: Sequence[LabelledPassage] = ()
    """The passages of all parts, in order; none if only facts about the document are known, and not its text."""
    is_new: bool = True
    """Whether the store has no text of this document that can be found."""
    is_quarantined: bool = False
    """Whether the document is set aside by this."""
    remarks: tuple[str, ...] = ()
    """What its owner should know, in words."""
    vectors: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    """(passages, dim) float32, if the document brings them."""


class NotMade(NamedTuple):
    """Why something that was read is not stored: its place and the reason."""

    text: str
    is_fault: bool = False
    """Whether the reason is a fault of the program."""


def stated_of(metadata: Mapping[str, Any] | None, company: str, form: str, filed: str) -> Mapping[str, Any]:
    """Return what identifies a document: its metadata; for a filing, company, form and date."""
    return metadata or {"company": company, "form": form, "filed": filed}


def content_hash(facts: Mapping[str, Any], texts: Iterable[str], *, version: str) -> str:
    """Hash everything a document's rows depend on, so that a second run can detect changes.

    A modification date would miss the second of two changes in one day. The result is the SHA-256, in hex, of the
    canonical JSON of ``version`` (of chunker and labeller), ``facts`` (JSON values) and the texts in order.

    Examples
    --------
    >>> content_hash({"form": "10-K"}, ["Item 1."], version="1")[:16]
    'd78c9cc114413c38'
    """
    text = canonical_json([version, facts, list(texts)], "content")
    return hashlib.sha256(text.encode()).hexdigest()
