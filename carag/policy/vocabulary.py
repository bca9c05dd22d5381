"""Read ``profile.toml``; unknown keys or bits, a 28th bit and invalid phrases are refused; the error names the line."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self
from unicodedata import category
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from carag.errors import MALFORMED, InvalidArgument
from carag.limits import INT64, quoted
from carag.policy.bits import bits_of
from carag.policy.intent import Intent, IntentRule, Intents
from carag.policy.mask import Mask
from carag.policy.shipped import DEFAULT_PROFILE, READERS, shipped_text
from carag.policy.toml_lines import Toml, a_number
from carag.policy.where import FieldKind
from carag.policy.word import POLICY_BITS, PolicyBit, PolicyFlag, flags_named, same_bits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_CELL: Final = "compliance, by a reviewed change of this cell of the role and purpose table"
_MAX_BITS: Final = POLICY_BITS.bit_length()
"""The number of bits in a policy vector."""
_MAX_METADATA: Final = 64
"""Greatest number of declared fields, the same as in one document's metadata."""


def _printable(text: str) -> str:
    if not all(one.isprintable() or category(one) == "Zs" for one in text):
        raise ValueError(
            f"{quoted(text)} has unprintable characters, which could rewrite a terminal; remove them"
        )
    return text


_Name = Annotated[str, Field(pattern=r"^[a-z][a-z_]*$", max_length=64)]
_BitName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=64)]
Text = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_printable)]
_Field = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_Code = Literal[
    "TOMBSTONE",
    "UNLABELLED",
    "QUARANTINE",
    "NOT_YET_PUBLIC",
    "EXPIRED",
    "COOLING",
    "ENTITY_DENIED",
    "ENTITY_NOT_ALLOWED",
    "AUDIENCE",
    "AUTHORITY",
    "FORBIDDEN",
    "REQUIRED",
    "COMBINATION",
    "RESTRICTED_LIST",
    "WATCH_LIST",
    "QUIET_PERIOD",
    "WALL_CROSSED",
    "OBJECTION",
    "RESTRICTION",
]
"""The codes of ``explain.Rule`` and ``restrictions.Basis``, whose modules import this one."""
Schema = Annotated[Literal[1], BeforeValidator(a_number)]

_Part = Annotated[Text, Field(pattern=r"^[^{}]*\{[a-z][a-z0-9_]*\}[^{}]*$")]
_Metadata = Annotated[dict[_Field, FieldKind], Field(max_length=_MAX_METADATA)]


class _ProfilePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class BitMeaning(_ProfilePart):
    """What a set bit states about a passage, the regulation it serves, and who could lift a rule that forbids it."""

    name: _BitName
    document: Text
    """The kind of document that carries the bit, as a noun phrase."""
    regulation: Text
    """The rules that this control is designed for."""
    lift: Text = _CELL


class Words(_ProfilePart):
    """The domain's words for things that every domain has."""

    entity: Text = "entity"
    """Stands before an entity's number, as in ``CIK 7``."""
    entities: Text = "persons or organisations"
    cooling: Text = "recent documents"
    """The documents that a cooling time holds back."""


class _Impossible(_ProfilePart):
    required: list[str] = []
    forbidden: list[str] = []


class _Intent(_ProfilePart):
    name: _BitName
    required: list[str] = []
    forbidden: list[str] = []
    phrases: list[Text] = Field(min_length=1)
    case_matters: bool = False
    unless: Literal["personal_data"] | None = None


class RequiredFact(_ProfilePart):
    """A fact; a document that lacks it, or states another value, is quarantined."""

    field: _Field
    one_of: list[Text] = Field(min_length=1)


