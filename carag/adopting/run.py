"""Bring the rows of a source into a store, as often as wanted: what is there already, unchanged, is not written."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from carag.engine.results import IngestReport
from carag.errors import InvalidArgument
from carag.labelling.labelled import NotMade
from carag.labelling.stated import stated_documents

if TYPE_CHECKING:
    from carag.adopting.spool import Spool
    from carag.engine import Engine
    from carag.policy import Vocabulary


@dataclass(slots=True)
class AdoptReport(IngestReport):
    """What a run adopted, and what it left."""

    rows: int = 0
    """Rows of the source."""
    vanished: list[str] = field(default_factory=list)
    """Ids of documents that the source gave in an earlier run but no longer gives."""
    removed: int = 0
    """How many of them this run withdrew."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag adopt --json`` prints."""
        return asdict(self)


def adopt(engine: Engine, spool: Spool, model: str, *, remove_vanished: bool = False) -> AdoptReport:
    """Bring a store up to a source; nothing is embedded, and documents of other origin stay as they are.

    ``model`` is the name of the store's embedder, which made the vectors. Raises InvalidArgument, and stores nothing,
    if the vectors are not those of this embedder.
    """
    known = engine.contents.read_by(spool.name)
    done = engine.contents.stream(spool.documents(model))
    report = AdoptReport(**done.to_json(), rows=spool.rows)
    if (names := spool.names()) is not None:
        report.vanished = sorted(set(known) - names)
    if remove_vanished and report.vanished:
        if not names:
            raise InvalidArgument(
                f"the source has no rows, and {len(report.vanished)} documents are from it, so none was withdrawn; "
                "check the address, or withdraw them with Engine.remove(ids)"
            )
        report.removed = engine.remove(report.vanished)
    return report


def tried(spool: Spool, vocabulary: Vocabulary, model: str) -> AdoptReport:
    """Report what a run would bring into a new store, and store nothing."""
    report, reasons = AdoptReport(rows=spool.rows), Counter[str]()
    for one in spool.documents(model):
        if isinstance(one, NotMade):
            report.problems.append(one.text)
            continue
        made = stated_documents([one], vocabulary)[one.id].made(None)
        report.added += 1
        report.chunks += len(made.passages)
        report.problems += made.remarks
        if made.document.quarantine is not None:
            reasons[made.document.quarantine[0]] += 1
    report.newly_quarantined, report.quarantined = reasons.total(), dict(reasons)
    return report
