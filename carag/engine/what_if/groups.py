"""Tell which documents an import of groups would open and close for its principals, by who may see each document.

Whether a document's labels admit it for a role and purpose is left to the policy; documents that nothing may admit,
such as quarantined ones, are left out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.engine.what_if.documents import Effect
from carag.policy import EVERYWHERE, Identity, Mask, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.policy.groups.statements import GroupImport
    from carag.store.store import CorpusStore
    from carag.store.values import GroupReport

MOST: Final = 2000
"""Greatest number of principals that are judged; more are only counted."""


class GroupsEffect(NamedTuple):
    """What an import of groups does."""

    report: GroupReport
    principals: Mapping[str, Effect]
    """By principal for which something opens or closes: one in a changed membership, or in a group in one."""
    released: tuple[str, ...]
    """Documents that were hidden from every session, because they are denied to a group that is stated only now; they
    open for all whom their lists admit."""
    not_judged: int
    """How many principals beyond :data:`MOST` the import concerns."""

    @property
    def all(self) -> Effect:
        """What opens, and what closes, for anybody."""
        return Effect.all_of((*self.principals.values(), Effect(self.released)))

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        each = [{"principal": name, **one._asdict()} for name, one in self.principals.items()]
        said = {"principals": each, "released": self.released, "not_judged": self.not_judged}
        return {"report": self.report._asdict(), **said}


def group_effects(store: CorpusStore, stated: GroupImport, minute: int) -> GroupsEffect:
    """Return what an import would open and close at a minute since 1970; nothing is written.

    Each principal is judged as the only one of a session. Raises as
    :meth:`~carag.store.groups.Groups.import_` does.
    """
    trial = store.groups.tried(stated, minute, most=MOST)
    documents: dict[int, set[str]] = defaultdict(set)
    for name, word, audience in store.labels.standing(minute):
        if Mask().admits(word):
            documents[audience].add(name)

    def found(held: frozenset[str], known: frozenset[str]) -> frozenset[str]:
        seen = store.expanded(Policy(), EVERYWHERE, Identity(held, held, known)).audiences
        return frozenset().union(*(documents[number] for number in documents.keys() & {*seen}))

    def effect(*held: frozenset[str]) -> Effect:
        before, after = (found(*side) for side in zip(held, trial.known, strict=True))
        return Effect.of(after - before, before - after)

    lists = {number: store.audience(number) for number in documents}
    before, after = trial.known
    released = [number for number, one in lists.items() if one.unknown(before) and not one.unknown(after)]
    effects = {name: effect(*held) for name, held in trial.held.items()}
    return GroupsEffect(
        trial.report,
        {name: one for name, one in effects.items() if any(one)},
        tuple(sorted(set().union(*(documents[number] for number in released)))),
        trial.concerned - len(trial.held),
    )
