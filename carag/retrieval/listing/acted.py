"""Find what has replaced, withdrawn or amended a document that a question names, or what it has done to others.

The document may be one that the session could use at an earlier instant; all that is found, it may use now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carag.retrieval.listing.chosen import acts_among
from carag.retrieval.reading.acted import read_acted
from carag.retrieval.successors import was_admitted

if TYPE_CHECKING:
    from carag.policy import Decision, Where
    from carag.retrieval.listing.admitted import Admitted
    from carag.retrieval.listing.catalogued import Catalogued
    from carag.retrieval.reading.acted import Acted


class Named(NamedTuple):
    """A document that is asked about."""

    asked: Acted
    ids: list[str]
    """The documents that may be meant."""
    others: list[int]
    """If it asks what the document has done: to which others, by their numbers."""


def named(
    question: str,
    collection: Catalogued,
    admitted: Admitted,
    decision: Decision,
    where: Where,
    *,
    known_at: int,
) -> Named | None:
    """Read a question about acts among the documents that the session may use, or could; None if it is not one."""
    ended = {
        number
        for number, label in collection.store.labels.ended(decision.as_of, known_at=known_at)
        if where.admits(label.metadata) and was_admitted(decision, label)
    }
    numbers = np.union1d(admitted.numbers, np.array(sorted(ended), np.int64))
    understood = collection.catalogue.read(question, numbers)
    ids = understood.records.ids
    asked = read_acted(question, understood.reading, ids, numbers.tolist())
    if asked is None or not asked.documents:
        return None
    of = dict(zip(numbers.tolist(), ids, strict=True))
    meant = [of[number] for number in asked.documents]
    if not asked.is_by_it:
        return Named(asked, meant, [])
    number_of = {id_: number for number, id_ in of.items()}
    acts = acts_among(collection.store, numbers.tolist(), decision)
    others = {number_of[act.to] for act in acts if act.by in meant and act.kind is asked.kind}
    return Named(asked, meant, sorted(others & set(admitted.numbers.tolist())))
