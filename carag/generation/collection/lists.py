"""List and count the documents that a question asks for, each line with a citation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.generation.guarded import Told, ToldCode, citation_of
from carag.generation.marks import escaped
from carag.labelling.document import ActKind
from carag.retrieval.evidence import Topic
from carag.retrieval.listing.acts import acted, changed
from carag.retrieval.reading.collective import choose
from carag.retrieval.successors import successors
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Evidence
    from carag.retrieval.listing.admitted import Admitted, Scope
    from carag.retrieval.reading.collective import Choice
    from carag.retrieval.reading.forms import Acted


MOST_LISTED: Final = 400
"""The most documents that one answer names, as many as one record can hold."""
MOST_COUNTED: Final = 20
"""The most documents that are named below their number."""
_UNDATED: Final = 1 << 30
_DONE: Final = {ActKind.REPLACES: "replaced", ActKind.WITHDRAWS: "withdrawn", ActKind.AMENDS: "amended"}


def listed(question: str, scope: Scope) -> Told | None:
    """List or count the documents that a question asks for; None if it is not certain to ask for documents."""
    found = scope.told(lambda admitted: _listed(question, admitted))
    return found if found is None or isinstance(found, Told) else _acted_on(*found, scope)


def _listed(question: str, admitted: Admitted) -> Told | tuple[Acted, list[str]] | None:
    """List documents; for a question about acts on a document, return what it asks, and the ids of the document."""
    if (found := chosen(question, admitted)) is not None:
        return _told(*found, admitted)
    one = acted(question, admitted)
    if one is None:
        return None
    asked, ids, others = one
    if not asked.is_by_it:
        return asked, ids
    act, said = _DONE[asked.kind], visible_line(asked.said)
    chunks = admitted.firsts(others[:MOST_LISTED])
    evidence = admitted.evidence(chunks, f"{act} by “{said}”")
    names = [admitted.name(chunk) for chunk in chunks]
    return _lines(f"{act.capitalize()} by “{said}”:", names, evidence, len(others))


def _acted_on(asked: Acted, ids: Sequence[str], scope: Scope) -> Told | None:
    """List what has acted on a document, which is read at an instant of its own."""
    if scope.decision.known_at is not None:
        return None
    act, said = _DONE[asked.kind], visible_line(asked.said)
    collection, _, decision, where, authority = scope
    evidence, news = successors(collection, ids, decision, where, after=-1, authority=authority)
    by = {each.passage.chunk_id for each in news if each.act is asked.kind}
    kept = tuple(passage for passage in evidence.passages if passage.chunk_id in by)
    evidence = replace(evidence, passages=kept, topic=Topic(f"what has {act} “{said}”"))
    names = [passage.source or passage.document_id for passage in kept]
    return _lines(f"“{said}” was {act} by:", names, evidence, len(names))


def chosen(question: str, admitted: Admitted) -> tuple[Choice, list[int], int] | None:
    """Choose documents: what is asked for, their numbers in the order shown, and how many there are to choose from."""
    scope, understood = admitted.scope, admitted.read(question)
    vocabulary, declared = scope.collection.profile.vocabulary, scope.collection.catalogue.declared
    records, intents = understood.records, scope.decision.intents
    choice = choose(question, understood.reading, records, declared, vocabulary, intents, understood.stated)
    if choice is None:
        return None
    found, days, ids = choice.found, records.dated, records.ids
    if choice.changed:
        found = found & changed(choice, records, scope)
    at = np.flatnonzero(found & (days > 0) if choice.order else found).tolist()
    sign = 1 if choice.order == "oldest" else -1
    at.sort(key=lambda one: (sign * int(days[one]) if days[one] else _UNDATED, ids[one]))
    taken = at
    if choice.order:
        taken = at[: choice.many] or [one for one in at if days[one] == days[at[0]]]
    return choice, records.numbers[taken].tolist(), len(at)


def _told(choice: Choice, numbers: list[int], many: int, admitted: Admitted) -> Told:
    said = "; ".join(choice.said)
    most = MOST_COUNTED if choice.counts else MOST_LISTED
    chunks = admitted.firsts(numbers[:most])
    number = f"{many} document{'' if many == 1 else 's'} that this session may use"
    if choice.order:
        several = f"{len(numbers)} " if len(numbers) > 1 else ""
        number = f"The {several}{choice.order} of {number}"
    told = _lines(
        f"{number}{': ' if said else ''}{said}.",
        [admitted.name(one) for one in chunks],
        admitted.evidence(chunks, said or "all documents"),
        len(numbers),
    )
    return replace(told, code=ToldCode.COUNTED, complete=True) if choice.counts and many else told


def _lines(head: str, names: Sequence[str], evidence: Evidence, many: int) -> Told:
    """Write a list; without any document, in the same words whether or not hidden ones meet the question."""
    if not names:
        text = f"None of the documents that this session may use meets the question: {evidence.topic.understood}."
        return Told(ToldCode.NONE_LISTED, text, evidence, ())
    lines = [head, *(f"- {escaped(visible_line(name))} [{at}]" for at, name in enumerate(names, start=1))]
    if many > len(names):
        lines.append(f"Only {len(names)} of them are named here; {many - len(names)} more are not.")
    citations = tuple(citation_of(at, one) for at, one in enumerate(evidence.passages))
    return Told(ToldCode.LISTED, "\n".join(lines), evidence, citations, complete=many <= len(names))
