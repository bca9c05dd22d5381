"""Define the `query`, `retrieve`, `explain`, `begin` and `denial` events: who asked, what was searched, the outcome.

The asker holds the receipt, so no field may depend on passages that the asker may not use: no ids or counts of them.

The record of a request is written when its answer is known, so a process that crashed after calling a remote model
would have disclosed question and passages without a record. Therefore a begin record becomes durable before the call,
and the request's own record names that begin record. Begin records without an end are reported by a recovery record
when the log is next opened.

No claim of a refused token can be trusted, so nothing of it is recorded, not even as a hash. Many refusals of one kind
become one denial with their number, so that strangers cannot fill the log.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, ClassVar

from carag.audit.records.codec import OPTIONAL, Code, Count, Digest, Fields, Key, Label, Minute, Positive
from carag.audit.records.event import Event
from carag.audit.records.hits import HeadRows
from carag.audit.records.kinds import Outcome, RecordKind, SessionSource
from carag.audit.records.policy_applied import PolicyApplied
from carag.errors import InvalidArgument


def with_reading(names: Collection[str]) -> set[str]:
    """Add what repeats one of these commitments, so that both are omitted or erased: a reading repeats its question."""
    return {*names, "reading"} if "query" in names else {*names}


@dataclass(frozen=True, slots=True)
class BackendState(Fields):
    """The backend that was searched instead of the index of the process that answered, as needed to ask the same again.

    It holds no number of rows, neither the total nor those dropped because their label was closed, because the asker
    may not use them.

    Parameters
    ----------
    name : str
        The backend's kind and version.
    collection : str
        Which rows within it; never an address or a credential.
    dictionary : bytes
        SHA-256 over the words that its rows have at this epoch.
    shards : tuple of (str, str)
        Name and position of each part, in the backend's own terms.
    """

    name: Label
    collection: Label
    epoch: Count
    dictionary: Digest
    shards: tuple[tuple[Label, Label], ...]

    def _check(self) -> None:
        if not self.shards:
            raise InvalidArgument("a backend has no shards; want at least one")


@dataclass(frozen=True, slots=True)
class IndexState(Fields):
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

    snapshot: Digest
    admissible: Count
    plan: Code
    known_at: Annotated[Count | None, Key("known"), OPTIONAL] = None
    backend: Annotated[BackendState | None, OPTIONAL] = None


@dataclass(frozen=True, slots=True)
class Models(Fields):
    """The models that were used; ``None`` for a step that did not run.

    ``rank`` is the ranker, with everything that its order depends on; ``None`` for ranking by similarity alone, as
    before 0.3.0. ``read`` is the reader that checks, before a generator is called, whether the passages answer, with
    its threshold. ``rank``, ``read`` and ``rerank`` are not encoded if they are ``None``.
    """

    embed: Label | None = None
    generate: Label | None = None
    prompt: Label | None = None
    rerank: Annotated[Label | None, OPTIONAL] = None
    rank: Annotated[Label | None, OPTIONAL] = None
    read: Annotated[Label | None, OPTIONAL] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Event):
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
        Head rows of split tables that hits were read with, by hit. A hit that was not itself found, and only lends head
        rows, comes after those that were found.
    day : str or None
        A code: what the day that the question names led to; ``USED`` if ``as_of`` is the end of that day.
    why : str
        A stable code.
    begun : int or None
        Sequence number of the begin record of this request, if a remote model was called.
    glass : int or None
        Sequence number of the record that opened the session's cell, if the glass was broken for it.
    """

    kind: RecordKind
    started: Annotated[Count, Key("t0")]
    ended: Annotated[Count, Key("t1")]
    role: Code | None
    purpose: Code | None
    source: SessionSource
    as_of: Minute
    policy: PolicyApplied
    index: IndexState | None
    outcome: Outcome
    why: Code
    models: Models = Models()
    intents: Annotated[tuple[Code, ...], OPTIONAL] = ()
    where: Annotated[tuple[Code, ...], OPTIONAL] = ()
    heads: Annotated[tuple[HeadRows, ...], OPTIONAL] = ()
    day: Annotated[Code | None, OPTIONAL] = None
    issuer: Annotated[Label | None, OPTIONAL] = None
    audience: Annotated[Label | None, OPTIONAL] = None
    begun: Annotated[Count | None, OPTIONAL] = None
    glass: Annotated[Count | None, OPTIONAL] = None

    KINDS: ClassVar = (RecordKind.QUERY, RecordKind.RETRIEVE, RecordKind.EXPLAIN)
    COMMITS: ClassVar = (
        "answer",
        "authority",
        "conversation",
        "entities",
        "principals",
        "query",
        "reading",
        "subject",
        "where",
    )

    def _check(self) -> None:
        if self.kind not in self.KINDS:
            raise InvalidArgument(f"the kind of an access is {self.kind!r}; want query, retrieve or explain")
        for name in ("issuer", "audience"):
            if getattr(self, name) is not None and self.source is not SessionSource.VERIFIED:
                raise InvalidArgument(f"an asserted session has an {name}; only verified tokens have one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(Event):
    """A remote model is about to be called. The record commits to question and subject.

    The fields are those of :class:`Access`; ``policy`` is the one that admits the passages given to the model.
    """

    started: Annotated[Count, Key("t0")]
    role: Code | None
    purpose: Code | None
    source: SessionSource
    as_of: Minute
    policy: PolicyApplied
    models: Models

    KINDS: ClassVar = (RecordKind.BEGIN,)
    COMMITS: ClassVar = ("query", "subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class GlassBroken(Event):
    """The glass was broken: a cell opened for a stated time. The record commits to reason, subject and approver.

    Parameters
    ----------
    at, until : int
        Microseconds since 1970 UTC.
    role, purpose : str
        The cell that opened.
    """

    at: Count
    until: Count
    role: Code
    purpose: Code
    source: SessionSource

    KINDS: ClassVar = (RecordKind.GLASS,)
    COMMITS: ClassVar = ("approver", "reason", "subject")

    def _check(self) -> None:
        if self.until <= self.at:
            raise InvalidArgument(f"the glass is broken from {self.at} until {self.until}; want a later end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial(Event):
    """Requests that were refused for one reason before anything was read: tokens, and erasures of documents.

    Parameters
    ----------
    first, last : int
        Times of the first and the last refusal, in microseconds since 1970 UTC.
    why : str
        A stable code, such as ``"TOKEN_SIGNATURE"``.
    issuer, audience : str or None
        The issuer and audience that the verifier accepts; those of the refused tokens are not recorded.
    """

    first: Annotated[Count, Key("t0")]
    last: Annotated[Count, Key("t1")]
    count: Positive
    why: Code
    issuer: Label | None = None
    audience: Label | None = None

    KINDS: ClassVar = (RecordKind.DENIAL,)

    def _check(self) -> None:
        if self.first > self.last or (self.count == 1 and self.first != self.last):
            raise InvalidArgument(
                f"{self.count} denials from {self.first} to {self.last}; want first <= last, equal for one denial"
            )
