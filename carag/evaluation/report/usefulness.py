"""Lay out what a user notices, for the first page: what was found, cited and refused, by how much evidence was open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.evaluation.report.document import Heading, Paragraph, Table
from carag.evaluation.report.figures import share_text
from carag.evaluation.row import K
from carag.evaluation.statistics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.report.document import Block
    from carag.evaluation.report.strata import Slice

__all__ = ["useful"]

_COLUMNS: Final = {
    "evidence_recall": "evidence found",
    "cites_gold": "answered from it",
    "figure_right": "right figure stated",
    "wrong_company": "another company quoted",
    "over_refusal": "all open: refused",
    "answered_partly": "partly open: answered",
    "answered_hidden": "hidden: answered",
    "f1_answerable": "F1",
}
"""The first page's wording for each measure."""
_MEANT: Final = (
    f"Evidence is what the known right answer rests on. It is found if it is among the {K} passages retrieved, and the "
    "answer is from it if it cites it; a figure is right within half a per cent; another company is one that the "
    "question does not ask about. If the person may use all of the evidence, a system should answer; if none, it "
    "should refuse or decline; if some, it may answer from that, which is neither right nor wrong here. F1 says how "
    "far the words of an answer agree with the known right one; it has no goal, because on the development questions "
    "it was as high with wrong passages as with the evidence itself."
)


def useful(real: Slice) -> Iterator[Block]:
    """Say what was found, cited and refused for real questions: for CARAG in words, for every system in a table."""
    yield Heading(3, "What was found, cited and refused")
    yield Paragraph(
        f"Of the {real.pairs:,} times that a real question of the reported split was put ({real.questions:,} questions "
        f"about {real.filers:,} companies). {_MEANT}"
    )
    for system in ("carag-certified", "carag-auto", "oracle"):
        if system in real.systems:
            yield Paragraph(_sentences(real, system))
            break
    yield Table(
        ["system", *_COLUMNS.values()],
        [
            [system, *(share_text(figures[name]) for name in _COLUMNS)]
            for system, figures in real.systems.items()
        ],
    )


def _sentences(real: Slice, system: str) -> str:
    figures = real.systems[system]
    told = {name: share_text(figures[name]) for name in _COLUMNS}
    asked = {
        name: f" ({figure.denominator:,} times)" if isinstance(figure := figures[name], Estimate) else ""
        for name in _COLUMNS
    }
    return (
        f"In words, for {system}. Evidence found: {told['evidence_recall']}. Where all evidence was open"
        f"{asked['over_refusal']}, refused or declined: {told['over_refusal']}; answered from the evidence: "
        f"{told['cites_gold']}; where the right answer is one figure{asked['figure_right']}, it was stated: "
        f"{told['figure_right']}. Where the evidence was partly open{asked['answered_partly']}, answered from what "
        f"was: {told['answered_partly']}. Where it was wholly hidden{asked['answered_hidden']}, answered all the same: "
        f"{told['answered_hidden']}. Answers that quote another company than the one asked about: "
        f"{told['wrong_company']}."
    )
