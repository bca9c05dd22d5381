"""Read filings and label them for the store: facts and passages, without a store or a clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from carag.labelling.chunking import CHUNKER_VERSION, chunk
from carag.labelling.labelled import LabelledDocument, LabelledPassage, Made, NotMade, content_hash
from carag.policy import QUARANTINE
from carag.profiles.edgar.reading.door import problem_of
from carag.profiles.edgar.reading.readers import ReadKind, read_filings
from carag.profiles.edgar.rules.filing_events import bears_on_others
from carag.profiles.edgar.rules.labeller import LABELLER_VERSION, chunk_word, label
from carag.profiles.edgar.rules.metadata_only import (
    facts_of_metadata,
    facts_of_text,
    is_metadata_only,
    quarantine_of,
    readings,
    united,
)
from carag.profiles.edgar.rules.rules import QuarantineCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from carag.labelling.label import Label
    from carag.labelling.labelled import Facts
    from carag.profiles.edgar.facts.filing import Filing


_T = TypeVar("_T")

Selection: TypeAlias = "Mapping[str, Collection[tuple[str, int]]]"
"""By accession number, the passages wanted: the type of their document, and the offset where they start in it."""


@dataclass(frozen=True, slots=True)
class GivenFiling:
    """A filing as one source states it, with or without its text."""

    where: str
    filing: Filing
    document: LabelledDocument
    """The labelled document, with the facts from this source only."""
    label: Label
    has_text: bool = True
    wanted: Collection[tuple[str, int]] | None = None
    """The passages selected; None for all."""

    def made(self, known: Facts | None) -> Made | NotMade | None:
        """Unite the filing with what is known about it; None if it has no text and adds nothing."""
        return _attempt(self.where, lambda: self._made(known))

    def _made(self, known: Facts | None) -> Made | None:
        facts = dict(self.document.facts) if known is None else united(known, self.document.facts)
        if facts == known and not self.has_text:
            return None
        quarantine, stated = quarantine_of(facts), readings(facts)
        document = replace(self.document, facts=facts, quarantine=quarantine)
        if self.has_text:
            ciks = dict.fromkeys((*self.filing.ciks, *(cik for one in stated for cik in one.ciks)))
            return Made(
                document=replace(document, ciks=tuple(ciks)),
                passages=self._passages(QUARANTINE if quarantine else 0),
                is_new=known is None or is_metadata_only(known),
                is_quarantined=quarantine is not None,
            )
        # Facts that can set no bit concern no filing, so later filings skip them.
        bearing = {cik for one in stated if bears_on_others(one) for cik in one.ciks}
        remarks: tuple[str, ...] = ()
        is_news = quarantine != (known and quarantine_of(known))
        if quarantine and quarantine[0] == QuarantineCode.FACTS_DISAGREE and is_news:
            remarks = (f"{self.where}: quarantined: {self.filing.accession_number}: {quarantine[1]}",)
        digest = content_hash(facts, (), version=LABELLER_VERSION)
        return Made(
            document=replace(document, ciks=tuple(sorted(bearing)), content_hash=digest),
            is_quarantined=bool(remarks),
            remarks=remarks,
        )

    def _passages(self, quarantine: int) -> list[LabelledPassage]:
        labelled = replace(self.label, word=self.label.word | quarantine)
        return [
            LabelledPassage(
                document=document.type,
                start=piece.start,
                end=piece.end,
                text=piece.text,
                word=chunk_word(labelled, self.filing, document, piece.text, piece.start),
                public_at=labelled.public_at,
                subjects=self.filing.subjects,
            )
            for document in self.filing.documents
            for piece in chunk(document.text)
            if self.wanted is None or (document.type, piece.start) in self.wanted
        ]


def labelled_filings(
    path: Path, only: Selection | None = None
) -> Iterator[tuple[int, GivenFiling | NotMade]]:
    """Read and label filings in order, each with the bytes read so far; of two with one number, the first counts."""
    first_place: dict[str, str] = {}
    for outcome in read_filings(path):
        where, filing = outcome.where, outcome.filing or outcome.metadata
        if filing is None:
            reason = f"{where}: {outcome.kind.name.lower()}: {outcome.reason}"
            yield outcome.bytes_read, NotMade(reason, is_fault=outcome.kind is ReadKind.FAILED)
        elif outcome.filing is None:
            yield outcome.bytes_read, _attempt(where, partial(_listed, where, filing))
        elif only is None or filing.accession_number in only:
            one = _attempt(where, partial(_labelled, where, filing, only))
            first = (
                where if isinstance(one, NotMade) else first_place.setdefault(filing.accession_number, where)
            )
            if first != where:
                one = NotMade(f"{where}: skipped: {filing.accession_number} was already read from {first}")
            yield outcome.bytes_read, one


def _attempt(where: str, make: Callable[[], _T]) -> _T | NotMade:
    """Make the rows of one filing; an error rejects that filing, and the run goes on."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - one filing never ends a run; unforeseen errors are counted as faults
        problem = problem_of(error)
        kind = "broken" if problem.foreseen else "failed"
        return NotMade(f"{where}: {kind}: {problem.reason}", is_fault=not problem.foreseen)


def _listed(where: str, filing: Filing) -> GivenFiling:
    labelled = label(filing, metadata_only=True)
    document = LabelledDocument(
        document_id=filing.accession_number,
        form=filing.form or "",
        company=filing.company,
        filed=filing.filed.isoformat() if filing.filed else "",
        content_hash="",
        facts=facts_of_metadata(filing, labelled),
        causes={"bits": []},
        public_at_source="facts alone",
    )
    return GivenFiling(where, filing, document, labelled, has_text=False)


def _labelled(where: str, filing: Filing, only: Selection | None) -> GivenFiling:
    labelled = label(filing)
    wanted = None if only is None else only[filing.accession_number]
    # A selection of passages has a different content hash from the whole filing.
    part = "" if wanted is None else f".{sorted(wanted)}"
    facts = facts_of_text(filing, labelled)
    filed = filing.filed.isoformat() if filing.filed else ""
    document = LabelledDocument(
        document_id=filing.accession_number,
        form=filing.form or "",
        company=filing.company,
        filed=filed,
        content_hash=content_hash(
            {
                **facts,
                "subjects": filing.subjects,
                "company": filing.company,
                "documents": [document.type for document in filing.documents],
                "filed": filed,
                "word": labelled.word,
            },
            [document.text for document in filing.documents],
            version=f"{CHUNKER_VERSION}.{LABELLER_VERSION}{part}",
        ),
        facts=facts,
        causes={"bits": [[cause.bit, cause.field, cause.rule] for cause in labelled.causes]},
        public_at_source=labelled.public_at_source.value,
        quarantine=labelled.quarantine,
    )
    return GivenFiling(where, filing, document, labelled, wanted=wanted)
