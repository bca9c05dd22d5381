"""Find what documents that a session may use have done to one another; no other document has a part in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carag.labelling.acts import Done, replaced_or_done
from carag.policy import from_minutes
from carag.retrieval.listing.named import documents_named
from carag.retrieval.reading.forms import read_acted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from carag.retrieval.listing.admitted import Admitted, Scope
    from carag.retrieval.reading import Documents
    from carag.retrieval.reading.collective import Choice
    from carag.retrieval.reading.forms import Acted


def _acts_among(scope: Scope, numbers: Sequence[int]) -> list[Done]:
    """Return what some documents, given by number, have done to one another by the session's instant."""
    facts = [one for one in scope.collection.store.documents.facts_in(numbers) if "public_at" in one]
    ids = {one["id"] for one in facts}
    return [one for one in replaced_or_done(facts) if one.to in ids and one.at <= scope.decision.as_of]


def changed(choice: Choice, records: Documents, scope: Scope) -> NDArray[np.bool_]:
    """Tell which of some documents others of them have changed, as and when a question asks."""
    (first, last), zone = choice.days, scope.collection.profile.vocabulary.zone
    found = {
        act.to
        for act in _acts_among(scope, records.numbers.tolist())
        if act.kind in choice.changed and first <= from_minutes(act.at).astimezone(zone).toordinal() <= last
    }
    return np.array([one in found for one in records.ids], np.bool_)


def acted(question: str, admitted: Admitted) -> tuple[Acted, list[str], list[int]] | None:
    """Read a question about acts on a document, or by it; None if it is not one.

    The document may be one that the session could use at an earlier instant. Returns its ids and, if it asks what the
    document has done, the numbers of the documents to which.
    """
    asked, scope = read_acted(question), admitted.scope
    if asked is None:
        return None
    numbers = admitted.ever
    understood = admitted.read(asked.said, numbers)
    named = documents_named(asked.said, understood, scope.collection.catalogue.declared)
    records = understood.records
    if len({one.title or one.id for one in records.of(named)}) != 1:
        return None
    number_of = dict(zip(records.ids, numbers.tolist(), strict=True))
    ids = [id_ for id_, number in number_of.items() if number in named]
    acts = _acts_among(scope, numbers.tolist()) if asked.is_by_it else []
    others = {number_of[act.to] for act in acts if act.by in ids and act.kind is asked.kind}
    return asked, ids, sorted(others & set(admitted.numbers.tolist()))
