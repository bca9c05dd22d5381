"""Define the document that a reader of any domain makes, and check it before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import partial
from itertools import accumulate, pairwise
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar, final

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import INT64, check_id, check_label, check_text, quoted
from carag.policy.audience import Audience
from carag.policy.bits import bits_of, flags_of
from carag.policy.entities import entity_set
from carag.policy.time import as_of_minutes

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date, datetime

    from numpy.typing import NDArray

    from carag.policy import Bits

__all__ = ["Act", "ActKind", "Document", "Scalar"]

Scalar: TypeAlias = str | int | float | bool | None
"""The value of a metadata field, or one value of a fact."""

_Kind = TypeVar("_Kind")

_MAX_FIELDS: Final = 64
"""Greatest number of fields in a document's metadata."""
_MAX_VALUE: Final = 1000
"""Greatest length of a text in metadata or facts, in characters."""
_MAX_FACTS: Final = 256
"""Greatest number of facts that a document may state."""
_MAX_LISTED: Final = 1000
"""Greatest number of values in one fact, and of a document's names and acts."""
FIELD: Final = re.compile("[a-z][a-z0-9_]*", re.ASCII)
_LANGUAGE: Final = re.compile("[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", re.ASCII)


class ActKind(StrEnum):
    """What a document does to others."""

    REPLACES = "replaces"
    WITHDRAWS = "withdraws"
    AMENDS = "amends"


