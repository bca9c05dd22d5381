"""The ten questions shown are judged by the gold, and the page is what asking them again writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.edgar.shown import PAGE, ask, ask_notes, page, verdict
from carag.evaluation.cases.corpus import build_corpus
from carag.retrieval import embedder_by_name
from tests.evaluation.rows import row

if TYPE_CHECKING:
    from pathlib import Path

HIDDEN = {"gold_admissible": (False,), "answerable": False}
NONE = {"gold": (), "gold_admissible": (), "answerable": False}
SILENT = {"outcome": "decline", "f1": 0.0, "cited": (), "figure_right": False}


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({"cited": ("a:0",)}, True),
        ({"cited": ("a:0",), "figure_right": True}, True),
        ({"cited": ("a:0",), "figure_right": False}, False),
        ({"cited": ("a:1",), "figure_right": True}, False),  # by chance, or from a neighbour
        ({"cited": ()}, False),
        (SILENT, False),
        ({**HIDDEN, "cited": ("a:1",), "figure_right": True}, False),
        ({**HIDDEN, **SILENT}, True),
        ({**NONE, "cited": ("a:1",)}, False),
        ({**NONE, **SILENT, "outcome": "refuse"}, True),
    ],
    ids=str,
)
def test_right_is_what_rests_on_open_evidence_and_silence_where_there_is_none(
    change: dict[str, object], is_right: bool
) -> None:
    found, why = verdict(row(**change))
    assert found is is_right
    assert why


@pytest.mark.release
def test_asking_again_writes_the_page_again(tmp_path: Path) -> None:
    """Written by ``python -m bench.edgar.shown``."""
    built = build_corpus("small", cache=tmp_path, embedder=embedder_by_name("wordllama"))
    found = ask(built, "wordllama") + ask_notes(tmp_path / "notes", "wordllama")
    assert page(found, "wordllama") == PAGE.read_text("utf-8")
