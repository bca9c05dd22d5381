"""Label filings as ingest would, but without a store, for ``carag policy label``.

Takes whole filings, SGML headers and submissions rows. State bits (amended, superseded, ...) come from the filings
under the path alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.labelling.chunking import chunk
from carag.policy import NEVER, QUARANTINE, VERSION_WORD, bit_names, from_minutes
from carag.profiles.edgar.reading.door import problem_of
from carag.profiles.edgar.reading.readers import ReadKind, read_filings
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.metadata_only import learn, states

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.labelling.label import Label
    from carag.labelling.labelled import Facts
    from carag.labelling.lifecycle import StateBits
    from carag.profiles.edgar.facts.filing import Filing
    from carag.profiles.edgar.reading.readers import ReadOutcome


UNREADABLE: Final = "UNREADABLE"
"""The quarantine code of a filing that cannot be read or labelled."""


def labelled(path: Path) -> Iterator[dict[str, Any]]:
    """Label everything under a path, and yield each filing as the JSON of ``carag policy label``.

    ``chunks`` are listed only if some passage's word differs from the filing's. A file that is not a filing gives
    ``where`` and ``skipped`` alone; one that cannot be read or labelled is quarantined as :data:`UNREADABLE`.
    """
    known: dict[str, Facts] = {}
    failed: dict[str, str] = {}
    for given in read_filings(path, metadata=True):
        filing = given.filing or given.metadata
        try:
            if filing is not None:
                learn(known, filing, metadata_only=_is_metadata_only(given))
        except Exception as error:  # noqa: BLE001 - one filing must not end the run; its error is reported below
            failed[given.where] = problem_of(error).reason
    state_of = states(known.values())
    for given in read_filings(path, metadata=True):
        filing = given.filing or given.metadata
        if given.kind is ReadKind.SKIPPED:
            yield {"where": given.where, "skipped": given.reason}
        elif filing is None or given.where in failed:
            yield _unreadable(given, failed.get(given.where, given.reason))
        else:
            said = label(filing, metadata_only=_is_metadata_only(given))
            yield _described(given.where, filing, said, state_of[filing.accession_number])


def _is_metadata_only(given: ReadOutcome) -> bool:
    """Tell whether the source has facts but no text: a metadata row, or a header alone."""
    return given.filing is None or not given.filing.documents


def _unreadable(given: ReadOutcome, reason: str) -> dict[str, Any]:
    return {
        "accession": given.accession or None,
        "where": given.where,
        "form": None,
        "word": VERSION_WORD | QUARANTINE,
        "bits": [],
        "quarantined": {"code": UNREADABLE, "text": reason},
        "causes": [],
        "public_at": None,
        "public_at_source": "unknown",
        "chunks": [],
    }


def _described(where: str, filing: Filing, said: Label, state: StateBits) -> dict[str, Any]:
    causes: list[dict[str, str]] = [
        {"bit": cause.bit, "field": cause.field, "rule": cause.rule} for cause in said.causes
    ]
    causes += [{"bit": cause.bit, "accession": cause.document_id} for cause in state.causes]
    return {
        "accession": filing.accession_number or None,
        "where": where,
        "form": filing.form,
        "word": said.word | state.bits,
        "bits": list(bit_names(said.word | state.bits)),
        "quarantined": (
            {"code": said.quarantine.code.value, "text": said.quarantine.text} if said.quarantine else None
        ),
        "causes": causes,
        "public_at": None if said.public_at == NEVER else from_minutes(said.public_at).isoformat(),
        "public_at_source": said.public_at_source.value,
        "chunks": _chunks(filing, said, state.bits),
    }


def _chunks(filing: Filing, said: Label, state: int) -> list[dict[str, Any]]:
    found = []
    for document in filing.documents:
        for piece in chunk(document.text):
            word = chunk_word(said, filing, document, piece.text, piece.start) | state
            found.append(
                {
                    "document": document.type,
                    "start": piece.start,
                    "end": piece.end,
                    "word": word,
                    "bits": list(bit_names(word)),
                }
            )
    return found if any(one["word"] != said.word | state for one in found) else []