@final
@dataclass(frozen=True, slots=True)
class Act:
    """What a document does to others, which the act names; :attr:`Document.acts` holds a document's acts.

    A profile's ``[lifecycle]`` says which bit ``kind`` sets on the others; without such a bit, ``replaces`` and
    ``withdraws`` end the others' passages, and ``amends`` changes nothing. ``name`` is an id, or one of the
    :attr:`Document.names`, and means every document that bears the name and was public no later than this one,
    whichever arrives first. ``since`` defaults to when this document comes into force; an act never begins before its
    own document is public.

    Examples
    --------
    >>> Act("withdraws", "number 7/2023").kind
    <ActKind.WITHDRAWS: 'withdraws'>
    """

    kind: ActKind
    name: str
    since: datetime | date | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in list(ActKind):
            raise InvalidArgument(
                f"the kind of an act is {quoted(self.kind)}; want one of {', '.join(ActKind)}"
            )
        object.__setattr__(self, "kind", ActKind(self.kind))
        check_id("the name in an act", self.name)
        _minutes(f"since of the act on {self.name!r}", self.since, 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it enters a store; :meth:`carag.Engine.add` takes it.

    Parameters
    ----------
    id : str
        1 to 159 printable characters; adding another document under the same id replaces this one. Passages are called
        ``<id>:<ordinal>``.
    text : str
        Any Unicode text that UTF-8 can hold, without NUL.
    bits : PolicyBit, str, int, or iterable of PolicyBit and str, optional
        The policy bits, as :func:`carag.policy.bits_of` reads them. ``()`` makes the document public. Names are looked
        up when the document is added, because only a store knows its vocabulary.
    facts : mapping of str to str, int, float, bool, None, or a list of them, optional
        What the rules of the store's profile turn into bits: at most 256. Give exactly one of ``bits`` and ``facts``.
    metadata : mapping of str to str, int, float, bool or None
        At most 64 fields with names such as ``case_number``; texts have at most 1,000 characters.
    entities : iterable of int
        The entities that the document may be about, numbered as in a policy's lists. Without any, its subject is
        unknown: a session with a list of denied entities does not find it.
    allow, deny : iterable of str
        Who may see the document: principals of the form ``kind:id``, such as ``"group:treasury"`` and ``"user:ana"``,
        at most 10,000 together. A session must have one of ``allow``, unless that is None, and none of ``deny``, which
        beats ``allow``. An empty ``allow`` shares the document with no one. With a group that the store does not know,
        ``deny`` hides the document from all.
    public_at, expires_at : datetime or date, optional
        From when and until when the document may be found: an aware datetime, or a date as
        :func:`carag.policy.as_of_minutes` reads it. None: always public, never expires.
    retain_until : datetime or date, optional
        Until when the document must be kept: a request to erase it waits until then, an order by law does not
        (:class:`carag.audit.Basis`). Read like ``public_at``.
    erase_after : datetime or date, optional
        From when the document is due to be erased, no earlier than ``retain_until``; ``carag erase-due`` does it.
    supersedes : str, optional
        The id of the document that this one replaces from its ``public_at`` on.
    names : iterable of str
        Names other than its id by which other documents' acts may mean this one, such as its number: at most 1,000.
    acts : iterable of Act
        What the document does to others: at most 1,000 acts.
    in_force_at : datetime or date, optional
        When the document comes into force, if that is later than ``public_at``: an aware datetime, or a date, which
        counts from its first minute on. Until then it has the bit of ``pending`` in its profile's ``[lifecycle]``,
        which must name one.
    language : str, optional
        A language tag (BCP 47), such as ``"de-CH"``.
    pages : iterable of int
        The ascending character offsets in the text at which its pages begin; a blank page begins where the next one
        does.
    read_by : str, optional
        The reader that extracted the text from a file, with its version, such as ``"pdf/2"``, so that a store can tell
        which documents an earlier reader read.
    vectors : (n, dim) float32 or float16, optional
        A vector for each passage, which is then not embedded: n >= 1 rows, finite and none of them zero. Rows are
        scaled to length 1, so similarity is the cosine. A float32 copy is kept, which cannot be written to.
    embedded_by : str, optional
        The name of the model that made the vectors, which must be the name of the store's embedder; only with them.
    cuts : iterable of int
        The ascending character offsets at which the passages begin that ``vectors`` belong to, the first 0; they are
        not cut again, and none may be blank. Without cuts, the text is one passage. See :meth:`of_passages`.

    Examples
    --------
    >>> from datetime import date
    >>> Document(id="circular/7", text="Branches report monthly.", bits=(), public_at=date(2025, 5, 1)).bits
    ()
    """

    id: str
    text: str = field(repr=False)
    bits: Bits | None = None
    facts: Mapping[str, Scalar | Iterable[Scalar]] | None = field(default=None, repr=False, hash=False)
    metadata: Mapping[str, Scalar] = field(default_factory=dict, repr=False, hash=False)
    entities: Iterable[int] = field(default=(), repr=False)
    allow: Iterable[str] | None = field(default=None, repr=False)
    deny: Iterable[str] = field(default=(), repr=False)
    public_at: datetime | date | None = None
    expires_at: datetime | date | None = None
    retain_until: datetime | date | None = None
    erase_after: datetime | date | None = None
    supersedes: str | None = None
    names: Iterable[str] = ()
    acts: Iterable[Act] = ()
    in_force_at: datetime | date | None = None
    language: str | None = None
    pages: Iterable[int] = field(default=(), repr=False)
    read_by: str | None = field(default=None, repr=False)
    vectors: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    embedded_by: str | None = None
    cuts: Iterable[int] = field(default=(), repr=False)

    @classmethod
    def of_passages(
        cls, passages: Iterable[str], vectors: NDArray[np.floating[Any]], embedded_by: str, **stated: Any
    ) -> Self:
        """Make a document of passages that have vectors already; ``stated`` is everything else, such as ``id``.

        Raises InvalidArgument as the class does.

        Examples
        --------
        >>> import numpy as np
        >>> two = np.eye(2, 3, dtype="float32")
        >>> one = Document.of_passages(["At noon.", "At two."], two, "mpnet", id="hours", bits=())
        >>> one.passages
        ['At noon.', 'At two.']
        """
        texts = _several("passages", passages, str)
        starts = [0, *accumulate(map(len, texts))][:-1]
        return cls(text="".join(texts), cuts=starts, vectors=vectors, embedded_by=embedded_by, **stated)

    @property
    def passages(self) -> list[str]:
        """The texts that the vectors belong to."""
        starts = [*self.cuts] or [0]
        return [self.text[start:end] for start, end in pairwise([*starts, len(self.text)])]

    def __post_init__(self) -> None:
        check_id("id of a document", self.id)
        what = f"of document {self.id!r}"
        check_text(f"text {what}", self.text)
        if (self.bits is None) == (self.facts is None):
            given = "neither bits nor facts" if self.bits is None else "both bits and facts"
            raise InvalidArgument(
                f"document {self.id!r} has {given}; give exactly one: bits=() makes it public, and the rules of the "
                "store's profile turn facts into bits"
            )
        self._set("bits", None if self.bits is None else _bits(f"bits {what}", self.bits))
        self._set("facts", None if self.facts is None else _facts(what, self.facts))
        self._set("metadata", _metadata(what, self.metadata))
        self._set("entities", tuple(sorted(entity_set(f"entities {what}", self.entities))))
        try:
            audience = Audience(self.allow, self.deny)
        except InvalidArgument as error:
            raise InvalidArgument(f"document {self.id!r}: {error}") from None
        self._set("allow", audience.allow)
        self._set("deny", audience.deny)
        _check_times(what, self.public_at, self.expires_at)
        _check_retention(what, self.retain_until, self.erase_after)
        if self.supersedes is not None:
            check_id(f"supersedes {what}", self.supersedes)
            if self.supersedes == self.id:
                raise InvalidArgument(
                    f"document {self.id!r} supersedes itself; give another document's id, or leave it out: adding "
                    "changed text under the same id already makes a new version"
                )
        self._set("names", tuple(sorted(set(_several(f"names {what}", self.names, str)))))
        for name in self.names:
            check_id(f"a name {what}", name)
        self._set("acts", tuple(dict.fromkeys(_several(f"acts {what}", self.acts, Act))))
        _minutes(f"in_force_at {what}", self.in_force_at, 0)
        if self.language is not None and not (
            isinstance(self.language, str) and _LANGUAGE.fullmatch(self.language)
        ):
            raise InvalidArgument(
                f"language {what} is {quoted(self.language)}; want a BCP 47 tag such as 'en' or 'de-CH'"
            )
        self._set("pages", _pages(what, self.pages, len(self.text)))
        if self.read_by is not None:
            check_label(f"read_by {what}", self.read_by)
        self._set("cuts", _pages(what, self.cuts, len(self.text), "cuts"))
        self._set("vectors", self._checked_vectors(what))

    def _checked_vectors(self, what: str) -> NDArray[np.float32] | None:
        if self.vectors is None:
            if self.embedded_by is not None or self.cuts:
                raise InvalidArgument(f"embedded_by or cuts {what} are given without vectors; give those too")
            return None
        check_label(f"embedded_by {what}, the model that made its vectors,", self.embedded_by)
        passages = self.passages
        if next(iter(self.cuts), 0) != 0:
            raise InvalidArgument(f"the first of the cuts {what} is not 0; want every character in a passage")
        if blank := [at for at, one in enumerate(passages) if not one.strip()]:
            raise InvalidArgument(f"passage {blank[0]} {what} has no text; leave it and its vector out")
        return _vectors(f"vectors {what}", self.vectors, len(passages))

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        # Readers may run in other processes, and a read-only view of a mapping cannot be pickled; a dict can.
        values: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
        make: Callable[..., Document] = Document
        return partial(make, **plain), ()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _bits(name: str, bits: Bits) -> Bits:
    """Check bits as far as possible without a vocabulary, and keep a list of bits as a tuple."""
    if isinstance(bits, str):
        bits = (bits,)
    elif isinstance(bits, (int, bytes, Mapping)) or not isinstance(bits, Iterable):
        bits_of(bits, name=name, flags=flags_of(bits))
        return bits
    several = tuple(bits)
    bits_of([one for one in several if not isinstance(one, str)], name=name, flags=flags_of(several))
    for one in several:
        if isinstance(one, str):
            check_label(name, one)
    return several


def _metadata(what: str, metadata: object) -> Mapping[str, Scalar]:
    found = _mapping(f"metadata {what}", metadata, _MAX_FIELDS)
    for name, value in found.items():
        check_label(f"a field's name in the metadata {what}", name)
        if not FIELD.fullmatch(name):
            raise InvalidArgument(
                f"metadata {what} has a field {quoted(name)}; want lower-case letters, digits and _, as in case_number"
            )
        _check_scalar(f"field {name!r} in the metadata {what}", value)
    return MappingProxyType(found)


def _facts(what: str, facts: object) -> Mapping[str, Scalar | tuple[Scalar, ...]]:
    found = _mapping(f"facts {what}", facts, _MAX_FACTS)
    for name, value in found.items():
        check_label(f"a fact's name {what}", name)
        fact = f"fact {name!r} {what}"
        if isinstance(value, (list, tuple)):
            if len(value) > _MAX_LISTED:
                raise InvalidArgument(f"{fact} lists {len(value)} values; want {_MAX_LISTED} at most")
            found[name] = value = tuple(value)
        for one in value if isinstance(value, tuple) else (value,):
            _check_scalar(fact, one)
    return MappingProxyType(found)


def _mapping(name: str, value: object, most: int) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{name} are {quoted(value)}; want a mapping of names to values")
    if len(value) > most:
        raise InvalidArgument(f"{name} have {len(value)} entries; want {most} at most")
    return dict(value)


def _check_scalar(name: str, value: object) -> None:
    # Subclasses are refused, because their values could compare and print differently.
    if value is None or type(value) is bool:
        return
    if type(value) is str:
        check_text(name, value, _MAX_VALUE)
    elif not ((type(value) is int and -INT64 <= value < INT64) or (type(value) is float and isfinite(value))):
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want text, a boolean, None, or a finite number of 64 bits at most"
        )


def _check_times(what: str, public_at: datetime | date | None, expires_at: datetime | date | None) -> None:
    public = _minutes(f"public_at {what}", public_at, 0)
    if expires_at is not None and (expires := _minutes(f"expires_at {what}", expires_at, 0)) <= public:
        raise InvalidArgument(
            f"expires_at {what} is minute {expires}, and public_at minute {public}; want expires_at after public_at"
        )


def _check_retention(
    what: str, retain_until: datetime | date | None, erase_after: datetime | date | None
) -> None:
    kept, due = (
        _minutes(f"{name} {what}", value, 0)
        for name, value in (("retain_until", retain_until), ("erase_after", erase_after))
    )
    if erase_after is not None and due < kept:
        raise InvalidArgument(
            f"erase_after {what} is minute {due}, and retain_until minute {kept}; want erase_after no earlier"
        )


def _minutes(name: str, value: datetime | date | None, absent: int) -> int:
    try:
        return absent if value is None else as_of_minutes(value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from error


def _several(name: str, values: object, kind: type[_Kind]) -> list[_Kind]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidArgument(f"{name} are {quoted(values)}; want a list")
    found = list(values)
    if len(found) > _MAX_LISTED:
        raise InvalidArgument(f"{name} have {len(found)} entries; want {_MAX_LISTED} at most")
    for one in found:
        if not isinstance(one, kind):
            raise InvalidArgument(f"{name} hold {quoted(one)}; want only {kind.__name__} values")
    return found


def _vectors(name: str, vectors: object, passages: int) -> NDArray[np.float32]:
    """Check vectors, and copy them, so that a change of the caller's array changes no document."""
    if not isinstance(vectors, np.ndarray) or vectors.dtype not in (np.float32, np.float16):
        kind = vectors.dtype if isinstance(vectors, np.ndarray) else type(vectors).__name__
        raise InvalidArgument(f"{name} are {kind}; want an array of float32 or float16")
    if vectors.ndim != 2 or vectors.shape[0] != passages or not vectors.shape[1]:
        raise InvalidArgument(
            f"{name} have the shape {vectors.shape}; want one row for each of {passages} passages"
        )
    found = np.array(vectors, np.float32)
    usable = np.isfinite(found).all(axis=1) & found.any(axis=1)
    if bad := np.flatnonzero(~usable).tolist():
        raise InvalidArgument(f"{name} are zero or not finite in rows {bad[:5]}; leave these passages out")
    found.flags.writeable = False
    return found


def _pages(what: str, pages: object, length: int, name: str = "pages") -> tuple[int, ...]:
    if isinstance(pages, (str, bytes)) or not isinstance(pages, Iterable):
        raise InvalidArgument(f"{name} {what} are {quoted(pages)}; want character offsets")
    found = tuple(pages)
    last = 0
    for page in found:
        if type(page) is not int or not last <= page <= length:
            raise InvalidArgument(
                f"{name} {what} hold {quoted(page)}; want ascending character offsets, 0 to {length}"
            )
        last = page
    return found
