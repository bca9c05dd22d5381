"""Write the files of a report, or check that a directory holds the files that its rows produce.

``report.json`` has every figure with all its digits and is megabytes long, so it is not committed. Its SHA-256 is
committed, in ``report.json.sha256`` (the format of sha256sum), and stands in for the missing file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile
from carag.evaluation.report.goals import GoalResult
from carag.evaluation.report.measures import MEASURES, NOT_MEASURED
from carag.evaluation.report.page import as_page
from carag.evaluation.report.paper import CLAIMED_QUERIES, SOURCE, TABLE_2, common_count
from carag.evaluation.report.report import Section, report_from
from carag.evaluation.report.strata import Paired, Slice
from carag.evaluation.statistics.estimate import NotMeasured

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.report.report import Report


_FORMATS: Final = {False: "carag edgar report 1", True: "carag store report 1"}
"""The format's name, by whether a store of your own was measured."""
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
    whole = {
        "format": _FORMATS[report.is_own],
        "rows": report.counts,
        "run": report.metadata,
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
        "models": report.sections,
        "label_noise": report.noise,
        "paper": {
            "source": SOURCE,
            "claimed_queries": CLAIMED_QUERIES,
            "queries_its_rates_fit": common_count(),
            "table_2": TABLE_2,
        },
    }
    return json.dumps(whole, default=_plain, sort_keys=True, indent=1, allow_nan=False) + "\n"


def _plain(one: Any) -> dict[str, Any]:
    """Return a value of a report as JSON names it, which does not change."""
    values = {field.name: getattr(one, field.name) for field in fields(one)}
    match one:
        case NotMeasured():
            return {"not_measured": one.why}
        case Section():
            return {
                **one.models._asdict(),
                "targets": one.results,
                "latency_ms": one.latency,
                "cells": list(one.slices.values()),
            }
        case Slice():
            del values["name"], values["outcomes"]
            return {**one.name._asdict(), **values, "not_measured": one.too_small or None}
        case Paired():
            differing = values.pop("differing")
            return {**values, "differing_pairs": differing}
        case GoalResult():
            judged = {"target": one.goal.name, "statement": one.goal.statement}
            return {**judged, "state": one.state.value, "missed_by": one.by, "why": one.why}
    return values
