"""Turn the effects of later documents on an earlier one into spans of time, each with its state bits and causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from carag.policy import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.policy.word import PolicyFlag


class StateCause(NamedTuple):
    """A state bit and the document that sets it."""

    bit: str
    document_id: str


class StateBits(NamedTuple):
    """The state of one document: bits to add to its word, and why."""

    bits: int
    causes: tuple[StateCause, ...]


class StateSpan(NamedTuple):
    """The state of one document from a minute on, until the next span begins."""

    since: int
    """Minutes since 1970-01-01T00:00Z."""
    bits: int
    causes: tuple[StateCause, ...] = ()


class Effect(NamedTuple):
    """A bit that one document sets on another, and when. Effects sort by time, and the first is named as the cause."""

    since: int
    """Minutes since 1970-01-01T00:00Z, inclusive."""
    until: int
    """Minutes since 1970-01-01T00:00Z, exclusive."""
    bit: PolicyFlag
    cause: str


def spans_of(public_at: int, effects: Iterable[Effect]) -> tuple[StateSpan, ...]:
    """Compute the ascending spans of a document's state from the effects on it, beginning at ``public_at``."""
    effects = sorted(effects)
    edges = {minute for one in effects for minute in (one.since, one.until) if public_at < minute < NEVER}
    spans: list[StateSpan] = []
    for since in sorted({public_at, *edges}):
        causes: dict[PolicyFlag, str] = {}
        for one in effects:
            if one.since <= since < one.until or since == one.until == NEVER:
                causes.setdefault(one.bit, one.cause)
        span = StateSpan(
            since,
            sum(causes),
            tuple(StateCause(bit.name, causes[bit]) for bit in sorted(causes)),
        )
        if not spans or spans[-1][1:] != span[1:]:
            spans.append(span)
    return tuple(spans)
