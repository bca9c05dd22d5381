"""Infer the policy of a record again, and compare it with the record's masks and hits.

Two inputs are read from the masks: the places that the session barred, and whether the session had a basis for
transfers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from carag.audit import Access, ListKind, Outcome
from carag.errors import InvalidArgument, Refused
from carag.policy import Mask, Policy, Session, infer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.audit import EntityRule, PolicyApplied, Record
    from carag.policy import Decision, PolicyFlag, PolicyTable


_ALLOWED_CIKS: Final = frozenset({1})
"""Stand-in for an allow list: a record holds only its kind and length."""
_DENIED_CIKS: Final = frozenset({3})
_UNLISTED_CIK: Final = 2
_PAST: Final = datetime.fromtimestamp(0, UTC)
"""Stand-in for an as-of time before now; times affect lists and questions about the past, not masks."""
_NOW: Final = _PAST + timedelta(days=1)
_MINUTE: Final = 60_000_000
_REFUSED_BY_SESSION: Final = frozenset(
    {
        "NO_LEGAL_BASIS",
        "CROSSED_FOR_ADVICE",
        "CONFLICT",
        "FOREIGN_RESIDENCY",
        "TOO_MANY_MASKS",
        "UNKNOWN_INTENT",
    }
)
"""Codes of refusals that depend on what the session brought and no record holds."""


class ReplayVerdict(StrEnum):
    """The result of a replay."""

    MATCHES = "matches"
    DIFFERS = "differs"
    """The record differs from what the table gives, so the table that it names was not applied."""
    UNDECIDED = "undecided"
    """The policy cannot be inferred: another table is named, or a refusal depends on what no record holds."""
    NOTHING = "nothing"
    """The record is not about a request, so it has no policy."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The result for one record; ``withheld`` are the codes of the rules that withhold passages, if it matches."""

    seq: int
    verdict: ReplayVerdict
    reason: str
    withheld: tuple[str, ...] = ()


def replay(record: Record, table: PolicyTable) -> Replay:
    """Infer a record's policy again, and test the record's hits against it."""
    event = record.event
    if not isinstance(event, Access):
        return Replay(record.seq, ReplayVerdict.NOTHING, f"a {record.kind} record is not about a request")
    if event.policy.table.hex() not in table.hashes:
        return Replay(
            record.seq,
            ReplayVerdict.UNDECIDED,
            f"the record names table {event.policy.table.hex()[:16]}, but this is {table.sha256[:16]}; give that one",
        )
    inferred = [_inferred(event, table, has_basis) for has_basis in (None, False)]
    decisions = [one for one in inferred if not isinstance(one, str)]
    if isinstance(inferred[0], str):
        return _refused(record, event, table, inferred[0])
    if event.outcome is Outcome.REFUSE:
        return _undecided(record, event, table) or _differs(
            record, f"it refuses, with {event.why}, what the table allows"
        )
    wrong = ["; ".join(_differences(record, event.policy, decision)) for decision in decisions]
    if all(wrong):
        return _differs(record, wrong[0])
    return Replay(
        record.seq,
        ReplayVerdict.MATCHES,
        f"{len(record.hits)} hits under the masks of {event.role}/{event.purpose}",
        tuple(kind.code for kind in decisions[wrong.index("")].withheld),
    )


def replay_all(records: Iterable[Record], tables: Iterable[PolicyTable]) -> Iterator[Replay]:
    """Replay records in turn, each by the table that it names, if that is given; InvalidArgument if no table is."""
    known = {named: table for table in tables for named in table.hashes}
    if not known:
        raise InvalidArgument("there is no table to replay by; give the policy tables that were in force")
    any_table = next(iter(known.values()))
    for record in records:
        named = record.event.policy.table.hex() if isinstance(record.event, Access) else ""
        yield replay(record, known.get(named, any_table))


