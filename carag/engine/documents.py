"""Add documents to a store and remove them, where each that supersedes others is consistent with what it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from carag.engine.collection import no_progress
from carag.engine.writer import never, write
from carag.errors import InvalidArgument
from carag.labelling.labelled import NotMade
from carag.labelling.stated import removed, stated_documents
from carag.limits import check_id, quoted
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from carag.engine.collection import Collection
    from carag.engine.results import IngestReport
    from carag.engine.writer import Given, Kind
    from carag.labelling.document import Document
    from carag.store.store import CorpusStore

__all__ = ["add", "remove", "without_lost"]

_logger = logger(__name__)


def add(
    collection: Collection,
    kind: Kind,
    documents: Iterable[Document],
    *,
    problems: Sequence[str] = (),
    stop: Callable[[], bool] = never,
) -> IngestReport:
    """Store what is new or changed, all of it checked before; see :meth:`carag.Engine.add`."""
    labelled = stated_documents(documents, collection.profile.vocabulary)
    with collection.writing(kind.reader):
        supersedes = {id_: one.given.supersedes for id_, one in labelled.items()}
        for wrong in _superseding_wrongly(supersedes, collection.store).values():
            raise InvalidArgument(wrong)
        given: list[tuple[int, Given | NotMade]] = [(0, NotMade(one)) for one in problems]
        given += [(0, one) for one in labelled.values()]
        return write(
            collection, kind, given, hashes=collection.store.documents.content_hashes(labelled), stop=stop
        )


def without_lost(documents: Iterable[Document], store: CorpusStore) -> tuple[list[Document], list[str]]:
    """Leave out documents that supersede unknown ones, and those that supersede these; say which, and why."""
    several = list(documents)
    supersedes = {one.id: one.supersedes for one in several}
    problems: list[str] = []
    while wrong := _superseding_wrongly(supersedes, store):
        problems += wrong.values()
        supersedes = {id_: old for id_, old in supersedes.items() if id_ not in wrong}
    return [one for one in several if one.id in supersedes], problems


def remove(collection: Collection, kind: Kind, ids: Iterable[str]) -> int:
    """Close the labels of documents and return their number; see :meth:`carag.Engine.remove`."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InvalidArgument(f"ids is {quoted(ids)}; want a list of document ids")
    named = list(ids)
    for one in named:
        check_id("id of a document", one)
    wanted = list(dict.fromkeys(named))
    with collection.writing(kind.reader):
        store = collection.store
        known = {one: store.documents.facts_of(one) for one in wanted}
        if absent := [one for one, facts in known.items() if facts is None or facts["removed"]]:
            raise InvalidArgument(
                f"document {quoted(absent[0])} is not in the store, or was removed before, as are "
                f"{len(absent)} of the {len(wanted)} ids; nothing was removed: leave these ids out"
            )
        if wanted:
            nothing = np.empty((0, collection.embedder.dim), np.float32)
            with store.writing() as transaction:
                transaction.put([(removed(facts), []) for facts in known.values() if facts], nothing)
                transaction.relabel(kind.histories(transaction.facts()))
            collection.refresh(no_progress)
    _logger.info("removed %d documents", len(wanted))
    return len(wanted)


def _superseding_wrongly(supersedes: Mapping[str, str | None], store: CorpusStore) -> dict[str, str]:
    """Return, by id, why a document cannot supersede what it states: that is unknown, or leads back to it."""
    wrong: dict[str, str] = {}

    def next_of(id_: str) -> str | None:
        if id_ not in supersedes:
            return (store.documents.facts_of(id_) or {}).get("supersedes")
        next_ = supersedes[id_]
        if next_ is not None and next_ not in supersedes and store.documents.facts_of(next_) is None:
            wrong[id_] = (
                f"document {id_!r} supersedes {quoted(next_)}, which is neither among those given nor in the store; "
                "add that one first, or with it"
            )
            return None
        return next_

    ends: set[str] = set()
    for start in supersedes:
        chain: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in ends:
            if at in chain:
                wrong[at] = (
                    f"document {at!r} supersedes itself through {len(chain)} documents; want chains that end"
                )
                break
            chain[at] = None
            at = next_of(at)
        ends.update(chain)
    return wrong
