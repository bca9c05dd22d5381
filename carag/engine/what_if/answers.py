"""Tell which passages past answers would not have had under another policy table, by the words in their records."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from carag.audit import Access, ListKind
from carag.audit.auditor.find import find
from carag.audit.auditor.reader import LogReader
from carag.audit.records.hits import hit_digest
from carag.engine.corpus import open_corpus
from carag.engine.what_if.documents import policies

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import Record
    from carag.policy import PolicyTable


class PastEffect(NamedTuple):
    """A record of a request, some of whose passages another table would not admit for its role and purpose."""

    record: int
    role: str
    purpose: str
    hits: int
    """The number of passages in the record."""
    lost: tuple[str, ...]
    """The ids of those that would not be admitted; the name of the hit if the store does not have the passage."""


def past_effects(directory: Path, new: PolicyTable, last: int) -> tuple[PastEffect, ...]:
    """Return which of the last records of requests with hits would lose any, newest first.

    Only the log and the store's passages are read. A session is taken to have what its record shows: an allow list, a
    broken glass, or masks that depend on deals.
    """
    with LogReader(directory) as reader, open_corpus(directory) as store:
        found = ((seq, record) for seq, record in find(reader) if record is not None and record.hits)
        asked = [(seq, record) for seq, record in islice(found, last) if _lost(record, new)]
        reader.check_unchanged()
        digests = {hit.digest for _, record in asked for hit in record.hits}
        passages = store.documents.passages() if digests else ()
        names = {digest: name for name, text in passages if (digest := hit_digest(name, text)) in digests}
    return tuple(
        PastEffect(
            seq,
            record.event.role or "",
            record.event.purpose or "",
            len(record.hits),
            tuple(names.get(record.hits[at].digest, record.hits[at].name) for at in _lost(record, new)),
        )
        for seq, record in asked
        if isinstance(record.event, Access)
    )


def _lost(record: Record, table: PolicyTable) -> list[int]:
    event = record.event
    if not isinstance(event, Access):
        return []
    applied = event.policy
    several = policies(
        table.get(event.role or "", event.purpose or ""),
        has_glass=event.glass is not None,
        has_list=applied.entities is not None and applied.entities.kind is ListKind.ALLOW,
        has_deals=bool(applied.reopened),
    )
    return [at for at, hit in enumerate(record.hits) if not any(one.admits(hit.word) for one in several)]
