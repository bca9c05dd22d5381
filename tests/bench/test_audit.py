"""The committed page says what the committed figures say, and those show no loss."""

from __future__ import annotations

import json
from pathlib import Path

from bench.audit.report import page

HERE = Path(__file__).parents[2] / "bench" / "audit"


def test_the_page_is_the_figures() -> None:
    """RESULTS.md is written from the two result files and not edited."""
    figures, faults = (
        json.loads((HERE / "results" / f"{name}.json").read_text()) for name in ("figures", "faults")
    )
    assert (HERE / "RESULTS.md").read_text() == page(figures, faults)


def test_the_committed_faults_are_the_full_counts_and_lost_nothing() -> None:
    """Forty kills and six hundred cuts; the logs that do not wait lost something."""
    faults = json.loads((HERE / "results" / "faults.json").read_text())
    killed, shipped, normal, unsynced = faults.values()
    assert killed["rounds"] >= 40
    assert shipped["cuts"] >= 600
    assert not any(killed[key] for key in ("lost", "unopened", "hidden"))
    assert not any(shipped[key] for key in ("lost", "unopened", "corrupt"))
    assert normal["lost"] > 0
    assert unsynced["unopened"] > 0
