"""Answer what asks about the documents themselves; everything else is left to retrieval and generator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.generation.collection.comparing import compared
from carag.generation.collection.listing import listed
from carag.generation.collection.parts import part_told
from carag.retrieval.reading.collective import may_list
from carag.retrieval.reading.compared import may_compare

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.generation.collection.told import Told
    from carag.generation.guarded import GuardedGenerator
    from carag.policy import Decision, Where
    from carag.retrieval import Retriever
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.evidence import Evidence
    from carag.retrieval.listing.catalogued import Catalogued


def about_documents(
    question: str,
    collection: Catalogued,
    retriever: Retriever,
    guarded: GuardedGenerator,
    decision: Decision,
    where: Where,
    *,
    authority: Inquiry | None,
    search: Callable[[str], Evidence],
    before_remote: Callable[[], None],
) -> Told | None:
    """Answer a question about the documents themselves, or return None if it is not certain to be one.

    ``search`` finds evidence for a question as the ordinary way does; ``before_remote`` is called before question and
    passages leave this machine.
    """
    told = part_told(question, collection, retriever, decision, where, authority, guarded.generator, search)
    if told is None and may_list(question):
        told = listed(question, collection, retriever, decision, where, authority)
    if told is None and may_compare(question):
        with retriever.listing(decision, where) as rows:
            numbers = rows.words.documents(rows.searches)
            reading = collection.catalogue.read(question, numbers).reading
        told = compared(question, reading, guarded, search, before_remote)
    return told
