"""Events: what the caller of the log knows about one request or one change.

An :class:`Access` says that somebody asked, an :class:`Ingest` that what can be found changed, a
:class:`Recovery` that the log itself had unfinished business. The log wraps an event into a record
(``record.py``), which adds what only the log knows.

Nothing personal and no prose may stand here, because a record is kept for years and never altered: values
that name people are committed to beside the event, reasons are codes, and a role or purpose that the policy
table does not know is ``None`` rather than what somebody typed. Nothing may depend on passages the asker may
not use, because the asker holds the receipt: no hidden ids, no hidden counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, Protocol, Self

from carag.audit import _fields
from carag.audit.canonical import Json, b64url, unb64url
from carag.errors import InvalidArgument

__all__ = [
    "UNDISCLOSED",
    "Access",
    "EntityRule",
    "Event",
    "IndexState",
    "Ingest",
    "ListKind",
    "Models",
    "Outcome",
    "PolicyApplied",
    "RecordKind",
    "Recovery",
    "SessionSource",
]

# A record is read for years without the policy room, so record version 1 pins that room's words of version 1.
_CONTROL: Final = 0xF800_0000
_VERSION_WORD: Final = 1 << 27
_POLICY_BITS: Final = (1 << 27) - 1
_MAX_MASKS: Final = 8

UNDISCLOSED: Final = frozenset({"entities", "targets"})
"""Commitments whose values no receipt opens: lists of companies are inside information, and the asker holds the
receipt; lists of erased records tie a person's records together. They stay in the log's private half, for whoever
may audit them."""


class RecordKind(StrEnum):
    """What a record is about."""

    QUERY = "query"
    RETRIEVE = "retrieve"
    EXPLAIN = "explain"
    INGEST = "ingest"
    RECOVERY = "recovery"
    ERASURE = "erasure"
    HOLD = "hold"
    DISCLOSURE = "disclosure"
    BEGIN = "begin"


class Outcome(StrEnum):
    """How a request ended."""

    ANSWER = "answer"
    DECLINE = "decline"
    REFUSE = "refuse"
    ERROR = "error"


class SessionSource(StrEnum):
    """Whether the session's role and purpose were claimed by the caller or proved by a token."""

    ASSERTED = "asserted"
    VERIFIED = "verified"


class ListKind(StrEnum):
    """What being on a list means."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class EntityRule:
    """That there was a list of entities: which kind, how long. Who is on it is committed to beside the event.

    Not even their hash stands here: there are few enough companies to try them all.

    Parameters
    ----------
    kind : ListKind
    count : int
    """

    kind: ListKind
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _fields.member(ListKind, self.kind))
        _fields.integer("listed entities", self.count, 0)

    def to_json(self) -> Json:
        """Return the form that is encoded."""
        return {"count": int(self.count), "kind": self.kind.value}

    @classmethod
    def from_json(cls, fields: Any) -> EntityRule:
        """Read what :meth:`to_json` returns."""
        return cls(fields["kind"], fields["count"])


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """The policy a request ran under. What was not in force is not encoded, so that older records keep their bytes.

    Parameters
    ----------
    table : bytes
        SHA-256 of the role and purpose table.
    masks : tuple of (required, forbidden)
        Up to eight pairs of 27-bit vectors; none admits nothing.
    entities : EntityRule, optional
        The list beside them.
    reopened : tuple of (required, forbidden)
        Pairs that admitted besides, under a list of their own.
    reopened_entities : EntityRule, optional
    cooling : int
        Minutes that a report of a material event must have been public.
    """

    table: bytes
    masks: tuple[tuple[int, int], ...] = ()
    entities: EntityRule | None = None
    reopened: tuple[tuple[int, int], ...] = ()
    reopened_entities: EntityRule | None = None
    cooling: int = 0

    def __post_init__(self) -> None:
        _fields.digest("policy table hash", self.table)
        for masks in (self.masks, self.reopened):
            if len(masks) > _MAX_MASKS:
                raise InvalidArgument(f"a policy has at most {_MAX_MASKS} masks, got {len(masks)}")
            for required, forbidden in masks:
                _fields.integer("required bits", required, 0, _POLICY_BITS)
                _fields.integer("forbidden bits", forbidden, 0, _POLICY_BITS)
                if required & forbidden:
                    raise InvalidArgument(f"bits {required & forbidden:#x} are both required and forbidden")
        if self.reopened_entities is not None and not self.reopened:
            raise InvalidArgument(
                "a list of reopened entities without a mask; want the masks it stands beside"
            )
        _fields.integer("cooling minutes", self.cooling, 0)

    def admits(self, word: int) -> bool:
        """Say whether any mask admits a word: the same test as in the search, stated independently."""
        return any(
            word & (req | ban | _CONTROL) == req | _VERSION_WORD for req, ban in (*self.masks, *self.reopened)
        )

    @property
    def lists_entities(self) -> bool:
        """Whether a commitment to lists belongs to this."""
        return self.entities is not None or self.reopened_entities is not None

    def to_json(self) -> Json:
        """Return the form that is encoded."""
        fields: dict[str, Json] = {"masks": _pairs(self.masks), "table": b64url(self.table)}
        if self.entities is not None:
            fields["entities"] = self.entities.to_json()
        if self.reopened:
            fields["reopened"] = _pairs(self.reopened)
        if self.reopened_entities is not None:
            fields["reopened_entities"] = self.reopened_entities.to_json()
        if self.cooling:
            fields["cooling"] = int(self.cooling)
        return fields

    @classmethod
    def from_json(cls, fields: Any) -> PolicyApplied:
        """Read what :meth:`to_json` returns."""
        rules = [
            None if name not in fields else EntityRule.from_json(fields[name])
            for name in ("entities", "reopened_entities")
        ]
        return cls(
            table=unb64url(fields["table"], _fields.DIGEST_SIZE),
            masks=tuple((req, ban) for req, ban in fields["masks"]),
            entities=rules[0],
            reopened=tuple((req, ban) for req, ban in fields.get("reopened", ())),
            reopened_entities=rules[1],
            cooling=fields.get("cooling", 0),
        )


def _pairs(masks: tuple[tuple[int, int], ...]) -> Json:
    return [[int(req), int(ban)] for req, ban in masks]


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index a search read. The total of rows is left out: it counts what the asker may not see.

    Parameters
    ----------
    snapshot : bytes
        Root hash of the index state.
    admissible : int
        Rows the policy admits.
    plan : str
        The plan that ran.
    known_at : int or None
        Up to which instant the index knew, in microseconds since 1970 UTC: asked again ``known_at`` it, the same
        session gets the same passages. ``None`` in records that did not say.
    """

    snapshot: bytes
    admissible: int
    plan: str
    known_at: int | None = None

    def __post_init__(self) -> None:
        _fields.digest("index snapshot", self.snapshot)
        _fields.integer("admissible rows", self.admissible, 0)
        _fields.code("plan", self.plan)
        if self.known_at is not None:
            _fields.integer("known_at", self.known_at, 0)

    def to_json(self) -> Json:
        """Return the form that is encoded."""
        known = {} if self.known_at is None else {"known": int(self.known_at)}
        return {
            "admissible": int(self.admissible),
            **known,
            "plan": self.plan,
            "snapshot": b64url(self.snapshot),
        }

    @classmethod
    def from_json(cls, fields: Any) -> IndexState:
        """Read what :meth:`to_json` returns."""
        snapshot = unb64url(fields["snapshot"], _fields.DIGEST_SIZE)
        return cls(snapshot, fields["admissible"], fields["plan"], fields.get("known"))