class FactRule(_ProfilePart):
    """A rule that sets one bit if a fact of the document is as stated."""

    bit: str
    field: _Field
    operator: Literal["equals", "one_of", "contains", "is_true", "at_least", "at_most"]
    value: str | int | float | bool | list[str] | None = None
    """A list for ``one_of``, nothing for ``is_true``, a number for ``at_least`` and ``at_most``."""
    regulation: Text

    @model_validator(mode="after")
    def _fitting_value(self) -> Self:
        kinds: dict[str, tuple[type, ...]] = {
            "one_of": (list,),
            "is_true": (type(None),),
            "at_least": (int, float),
            "at_most": (int, float),
        }
        kind = kinds.get(self.operator, (str, int, float, bool))
        is_number = self.operator in ("at_least", "at_most")
        if not isinstance(self.value, kind) or (is_number and isinstance(self.value, bool)):
            raise ValueError(f"value of {self.operator} is {quoted(self.value)}, which has the wrong type")
        is_unfit = self.value == [] or (isinstance(self.value, float) and not isfinite(self.value))
        if is_unfit or (isinstance(self.value, int) and not -INT64 <= self.value < INT64):
            raise ValueError(f"value of {self.operator} is {quoted(self.value)}, which no fact can match")
        return self


class _Chunking(_ProfilePart):
    by: Literal["passages", "clauses"] = "passages"
    target: int = Field(default=1000, ge=1)
    limit: int = Field(default=1500, le=1 << 20)
    whole: int | None = Field(default=None, ge=1, le=1 << 20)
    overlap: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        lengths = [self.target, self.limit, self.whole or self.limit]
        if lengths != sorted(lengths):
            raise ValueError(f"target, limit and whole are {lengths}; want them in ascending order")
        if self.by != "clauses" and (self.overlap or self.whole):
            raise ValueError("overlap and whole apply to clauses only; remove them, or set by = 'clauses'")
        if self.overlap >= self.target:
            raise ValueError(f"overlap is {self.overlap}; want less than the target, {self.target}")
        return self


class _NotMeant(_ProfilePart):
    not_meant: list[Text] = []


class _Sharing(_ProfilePart):
    required: bool = False


class _Erasing(_ProfilePart):
    two_persons: bool = True


class _ProfileFile(_ProfilePart):
    schema_: Schema = Field(alias="schema")
    name: _Name
    reader: _Name = "folder"
    time_zone: Text = "UTC"
    words: Words = Words()
    groups: dict[Literal["jurisdictions", "personal", "transfer", "cooling"], list[str]] = {}
    lifecycle: dict[Literal["replaced", "withdrawn", "amended", "pending"], str] = {}
    audience: _Sharing = _Sharing()
    erasure: _Erasing = _Erasing()
    purposes: dict[Literal["advice", "publishing", "access_request", "obliged"], list[_Name]] = {}
    regulations: dict[_Code, Text] = {}
    bit: list[BitMeaning] = Field(min_length=1, max_length=_MAX_BITS)
    impossible: list[_Impossible] = []
    required: list[RequiredFact] = []
    rule: list[FactRule] = []
    metadata: _Metadata = {}
    heading: list[_Part] = ["{title}"]
    citation: list[_Part] = Field(default=["{title}", "{part}", "{id}"], min_length=1)
    chunking: _Chunking = _Chunking()
    intent: list[_Intent] = []
    intents: _NotMeant = _NotMeant()

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                f"{name!r} is not a time zone; want one such as 'Europe/Paris' or 'UTC'"
            ) from error
        return name

    @field_validator("reader")
    @classmethod
    def _known_reader(cls, name: str) -> str:
        if name not in READERS:
            raise ValueError(f"{name!r} is not a reader; want one of {', '.join(READERS)}")
        return name


@dataclass(frozen=True, slots=True)
class Groups:
    """The bits that the code needs to find by meaning, as vectors; 0 where the domain has no such bit."""

    jurisdictions: int = 0
    """Where a document's subject is established, which a session's residency may exclude."""
    personal: int = 0
    """Personal data (GDPR Art. 4(1))."""
    transfer: int = 0
    """Jurisdictions whose personal data need a basis to leave (GDPR Art. 44-46)."""
    cooling: int = 0
    """What a cooling time holds back."""


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The bits that acts of other documents set and time clears; None where the domain has no such bit."""

    replaced: PolicyFlag | None = None
    """Set on a document that another document replaces."""
    withdrawn: PolicyFlag | None = None
    """Set on a document that another document withdraws."""
    amended: PolicyFlag | None = None
    """Set on a document that another document amends."""
    pending: PolicyFlag | None = None
    """Set on a document that is public but not yet in force."""

    @property
    def names(self) -> dict[str, str]:
        """The names of these bits, by the act that sets each."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: bit.name for name, bit in given.items() if bit is not None}


