"""Compute the history of every document from the acts of other documents, whatever their order of arrival.

All doubt is resolved in favour of hiding: an act applies to every document that bears the name, and the earliest of
several acts counts. An act never begins before the minute in which its own document is public.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from carag.labelling.document import ActKind
from carag.labelling.lifecycle import Effect, StateCause, StateSpan, spans_of
from carag.limits import ERASED
from carag.policy import NEVER, TOMBSTONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from carag.policy.vocabulary import Lifecycle
    from carag.policy.word import PolicyFlag


class Done(NamedTuple):
    """What one document does to another, and from which minute on."""

    kind: ActKind
    at: int
    by: str
    to: str


class _End(NamedTuple):
    """When a document's passages stop being valid; ends sort by time, and the first counts."""

    minute: int
    cause: str


def document_histories(
    facts: Iterable[Mapping[str, Any]], lifecycle: Lifecycle
) -> dict[str, tuple[StateSpan, ...]]:
    """Compute, by document id, the spans of its state bits and when its passages stop being valid.

    ``facts`` are as the store keeps them: ``id``, ``public_at`` and ``supersedes``, and where stated ``names``,
    ``acts`` (kind, name, minute or None) and ``in_force_at``. ``lifecycle`` has the bits that acts set.
    """
    several = list(facts)
    bits: dict[str, PolicyFlag | None] = {
        ActKind.REPLACES: lifecycle.replaced,
        ActKind.WITHDRAWS: lifecycle.withdrawn,
        ActKind.AMENDS: lifecycle.amended,
    }
    effects: dict[str, list[Effect]] = defaultdict(list)
    ends: dict[str, list[_End]] = defaultdict(list)
    for one in several:
        id_, public_at, in_force_at = one["id"], one["public_at"], one.get("in_force_at", 0)
        if lifecycle.pending is not None and in_force_at > public_at:
            effects[id_].append(Effect(0, in_force_at, lifecycle.pending, id_))
        if one["supersedes"] is not None:
            ends[one["supersedes"]].append(_End(public_at, id_))
    for act in done(several):
        bit = bits[act.kind]
        if bit is not None:
            effects[act.to].append(Effect(act.at, NEVER, bit, act.by))
        elif act.kind is not ActKind.AMENDS:
            ends[act.to].append(_End(act.at, act.by))
    return {
        one["id"]: _ended(spans_of(0, effects[one["id"]]), min(ends[one["id"]], default=None))
        for one in several
    }


def unread(name: str) -> str:
    """Return what stays of a name in an act of an erased document: enough to find who bears it, and no text."""
    return name if name.startswith(ERASED) else f"{ERASED}{hashlib.sha256(name.encode()).hexdigest()}"


def done(facts: Iterable[Mapping[str, Any]]) -> Iterator[Done]:
    """Yield everything that documents do to one another by acts, as :func:`document_histories` understands it."""
    several = list(facts)
    is_unread = any(name.startswith(ERASED) for one in several for _, name, _ in one.get("acts", ()))
    bearers: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in several:
        for name in {one["id"], *one.get("names", ())}:
            bearers[name].append(one)
            if is_unread and (hidden := unread(name)) != name:
                bearers[hidden].append(one)
    for one in several:
        id_, public_at, in_force_at = one["id"], one["public_at"], one.get("in_force_at", 0)
        for kind, name, since in one.get("acts", ()):
            at = max(public_at, in_force_at if since is None else since)
            for other in bearers.get(name, ()):
                if other["id"] != id_ and other["public_at"] <= public_at:
                    yield Done(ActKind(kind), at, id_, other["id"])


def replaced_or_done(facts: Iterable[Mapping[str, Any]]) -> Iterator[Done]:
    """Yield everything that documents do to one another, by what they supersede as well as by acts."""
    several = list(facts)
    for one in several:
        if one["supersedes"] is not None:
            yield Done(ActKind.REPLACES, one["public_at"], one["id"], one["supersedes"])
    yield from done(several)


def _ended(spans: tuple[StateSpan, ...], end: _End | None) -> tuple[StateSpan, ...]:
    if end is None:
        return spans
    before = tuple(span for number, span in enumerate(spans) if number == 0 or span.since < end.minute)
    return (*before, StateSpan(end.minute, TOMBSTONE, (StateCause("SUPERSEDED", end.cause),)))
