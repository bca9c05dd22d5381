"""Say what an ingest, a sync or a removal would do, and write nothing: nothing is embedded, stored or put on record.

The ids tell what the store holds, hidden documents included: this is for those who change a store, not for sessions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from carag.labelling.labelled import NotMade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.engine.writer import Given
    from carag.labelling.labelled import LabelledDocument
    from carag.store.documents import StoredDocuments


@dataclass(slots=True)
class Preview:
    """What a change would do, by the ids of documents."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Documents that would get another version, or more facts."""
    unchanged: int = 0
    closed: list[str] = field(default_factory=list)
    """Documents of the store that those added or changed name, and would supersede, replace or withdraw."""
    removed: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    """Documents that the folder gave in an earlier run and no longer gives, whether or not they would be removed."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Documents that would be set aside, with the reason."""
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return what ``--dry-run --json`` prints."""
        return asdict(self)


def preview(documents: StoredDocuments, given: Iterable[Given | NotMade]) -> Preview:
    """Compare what was read with what is stored; what is given twice counts once, as it was given last."""
    found = Preview()
    states: dict[str, list[str] | None] = {}
    for one in given:
        if isinstance(one, NotMade):
            found.problems.append(one.text)
            continue
        document, id_ = one.document, one.document.document_id
        known = documents.facts_of(id_)
        if one.has_text and documents.content_hash(id_) == document.content_hash:
            states[id_] = None
            continue
        made = one.made(known)
        if isinstance(made, NotMade):
            found.problems.append(made.text)
            continue
        states[id_] = (
            None if made is None else found.added if made.is_new and known is None else found.changed
        )
        if made is not None:
            found.problems += made.remarks
            if made.document.quarantine is not None:
                found.quarantined[id_] = ": ".join(made.document.quarantine)
            found.closed += [other for other in _ended(document) if documents.facts_of(other) is not None]
    for id_, state in states.items():
        if state is None:
            found.unchanged += 1
        else:
            state.append(id_)
    found.closed = sorted({*found.closed})
    return found


def _ended(document: LabelledDocument) -> list[str]:
    """Return the ids and names that a document supersedes, replaces or withdraws."""
    facts = document.facts
    acts = [name for kind, name, _ in facts.get("acts", ()) if kind in ("replaces", "withdraws")]
    return [*acts, *([facts["supersedes"]] if facts.get("supersedes") else ())]