@dataclass(frozen=True, slots=True)
class PurposeKinds:
    """The purposes to which rules beyond masks apply."""

    advice: frozenset[str] = frozenset()
    """Restricted by a cooling time and by knowledge of a deal."""
    publishing: frozenset[str] = frozenset()
    """Restricted by a quiet period."""
    access_request: frozenset[str] = frozenset()
    """A data subject's request for access (GDPR Art. 15)."""
    obliged: frozenset[str] = frozenset()
    """Covered by a legal obligation (GDPR Art. 6(1)(c))."""


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The meaning of the bits, words and calendar of one profile."""

    profile: str
    text: str
    reader: str
    """The reader of documents: ``edgar``, which labels them as well, ``folder``, or a profile that ships a reader."""
    flags: type[PolicyFlag]
    meanings: Mapping[str, BitMeaning]
    """By the name of the bit."""
    groups: Groups
    lifecycle: Lifecycle
    kinds: PurposeKinds
    words: Words
    regulations: Mapping[str, str]
    """Maps the code of a rule or list to the regulations that it is designed for."""
    impossible: tuple[Mask, ...]
    """Masks that match no word of this domain."""
    required: tuple[RequiredFact, ...]
    """Facts that every document must state."""
    rules: tuple[FactRule, ...]
    """From facts to bits; none where a reader's own code labels, as for EDGAR."""
    audience_required: bool
    """Whether a document that does not state who may see it is quarantined; otherwise it is for everybody."""
    two_persons_erase: bool
    """Whether a second person must approve that documents are erased."""
    metadata: Mapping[str, FieldKind]
    """The fields of documents by which a search can be narrowed."""
    heading: tuple[str, ...]
    """The text under which a passage is embedded: parts with a field of the document in braces, joined by spaces."""
    citation: tuple[str, ...]
    """How a citation names a document: parts, joined by commas; ``part`` is a page or exhibit."""
    by: Literal["passages", "clauses"]
    """Where documents are split."""
    target: int
    limit: int
    whole: int
    """In characters: target length and greatest length of a passage, and greatest length of one whole clause."""
    overlap: int
    """How many characters the parts of a clause that had to be split may share."""
    intents: Intents
    zone: ZoneInfo
    """The time zone in which a day begins and ends."""

    @classmethod
    def from_toml(cls, text: str, *, flags: type[PolicyFlag] | None = None) -> Self:
        """Validate a ``profile.toml``; ``flags`` is the code's type for the profile's bits, by default a new one."""
        toml = Toml("profile.toml", text)
        return cls._of(toml.read(_ProfileFile), toml, flags)

    @classmethod
    def _of(cls, said: _ProfileFile, toml: Toml, given: type[PolicyFlag] | None) -> Self:
        _no_name_twice(toml, "bit", said.bit)
        _no_name_twice(toml, "intent", said.intent)
        named = flags_named(said.name, [one.name for one in said.bit])
        flags = named if given is None else given
        if not same_bits(named, flags):
            raise InvalidArgument(
                f"profile {said.name} names other bits than {flags.__name__}; want the same bits in the same order"
            )
        if said.reader == DEFAULT_PROFILE and not same_bits(flags, PolicyBit):
            with toml.at("reader"):
                raise InvalidArgument(
                    "the reader `edgar` sets the bits of EDGAR's profile; name those bits, in order"
                )
        groups = {name: _vector(toml, ("groups", name), bits, flags) for name, bits in said.groups.items()}
        lifecycle = {
            name: flags(_vector(toml, ("lifecycle", name), [bit], flags))
            for name, bit in said.lifecycle.items()
        }
        made = cls(
            profile=said.name,
            text=toml.text,
            reader=said.reader,
            flags=flags,
            meanings={one.name: one for one in said.bit},
            groups=Groups(**groups),
            lifecycle=Lifecycle(**lifecycle),
            kinds=PurposeKinds(**{kind: frozenset(names) for kind, names in said.purposes.items()}),
            words=said.words,
            regulations={str(code): rule for code, rule in said.regulations.items()},
            impossible=tuple(
                _mask(toml, ("impossible", number), one, flags) for number, one in enumerate(said.impossible)
            ),
            required=tuple(said.required),
            rules=tuple(said.rule),
            audience_required=said.audience.required,
            two_persons_erase=said.erasure.two_persons,
            metadata=dict(said.metadata),
            heading=tuple(said.heading),
            citation=tuple(said.citation),
            by=said.chunking.by,
            target=said.chunking.target,
            limit=said.chunking.limit,
            whole=said.chunking.whole or said.chunking.limit,
            overlap=said.chunking.overlap,
            intents=Intents(
                tuple(_rule(toml, number, one, flags) for number, one in enumerate(said.intent)),
                tuple(
                    _pattern(toml, ("intents", "not_meant", number), phrase)
                    for number, phrase in enumerate(said.intents.not_meant)
                ),
            ),
            zone=ZoneInfo(said.time_zone),
        )
        for number, rule in enumerate(said.rule):
            _vector(toml, ("rule", number, "bit"), [rule.bit], flags)
        flags.vocabulary = made
        return made

    @classmethod
    def shipped(cls, name: str = DEFAULT_PROFILE) -> Vocabulary:
        """Read the vocabulary of a profile that ships with the package.

        Examples
        --------
        >>> Vocabulary.shipped().meanings["FS_AUDITED"].document
        'audited financial statements'
        """
        return _shipped(name)


