"""Find what has replaced, withdrawn or amended documents since an instant, as far as a session may use it today.

A document is followed to its replacement, and on to the replacement of that, only through documents of which the
session may use a passage at some instant: neither the existence nor the effect of any other document shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.labelling.acts import Done, replaced_or_done
from carag.labelling.document import ActKind
from carag.retrieval.evidence import Evidence, Withheld
from carag.retrieval.retriever import passage_of, shared_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.policy import Audience, Decision, Where
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.evidence import Passage
    from carag.retrieval.retriever import Searchable
    from carag.store.values import StoredLabel


_WEIGHT: Final = tuple(ActKind)
"""If one document acts on another in several ways, the first of these is reported: replacing includes amending."""


class Successor(NamedTuple):
    """A document that has replaced, withdrawn or amended another."""

    of: str
    """The id of the other document."""
    act: ActKind
    passage: Passage
    """Its first passage that the session may use today; its similarity is 0, as no question was compared with it."""


def successors(
    collection: Searchable,
    ids: Iterable[str],
    today: Decision,
    where: Where,
    *,
    after: int,
    authority: Inquiry | None = None,
) -> tuple[Evidence, tuple[Successor, ...]]:
    """Find the successors since ``after`` (minutes since 1970) of documents that the session could use then.

    ``today`` is what the session may use today, not a decision about what was known in the past. Returns the first
    admissible passage of each successor, once; and the successors, in the order of the ids and of time. ``authority``
    is asked about the successors, and those that it does not allow are left out.
    """
    vocabulary = collection.profile.vocabulary
    found: list[Successor] = []
    audiences: dict[str, Audience] = {}
    with collection.reading() as known_at:
        labels = _Labels(collection, today, where, known_at)
        for id_ in dict.fromkeys(ids):
            news: dict[str, ActKind] = {}
            for kind, by in _since(collection, labels, id_, after, today.as_of):
                news[by] = min(kind, news.get(by, kind), key=_WEIGHT.index)
            shown = news.keys() if authority is None else authority.allows(news)
            for by, kind in ((by, kind) for by, kind in news.items() if by in shown):
                [chunk] = collection.store.chunks([labels.admitted(by)[0]])
                # The store tests again, as for every passage that leaves.
                if today.admits_labelled(chunk):
                    found.append(Successor(id_, kind, passage_of(chunk, 0.0, vocabulary.citation)))
                    audiences |= shared_with([chunk])
        passages = {one.passage.chunk_id: one.passage for one in found}
        many = sum(len(labels.admitted(one)) for one in {one.document_id for one in passages.values()})
    evidence = Evidence(
        tuple(passages.values()),
        Withheld(today.withheld),
        "successors",
        many,
        known_at if known_at >= 0 else None,
        audiences=audiences,
    )
    return evidence, tuple(found)


class _Labels:
    """The labels of documents at an instant of the store, and which of them a session may use."""

    def __init__(self, collection: Searchable, today: Decision, where: Where, known_at: int) -> None:
        self._store = collection.store
        self._today = today
        self._where = where
        self._known_at = known_at
        self._read: dict[str, list[tuple[int, StoredLabel]]] = {}

    def _of(self, id_: str) -> list[tuple[int, StoredLabel]]:
        if id_ not in self._read:
            keys = self._store.labels.of_document(id_, known_at=self._known_at)
            numbers = sorted(set(self._store.labels.of(keys).passages.tolist()))
            labels = self._store.labels.of_passages(numbers, known_at=self._known_at)
            self._read[id_] = sorted(
                (one for one in labels if self._where.admits(one[1].metadata)),
                key=lambda one: (one[1].chunk_id, one[0]),
            )
        return self._read[id_]

    def admitted(self, id_: str) -> list[int]:
        """Return the keys of a document's labels that the session may use today, in the document's order."""
        return [key for key, label in self._of(id_) if self._today.admits_labelled(label)]

    def is_ever_admitted(self, id_: str) -> bool:
        """Tell whether the session may use a passage of a document today or as of any earlier instant."""
        return any(was_admitted(self._today, label) for _, label in self._of(id_))


def was_admitted(today: Decision, label: StoredLabel) -> bool:
    """Tell whether what a session may use today would have admitted a label as of any instant by now."""
    first = min(label.public_at + today.cooling, today.as_of)
    return label.public_at <= today.as_of and replace(today, as_of=first).admits_labelled(label)


def _since(
    collection: Searchable, labels: _Labels, id_: str, after: int, until: int
) -> list[tuple[ActKind, str]]:
    """Return the acts on a document after one minute and until another, and the admissible documents that did them."""
    found: list[tuple[ActKind, str]] = []
    asked: list[tuple[str, ActKind | None]] = [(id_, None)]
    seen = {id_}
    for one, first in asked:
        for act in _done_to(one, collection.store.documents.linked_facts(one)):
            if act.by in seen or not after < act.at <= until:
                continue
            kind = first or act.kind
            if labels.admitted(act.by):
                found.append((kind, act.by))
            elif act.kind is not ActKind.AMENDS and labels.is_ever_admitted(act.by):
                asked.append((act.by, kind))
                seen.add(act.by)
    return found


def _done_to(id_: str, facts: list[dict[str, Any]]) -> list[Done]:
    """Return the acts on a document, in the order of time."""
    acts = (act for act in replaced_or_done(facts) if act.to == id_)
    return sorted(acts, key=lambda act: (act.at, act.by))