def _refused(record: Record, event: Access, table: PolicyTable, code: str) -> Replay:
    if event.outcome is not Outcome.REFUSE:
        return _differs(record, f"the table refuses {event.role}/{event.purpose} with {code}")
    if event.why == code:
        return Replay(record.seq, ReplayVerdict.MATCHES, f"the table also refuses with {code}")
    return _undecided(record, event, table) or _differs(
        record, f"it refuses with {event.why}, the table with {code}"
    )


def _undecided(record: Record, event: Access, table: PolicyTable) -> Replay | None:
    """Return an undecided replay if the refusal depends on what no record holds; None otherwise."""
    cell = table.get(event.role or "", event.purpose or "")
    may_be_past = event.why == "PAST_NOT_GRANTED" and cell is not None and "known_at" not in cell.past
    if not may_be_past and event.why not in _REFUSED_BY_SESSION:
        return None
    reason = f"whether {event.why} was right depends on what the session brought"
    return Replay(record.seq, ReplayVerdict.UNDECIDED, reason)


def _differs(record: Record, reason: str) -> Replay:
    return Replay(record.seq, ReplayVerdict.DIFFERS, reason)


def _differences(record: Record, said: PolicyApplied, decision: Decision) -> Iterator[str]:
    more = decision.reopened
    for what, found, wanted in (
        ("masks", said.masks, decision.policy.pairs),
        ("reopened masks", said.reopened, () if more is None else more.pairs),
    ):
        if found != wanted:
            flags = decision.policy.flags
            yield f"its {what} are {_shown(found, flags)}, the table gives {_shown(wanted, flags)}"
    if said.cooling != decision.cooling:
        yield f"its cooling time is {said.cooling} minutes, the purpose gives {decision.cooling}"
    for hit in record.hits:
        if not any(policy.admits(hit.word, _any_entity(policy)) for policy in decision.policies):
            yield f"{hit.name} carries word {hit.word:#010x}, which the table does not admit"


def _inferred(event: Access, table: PolicyTable, eu_transfer_basis: bool | None) -> Decision | str:
    try:
        return infer(_session(event, table, eu_transfer_basis), table, now=_NOW, intents=event.intents)
    except Refused as refusal:
        return refusal.code
    except (InvalidArgument, OverflowError):  # no session can hold such a time
        return "NO_SESSION"


def _session(event: Access, table: PolicyTable, eu_transfer_basis: bool | None) -> Session:
    """Rebuild the session from what the record holds, with stand-ins for the rest."""
    policy, vocabulary = event.policy, table.vocabulary
    common = reduce(and_, (ban for _, ban in policy.masks), ~0) if policy.masks else 0
    values: dict[str, Any] = {
        "role": event.role or "(unknown)",
        "purpose": event.purpose or "(unknown)",
        # Records name what was known at every search, but not whether the question was about the past.
        "as_of": _PAST if event.as_of < event.started // _MINUTE else None,
        "residency": {
            bit for bit in vocabulary.flags if common & vocabulary.groups.jurisdictions & bit.value
        },
        "deals": () if policy.reopened else None,
        "cooling": timedelta(minutes=policy.cooling) if policy.cooling else None,
        "allow_entities": _ALLOWED_CIKS if _is(policy.entities, ListKind.ALLOW) else None,
        "eu_transfer_basis": eu_transfer_basis,
        "restricted": _DENIED_CIKS
        if policy.entities is not None and _denies(policy.entities)
        else frozenset(),
    }
    return Session(**values)


def _is(rule: EntityRule | None, kind: ListKind) -> bool:
    return rule is not None and rule.kind is kind


def _denies(rule: EntityRule) -> bool:
    return rule.kind is ListKind.DENY or rule.denied > 0


def _any_entity(policy: Policy) -> int:
    """Return an entity that the stand-in lists admit, because a record does not name the entities of a passage."""
    return next(iter(policy.allow_entities)) if policy.allow_entities else _UNLISTED_CIK


def _shown(masks: tuple[tuple[int, int], ...], flags: type[PolicyFlag]) -> str:
    return " or ".join(str(Mask(*mask, flags=flags)) for mask in masks) or "none"
