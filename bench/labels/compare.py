"""Compare the audited table with the labels of this checkout."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench.labels.sample import fingerprint
from carag.labelling.chunking import chunk
from carag.policy import POLICY_BITS, QUARANTINE, PolicyBit, policy_word
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.metadata_only import KnownFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bench.labels.table import Audited
    from carag.policy import Cell
    from carag.profiles.edgar.facts.filing import Filing

__all__ = ["BitCount", "CellCount", "Comparison", "Labelled", "compare", "label_audited"]

ENOUGH: Final = 10
"""Audited positives below which a share of errors is not stated."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """The audited passages as this checkout labels them."""

    words: Mapping[Audited, int]
    """Words of the passages that were found, state bits included."""
    lost: tuple[Audited, ...]
    """Passages whose filing, document or text is no longer what was judged."""
    accessions: frozenset[str]
    """Every filing that was read: what is not among them cannot have caused a bit."""
    metadata_only: int
    """How many of them are known by their facts alone."""
    quarantined: Mapping[str, int]
    """Passages in quarantine, by the code of their filing."""


@dataclass(slots=True)
class BitCount:
    """One bit over all passages on which the reader was clear."""

    true_and_set: int = 0
    missed: int = 0
    """Audited true, not set: under-blocking, where the bit forbids."""
    missed_unread: int = 0
    """Of these, the cause is a filing that was never read."""
    false_and_clear: int = 0
    added: int = 0
    """Audited false, set: over-blocking, where the bit forbids."""
    unclear: int = 0

    @property
    def positives(self) -> int:
        """Passages audited true."""
        return self.true_and_set + self.missed

    @property
    def negatives(self) -> int:
        """Passages audited false."""
        return self.false_and_clear + self.added


@dataclass(slots=True)
class CellCount:
    """One cell of the role and purpose table over all passages; bits that are unclear count as set by us."""

    hidden: int = 0
    """Passages that the audited word hides."""
    shown: int = 0
    under: int = 0
    """Hidden by the audited word, shown by ours."""
    under_unread: int = 0
    """Of these, hidden only by bits whose cause was never read."""
    over: int = 0
    """Shown by the audited word, hidden by ours."""
    quarantined: int = 0
    """Shown by the audited word, in quarantine by ours: closed on purpose, for want of a fact."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was counted, and every disagreement."""

    bits: dict[PolicyBit, BitCount] = field(default_factory=lambda: {bit: BitCount() for bit in PolicyBit})
    cells: dict[str, CellCount] = field(default_factory=dict)
    errors: list[tuple[PolicyBit, Audited, bool]] = field(default_factory=list)
    """Bit, passage, whether the cause was read."""


def label_audited(audited: Iterable[Audited], data: Path) -> Labelled:
    """Label the filings of the table as an ingest of `data` would.

    Parameters
    ----------
    audited : iterable of Audited
    data : Path
        File or directory of filings; state bits are computed over all of them.
    """
    wanted: dict[str, list[Audited]] = {}
    for one in audited:
        wanted.setdefault(one.accession, []).append(one)
    words: dict[Audited, int] = {}
    lost: list[Audited] = []
    known = KnownFacts()
    for outcome in read_filings(data):
        if outcome.metadata is not None:
            known.add_row(outcome.metadata)
            continue
        if (filing := outcome.filing) is None:
            continue
        said = label(filing)
        known.add_text(filing, said)
        for one in wanted.pop(filing.accession_number, ()):
            if (found := _find(filing, one)) is None:
                lost.append(one)
                continue
            place, start, text = found
            words[one] = chunk_word(said, filing, filing.documents[place], text, start)
    lost += [one for left in wanted.values() for one in left]
    states = known.states()
    quarantined: Counter[str] = Counter()
    for one in words:
        if reason := known.quarantine(one.accession):
            words[one] |= QUARANTINE
            quarantined[reason[0]] += 1
    return Labelled(
        words={one: word | states[one.accession].bits for one, word in words.items()},
        lost=tuple(lost),
        accessions=frozenset(known),
        metadata_only=known.metadata_only,
        quarantined=dict(quarantined.most_common()),
    )


def compare(labelled: Labelled, cells: Iterable[Cell]) -> Comparison:
    """Count agreement and disagreement, bit by bit and cell by cell."""
    result = Comparison()
    for one, word in labelled.words.items():
        for bit in PolicyBit:
            _count_bit(result, bit, one, word, labelled.accessions)
    for cell in cells:
        result.cells[f"{cell.role} / {cell.purpose}"] = _count_cell(cell, labelled)
    return result


def _count_bit(
    result: Comparison, bit: PolicyBit, one: Audited, word: int, accessions: frozenset[str]
) -> None:
    count, ours, audited = result.bits[bit], bool(word & bit.value), one.verdict(bit)
    if audited is None:
        count.unclear += 1
    elif audited and ours:
        count.true_and_set += 1
    elif not audited and not ours:
        count.false_and_clear += 1
    else:
        unread = bit in _unread(one, accessions)
        count.missed += audited
        count.missed_unread += audited and unread
        count.added += not audited
        result.errors.append((bit, one, not unread))


def _count_cell(cell: Cell, labelled: Labelled) -> CellCount:
    """Judge by the masks alone: allow-lists and times are the session's, not the label's."""
    policy, count = cell.policy, CellCount()
    for one, ours in labelled.words.items():
        unclear = sum(one.unclear)
        audited = sum(one.true) | (ours & unclear)
        read = audited & ~sum(_unread(one, labelled.accessions))
        ours_admits, audited_admits = policy.admits(ours), policy.admits(policy_word(audited))
        count.shown += audited_admits
        count.hidden += not audited_admits
        if ours_admits and not audited_admits:
            count.under += 1
            count.under_unread += policy.admits(policy_word(read))
        elif audited_admits and not ours_admits:
            count.over += 1
            count.quarantined += bool(ours & QUARANTINE) and policy.admits(policy_word(ours & POLICY_BITS))
    return count


def _unread(one: Audited, accessions: frozenset[str]) -> frozenset[PolicyBit]:
    """Return the bits of which every cause is a filing that was not read."""
    read = {bit for bit, cause in one.causes if cause in accessions}
    return frozenset(bit for bit, _ in one.causes) - read


def _find(filing: Filing, one: Audited) -> tuple[int, int, str] | None:
    """Find a passage where it was judged, else wherever its text now stands in the filing."""
    if one.place < len(filing.documents):
        text = filing.documents[one.place].text[one.start : one.end]
        if fingerprint(text) == one.sha256:
            return one.place, one.start, text
    for place, document in enumerate(filing.documents):
        for piece in chunk(document.text):
            if fingerprint(piece.text) == one.sha256:
                return place, piece.start, piece.text
    return None
