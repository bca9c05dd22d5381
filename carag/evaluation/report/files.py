"""Write the files of a report, or check that a directory holds the files that its rows produce.

``report.json`` has every figure with all its digits and is megabytes long, so it is not committed. Its SHA-256 is, in
``report.json.sha256`` (the format of sha256sum), and stands in for a missing file.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile
from carag.evaluation.report.measures import MEASURES, NOT_MEASURED
from carag.evaluation.report.page import as_page
from carag.evaluation.report.paper import CLAIMED_QUERIES, SOURCE, TABLE_2, common_count
from carag.evaluation.report.report import Counts, report_from

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.report.report import Report, Section
    from carag.evaluation.report.strata import Slice

__all__ = ["check_files", "files", "report_json", "write_files"]

_FORMATS: Final = {False: "carag edgar report 1", True: "carag store report 1"}
"""By whether a store of your own was measured."""
_JSON: Final = "report.json"


def write_files(rows: Path, out: Path) -> Report:
    """Write the report of a file of rows, with ``run.json`` and the words next to it, into a directory."""
    out.mkdir(parents=True, exist_ok=True)
    made = report_from(rows)
    for name, content in files(made).items():
        (out / name).write_bytes(content)
    return made


def check_files(rows: Path, out: Path) -> None:
    """Compare the files in a directory with those that the rows produce, byte for byte; CorruptFile if one differs."""
    made = files(report_from(rows))
    if not (out / _JSON).exists():
        del made[_JSON]
    if odd := [name for name, data in made.items() if not _holds(out / name, data)]:
        raise CorruptFile(f"{out}: {', '.join(odd)} differ from what {rows} produces; write the report again")


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def files(report: Report) -> dict[str, bytes]:
    """Return the files of a report by name: JSON and its hash, Markdown, and the pictures that it shows."""
    page, pictures = as_page(report)
    text = report_json(report)
    texts = {
        _JSON: text,
        f"{_JSON}.sha256": f"{hashlib.sha256(text.encode()).hexdigest()}  {_JSON}\n",
        "report.md": page,
        **{picture.file: picture.svg for picture in pictures},
    }
    return {name: text.encode() for name, text in texts.items()}


def report_json(report: Report) -> str:
    """Write every figure of a report as JSON."""
    return json.dumps(_plain(report), sort_keys=True, indent=1, allow_nan=False) + "\n"


def _plain(whole: Report) -> dict[str, Any]:
    return {
        "format": _FORMATS[whole.is_own],
        "rows": {name: getattr(whole.counts, name) for name in Counts.__slots__},
        "run": None if whole.metadata is None else json.loads(whole.metadata.to_json()),
        "measures": {
            measure.name: {
                "title": measure.title,
                "numerator": measure.over,
                "denominator": measure.under,
                "better": measure.better,
            }
            for measure in MEASURES
        },
        "not_measured": NOT_MEASURED,
        "models": [_plain_section(section) for section in whole.sections],
        "label_noise": [point.to_json() for point in whole.noise],
        "paper": {
            "source": SOURCE,
            "claimed_queries": CLAIMED_QUERIES,
            "queries_its_rates_fit": common_count(),
            "table_2": [{name: getattr(row, name) for name in row.__slots__} for row in TABLE_2],
        },
    }


def _plain_section(section: Section) -> dict[str, Any]:
    return {
        "embedder": section.models.embedder,
        "generator": section.models.generator,
        "targets": [result.to_json() for result in section.results],
        "latency_ms": {
            system: {stage: {name: p.to_json() for name, p in at.items()} for stage, at in stages.items()}
            for system, stages in section.latency.items()
        },
        "cells": [_plain_cell(part) for part in section.slices.values()],
    }


def _plain_cell(part: Slice) -> dict[str, Any]:
    return {
        **part.name._asdict(),
        "pairs": part.pairs,
        "questions": part.questions,
        "filers": part.filers,
        "sessions": part.sessions,
        "rows": dict(part.rows),
        "not_measured": part.too_small or None,
        "systems": {
            system: {name: figure.to_json() for name, figure in figures.items()}
            for system, figures in part.systems.items()
        },
        "paired": [
            {
                "system": pair.system,
                "other": pair.other,
                "measure": pair.measure,
                "differing_pairs": pair.differing,
                "difference": pair.difference.to_json(),
            }
            for pair in part.paired
        ],
    }
