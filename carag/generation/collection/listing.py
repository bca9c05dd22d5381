"""Write lists and counts of documents, each line with a citation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from carag.generation.collection.told import Told, ToldCode
from carag.generation.guarded import citation_of
from carag.generation.marks import escaped
from carag.labelling.document import ActKind
from carag.retrieval.evidence import Topic
from carag.retrieval.listing.acted import named
from carag.retrieval.listing.admitted import Admitted
from carag.retrieval.listing.chosen import chosen
from carag.retrieval.successors import successors
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.policy import Decision, Where
    from carag.retrieval import Retriever
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.evidence import Evidence
    from carag.retrieval.listing.acted import Named
    from carag.retrieval.listing.catalogued import Catalogued
    from carag.retrieval.listing.chosen import Chosen


MOST_LISTED: Final = 400
"""The most documents that one answer names, as many as one record can hold."""
MOST_COUNTED: Final = 20
"""The most documents that are named below their number."""
_DONE: Final = {ActKind.REPLACES: "replaced", ActKind.WITHDRAWS: "withdrawn", ActKind.AMENDS: "amended"}


def listed(
    question: str,
    collection: Catalogued,
    retriever: Retriever,
    decision: Decision,
    where: Where,
    authority: Inquiry | None = None,
) -> Told | None:
    """List or count the documents that a question asks for; None if it is not certain to ask for documents."""
    with retriever.listing(decision, where) as rows:
        admitted = Admitted(collection, decision, where, rows)
        if (found := chosen(question, collection, admitted, decision, authority)) is not None:
            return _told(found, admitted)
        one = named(question, collection, admitted, decision, where, known_at=rows.known_at)
        if one is not None and one.asked.is_by_it:
            return _done_by(one, admitted, authority)
    # Outside `listing`, because the successors are read at an instant of their own.
    if one is None or decision.known_at is not None:
        return None
    return _done_to(one, collection, decision, where, authority)


def _told(found: Chosen, admitted: Admitted) -> Told:
    choice, many = found.choice, found.among
    conditions = "; ".join(choice.said)
    most = MOST_COUNTED if choice.counts else MOST_LISTED
    chunks = admitted.firsts(found.numbers[:most])
    evidence = admitted.evidence(chunks, conditions or "all documents")
    names = [admitted.name(one) for one in chunks]
    if not many:
        return Told(ToldCode.NONE_LISTED, _none(conditions), evidence, ())
    number = f"{many} document{'' if many == 1 else 's'} that this session may use"
    said = f": {conditions}" if conditions else ""
    if choice.order is None:
        head = f"{number}{said}."
    else:
        several = f"{len(found.numbers)} " if len(found.numbers) > 1 else ""
        head = f"The {several}{choice.order.value} of {number}{said}."
    code = ToldCode.COUNTED if choice.counts else ToldCode.LISTED
    return _lines(code, head, names, evidence, len(found.numbers))


def _done_by(one: Named, admitted: Admitted, authority: Inquiry | None) -> Told:
    chunks = admitted.firsts(one.others)
    if authority is not None:
        allowed = authority.allows(chunk.document_id for chunk in chunks)
        chunks = [chunk for chunk in chunks if chunk.document_id in allowed]
    act, said = _DONE[one.asked.kind], visible_line(one.asked.said)
    evidence = admitted.evidence(chunks[:MOST_LISTED], f"what “{said}” has {act}")
    names = [admitted.name(chunk) for chunk in chunks[:MOST_LISTED]]
    if not names:
        return Told(ToldCode.NONE_LISTED, _none(f"{act} by “{said}”"), evidence, ())
    head = f"“{said}” has {act}, of the documents that this session may use:"
    return _lines(ToldCode.LISTED, head, names, evidence, len(chunks))


def _done_to(
    one: Named, collection: Catalogued, decision: Decision, where: Where, authority: Inquiry | None
) -> Told:
    evidence, news = successors(collection, one.ids, decision, where, after=-1, authority=authority)
    by = {each.passage.chunk_id for each in news if each.act is one.asked.kind}
    act, said = _DONE[one.asked.kind], visible_line(one.asked.said)
    kept = tuple(one for one in evidence.passages if one.chunk_id in by)
    evidence = replace(evidence, passages=kept, topic=Topic(f"what has {act} “{said}”"))
    names = [passage.source or passage.document_id for passage in evidence.passages]
    if not names:
        text = f"None of the documents that this session may use has {act} “{said}”."
        return Told(ToldCode.NONE_LISTED, text, evidence, ())
    return _lines(ToldCode.LISTED, f"“{said}” was {act} by:", names, evidence, len(names))


def _none(conditions: str) -> str:
    """Write the message in the same words whether or not hidden documents meet the question."""
    said = f": {conditions}" if conditions else ""
    return f"None of the documents that this session may use meets the question{said}."


def _lines(code: ToldCode, head: str, names: Sequence[str], evidence: Evidence, many: int) -> Told:
    lines = [head, *(f"- {escaped(visible_line(name))} [{at}]" for at, name in enumerate(names, start=1))]
    if many > len(names):
        lines.append(f"Only {len(names)} of them are named here; {many - len(names)} more are not.")
    citations = tuple(citation_of(at, one) for at, one in enumerate(evidence.passages))
    return Told(code, "\n".join(lines), evidence, citations, complete=many <= len(names))
