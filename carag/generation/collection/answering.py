"""Answer what asks about the documents themselves; everything else is left to retrieval and generator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from carag.errors import StoreLocked
from carag.generation.collection.lists import listed
from carag.generation.collection.parts import part_told
from carag.generation.extractive import Extractive
from carag.generation.guarded import Answered, Told, ToldCode, citation_of
from carag.generation.marks import renumbered
from carag.retrieval.evidence import Topic
from carag.retrieval.reading.collective import may_list
from carag.retrieval.reading.forms import one_line, read_compared
from carag.retrieval.reading.patterns import pattern
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from carag.generation.guarded import GuardedGenerator
    from carag.retrieval.evidence import Evidence
    from carag.retrieval.listing.admitted import Scope


_LONGEST: Final = 300
"""Characters in the longest question that is read as one about documents; a longer one says more."""


def about_documents(
    question: str,
    scope: Scope,
    guarded: GuardedGenerator,
    search: Callable[[str], Evidence],
    before_remote: Callable[[], None],
) -> Told | None:
    """Answer a question about the documents themselves, or return None if it is not certain to be one.

    ``search`` finds evidence for a question as the ordinary way does; ``before_remote`` is called before question and
    passages leave this machine.
    """
    if len(question) > _LONGEST:
        return None
    told = part_told(question, scope, search, summarises=not isinstance(guarded.generator, Extractive))
    if told is None and may_list(question):
        told = listed(question, scope)
    if told is None and pattern("compares").match(one_line(question)):
        asked = scope.told(lambda admitted: read_compared(question, admitted.read(question).reading) or None)
        told = _compared(asked or {}, guarded, search, before_remote)
    return told


def _compared(
    asked: Mapping[str, str],
    guarded: GuardedGenerator,
    search: Callable[[str], Evidence],
    before_remote: Callable[[], None],
) -> Told | None:
    """Ask of each name its own question; None if no name has an answer."""
    found = {name: search(one) for name, one in asked.items()}
    results = {name: guarded.answer(asked[name], found[name], before_remote=before_remote) for name in asked}
    answered = {name: one for name, one in results.items() if isinstance(one, Answered)}
    if not answered:
        return None
    evidence = _together([*found.values()])
    at = {one.chunk_id: number for number, one in enumerate(evidence.passages, start=1)}
    parts = []
    for name, result in results.items():
        numbers = {number: at[one.chunk_id] for number, one in enumerate(found[name].shown, start=1)}
        text = renumbered(result.text, numbers) if isinstance(result, Answered) else result.message
        parts.append(f"{visible_line(name)}:\n{text}")
    cited = dict.fromkeys(at[one.chunk_id] for result in answered.values() for one in result.citations)
    citations = tuple(citation_of(number - 1, evidence.passages[number - 1]) for number in cited)
    is_complete = all(one.complete for one in answered.values())
    return Told(ToldCode.COMPARED, "\n\n".join(parts), evidence, citations, complete=is_complete)


def _together(found: Sequence[Evidence]) -> Evidence:
    """Return several evidences as one; StoreLocked if the store changed between them."""
    first = found[0]
    if any((one.known_at, one.backend) != (first.known_at, first.backend) for one in found):
        raise StoreLocked("documents changed while they were compared; ask again")
    passages = {each.chunk_id: each for one in found for each in one.passages}
    lenders = {each.chunk_id: each for one in found for each in one.lenders if each.chunk_id not in passages}
    hidden = {each.chunk_id: each for one in found for each in one.withheld.hidden}
    return replace(
        first,
        passages=tuple(passages.values()),
        lenders=tuple(lenders.values()),
        withheld=replace(first.withheld, hidden=tuple(hidden.values())),
        topic=Topic("; ".join(dict.fromkeys(one.topic.understood for one in found))),
        nearest=max((one.nearest for one in found if one.nearest is not None), default=None),
        audiences={id_: shared for one in found for id_, shared in one.audiences.items()},
        about=None,
    )
