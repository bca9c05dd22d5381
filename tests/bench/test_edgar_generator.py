"""What is tuned of a generator is tuned on development questions alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench.edgar import generator
from carag.evaluation.cases.pairs import split_of
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from carag.evaluation.row import Row


def test_only_development_questions_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row belongs to the development split; the table has a line for each setting, with its interval."""
    asked: list[Row] = []
    table = generator._table

    def spy(rows: dict[str, list[Row]]) -> list[str]:
        asked.extend(row for of_one in rows.values() for row in of_one)
        return table(rows)

    monkeypatch.setattr(generator, "_table", spy)
    given = [
        "--cache",
        str(tmp_path),
        "--size",
        "small",
        "--embedder",
        "wordllama",
        "--pairs",
        str(examples(120)),
    ]
    monkeypatch.setattr(sys, "argv", ["generator", *given])
    assert 0 == generator.main()
    assert asked
    assert {"dev"} == {row.split for row in asked} == {split_of(row.question_id) for row in asked}
    printed = capsys.readouterr().out
    assert all(f"| coverage {least} | " in printed for least in generator._COVERAGES)
    assert " .. " in printed
