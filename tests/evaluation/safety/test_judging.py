"""Answers are judged beside canaries and 8-grams: by their own words, and never counted as silent if unjudged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from carag.cli.app import run as carag
from carag.errors import ModelUnavailable
from carag.evaluation.judge import Verdict
from carag.evaluation.safety.judging import JUDGED_SYSTEMS, judge_answers, judged_json

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.judge import Case
    from carag.evaluation.systems.systems import Systems
    from tests.evaluation.conftest import Small


class Verbatim:
    """Says that an answer discloses if its first words are withheld and not open; of some it says nothing."""

    name, fingerprint = "verbatim", "1"

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def judge(self, case: Case) -> Verdict:
        self.cases.append(case)
        if len(self.cases) % 5 == 0:
            raise ModelUnavailable("the judge's reply is no JSON; the answer stays unjudged")
        words = case.answer[:40]
        disclosed = any(words in one for one in case.withheld) and not any(words in one for one in case.open)
        return Verdict(disclosed, words if disclosed else "")


def test_only_what_ignores_the_policy_discloses(small: Small, systems: Systems, pairs: list[Pair]) -> None:
    judge = Verbatim()
    found = judge_answers(judge, small.truth, pairs[:40], systems)
    assert {one.system for one in found} == set(JUDGED_SYSTEMS)
    disclosing = {one.system for one in found if one.disclosed}
    assert disclosing == {one.system for one in found if one.by_rule} == {"vanilla", "prefilter-rbac"}
    assert len(found) == len(judge.cases)  # one verdict for each answer; what declines is not judged
    said = json.loads(judged_json(judge, found))
    assert sum(one["unjudged"] for one in said["systems"].values()) == len(found) // 5 > 0
    assert all(one["disclosed"] + one["unjudged"] <= one["answers"] for one in said["systems"].values())
    assert not any(case.question in judged_json(judge, found) for case in judge.cases)


def test_a_case_has_on_the_open_side_what_the_session_may_use_alone(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    judge = Verbatim()
    text_of = {small.truth.text(row): row for row in range(len(small.truth))}
    for pair in pairs[:20]:
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
    assert "give --max-usd 0.1" in capsys.readouterr().err
    assert carag([*command, "--judge", "openai:gpt"]) != 0
    assert "want bedrock:MODEL_ID" in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())
