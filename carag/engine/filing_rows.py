"""Turn filings that were read into the rows of a store: label, facts and passages, without a store or a clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from carag.labelling.chunking import CHUNKER_VERSION, chunk
from carag.policy import QUARANTINE
from carag.profiles.edgar.reading.door import problem_of
from carag.profiles.edgar.reading.readers import ReadKind
from carag.profiles.edgar.rules.filing_events import bears_on_others
from carag.profiles.edgar.rules.labeller import LABELLER_VERSION, chunk_word, label
from carag.profiles.edgar.rules.metadata_only import (
    facts_of_metadata,
    facts_of_text,
    quarantine_of,
    readings,
    united,
)
from carag.store.values import StoredChunk, StoredFiling, content_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from carag.labelling.label import Label
    from carag.profiles.edgar.facts.filing import Filing
    from carag.profiles.edgar.reading.readers import ReadOutcome

__all__ = ["Accepted", "Listed", "Rejected", "Selection", "attempt", "classify", "rows_of_listed"]

_T = TypeVar("_T")

Selection = Mapping[str, Collection[tuple[str, int]]]
"""By accession number, the passages wanted: the type of their document, and the offset where they start in it."""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A filing with text and its label, to be stored unless the store has it already."""

    where: str
    filing: Filing
    label: Label
    stored: StoredFiling
    """The filing as the store keeps it, with the facts of its own text only."""
    wanted: Collection[tuple[str, int]] | None = None
    """The passages selected; None for all."""

    def rows(self, before: Facts | None) -> tuple[StoredFiling, list[StoredChunk]]:
        """Return the filing, united with what the store knew about it before, and its labelled passages."""
        filing, quarantine = _united(self.stored, before)
        labelled = replace(self.label, word=self.label.word | quarantine)
        return filing, [
            StoredChunk(
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


@dataclass(frozen=True, slots=True)
class Listed:
    """A filing for which a source states facts and has no text."""

    where: str
    filing: Filing


@dataclass(frozen=True, slots=True)
class Rejected:
    """A filing that is not stored: its place and the reason."""

    text: str
    is_fault: bool = False
    """Whether the reason is a fault of the program."""


def classify(
    outcomes: Iterable[ReadOutcome], only: Selection | None
) -> Iterator[Accepted | Listed | Rejected]:
    """Sort filings, in order, into those to store and to reject; of two with one number the first counts."""
    first_place: dict[str, str] = {}
    for outcome in outcomes:
        if outcome.metadata is not None:
            yield Listed(outcome.where, outcome.metadata)
        elif outcome.filing is None:
            text = f"{outcome.where}: {outcome.kind.name.lower()}: {outcome.reason}"
            yield Rejected(text, is_fault=outcome.kind is ReadKind.FAILED)
        elif only is None or outcome.filing.accession_number in only:
            one = attempt(outcome.where, partial(_labelled, outcome.where, outcome.filing, only))
            if isinstance(one, Accepted):
                number = one.stored.accession_number
                first = first_place.setdefault(number, one.where)
                if first != one.where:
                    one = Rejected(f"{one.where}: skipped: {number} was already read from {first}")
            yield one


def attempt(where: str, make: Callable[[], _T]) -> _T | Rejected:
    """Make the rows of one filing; an error rejects that filing, and the run goes on."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - one filing never ends a run; unforeseen errors are counted as faults
        problem = problem_of(error)
        kind = "broken" if problem.foreseen else "failed"
        return Rejected(f"{where}: {kind}: {problem.reason}", is_fault=not problem.foreseen)


def rows_of_listed(filing: Filing, known: Facts | None) -> StoredFiling:
    """Return a filing without text as the store keeps it, united with what was known about it before."""
    new = facts_of_metadata(filing, label(filing, metadata_only=True))
    facts = new if known is None else united(known, new)
    return StoredFiling(
        accession_number=filing.accession_number,
        form=filing.form or "",
        company=filing.company,
        filed=filing.filed.isoformat() if filing.filed else "",
        content_hash=content_hash(facts, (), version=LABELLER_VERSION),
        facts=facts,
        causes={"bits": []},
        public_at_source="facts alone",
        quarantine=quarantine_of(facts),
        ciks=_bearing(facts),
    )


def _bearing(facts: Facts) -> tuple[int, ...]:
    """Return the CIKs whose filings an event can concern; none if it can set no bit, so that later filings skip it."""
    return tuple(sorted({cik for one in readings(facts) if bears_on_others(one) for cik in one.ciks}))


def _united(filing: StoredFiling, before: Facts | None) -> tuple[StoredFiling, int]:
    """Unite a filing's facts with those known before; return it, and the quarantine bit if the two disagree."""
    known = united(before, filing.facts) if before is not None else dict(filing.facts)
    quarantine = quarantine_of(known)
    ciks = tuple(dict.fromkeys((*filing.ciks, *(cik for one in readings(known) for cik in one.ciks))))
    return replace(filing, facts=known, quarantine=quarantine, ciks=ciks), QUARANTINE if quarantine else 0


def _labelled(where: str, filing: Filing, only: Selection | None) -> Accepted:
    labelled = label(filing)
    wanted = None if only is None else only[filing.accession_number]
    # A selection of passages has another content hash than the whole filing.
    part = "" if wanted is None else f".{sorted(wanted)}"
    facts = facts_of_text(filing, labelled)
    filed = filing.filed.isoformat() if filing.filed else ""
    stored = StoredFiling(
        accession_number=filing.accession_number,
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
        ciks=filing.ciks,
    )
    return Accepted(where, filing, labelled, stored, wanted)