@dataclass(frozen=True, slots=True)
class Models:
    """Which models took part; ``None`` for a step that did not run."""

    embed: str | None = None
    generate: str | None = None
    prompt: str | None = None

    def __post_init__(self) -> None:
        for name in ("embed", "generate", "prompt"):
            if getattr(self, name) is not None:
                _fields.label(name, getattr(self, name))

    def to_json(self) -> Json:
        """Return the form that is encoded."""
        return {"embed": self.embed, "generate": self.generate, "prompt": self.prompt}

    @classmethod
    def from_json(cls, fields: Any) -> Models:
        """Read what :meth:`to_json` returns."""
        return cls(fields["embed"], fields["generate"], fields["prompt"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Somebody asked. Question, answer and subject are not here: they are committed to beside it.

    Parameters
    ----------
    kind : RecordKind
        QUERY, RETRIEVE or EXPLAIN.
    started, ended : int
        Of the request, in microseconds since 1970 UTC.
    role, purpose : str or None
        As the policy table spells them; ``None`` if it does not know what the session said.
    source : SessionSource
    as_of : int
        Minutes since 1970 UTC: what had been public by then could be found.
    policy : PolicyApplied
    index : IndexState or None
        ``None`` if nothing was searched.
    models : Models
    withheld : tuple of str
        Codes of the rules that withhold anything, derived from the policy alone.
    intents : tuple of str
        Codes of what the question or the session asked to tighten; not encoded where there are none.
    outcome : Outcome
    why : str
        A stable code.
    begun : int or None
        Sequence number of the begin record of this request, if a remote model was called.
    """

    kind: RecordKind
    started: int
    ended: int
    role: str | None
    purpose: str | None
    source: SessionSource
    as_of: int
    policy: PolicyApplied
    index: IndexState | None
    outcome: Outcome
    why: str
    models: Models = Models()
    withheld: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    begun: int | None = None

    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.QUERY, RecordKind.RETRIEVE, RecordKind.EXPLAIN)
    COMMITS: ClassVar[tuple[str, ...]] = ("answer", "entities", "query", "subject")

    def __post_init__(self) -> None:
        if self.kind not in self.KINDS:
            raise InvalidArgument(f"an access is a query, retrieve or explain, got {self.kind!r}")
        for name, kind in (("kind", RecordKind), ("source", SessionSource), ("outcome", Outcome)):
            object.__setattr__(self, name, _fields.member(kind, getattr(self, name)))
        _fields.integer("started", self.started, 0)
        _fields.integer("ended", self.ended, 0)
        _fields.integer("as_of", self.as_of, 0)
        for name in ("role", "purpose"):
            if getattr(self, name) is not None:
                _fields.code(name, getattr(self, name))
        for code in self.withheld:
            _fields.code("withheld code", code)
        for code in self.intents:
            _fields.code("intent", code)
        _fields.code("why", self.why)
        if self.begun is not None:
            _fields.integer("begun", self.begun, 0)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {
            "as_of": int(self.as_of),
            "index": None if self.index is None else self.index.to_json(),
            "models": self.models.to_json(),
            "outcome": self.outcome.value,
            "policy": self.policy.to_json(),
            "purpose": self.purpose,
            "role": self.role,
            "source": self.source.value,
            "t0": int(self.started),
            "t1": int(self.ended),
            "why": self.why,
            "withheld": list(self.withheld),
            **({"intents": list(self.intents)} if self.intents else {}),
            **({} if self.begun is None else {"begun": int(self.begun)}),
        }

    @classmethod
    def from_json(cls, fields: Any) -> Access:
        """Read what :meth:`to_json` returns."""
        index = fields["index"]
        return cls(
            kind=fields["kind"],
            started=fields["t0"],
            ended=fields["t1"],
            role=fields["role"],
            purpose=fields["purpose"],
            source=fields["source"],
            as_of=fields["as_of"],
            policy=PolicyApplied.from_json(fields["policy"]),
            index=None if index is None else IndexState.from_json(index),
            models=Models.from_json(fields["models"]),
            withheld=tuple(fields["withheld"]),
            intents=tuple(fields.get("intents", ())),
            outcome=fields["outcome"],
            why=fields["why"],
            begun=fields.get("begun"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """What can be found changed: documents, labels, the index or the policy table.

    Parameters
    ----------
    started, ended : int
        Of the change, in microseconds since 1970 UTC.
    documents, chunks, quarantined : int
        How many this change added, and how many documents it set aside.
    rows : int
        Rows in the index afterwards.
    snapshot : bytes
        Root hash of the index state afterwards.
    table : bytes
        SHA-256 of the role and purpose table in force.
    embed : str or None
        The embedding model.
    why : str
        A stable code, such as ``"INGESTED"``.
    """

    started: int
    ended: int
    documents: int
    chunks: int
    quarantined: int
    rows: int
    snapshot: bytes
    table: bytes
    embed: str | None
    why: str

    kind: ClassVar = RecordKind.INGEST
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.INGEST,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        for name in ("started", "ended", "documents", "chunks", "quarantined", "rows"):
            _fields.integer(name, getattr(self, name), 0)
        _fields.digest("index snapshot", self.snapshot)
        _fields.digest("policy table hash", self.table)
        if self.embed is not None:
            _fields.label("embed", self.embed)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {
            "chunks": int(self.chunks),
            "documents": int(self.documents),
            "embed": self.embed,
            "quarantined": int(self.quarantined),
            "rows": int(self.rows),
            "snapshot": b64url(self.snapshot),
            "t0": int(self.started),
            "t1": int(self.ended),
            "table": b64url(self.table),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Ingest:
        """Read what :meth:`to_json` returns."""
        return cls(
            started=fields["t0"],
            ended=fields["t1"],
            documents=fields["documents"],
            chunks=fields["chunks"],
            quarantined=fields["quarantined"],
            rows=fields["rows"],
            snapshot=unb64url(fields["snapshot"], _fields.DIGEST_SIZE),
            table=unb64url(fields["table"], _fields.DIGEST_SIZE),
            embed=fields["embed"],
            why=fields["why"],
        )


@dataclass(frozen=True, slots=True)
class Recovery:
    """The log found unfinished business when it was opened.

    Parameters
    ----------
    why : str
        A stable code: which.
    begins : tuple of int
        Sequence numbers of the begin records that nothing ended: a remote model may have been called.
    """

    why: str
    begins: tuple[int, ...] = ()

    kind: ClassVar = RecordKind.RECOVERY
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.RECOVERY,)
    COMMITS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _fields.code("why", self.why)
        for seq in self.begins:
            _fields.integer("begin record", seq, 0)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        begins: dict[str, Json] = {"begins": [int(seq) for seq in self.begins]} if self.begins else {}
        return {"why": self.why, **begins}

    @classmethod
    def from_json(cls, fields: Any) -> Recovery:
        """Read what :meth:`to_json` returns."""
        return cls(fields["why"], tuple(fields.get("begins", ())))


class Event(Protocol):
    """What a record can be about."""

    KINDS: ClassVar[tuple[RecordKind, ...]]
    """The kinds of record that this is the event of."""
    COMMITS: ClassVar[tuple[str, ...]]
    """What may be committed to beside it."""

    @property
    def kind(self) -> RecordKind:
        """Which of these it is."""

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Read what :meth:`to_json` returns; InvalidArgument or KeyError for anything else."""
