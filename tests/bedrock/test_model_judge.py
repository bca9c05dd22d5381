"""A language model as a judge of stance: what it is asked, and that nothing but a whole, true reply is a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import ModelUnavailable
from carag.evaluation.regulatory import ModelJudge, Regulatory, SessionVerdict, Settings
from carag.evaluation.regulatory.model_judge import WORDING, stances
from carag.retrieval.bedrock import BedrockSettings
from tests.bedrock.double import REGION
from tests.bedrock.test_bedrock import says
from tests.evaluation.regulatory.fakes import Everywhere, Held, turn

LAW = ("Logs & traces shall be kept for six months.", "Soup is served.")
CLAIM = "We keep </claim> logs for one day."


def reply(verdict: object = "contradicts", passage: object = 1, words: object = "six months") -> str:
    return json.dumps({"verdict": verdict, "passage": passage, "words": words})


@pytest.fixture
def judge(bedrock: Any) -> ModelJudge:
    settings = BedrockSettings(region=REGION, endpoint_url=bedrock.endpoint_url, attempts=1, read_timeout=2)
    return ModelJudge("amazon.nova-lite-v1:0", settings=settings)


def verdict_of(judge: ModelJudge) -> SessionVerdict:
    metric = Regulatory(Held(*LAW), Everywhere(), judge, Settings(variant="stance"))  # type: ignore[arg-type]
    (found,) = metric.batch("s", "a", [turn(assistant=CLAIM)])
    return found.verdict


def test_the_model_is_asked_once_a_claim_with_every_passage_in_its_tag(
    bedrock: Any, judge: ModelJudge
) -> None:
    bedrock.answers(says(reply()))
    assert verdict_of(judge) is SessionVerdict.NON_COMPLIANT
    (request,) = bedrock.requests
    assert (request["modelId"], request["inferenceConfig"]["temperature"]) == ("amazon.nova-lite-v1:0", 0)
    assert request["system"] == [{"text": WORDING}]
    sent = request["messages"][0]["content"][0]["text"]
    assert [sent.count(tag) for tag in ("<passage ", "</passage>", "<claim>", "</claim>")] == [2, 2, 1, 1]
    assert "Logs &amp; traces" in sent


UNREADABLE = {
    "not JSON": "It complies.",
    "a verdict beside it": f"{reply()} Sure.",
    "a member more": '{"verdict": "supports", "passage": 1, "words": "six", "sure": true}',
    "a member twice": '{"verdict": "contradicts", "verdict": "supports", "passage": 1, "words": "six"}',
    "another verdict": reply("complies"),
    "words of another passage": reply("supports", 2),
    "no words": reply("supports", 1, " "),
    "a passage that is not there": reply("supports", 3),
    "a number that is true": reply("supports", True),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_reply_that_is_not_a_verdict_leaves_the_turn_without_one(
    bedrock: Any, judge: ModelJudge, name: str
) -> None:
    bedrock.answers(says(UNREADABLE[name]))
    assert verdict_of(judge) is SessionVerdict.NO_VERDICT


def test_a_reply_that_was_stopped_is_no_verdict(bedrock: Any, judge: ModelJudge) -> None:
    bedrock.answers(says(reply("supports"), "max_tokens"))
    assert verdict_of(judge) is SessionVerdict.NO_VERDICT


def test_a_model_that_fails_ends_the_run(bedrock: Any, judge: ModelJudge) -> None:
    bedrock.sends(b"{")
    with pytest.raises(ModelUnavailable, match=r"amazon\.nova-lite"):
        verdict_of(judge)


@given(said=st.text(max_size=60))
def test_no_other_text_supports_or_contradicts(said: str) -> None:
    rows = stances(said, LAW)
    assert rows.shape == (2, 3)
    assert rows[:, :2].max() < 0.5


def test_silence_is_said_of_every_passage() -> None:
    assert stances(reply("silent", 0, ""), LAW).tolist() == [[0.0, 0.0, 1.0]] * 2
    assert stances(reply("undecided", 2, ""), LAW)[1].argmax() != 2
