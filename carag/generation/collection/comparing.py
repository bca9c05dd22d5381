"""Answer the same question about several names, one after the other, in one answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from carag.errors import StoreLocked
from carag.generation.collection.told import Told, ToldCode
from carag.generation.guarded import Answered, citation_of
from carag.generation.marks import renumbered
from carag.retrieval.evidence import Topic
from carag.retrieval.reading.compared import read_compared
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carag.generation.guarded import GuardedGenerator
    from carag.retrieval.evidence import Evidence
    from carag.retrieval.reading import Reading


def compared(
    question: str,
    reading: Reading,
    guarded: GuardedGenerator,
    search: Callable[[str], Evidence],
    before_remote: Callable[[], None],
) -> Told | None:
    """Ask of each name what a question asks of several; None if it does not, or if no name has an answer."""
    asked = read_compared(question, reading)
    found = [search(one.question) for one in asked]
    results = [
        guarded.answer(one.question, evidence, before_remote=before_remote)
        for one, evidence in zip(asked, found, strict=True)
    ]
    if not any(isinstance(one, Answered) for one in results):
        return None
    evidence = _together(found)
    at = {one.chunk_id: number for number, one in enumerate(evidence.passages, start=1)}
    parts, cited = [], list[int]()
    for one, its, result in zip(asked, found, results, strict=True):
        if isinstance(result, Answered):
            text = renumbered(result.text, {n: at[p.chunk_id] for n, p in enumerate(its.shown, start=1)})
            cited += [at[citation.chunk_id] for citation in result.citations]
        else:
            text = result.message
        parts.append(f"{visible_line(one.name)}:\n{text}")
    citations = tuple(
        citation_of(number - 1, evidence.passages[number - 1]) for number in dict.fromkeys(cited)
    )
    is_complete = all(one.complete for one in results if isinstance(one, Answered))
    return Told(ToldCode.COMPARED, "\n\n".join(parts), evidence, citations, complete=is_complete)


def _together(found: Sequence[Evidence]) -> Evidence:
    """Return several evidences as one; StoreLocked if the store changed between them."""
    first = found[0]
    if any((one.known_at, one.backend) != (first.known_at, first.backend) for one in found):
        raise StoreLocked("documents changed while they were compared; ask again")
    passages = {each.chunk_id: each for one in found for each in one.passages}
    lenders = {each.chunk_id: each for one in found for each in one.lenders}
    hidden = {each.chunk_id: each for one in found for each in one.withheld.hidden}
    near = [one.nearest for one in found if one.nearest is not None]
    return replace(
        first,
        passages=tuple(passages.values()),
        lenders=tuple(one for id_, one in lenders.items() if id_ not in passages),
        withheld=replace(first.withheld, hidden=tuple(hidden.values())),
        topic=Topic("; ".join(dict.fromkeys(one.topic.understood for one in found))),
        nearest=max(near, default=None),
        audiences={id_: shared for one in found for id_, shared in one.audiences.items()},
        about=None,
        words=None,
        respelt="",
    )
