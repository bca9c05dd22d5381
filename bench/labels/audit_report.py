"""Write the findings of the label audit as Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bench.labels.compare import ENOUGH
from bench.labels.second_reading import UNREAD, explain
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.profiles.edgar.rules.labeller import LABELLER_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.labels.compare import BitCount, Comparison, Labelled
    from bench.labels.second_reading import Explanation

__all__ = ["report"]

_HEAD = """# Labels against a hand audit

Written by `python -m bench.labels audit`. {passages} passages of {filings} filings, drawn by `sample.py`, were judged
from header and text by the policy chapter's definitions before any rule was run; the verdicts are in `audited.csv`
(its format: `table.py`). A verdict that the comparison showed to be wrong was corrected, and its reason says so.
Labels: version `{version}`, state bits over all {read} filings of the data, {metadata} of them known by their facts
alone (rows of EDGAR's index and of metadata).
{lost}
Bounds are 95 % Clopper-Pearson. A bit with fewer than {enough} audited positives is *not established*; one with none
is *not measured*. The strata favour hard cases, so shares are of this sample, not of EDGAR. Passages on which the
definition can be read both ways are *unclear* and count neither way.
"""

_UNREAD = """
*Cause not read*: the bit follows from a filing that is not among those read, with text or without; the rule had no
chance. These are inside the misses and their bounds.
"""


def report(result: Comparison, labelled: Labelled, known: Sequence[Explanation]) -> str:
    """Write the tables; `known` explains disagreements."""
    lost = ", ".join(f"{one.accession} {one.start}-{one.end}" for one in labelled.lost)
    parts = [
        _HEAD.format(
            passages=len(labelled.words) + len(labelled.lost),
            filings=len({one.accession for one in (*labelled.words, *labelled.lost)}),
            version=LABELLER_VERSION,
            read=len(labelled.accessions),
            metadata=labelled.metadata_only,
            enough=ENOUGH,
            lost=f"\n**No longer found, and so not compared: {lost}.**\n" if lost else "",
        ),
        "## Bits\n",
        _bits(result),
        _UNREAD,
        "## Cells of the role and purpose table\n",
        "Masks alone: under-blocking is shown by our word and hidden by the audited one, over-blocking the reverse.\n",
        _cells(result),
        "\nIn quarantine, whatever the cell: "
        + (", ".join(f"{count} {code}" for code, count in labelled.quarantined.items()) or "none")
        + ".",
        "\n## Every disagreement\n",
        _errors(result, known),
    ]
    return "\n".join(parts) + "\n"


def _bits(result: Comparison) -> str:
    rows = [
        "| bit | positives | missed | share (bounds) | cause not read | negatives | added | share (bounds) "
        "| unclear | |",
        "|---|--:|--:|---|--:|--:|--:|---|--:|---|",
    ]
    for bit, count in result.bits.items():
        missed, added = _share(count.missed, count.positives), _share(count.added, count.negatives)
        rows.append(
            f"| {bit.name} | {count.positives} | {count.missed} | {missed} | {count.missed_unread} "
            f"| {count.negatives} | {count.added} | {added} | {count.unclear} | {_standing(count)} |"
        )
    return "\n".join(rows)


def _standing(count: BitCount) -> str:
    if not count.positives:
        return "not measured"
    return "" if count.positives >= ENOUGH else "not established"


def _share(errors: int, of: int) -> str:
    if not of:
        return "-"
    low, high = clopper_pearson(errors, of)
    return f"{errors / of:.1%} ({low:.1%}-{high:.1%})"


def _cells(result: Comparison) -> str:
    rows = [
        "| cell | hidden by audit | under-blocked | share (bounds) | cause not read | shown by audit | over-blocked "
        "| share (bounds) | in quarantine |",
        "|---|--:|--:|---|--:|--:|--:|---|--:|",
    ]
    for name, count in result.cells.items():
        rows.append(
            f"| {name} | {count.hidden} | {count.under} | {_share(count.under, count.hidden)} | {count.under_unread} "
            f"| {count.shown} | {count.over} | {_share(count.over, count.shown)} | {count.quarantined} |"
        )
    return "\n".join(rows)


def _errors(result: Comparison, known: Sequence[Explanation]) -> str:
    found = [
        (bit, one, explain(bit, one, known) if cause_read else UNREAD)
        for bit, one, cause_read in sorted(
            result.errors, key=lambda error: (error[0], error[1].accession, error[1].place, error[1].start)
        )
    ]
    faults = Counter(why.fault if why else "unexplained" for _, _, why in found)
    rows = [
        f"{len(found)}, on second reading: "
        + (", ".join(f"{count} {fault}" for fault, count in faults.most_common()) or "none")
        + ". *Rule*: wrong, or coarser than the definition. *Data*: the source does not hold what the rule reads.\n",
        "| bit | ours | audited | passage | reader's reason | fault | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for bit, one, why in found:
        ours, audited = ("clear", "true") if bit in one.true else ("set", "false")
        where = f"{one.accession} {one.document}@{one.place} {one.start}-{one.end}"
        fault, text = (why.fault, why.text) if why else ("**unexplained**", "")
        reason = one.reason.replace("|", "/")
        rows.append(f"| {bit.name} | {ours} | {audited} | {where} | {reason} | {fault} | {text} |")
    return "\n".join(rows)