def meaning(bit: PolicyFlag) -> BitMeaning:
    """Return what one bit means in its profile, and which regulation it serves.

    Examples
    --------
    >>> meaning(PolicyBit.FS_AUDITED).document
    'audited financial statements'
    """
    return vocabulary_of(type(bit)).meanings[bit.name]


def intents(text: str) -> tuple[Intent, ...]:
    """Find the intents in a question over EDGAR filings, in the order of :class:`Intent`.

    Examples
    --------
    >>> [intent.value for intent in intents("What do the latest audited figures show?")]
    ['AUDITED', 'LATEST']
    >>> intents("Is this governed by the Securities Act of 1933, as amended?")
    ()
    """
    return tuple(Intent(name) for name in Vocabulary.shipped().intents.found(text))


def vocabulary_of(flags: type[PolicyFlag]) -> Vocabulary:
    """Return the vocabulary that a flag type was made from."""
    return Vocabulary.shipped() if flags is PolicyBit else flags.vocabulary


@cache
def _shipped(name: str) -> Vocabulary:
    flags = PolicyBit if name == DEFAULT_PROFILE else None
    return Vocabulary.from_toml(shipped_text(name, "profile.toml"), flags=flags)


def _no_name_twice(toml: Toml, kind: str, several: Sequence[BitMeaning | _Intent]) -> None:
    names = [one.name for one in several]
    for number, name in enumerate(names):
        if name in names[:number]:
            with toml.at(kind, number, "name"):
                raise InvalidArgument(f"{name} is named more than once; name it once")


def _vector(toml: Toml, place: tuple[str | int, ...], bits: list[str], flags: type[PolicyFlag]) -> int:
    with toml.at(*place):
        return bits_of(bits, flags=flags)


def _mask(
    toml: Toml, place: tuple[str | int, ...], one: _Impossible | _Intent, flags: type[PolicyFlag]
) -> Mask:
    required, forbidden = (
        _vector(toml, (*place, side), getattr(one, side), flags) for side in ("required", "forbidden")
    )
    with toml.at(*place):
        if not required | forbidden:
            raise InvalidArgument("it names no bit; name at least one required or forbidden bit")
        return Mask(required, forbidden, flags=flags)


def _rule(toml: Toml, number: int, one: _Intent, flags: type[PolicyFlag]) -> IntentRule:
    place = ("intent", number)
    phrases = tuple(
        _pattern(toml, (*place, "phrases", which), phrase, case_matters=one.case_matters)
        for which, phrase in enumerate(one.phrases)
    )
    return IntentRule(one.name, _mask(toml, place, one, flags), phrases, one.unless)


def _pattern(
    toml: Toml, place: tuple[str | int, ...], phrase: str, *, case_matters: bool = False
) -> re.Pattern[str]:
    with toml.at(*place):
        try:
            return re.compile(phrase, 0 if case_matters else re.IGNORECASE)
        except (
            re.error,
            *MALFORMED,
        ) as error:  # too large a repetition or too deep a nesting raises errors other than re.error
            raise InvalidArgument(f"{quoted(phrase)} is not a regular expression: {error}") from error
