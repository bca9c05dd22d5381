"""Replay of records: whether the masks are those of role, purpose and table, and every hit passes them.

A record holds role, purpose, intents, the masks and the hash of the table; so whoever has the table's text can infer
the policy once more, with the code that inferred it for the question, and lay the two side by side. Which places a
session barred and whether it had a basis for transfers shows in the masks alone, so those are read off them first; all
else must then come out bit for bit. Who is on a list is not on record and changes no mask.
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
from carag.policy import Mask, Policy, PolicyBit, Session, infer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.audit import EntityRule, PolicyApplied, Record
    from carag.policy import Decision, PolicyTable

__all__ = ["Replay", "ReplayVerdict", "replay", "replay_all"]

_PLACES: Final = frozenset(bit for bit in PolicyBit if bit.name.startswith("J_"))
_SOMEBODY: Final = frozenset({1})
_OTHERS: Final = frozenset({3})
"""Stand for whoever is on an allow and on a deny list, of which a record tells kind and length alone."""
_PAST: Final = datetime.fromtimestamp(0, UTC)
_NOW: Final = _PAST + timedelta(days=1)
"""Any moments will do: time decides who is listed and whether the past was asked about, never the masks."""
_MINUTE: Final = 60_000_000  # microseconds
_BY_WHAT_IS_NOT_RECORDED: Final = frozenset({"NO_LEGAL_BASIS", "CONFLICT", "TOO_MANY_MASKS"})


class ReplayVerdict(StrEnum):
    """The result of a replay."""

    MATCHES = "matches"
    DIFFERS = "differs"
    """The record is not what the table gives: the table it names was not applied."""
    UNDECIDED = "undecided"
    """The replay cannot be made: another table, or a refusal for what the record does not hold."""
    NOTHING = "nothing"
    """The record is about no request, so there is nothing to replay."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of one record.

    Parameters
    ----------
    seq : int
    verdict : ReplayVerdict
    reason : str
        For a person.
    withheld : tuple of str
        Codes of the rules that withheld anything, which follow from the policy and are not on record; empty unless
        it matches.
    """

    seq: int
    verdict: ReplayVerdict
    reason: str
    withheld: tuple[str, ...] = ()


def replay(record: Record, table: PolicyTable) -> Replay:
    """Infer a record's policy once more, and test its hits by it.

    Parameters
    ----------
    record : Record
        Whose inclusion was proved: a replay says nothing about where a record comes from.
    table : PolicyTable
        The one whose hash the record names, from a source of one's own.

    Examples
    --------
    >>> from carag.audit import Record, Recovery
    >>> from carag.policy import PolicyTable
    >>> table = PolicyTable.shipped()
    >>> replay(Record("log.example", 0, bytes(16), 0, Recovery("DRILL")), table).verdict.value
    'nothing'
    """
    event = record.event
    if not isinstance(event, Access):
        return Replay(record.seq, ReplayVerdict.NOTHING, f"a {record.kind} record is about no request")
    if event.policy.table.hex() != table.sha256:
        return Replay(
            record.seq,
            ReplayVerdict.UNDECIDED,
            f"the record names table {event.policy.table.hex()[:16]}, this is {table.sha256[:16]}; give that one",
        )
    inferred = [_inferred(event, table, has_basis) for has_basis in (None, False)]
    decisions = [one for one in inferred if not isinstance(one, str)]
    if isinstance(inferred[0], str):
        return _refused(record, event, table, inferred[0])
    if event.outcome is Outcome.REFUSE:
        return _hanging(record, event, table) or _differs(
            record, f"it refuses with {event.why} what the table allows"
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
    """Replay records in turn, each by the table it names, as far as it is among these.

    Raises
    ------
    InvalidArgument
        If there is no table.
    """
    known = {table.sha256: table for table in tables}
    if not known:
        raise InvalidArgument("no table to replay by; give the policy tables that were in force")
    any_table = next(iter(known.values()))
    for record in records:
        named = record.event.policy.table.hex() if isinstance(record.event, Access) else ""
        yield replay(record, known.get(named, any_table))


def _refused(record: Record, event: Access, table: PolicyTable, code: str) -> Replay:
    if event.outcome is not Outcome.REFUSE:
        return _differs(record, f"the table refuses {event.role}/{event.purpose} with {code}")
    if event.why == code:
        return Replay(record.seq, ReplayVerdict.MATCHES, f"the table, too, refuses with {code}")
    return _hanging(record, event, table) or _differs(
        record, f"it refuses with {event.why}, the table with {code}"
    )


def _hanging(record: Record, event: Access, table: PolicyTable) -> Replay | None:
    """Return that nothing can be decided, of a refusal for what no record holds."""
    cell = table.get(event.role or "", event.purpose or "")
    may_be_past = event.why == "PAST_NOT_GRANTED" and cell is not None and "known_at" not in cell.past
    if not may_be_past and event.why not in _BY_WHAT_IS_NOT_RECORDED:
        return None
    reason = f"whether {event.why} was right hangs on what the session brought"
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
            yield f"its {what} are {_shown(found)}, the table gives {_shown(wanted)}"
    if said.cooling != decision.cooling:
        yield f"its cooling time is {said.cooling} minutes, the purpose gives {decision.cooling}"
    for hit in record.hits:
        if not any(policy.admits(hit.word, _any_entity(policy)) for policy in decision.policies):
            yield f"{hit.name} carries word {hit.word:#010x}, which the table does not admit"


def _inferred(event: Access, table: PolicyTable, eu_transfer_basis: bool | None) -> Decision | str:
    """Return what the table gives, or the code with which it refuses."""
    try:
        return infer(_session(event, eu_transfer_basis), table, now=_NOW)
    except Refused as refusal:
        return refusal.code
    except (
        InvalidArgument,
        OverflowError,
    ):  # an intent or a time that is none: no session was ever like that
        return "NO_SESSION"


def _session(event: Access, eu_transfer_basis: bool | None) -> Session:
    """Make the session that the record tells of."""
    policy = event.policy
    common = reduce(and_, (ban for _, ban in policy.masks), ~0) if policy.masks else 0
    values: dict[str, Any] = {
        "role": event.role or "(unknown)",
        "purpose": event.purpose or "(unknown)",
        # What was known is on record of every search, not whether it was asked about.
        "as_of": _PAST if event.as_of < event.started // _MINUTE else None,
        "residency": {bit for bit in _PLACES if common & bit.value},
        "intents": event.intents,
        "deals": () if policy.reopened else None,
        "cooling": timedelta(minutes=policy.cooling) if policy.cooling else None,
        "allow_entities": _SOMEBODY if _is(policy.entities, ListKind.ALLOW) else None,
        "eu_transfer_basis": eu_transfer_basis,
        "restricted": _OTHERS if policy.entities is not None and _denies(policy.entities) else frozenset(),
    }
    return Session(**values)


def _is(rule: EntityRule | None, kind: ListKind) -> bool:
    return rule is not None and rule.kind is kind


def _denies(rule: EntityRule) -> bool:
    return rule.kind is ListKind.DENY or rule.denied > 0


def _any_entity(policy: Policy) -> int:
    """Return an entity that the stand-in lists admit, for who a passage is about is not on record."""
    return next(iter(policy.allow_entities)) if policy.allow_entities else 2


def _shown(masks: tuple[tuple[int, int], ...]) -> str:
    return " or ".join(str(Mask(*mask)) for mask in masks) or "none"
