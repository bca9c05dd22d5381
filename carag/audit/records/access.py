"""Define the `query`, `retrieve` and `explain` events: who asked under which policy, what was searched, the outcome.

The asker holds the receipt, so no field may depend on passages that the asker may not use: no ids or counts of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.hits import HeadRows
from carag.audit.records.kinds import Outcome, RecordKind, SessionSource
from carag.audit.records.policy_applied import PolicyApplied
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import InvalidArgument
from carag.limits import MAX_MINUTE

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Access", "BackendState", "IndexState", "Models", "with_reading"]


def with_reading(names: Collection[str]) -> set[str]:
    """Add what repeats one of these commitments, to omit or erase both: a reading has its question's words."""
    return {*names, "reading"} if "query" in names else {*names}


@dataclass(frozen=True, slots=True)
class BackendState:
    """The backend that was searched instead of the index of the process that answered, as needed to ask the same again.

    It holds no number of rows, in total or dropped because their label was closed: the asker may not use them.

    Parameters
    ----------
    name : str
        Its kind and version.
    collection : str
        The rows within it; never an address or a credential.
    dictionary : bytes
        SHA-256 over the words that its rows have at the epoch.
    shards : tuple of (str, str)
        Name and position of each part, in the backend's own terms.
    """

    name: str
    collection: str
    epoch: int
    dictionary: bytes
    shards: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        _fields.label("backend", self.name)
        _fields.label("collection", self.collection)
        _fields.integer("epoch", self.epoch, 0)
        _fields.digest("dictionary", self.dictionary)
        if not self.shards:
            raise InvalidArgument("a backend has no shards; want at least one")
        for shard, at in self.shards:
            _fields.label("shard", shard)
            _fields.label("place of a shard", at)

    def to_json(self) -> Json:
        """Return the JSON form."""
        return {
            "collection": self.collection,
            "dictionary": b64url(self.dictionary),
            "epoch": int(self.epoch),
            "name": self.name,
            "shards": [[shard, at] for shard, at in self.shards],
        }

    @classmethod
    def from_json(cls, fields: Any) -> BackendState:
        """Read the JSON form."""
        return cls(
            fields["name"],
            fields["collection"],
            fields["epoch"],
            unb64url(fields["dictionary"], _fields.DIGEST_SIZE),
            tuple((shard, at) for shard, at in fields["shards"]),
        )


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index that a search read, without its total number of rows, which counts rows the asker may not see.

    Parameters
    ----------
    snapshot : bytes
        Root hash of the index state.
    admissible : int
        Number of rows that the policy admits.
    plan : str
        The plan that ran.
    known_at : int or None
        Instant of the last change in the index, in microseconds since 1970 UTC: asked again with this ``known_at``, the
        same session gets the same passages. ``None`` if nothing had been ingested.
    backend : BackendState or None
        ``None``, and not encoded, for the index of the process that answered.
    """

    snapshot: bytes
    admissible: int
    plan: str
    known_at: int | None = None
    backend: BackendState | None = None

    def __post_init__(self) -> None:
        _fields.digest("index snapshot", self.snapshot)
        _fields.integer("admissible rows", self.admissible, 0)
        _fields.code("plan", self.plan)
        if self.known_at is not None:
            _fields.integer("known_at", self.known_at, 0)

    def to_json(self) -> Json:
        """Return the JSON form."""
        known = {} if self.known_at is None else {"known": int(self.known_at)}
        return {
            "admissible": int(self.admissible),
            **({} if self.backend is None else {"backend": self.backend.to_json()}),
            **known,
            "plan": self.plan,
            "snapshot": b64url(self.snapshot),
        }

    @classmethod
    def from_json(cls, fields: Any) -> IndexState:
        """Read the JSON form."""
        snapshot = unb64url(fields["snapshot"], _fields.DIGEST_SIZE)
        backend = BackendState.from_json(fields["backend"]) if "backend" in fields else None
        return cls(snapshot, fields["admissible"], fields["plan"], fields.get("known"), backend)


@dataclass(frozen=True, slots=True)
class Models:
    """The models that were used; ``None`` for a step that did not run.

    ``rank`` is the ranker, with all that its order depends on; ``None`` by similarity alone, as before 0.3.0. ``rank``
    and ``rerank`` are not encoded if they are ``None``.
    """

    embed: str | None = None
    generate: str | None = None
    prompt: str | None = None
    rerank: str | None = None
    rank: str | None = None

    def __post_init__(self) -> None:
        for name in ("embed", "generate", "prompt", "rerank", "rank"):
            if getattr(self, name) is not None:
                _fields.label(name, getattr(self, name))

    def to_json(self) -> Json:
        """Return the JSON form."""
        ordering = {"rank": self.rank, "rerank": self.rerank}
        return {
            "embed": self.embed,
            "generate": self.generate,
            "prompt": self.prompt,
            **{step: name for step, name in ordering.items() if name is not None},
        }

    @classmethod
    def from_json(cls, fields: Any) -> Models:
        """Read the JSON form."""
        return cls(
            fields["embed"], fields["generate"], fields["prompt"], fields.get("rerank"), fields.get("rank")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A request. Its question, answer and subject are not fields: the record commits to them.

    ``docs/reference/receipts.md`` describes every field. Empty tuples and ``None`` are not encoded.

    Parameters
    ----------
    kind : RecordKind
        QUERY, RETRIEVE or EXPLAIN.
    started, ended : int
        Microseconds since 1970 UTC.
    role, purpose : str or None
        As in the policy table; ``None`` if the session's is not in the table.
    issuer, audience : str or None
        Issuer and audience of the session's token, if it had one.
    as_of : int
        Minutes since 1970 UTC: documents that were public by then could be found.
    index : IndexState or None
        ``None`` if nothing was searched.
    intents : tuple of str
        Codes of the intents in the question or the session, which tightened the policy.
    where : tuple of str
        Names of the metadata fields that narrowed the search, ascending; the record commits to the values.
    heads : tuple of HeadRows
        Head rows of torn tables that hits were read with, by hit. A hit that was not found itself and only lends them
        comes after those that were.
    day : str or None
        A code: what the day that the question names led to; ``USED`` if ``as_of`` is its end.
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
    intents: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    heads: tuple[HeadRows, ...] = ()
    day: str | None = None
    issuer: str | None = None
    audience: str | None = None
    begun: int | None = None

    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.QUERY, RecordKind.RETRIEVE, RecordKind.EXPLAIN)
    COMMITS: ClassVar[tuple[str, ...]] = (
        "answer",
        "conversation",
        "entities",
        "query",
        "reading",
        "subject",
        "where",
    )

    def __post_init__(self) -> None:
        if self.kind not in self.KINDS:
            raise InvalidArgument(f"an access is a query, retrieve or explain, got {self.kind!r}")
        for name, kind in (("kind", RecordKind), ("source", SessionSource), ("outcome", Outcome)):
            object.__setattr__(self, name, _fields.member(kind, getattr(self, name)))
        _fields.integer("started", self.started, 0)
        _fields.integer("ended", self.ended, 0)
        _fields.integer("as_of", self.as_of, 0, MAX_MINUTE)
        for name in ("role", "purpose"):
            if getattr(self, name) is not None:
                _fields.code(name, getattr(self, name))
        for code in self.intents:
            _fields.code("intent", code)
        for field in self.where:
            _fields.code("field of where", field)
        for rows in self.heads:
            _fields.integer("hit with heads", rows.hit, 1)
            _fields.integer("hit that lends heads", rows.lender, 1)
            _fields.integer("start of heads", rows.start, 0)
            _fields.integer("end of heads", rows.end, 1)
        _fields.code("why", self.why)
        if self.day is not None:
            _fields.code("day", self.day)
        if self.begun is not None:
            _fields.integer("begun", self.begun, 0)
        for name in ("issuer", "audience"):
            if getattr(self, name) is not None:
                _fields.label(name, getattr(self, name))
                if self.source is not SessionSource.VERIFIED:
                    raise InvalidArgument(f"an asserted session has an {name}; only verified tokens have one")

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
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
            **({"intents": list(self.intents)} if self.intents else {}),
            **({"where": list(self.where)} if self.where else {}),
            **({"heads": [[int(one) for one in rows] for rows in self.heads]} if self.heads else {}),
            **({} if self.day is None else {"day": self.day}),
            **({} if self.issuer is None else {"issuer": self.issuer}),
            **({} if self.audience is None else {"audience": self.audience}),
            **({} if self.begun is None else {"begun": int(self.begun)}),
        }

    @classmethod
    def from_json(cls, fields: Any) -> Access:
        """Read the JSON form."""
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
            intents=tuple(fields.get("intents", ())),
            where=tuple(fields.get("where", ())),
            heads=tuple(HeadRows(*rows) for rows in fields.get("heads", ())),
            day=fields.get("day"),
            outcome=fields["outcome"],
            why=fields["why"],
            issuer=fields.get("issuer"),
            audience=fields.get("audience"),
            begun=fields.get("begun"),
        )
