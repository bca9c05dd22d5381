"""Show a part of a document as it stands: a section, a table with its heads, or the outline."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from carag.generation.collection.told import Told, ToldCode
from carag.generation.extractive import Extractive
from carag.generation.guarded import citation_of
from carag.generation.marks import escaped
from carag.retrieval.listing.admitted import Admitted
from carag.retrieval.listing.chosen import chosen
from carag.retrieval.listing.sections import headings_of, section_span
from carag.retrieval.listing.texts import runs_of
from carag.retrieval.reading import read_question
from carag.retrieval.reading.collective import title_words
from carag.retrieval.reading.parts import PartKind, read_part
from carag.retrieval.reading.question import unread
from carag.retrieval.tables.table import tables_of
from carag.visible import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from carag.generation.generator import Generator
    from carag.policy import Decision, Where
    from carag.retrieval import Retriever
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.evidence import Evidence
    from carag.retrieval.listing.catalogued import Catalogued
    from carag.retrieval.listing.texts import Run
    from carag.retrieval.reading.parts import Part
    from carag.retrieval.tables.table import Table
    from carag.store.values import StoredChunk


_MOST: Final = 6_000
"""Characters of a section or table that are shown."""
_HEADINGS: Final = 40
"""Headings of an outline that are shown."""
_SENTENCE: Final = 300
"""Characters of the sentence below a heading that are shown."""
_DOCUMENTS: Final = 3
"""Documents of the passages found in which a table is looked for."""
_FEWEST: Final = 2
"""Headings that an outline has at least."""
_NOUN: Final = re.compile(
    r"\b(?:circulars?|directions?|documents?|files?|polic(?:y|ies)|memos?|reports?)\b", re.IGNORECASE
)
"""Words before a title that say what the document is."""
_CUT: Final = "Only the beginning is shown here: it goes on in the document."


class Parts:
    """Answers for one request, from the documents that a session may use at one instant."""

    def __init__(
        self,
        collection: Catalogued,
        admitted: Admitted,
        decision: Decision,
        authority: Inquiry | None,
    ) -> None:
        self._collection, self._admitted = collection, admitted
        self._decision, self._authority = decision, authority

    def told(self, part: Part, found: Evidence | None) -> Told | None:
        """Answer, or return None if document and part are not certain; ``found`` is what a search for a table found."""
        for heading, words in part.documents:
            numbers = self._documents(words) if found is None else self._found(found)
            for number in numbers:
                runs = runs_of(self._admitted.whole(number))
                if part.kind is PartKind.SECTION and part.section is not None:
                    shown = [(run, span) for run in runs if (span := section_span(run.text, part.section))]
                    told = self._section(*shown[0]) if len(shown) == 1 else None
                elif part.kind is PartKind.TABLE:
                    told = self._table(runs, heading)
                else:
                    told = self._outline(runs, heading)
                if told is not None:
                    return told
        return None

    # --- the document ---

    def _documents(self, words: str) -> list[int]:
        """Return the one document that some words name, if it is certain."""
        records = self._collection.catalogue.read(words, self._admitted.numbers)
        reading, numbers = records.reading, self._admitted.numbers.tolist()
        named = {
            key for one in (*reading.numbers, *reading.titles) for key in one.keys if isinstance(key, int)
        }
        plain = words.strip(" \"'“”‘’").removeprefix("the ")
        rest = _NOUN.sub("", words)
        for one in (*reading.numbers, *reading.titles):
            rest = rest.replace(one.text, "")
        named = named if not title_words(rest) else set()
        named |= {number for number, id_ in zip(numbers, records.records.ids, strict=True) if id_ == plain}
        if not named:
            asked = title_words(_NOUN.sub("", words))
            titles = records.records.titles
            named = {n for n, one in zip(numbers, titles, strict=True) if asked and asked <= title_words(one)}
        if not named:
            choice = chosen(f"List {words}", self._collection, self._admitted, self._decision)
            named = set() if choice is None else set(choice.numbers)
        return self._allowed([*named]) if len(named) == 1 else []

    def _found(self, found: Evidence) -> list[int]:
        """Return the first documents that a search found."""
        everything = self._collection.catalogue.read("documents", self._admitted.numbers).records
        number_of = dict(zip(everything.ids, self._admitted.numbers.tolist(), strict=True))
        ids = dict.fromkeys(one.document_id for one in found.shown)
        return [number_of[id_] for id_ in ids if id_ in number_of][:_DOCUMENTS]

    def _allowed(self, numbers: list[int]) -> list[int]:
        if self._authority is None:
            return numbers
        chunks = self._admitted.firsts(numbers)
        allowed = self._authority.allows(one.document_id for one in chunks)
        return [n for n, one in zip(numbers, chunks, strict=True) if one.document_id in allowed]

    # --- the part ---

    def _section(self, run: Run, span: tuple[int, int]) -> Told:
        start, end = span
        pieces = run.pieces(start, min(end, start + _MOST))
        chunks = [chunk for chunk, _ in pieces]
        lines = [f"{self._admitted.name(chunks[0])}:"]
        lines += [f"{escaped(visible(text.strip()))} [{at}]" for at, (_, text) in enumerate(pieces, start=1)]
        return self._shown(ToldCode.SHOWN, lines, chunks, is_cut=end - start > _MOST)

    def _table(self, runs: Sequence[Run], what: str) -> Told | None:
        asked = self._asked(what)
        fitting = [
            (len(table.rows), -place, run, table)
            for place, run in enumerate(runs)
            for table in tables_of(run.text)
            if asked and asked <= title_words(_above(run.text, table))
        ]
        if not fitting:
            return None
        _, _, run, table = max(fitting, key=lambda one: one[:2])
        first = min(
            span[0] for span in [*table.captions, *(cell.span for head in table.heads for cell in head)]
        )
        last = first
        lines = [*_written(run.text, table)]
        kept: list[str] = []
        for line, end in lines:
            if sum(map(len, kept)) + len(line) > _MOST:
                break
            kept.append(line)
            last = max(last, end)
        chunks = [chunk for chunk, _ in run.pieces(first, last)]
        marks = ", ".join(map(str, range(1, len(chunks) + 1)))
        title = visible_line(_above(run.text, table))
        head = f"{self._admitted.name(chunks[0])}: {escaped(title)} [{marks}]"
        return self._shown(ToldCode.SHOWN, [head, *kept], chunks, is_cut=len(kept) < len(lines))

    def _asked(self, what: str) -> frozenset[str]:
        """Return the words by which a table is asked for, without those that name documents."""
        read = self._collection.catalogue.read(what, self._admitted.numbers)
        rest = unread(what)
        for one in (*read.reading.entities, *read.reading.titles):
            rest = re.sub(rf"{re.escape(one.text)}(?:['’]s?\b)?", " ", rest)
        kinds = self._collection.catalogue.declared.kinds
        return title_words(kinds.without(rest) if kinds else rest)

    def _outline(self, runs: Sequence[Run], heading: str) -> Told | None:
        asked = title_words(heading)
        found: list[tuple[StoredChunk, str]] = []
        for run in runs:
            headings = headings_of(run.text)
            if asked:
                under = [one for one in headings if asked <= title_words(one.text)]
                if not under:
                    continue
                best = max(under, key=lambda one: one.end - one.start)
                headings = [one for one in headings if best.start <= one.start < best.end]
            for one in headings:
                said = f": {_short(one.sentence)}" if one.sentence and one.sentence != one.text else ""
                found.append((run.pieces(one.start, one.start + 1)[0][0], f"- {one.text}{said}"))
        if len(found) < _FEWEST:
            return None
        kept = found[:_HEADINGS]
        chunks = list({chunk.chunk_id: chunk for chunk, _ in kept}.values())
        at = {chunk.chunk_id: number for number, chunk in enumerate(chunks, start=1)}
        head = (
            f"An outline of {self._admitted.name(chunks[0])}, not a summary: headings, each with the first sentence "
            "below it."
        )
        lines = [f"{escaped(visible_line(line))} [{at[chunk.chunk_id]}]" for chunk, line in kept]
        return self._shown(ToldCode.OUTLINED, [head, *lines], chunks, is_cut=len(kept) < len(found))

    def _shown(
        self, code: ToldCode, lines: Sequence[str], chunks: Sequence[StoredChunk], *, is_cut: bool
    ) -> Told:
        evidence = self._admitted.evidence(chunks, "")
        citations = tuple(citation_of(at, one) for at, one in enumerate(evidence.passages))
        text = "\n".join([*lines, *([_CUT] if is_cut else [])])
        return Told(code, text, evidence, citations, complete=not is_cut)


def part_told(
    question: str,
    collection: Catalogued,
    retriever: Retriever,
    decision: Decision,
    where: Where,
    authority: Inquiry | None,
    generator: Generator,
    search: Callable[[str], Evidence],
) -> Told | None:
    """Show the part of a document that a question asks for; None if it is not certain to ask for one.

    If a model writes answers, it also writes summaries, and no outline takes their place.
    """
    part = read_part(question, read_question(question))
    if part is None or (part.is_summary and not isinstance(generator, Extractive)):
        return None
    # Before `listing`, because a search reads at an instant of its own.
    found = search(part.documents[0][0]) if part.kind is PartKind.TABLE else None
    with retriever.listing(decision, where) as rows:
        admitted = Admitted(collection, decision, where, rows)
        told = Parts(collection, admitted, decision, authority).told(part, found)
    return told if told is None else replace(told, is_searched=found is not None)


def _above(text: str, table: Table) -> str:
    """Return the lines above a table that belong to it."""
    return " ".join(text[slice(*span)] for span in table.captions)


def _written(text: str, table: Table) -> Iterator[tuple[str, int]]:
    """Yield the lines of a table in Markdown, each with the end of its row in the text."""
    width = table.width

    def line(label: str, cells: Sequence[tuple[int, str]]) -> str:
        at = {place: " ".join(visible_line(said).split()) for place, said in cells}
        said = [label, *(at.get(place, "") for place in range(width))]
        return escaped(f"| {' | '.join(one.replace('|', '/') for one in said)} |")

    for head in table.heads:
        cells = [(cell.at, text[slice(*cell.span)]) for cell in head]
        label = next((said for place, said in cells if place < 0), "")
        yield line(visible_line(label), cells), max(cell.span[1] for cell in head)
    yield f"|{' --- |' * (width + 1)}", 0
    section = None
    for row in table.rows:
        if row.section != section and row.section is not None:
            yield line(visible_line(text[slice(*row.section)]), ()), row.section[1]
        section = row.section
        cells = [(cell.at, text[slice(*cell.span)]) for cell in row.cells]
        yield line(" ".join(text[slice(*row.label)].split()), cells), row.cells[-1].span[1]


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= _SENTENCE else f"{sentence[:_SENTENCE].rsplit(' ', 1)[0]} …"
