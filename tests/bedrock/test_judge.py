"""The judge of disclosures: what it is sent, and that an invalid reply is never interpreted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, ModelUnavailable
from carag.evaluation.judge import RUBRIC, Case, NovaJudge, Verdict, judge_by_name, parse_verdict
from carag.evaluation.paid import CachedJudge
from carag.retrieval.bedrock import BedrockSettings
from tests.bedrock.double import REGION
from tests.bedrock.test_bedrock import says

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = "The rate is 5.25 % & rises. [1]"
CASE = Case("What is the rate?", ANSWER, ("The rate is secret.",), ("The rate is 5.25 % & rises.",))
NO, YES = Verdict(disclosed=False, words=""), Verdict(disclosed=True, words="5.25 %")


def reply(**members: Any) -> str:
    return json.dumps(members)


@pytest.fixture
def settings(bedrock: Any) -> BedrockSettings:
    return BedrockSettings(region=REGION, endpoint_url=bedrock.endpoint_url, attempts=1, read_timeout=2)


def test_the_judge_reads_both_buckets_and_answers_in_json(bedrock: Any, settings: BedrockSettings) -> None:
    bedrock.answers(says(reply(disclosed=True, words="5.25 %")))
    assert YES == NovaJudge(settings=settings).judge(CASE)
    (request,) = bedrock.requests
    assert "amazon.nova-lite-v1:0" == request["modelId"]
    assert 0 == request["inferenceConfig"]["temperature"]
    assert [{"text": RUBRIC.system}] == request["system"]
    sent = request["messages"][0]["content"][0]["text"]
    parts = [
        sent.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0] for tag in ("open", "withheld", "answer")
    ]
    assert ["secret" in parts[0], "5.25 %" in parts[1], "5.25 %" in parts[2]] == [True, True, True]
    assert "5.25" not in parts[0]


@given(
    text=st.lists(st.sampled_from(["</withheld>", "<answer>", "</passage>", "\u202e", "a"]), max_size=6).map(
        "".join
    )
)
def test_no_text_closes_its_tag(text: str) -> None:
    """Neither an answer nor a passage can speak to the judge in another's place."""
    tags = re.findall(r"</?\w+>", Case(text, text, (text,), (text,)).rendered())
    assert tags == re.findall(r"</?\w+>", Case("", "", ("",), ("",)).rendered())


@pytest.mark.parametrize("words", ["5.25 %", "% & rises", "% &amp; rises", ANSWER])
def test_words_may_be_copied_as_they_were_sent(words: str) -> None:
    assert parse_verdict(reply(disclosed=True, words=words), ANSWER).disclosed


@pytest.mark.parametrize(
    "said",
    [
        "",
        "disclosed",
        "```json\n" + reply(disclosed=False, words="") + "\n```",
        reply(disclosed=False, words="") + " I am sure.",
        "[]",
        "null",
        reply(disclosed=False),
        reply(disclosed=False, words="", reason="none"),
        reply(disclosed="no", words=""),
        reply(disclosed=0, words=""),
        reply(disclosed=False, words=None),
        reply(disclosed=True, words=""),
        reply(disclosed=True, words=" "),
        reply(disclosed=False, words="5.25 %"),
        reply(disclosed=True, words="7.50 %"),
        '{"disclosed": true, "disclosed": false, "words": ""}',
        "[" * 100_000,
    ],
)
def test_what_is_no_verdict_is_refused_and_not_quoted(said: str) -> None:
    with pytest.raises(ModelUnavailable, match="stays unjudged") as error:
        parse_verdict(said, ANSWER)
    assert "%" not in str(error.value)


@given(said=st.text(max_size=60))
def test_any_other_text_is_no_verdict(said: str) -> None:
    with pytest.raises(ModelUnavailable):
        parse_verdict(said, said)


@pytest.mark.parametrize("reason", ["max_tokens", "guardrail_intervened", "content_filtered", "tool_use"])
def test_a_judge_that_was_stopped_gives_no_verdict(
    bedrock: Any, settings: BedrockSettings, reason: str
) -> None:
    bedrock.answers(says(reply(disclosed=False, words=""), reason))
    with pytest.raises(ModelUnavailable, match=reason):
        NovaJudge(settings=settings).judge(CASE)


@pytest.mark.parametrize("raw", [b"", b"{", b'{"stopReason": "end_turn", "output": {}}'])
def test_a_malformed_answer_of_the_service_gives_none(
    bedrock: Any, settings: BedrockSettings, raw: bytes
) -> None:
    bedrock.sends(raw)
    with pytest.raises(ModelUnavailable, match=r"Bedrock, amazon\.nova-lite-v1:0"):
        NovaJudge(settings=settings).judge(CASE)


def test_a_verdict_is_paid_for_once_and_what_is_none_is_not_kept(
    bedrock: Any, settings: BedrockSettings, tmp_path: Path
) -> None:
    bedrock.answers(says("no verdict"))
    bedrock.answers(says(reply(disclosed=False, words="")))
    path = tmp_path / "kept.jsonl"
    with pytest.raises(ModelUnavailable):
        CachedJudge(NovaJudge(settings=settings), path).judge(CASE)
    for _ in range(2):
        assert NO == CachedJudge(NovaJudge(settings=settings), path).judge(CASE)
    assert 2 == len(bedrock.requests)
    other = Case(CASE.question, CASE.answer, (), CASE.withheld)
    assert NO == CachedJudge(NovaJudge(settings=settings), path).judge(other)
    assert 3 == len(bedrock.requests)


@pytest.mark.parametrize("name", ["nova", "bedrock:", "openai:gpt", ""])
def test_an_unknown_judge_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="there is no judge"):
        judge_by_name(name)
