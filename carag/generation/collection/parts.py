"""Show a part of a document as it stands: a section, a table with its heads, or the outline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.generation.collection.lists import chosen
from carag.generation.guarded import Told, ToldCode, citation_of
from carag.generation.marks import escaped
from carag.retrieval.listing.named import documents_named, left_over
from carag.retrieval.listing.texts import headings_of, runs_of, section_span, table_span
from carag.retrieval.reading.collective import title_words
from carag.retrieval.reading.forms import read_part
from carag.visible import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carag.retrieval.evidence import Evidence
    from carag.retrieval.listing.admitted import Admitted, Scope
    from carag.retrieval.listing.texts import Piece, Run
    from carag.retrieval.reading.forms import Part


_MOST: Final = 6_000
"""Characters of a section or table that are shown."""
_HEADINGS: Final = 40
"""Headings of an outline that are shown."""
_SECTIONS: Final = 3
"""With this many sections, an outline of the whole has no other headings."""
_SENTENCE: Final = 300
"""Characters of the sentence below a heading that are shown."""
_DOCUMENTS: Final = 3
"""Documents of the passages found in which a table is looked for."""
_CUT: Final = "Only the beginning is shown here: it goes on in the document."


def part_told(
    question: str, scope: Scope, search: Callable[[str], Evidence], *, summarises: bool
) -> Told | None:
    """Show the part of a document that a question asks for; None if it is not certain to ask for one.

    If a model ``summarises``, no outline takes the place of a summary.
    """
    part = read_part(question)
    if part is None or (part.is_summary and summarises):
        return None
    # Before the rest, because a search reads at an instant of its own.
    ids = [one.document_id for one in search(part.ways[-1][0]).shown] if part.is_table else []
    return scope.told(lambda admitted: _told(part, ids, admitted))


def _told(part: Part, found: Sequence[str], admitted: Admitted) -> Told | None:
    declared = admitted.scope.collection.catalogue.declared
    for heading, words in part.ways:
        asked = (
            left_over(heading, admitted.read(heading or words), declared)
            if part.is_table
            else title_words(heading)
        )
        for number in _meant(words, found, admitted):
            runs = runs_of(admitted.whole(number))
            told = _outline(runs, asked, admitted) if part.is_outline else _span(runs, part, asked, admitted)
            if told is not None:
                return told
    return None


def _meant(words: str, found: Sequence[str], admitted: Admitted) -> list[int]:
    """Return the one document that some words name, if it is certain; without words, the first of those found."""
    understood, declared = admitted.read(words or "documents"), admitted.scope.collection.catalogue.declared
    of = dict(zip(understood.records.ids, admitted.numbers.tolist(), strict=True))
    if not words:
        return [of[id_] for id_ in dict.fromkeys(found) if id_ in of][:_DOCUMENTS]
    named = documents_named(words, understood, declared)
    if not named and (choice := chosen(f"List {words}", admitted)):
        named = choice[1]
    ids = [id_ for id_, number in of.items() if number in named]
    return [of[ids[0]]] if len(ids) == 1 else []


def _span(runs: Sequence[Run], part: Part, asked: frozenset[str], admitted: Admitted) -> Told | None:
    """Show a section or a table, if exactly one text has the section, or a table with the words asked for."""
    spans = []
    for run in runs:
        section = part.section
        span = (
            section_span(run.text, section)
            if section
            else table_span(run.text, asked - {"table"}, title_words)
        )
        if span is not None:
            spans.append((run, *span))
    if not spans or (part.section is not None and len(spans) > 1):
        return None
    run, start, end = max(spans, key=lambda one: one[2] - one[1])
    pieces = run.pieces(start, min(end, start + _MOST))
    lines = [f"{escaped(visible(text.strip()))} [{at}]" for at, (_, text) in enumerate(pieces, start=1)]
    chunks = [chunk for chunk, _ in pieces]
    head = f"{admitted.name(chunks[0])}{', as it stands and not summarised' * part.is_summary}:"
    return _shown(ToldCode.SHOWN, [head, *lines], chunks, admitted, is_cut=end - start > _MOST)


def _outline(runs: Sequence[Run], asked: frozenset[str], admitted: Admitted) -> Told | None:
    found: list[tuple[Piece, str]] = []
    for run in runs:
        headings = headings_of(run.text)
        if asked:
            under = [one for one in headings if asked <= title_words(one.text)]
            best = max(under, key=lambda one: one.end - one.start, default=None)
            headings = [one for one in headings if best and best.start <= one.start < best.end]
        elif sum(one.is_section for one in headings) >= _SECTIONS:
            headings = [one for one in headings if one.is_section]
        for one in headings:
            said = one.sentence
            if len(said) > _SENTENCE:
                said = f"{said[:_SENTENCE].rsplit(' ', 1)[0]} …"
            between = ": " if said and any(map(str.isalpha, one.text)) else " "
            line = f"- {one.text}{between}{said}".rstrip()
            found.append((run.pieces(one.start, one.start + 1)[0][0], line))
    if not found:
        return None
    chunks = list({chunk.chunk_id: chunk for chunk, _ in found[:_HEADINGS]}.values())
    at = {chunk.chunk_id: number for number, chunk in enumerate(chunks, start=1)}
    name = admitted.name(chunks[0])
    head = f"An outline of {name}, not a summary: headings, each with the first sentence below it."
    lines = [f"{escaped(visible_line(line))} [{at[chunk.chunk_id]}]" for chunk, line in found[:_HEADINGS]]
    return _shown(ToldCode.OUTLINED, [head, *lines], chunks, admitted, is_cut=len(found) > _HEADINGS)


def _shown(
    code: ToldCode, lines: Sequence[str], chunks: Sequence[Piece], admitted: Admitted, *, is_cut: bool
) -> Told:
    evidence = admitted.evidence(chunks, "")
    citations = tuple(citation_of(at, one) for at, one in enumerate(evidence.passages))
    return Told(code, "\n".join([*lines, *[_CUT][:is_cut]]), evidence, citations, complete=not is_cut)
