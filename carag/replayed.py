"""Derive a record's policy again, from its role, purpose and the table, and judge every passage by it.

The verifier shows that a record is as it was signed and does not contradict itself. This shows more: that the masks
it claims follow from the table, so that a log which wrote itself wider masks is found out. What a session brings
besides (residency, transfers, lists) can only narrow and is not in the record in full, so recorded masks may forbid
more than the table where such a rule does, and nothing less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit import Access, ListKind, Outcome
from carag.errors import PolicyConflict
from carag.policy import Intent, Mask, Policy, tighten
from carag.policy.modulators import ADVICE
from carag.policy.vocabulary import bits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit import PolicyApplied, Record
    from carag.policy import PolicyTable
    from carag.policy.table import Cell

__all__ = ["replay"]

# What residency and transfers of personal data may forbid on top (policy/inference.py).
_NARROWED_BY_SESSIONS: Final = bits_of(
    ["J_US", "J_EU", "J_UK", "J_CA", "J_OTHER", "PD_INSIDER", "PD_COMP", "PD_NATURAL", "PD_SPECIAL"]
)


def replay(record: Record, table: PolicyTable) -> list[str]:
    """Derive the policy of a record again, and list what contradicts it; a record in order has nothing.

    Parameters
    ----------
    record : Record
    table : PolicyTable
        The one whose hash the record names; with another, that is the contradiction.
    """
    event = record.event
    if not isinstance(event, Access):
        return []
    if event.policy.table.hex() != table.sha256:
        return [f"it names the table {event.policy.table.hex()}, this one is {table.sha256}"]
    return [*record.contradictions(), *_policy_contradictions(record, event, table)]


def _policy_contradictions(record: Record, event: Access, table: PolicyTable) -> Iterator[str]:
    cell = table.get(event.role or "", event.purpose or "")
    if cell is None:
        if event.outcome is not Outcome.REFUSE:
            yield f"{event.role}/{event.purpose} is no cell of the table, and it was not refused"
        if event.policy.masks or event.policy.reopened or record.hits:
            yield f"{event.role}/{event.purpose} is no cell of the table, and it has masks or passages"
        return
    if event.outcome is Outcome.REFUSE:
        if event.policy.masks or event.policy.reopened:
            yield "it was refused and has masks"
        return
    yield from _mask_contradictions(event, cell)
    yield from _term_contradictions(event.policy, cell)
    allowed = _derived(cell, event)
    for hit in record.hits:
        if not any(mask.admits(hit.word) for mask in allowed):
            yield (
                f"chunk {hit.chunk} carries word {hit.word:#010x}, which {cell.role}/{cell.purpose} does not admit"
            )


def _mask_contradictions(event: Access, cell: Cell) -> Iterator[str]:
    if not event.policy.masks:
        yield "it has no masks, and was not refused"
    for name, recorded, policy in (
        ("mask", event.policy.masks, cell.policy),
        ("reopening mask", event.policy.reopened, cell.reopened or Policy()),
    ):
        derived = _tightened(policy, event)
        for required, forbidden in recorded:
            if not any(_narrows(required, forbidden, mask) for mask in derived):
                yield (
                    f"the {name} ({required:#09x}, {forbidden:#09x}) does not follow from {cell.role}/{cell.purpose}"
                )


def _narrows(required: int, forbidden: int, mask: Mask) -> bool:
    more = forbidden & ~mask.forbidden
    return (
        required == mask.required
        and forbidden & mask.forbidden == mask.forbidden
        and not more & ~_NARROWED_BY_SESSIONS
    )


def _term_contradictions(policy: PolicyApplied, cell: Cell) -> Iterator[str]:
    listed = policy.entities is not None and policy.entities.kind is ListKind.ALLOW
    if cell.allow_list == "mandatory" and not listed:
        yield f"{cell.role}/{cell.purpose} needs an allow-list, and it has none"
    if policy.cooling and cell.purpose not in ADVICE:
        yield f"it has a cooling time, which {cell.purpose} has not"


def _derived(cell: Cell, event: Access) -> tuple[Mask, ...]:
    more = cell.reopened if event.policy.reopened and cell.reopened else Policy()
    return (*_tightened(cell.policy, event), *_tightened(more, event))


def _tightened(policy: Policy, event: Access) -> tuple[Mask, ...]:
    """Apply the recorded intents; a code of an intent that is unknown here derives nothing."""
    try:
        for code in event.intents:
            policy = tighten(policy, Intent(code))
    except (PolicyConflict, ValueError):
        return ()
    return policy.masks
