"""Answers are judged in addition to canaries and 8-grams, and unjudged ones are never counted as silent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.cli.app import run as carag
from carag.errors import ModelUnavailable
from carag.evaluation.judge import Verdict
from carag.evaluation.run import Settings, run
from carag.evaluation.safety.judging import JUDGED_SYSTEMS, judge_answers, judged_json
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.judge import Case
    from carag.evaluation.systems.systems import Systems
    from tests.evaluation.conftest import Small


class Verbatim:
    """Says that an answer discloses if its first words are withheld and not open; every fifth reply is invalid."""

    name, fingerprint = "verbatim", "1"

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def judge(self, case: Case) -> Verdict:
        self.cases.append(case)
        if len(self.cases) % 5 == 0:
            raise ModelUnavailable("the judge's reply is not valid JSON; the answer stays unjudged")
        words = case.answer[:40]
        disclosed = any(words in one for one in case.withheld) and not any(words in one for one in case.open)
        return Verdict(disclosed, words if disclosed else "")


def test_only_what_ignores_the_policy_discloses(small: Small, systems: Systems, pairs: list[Pair]) -> None:
    judge = Verbatim()
    found = judge_answers(judge, small.truth, pairs[: examples(40, least=20)], systems)
    assert {one.system for one in found} == set(JUDGED_SYSTEMS)
    disclosing = {one.system for one in found if one.disclosed}
    assert disclosing == {one.system for one in found if one.by_rule} == {"vanilla", "prefilter-rbac"}
    assert len(found) == len(judge.cases)  # one verdict for each answer; what declines is not judged
    said = json.loads(judged_json(judge, found))
    assert sum(one["unjudged"] for one in said["systems"].values()) == len(found) // 5 > 0
    assert all(one["disclosed"] + one["unjudged"] <= one["answers"] for one in said["systems"].values())
    assert not any(case.question in judged_json(judge, found) for case in judge.cases)


def test_the_open_side_of_a_case_is_what_the_session_may_use(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    judge = Verbatim()
    text_of = {small.truth.text(row): row for row in range(len(small.truth))}
    for pair in pairs[: examples(20, least=10)]:
        judge.cases.clear()
        judge_answers(judge, small.truth, [pair], systems, names=("vanilla",))
        mask = small.truth.admissible(pair.session, pair.question.text)
        mask = np.zeros(len(small.truth), bool) if mask is None else mask
        for case in judge.cases:
            assert all(mask[text_of[one]] for one in case.open)
            assert not any(mask[text_of[one]] for one in case.withheld)


def test_a_judge_that_costs_more_than_allowed_is_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", "edgar", "--size", "small", "--embedder", "wordllama", "--out", str(tmp_path)]
    assert carag([*command, "--judge", "bedrock:amazon.nova-lite-v1:0"]) != 0
    assert "allow it with --max-usd 0.1" in capsys.readouterr().err
    assert carag([*command, "--judge", "openai:gpt"]) != 0
    assert "want bedrock:MODEL_ID" in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())


@pytest.mark.release
def test_a_run_that_names_a_judge_writes_what_it_said_and_the_same_rows(tmp_path: Path) -> None:
    small = Settings(
        size="small",
        cache=tmp_path / "cache",
        embedder="wordllama",
        gate=0.3,
        pairs=60,
        built=5,
        attacks=0,
        compared=0,
        trials=0,
        judge_pairs=6,
        systems=("oracle", "carag-certified"),
    )
    rows = run(small, tmp_path / "plain").read_text("utf-8").splitlines()
    judge = Verbatim()
    judged = run(small, tmp_path / "judged", judge=judge).read_text("utf-8").splitlines()
    timeless = [
        [{**json.loads(line), "latency_ms": None} for line in sorted(of_run)] for of_run in (rows, judged)
    ]
    assert sorted(timeless[0], key=str) == sorted(timeless[1], key=str)
    assert not (tmp_path / "plain" / "judge.json").exists()
    said = json.loads((tmp_path / "judged" / "judge.json").read_text("utf-8"))
    assert ("verbatim", len(judge.cases)) == (said["judge"], len(said["verdicts"]))
    assert judge.cases
