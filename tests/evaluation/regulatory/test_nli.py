"""The NLI judge: any folder in ONNX with three named columns judges, in whatever order they stand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.cli import Exit
from carag.cli.app import run
from carag.errors import InvalidArgument, ModelUnavailable
from carag.evaluation.regulatory import NliJudge
from carag.retrieval import cross_encoder
from tests.evaluation.own_store import written
from tests.retrieval.classifier import expected, folder, graph

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("entailment", "contradiction", "neutral")
CLAIM, PASSAGES = "w1 w2", ["w3 w4 w5", "w6", "w7 w8"]


def judge(home: Path, names: tuple[str, ...]) -> NliJudge:
    return NliJudge(folder(home, graph(3), {"id2label": {str(at): name for at, name in enumerate(names)}}))


@pytest.mark.parametrize("names", list(itertools.permutations(NAMES)))
def test_columns_are_told_by_their_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    """The evidence stands first, as such models were trained."""
    rows = judge(tmp_path, names).judge(CLAIM, PASSAGES)
    for row, passage in zip(rows, PASSAGES, strict=True):
        shares = dict(zip(names, expected(passage, CLAIM, 3), strict=True))
        assert row == pytest.approx([shares[name] for name in NAMES], abs=1e-6)


def test_of_a_long_passage_the_part_that_contradicts_most_decides(tmp_path: Path) -> None:
    words = ["w9 " * 400 + "w10", "w11 " * 400]
    rows = judge(tmp_path, NAMES).judge(CLAIM, words)
    pieces = [" ".join(["w9"] * count) for count in range(1, 5)]
    assert rows.shape == (2, 3)
    assert np.allclose(rows.sum(axis=1), 1)
    assert (judge(tmp_path, NAMES).judge(CLAIM, pieces).sum(axis=1) > 0).all()


def test_another_order_of_columns_is_another_judge_on_record(tmp_path: Path) -> None:
    one, other = (judge(tmp_path / str(at), names) for at, names in enumerate((NAMES, NAMES[::-1])))
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == judge(tmp_path / "0", NAMES).fingerprint


def test_the_model_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = cross_encoder._session
    monkeypatch.setattr(cross_encoder, "_session", lambda *given: loaded.append(given) or load(*given))
    judge(tmp_path, NAMES)
    assert len(loaded) == 1


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"id2label": {"0": "yes", "1": "no", "2": "perhaps"}},
        {"id2label": {"0": "entailment", "1": "Entailed", "2": "neutral"}},
    ],
    ids=["no names", "other names", "one name twice"],
)
def test_columns_that_are_not_named_are_refused(tmp_path: Path, config: object) -> None:
    with pytest.raises(InvalidArgument, match="want entailment, contradiction and neutral"):
        NliJudge(folder(tmp_path, graph(3), config))


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"model\.onnx cannot be read"):
        NliJudge(str(tmp_path / "nowhere"))


def test_the_command_line_takes_a_folder_as_judge_and_as_reranker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.md").write_text("w3 w4 w5 w6")
    turn = {"session_id": "s", "assistant_id": "a", "qa_id": "1", "query": "w3 w4", "assistant": "w3 w4 w5"}
    turns = written(tmp_path / "turns.jsonl", [turn])
    names = {"id2label": {str(at): name for at, name in enumerate(NAMES)}}
    model = f"onnx:{folder(tmp_path / 'model', graph(3), names)}"
    base = ["metric", "run", str(rules), str(turns), "--embedder", "wordllama", "--reranker", model]
    assert run([*base, "--variant", "stance"]) == Exit.OK
    assert run([*base, "--variant", "paper", "--label", "entailment"]) == Exit.OK
    capsys.readouterr()
    assert run([*base, "--variant", "paper"]) == Exit.BAD_INPUT
    assert "want one of 0 ('entailment')" in capsys.readouterr().err
