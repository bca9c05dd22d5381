"""Real generators are asked development questions, and what comes of each question is counted."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bench.edgar import models
from carag.evaluation.cases.pairs import split_of
from carag.generation import DeclineCode, Draft
from carag.retrieval import Withheld
from tests.bedrock.double import ENVIRONMENT, UNSET

if TYPE_CHECKING:
    from pathlib import Path


def test_a_citation_beyond_what_was_shown_is_one_of_nothing() -> None:
    class Citing:
        name, remote, fingerprint = "citing", False, "1"

        def generate(self, question: str, passages: Any, withheld: Withheld) -> Draft:
            assert ("a", "b") == passages
            return Draft("So it is [1, 3].", (0, 2))

    few = models.FirstPassages(Citing(), 2)
    assert (0, -1) == few.generate("?", ("a", "b", "c"), Withheld(())).cited  # type: ignore[arg-type]


@pytest.mark.release
def test_the_double_is_asked_as_bedrock_is_and_every_bad_citation_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("boto3", reason="the extra 'bedrock' is not installed")
    for name in (*ENVIRONMENT, *UNSET):  # what the program sets is taken back after the test
        monkeypatch.setenv(name, os.environ.get(name, ""))
    counted: list[models.Counted] = []
    asked: list[Any] = []
    ask = models.ask

    def spy(model: str, generator: Any, pairs: Any, **more: Any) -> models.Counted:
        asked.extend(pairs)
        counted.append(ask(model, generator, pairs, **more))
        return counted[-1]

    monkeypatch.setattr(models, "ask", spy)
    given = ["--cache", str(tmp_path), "--size", "small", "--embedder", "wordllama", "--pairs", "400"]
    given += ["--model", "bedrock:amazon.nova-micro-v1:0", "--double", "--model-pairs", "60"]
    monkeypatch.setattr(sys, "argv", ["models", *given])
    assert 0 == models.main()
    assert {"dev"} == {split_of(one.question.id) for one in asked}
    (of_double,) = counted
    assert of_double.why[DeclineCode.BAD_CITATION] > 0 == of_double.uncited
    assert of_double.why["ANSWERED"] > 0 == of_double.why["FAILED"]
    printed = capsys.readouterr().out
    assert (
        f"{len(of_double.seconds)} requests passed the service's model and its signature, 0 did not"
        in printed
    )
