"""Write a report as text, as Markdown or as a value for JSON, and its badge."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from carag.evaluation.attack.findings import Report


def summary(report: Report) -> str:
    """Say in one line what was found."""
    states = Counter(one.state for one in report.outcomes)
    return (
        f"{states['found']} of {len(report.outcomes)} checks found something, {states['nothing found']} found nothing, "
        f"{states['not tried']} were not tried"
    )


def as_text(report: Report) -> str:
    """Write a report for a terminal."""
    lines = [f"{report.target}: seed {report.seed}, {report.requests} requests in {report.seconds:.1f} s"]
    for one in report.outcomes:
        lines.append(f"{one.state:<14}{one.check}: {one.not_tried or one.title}")
        lines += (f"    {name + ':':<7}{value}" for found in one.findings for name, value in _told(found))
    return "\n".join([*lines, summary(report), *filter(None, [report.left])])


def _told(found: Any) -> tuple[tuple[str, str], ...]:
    return ("asked", found.question), ("came", found.came), ("right", found.right), ("sure", found.sure)


def as_markdown(report: Report) -> str:
    """Write a report as a page of Markdown."""
    lines = [
        f"# Attack on {report.target}",
        "",
        f"{summary(report)}; seed {report.seed}, {report.requests} requests.",
        "",
    ]
    lines += ["| check | outcome | whether |", "|---|---|---|"]
    cells = ((one.check, one.state, one.not_tried or one.title) for one in report.outcomes)
    lines += [
        "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in row) + " |" for row in cells
    ]
    for found in report.findings:
        lines += [
            "",
            f"## {found.check}",
            "",
            *(f"- {name}: `{value.replace('`', '')}`" for name, value in _told(found)),
        ]
    return "\n".join([*lines, "", report.left]).rstrip()


def as_value(report: Report) -> dict[str, Any]:
    """Return a report as JSON holds it."""
    outcomes = [{**asdict(one), "state": one.state} for one in report.outcomes]
    return {**asdict(report), "outcomes": outcomes, "exit_code": report.exit_code}


def badge(report: Report) -> str:
    """Draw the number of checks that found something as an SVG picture."""
    found = sum(bool(one.findings) for one in report.outcomes)
    tried = sum(one.state != "not tried" for one in report.outcomes)
    said = "not tested" if report.exit_code == 2 else f"{found} of {tried} checks found a leak"
    colour = {0: "#2e7d4f", 1: "#b5432a", 2: "#777"}[report.exit_code]
    width = 108 + 7 * len(said)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{escape(said)}">'
        f'<rect width="100" height="20" fill="#444"/><rect x="100" width="{width - 100}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11"><text x="8" y="14">carag attack</text>'
        f'<text x="106" y="14">{escape(said)}</text></g></svg>\n'
    )
