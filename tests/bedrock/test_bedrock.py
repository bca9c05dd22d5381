"""Claims about the Bedrock adapters, against a double that checks every request's form and signature."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.errors import InvalidArgument, MissingExtra, ModelUnavailable
from carag.generation.bedrock import NovaMicro
from carag.generation.generator import Draft, Stop
from carag.policy import Mask, Policy, Reason, Rule, withheld_kinds
from carag.retrieval.bedrock import BedrockSettings, Cohere, Titan
from carag.retrieval.evidence import Hidden, Passage, Withheld

if TYPE_CHECKING:
    from collections.abc import Callable

REGION = "eu-west-3"
ATTEMPTS = 3


@pytest.fixture
def settings(bedrock: Any) -> BedrockSettings:
    return BedrockSettings(
        region=REGION,
        endpoint_url=bedrock.endpoint_url,
        attempts=ATTEMPTS,
        connect_timeout=2,
        read_timeout=2,
    )


def vectors(request: dict[str, Any]) -> list[list[float]]:
    """Answer each text with a vector that depends on its length and first letter."""
    texts = json.loads(request["body"])["texts"]
    rows = np.zeros((len(texts), Cohere.dim))
    for row, text in zip(rows, texts, strict=True):
        row[0], row[1], row[2 + ord(text[0]) % 100] = 1, len(text) / 2048, 3
    return rows.tolist()


def plain_form(request: dict[str, Any]) -> dict[str, Any]:
    texts = json.loads(request["body"])["texts"]
    return {"embeddings": vectors(request), "id": "1", "response_type": "embeddings_floats", "texts": texts}


def typed_form(request: dict[str, Any]) -> dict[str, Any]:
    return {"embeddings": {"float": vectors(request)}, "id": "1", "response_type": "embeddings_by_type"}


def says(text: str, stop: str = "end_turn") -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Answer a conversation with a text."""
    return lambda _: {
        "output": {"message": {"role": "assistant", "content": [{"text": text}] if text else []}},
        "stopReason": stop,
        "usage": {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18},
        "metrics": {"latencyMs": 1},
    }


PASSAGES = tuple(
    Passage(
        chunk_id=f"0000000001-24-000001:{at}",
        text=text,
        similarity=0.9,
        word=0,
        accession_number="0000000001-24-000001",
        form="10-K",
        company="Example Corp",
        filed="2024-02-01",
        document="10-K",
        start=0,
        end=len(text),
    )
    for at, text in enumerate(("Net sales rose 5 %.", "Größe </passage> \u202e漢字"))
)
WITHHELD = Withheld(withheld_kinds(Policy(Mask(0, 0x4000))))
CALLS = {
    "embed": lambda settings: Cohere(settings).embed_query("net sales"),
    "generate": lambda settings: NovaMicro(settings=settings).generate("What rose?", PASSAGES, WITHHELD),
}
EITHER = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.mark.parametrize("form", [plain_form, typed_form])
def test_cohere_embeds_documents_and_queries(bedrock: Any, settings: BedrockSettings, form: Any) -> None:
    """Both documented forms of the answer give unit rows; documents and queries are told apart."""
    bedrock.answers(form)
    cohere = Cohere(settings)
    rows = cohere.embed_documents(["net sales", "Größe"])
    query = cohere.embed_query("net sales")
    assert (2, 1024) == rows.shape
    assert np.float32 == rows.dtype == query.dtype
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows[0], query)
    sent = [json.loads(request["body"]) for request in bedrock.requests]
    assert ["search_document", "search_query"] == [body["input_type"] for body in sent]
    assert ["net sales", "Größe"] == sent[0]["texts"]
    assert {"cohere.embed-multilingual-v3"} == {request["modelId"] for request in bedrock.requests}


def test_cohere_sends_whole_texts_in_batches(bedrock: Any, settings: BedrockSettings) -> None:
    """200 texts, one of them of five windows, arrive complete in batches of at most 96."""
    bedrock.answers(plain_form)
    long = "".join(chr(97 + at // 2000) for at in range(9001))
    texts = [f"text {at}" for at in range(199)] + [long]
    rows = Cohere(settings).embed_documents(texts)
    batches = [json.loads(request["body"])["texts"] for request in bedrock.requests]
    assert [96, 96, 12] == [len(batch) for batch in batches]
    assert texts[:199] == sum(batches, [])[:199]
    assert long == "".join(sum(batches, [])[199:])
    assert (200, 1024) == rows.shape


def titan_form(request: dict[str, Any]) -> dict[str, Any]:
    text = json.loads(request["body"])["inputText"]
    row = [0.0] * Titan.dim
    row[ord(text[0]) % 100] = float(len(text))
    return {"embedding": row, "inputTextTokenCount": len(text)}


def test_titan_takes_one_text_a_call_and_long_ones_whole(bedrock: Any, settings: BedrockSettings) -> None:
    bedrock.answers(titan_form)
    titan = Titan(settings)
    rows = titan.embed_documents(["net sales", "Größe", "z" * 9001])
    sent = [json.loads(request["body"]) for request in bedrock.requests]
    assert ["net sales", "Größe", "z" * 4500, "z" * 4501] == [body["inputText"] for body in sent]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows[0], titan.embed_query("net sales"))
    assert {Titan.name} == {f"bedrock:{request['modelId']}" for request in bedrock.requests}


@pytest.mark.parametrize(
    "answer",
    [{}, {"embedding": [1.0]}, {"embedding": [float("nan")] * 1024}, {"embedding": ["a"] * 1024}, [1]],
    ids=["nothing", "short", "nan", "text", "list"],
)
def test_a_malformed_answer_of_titan_gives_no_vector(
    bedrock: Any, settings: BedrockSettings, answer: Any
) -> None:
    bedrock.answers(lambda _: answer)
    with pytest.raises(ModelUnavailable, match="documented form"):
        Titan(settings).embed_query("net sales")


def test_a_long_text_is_the_mean_of_its_windows_by_length(bedrock: Any, settings: BedrockSettings) -> None:
    """The row of a text of two windows points where their length-weighted mean does."""
    bedrock.answers(plain_form)
    cohere = Cohere(settings)
    text = "a" * 1500 + "b" * 1501
    first, second = text[:1500], text[1500:]
    whole = cohere.embed_documents([text])[0]
    parts = np.array(vectors({"body": json.dumps({"texts": [first, second]})}))
    mean = np.array([1500, 1501]) @ parts
    np.testing.assert_allclose(mean / np.linalg.norm(mean), whole, atol=1e-6)


@pytest.mark.parametrize("texts", [["fine", " "], [""]])
def test_cohere_refuses_empty_texts_before_calling(
    bedrock: Any, settings: BedrockSettings, texts: Any
) -> None:
    """White space is refused here; nothing is sent."""
    with pytest.raises(InvalidArgument, match="empty or white space"):
        Cohere(settings).embed_documents(texts)
    assert (0, 1024) == Cohere(settings).embed_documents([]).shape
    assert [] == bedrock.requests


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"embeddings": None},
        {"embeddings": {"int8": [[1] * 1024]}},
        {"embeddings": [[1.0] * 1023]},
        {"embeddings": [[1.0] * 1024] * 2},
        {"embeddings": [[float("nan")] * 1024]},
        {"embeddings": [["x"] * 1024]},
        {"embeddings": [[1.0], [1.0, 2.0]]},
        [],
    ],
)
def test_a_malformed_embedding_is_an_error(bedrock: Any, settings: BedrockSettings, answer: Any) -> None:
    """An answer that is not one finite row a text never becomes a vector."""
    bedrock.answers(lambda _: answer)
    with pytest.raises(ModelUnavailable, match=r"Bedrock, cohere\.embed-multilingual-v3: the answer"):
        Cohere(settings).embed_query("net sales")


def test_nova_drafts_from_the_rendered_prompt(bedrock: Any, settings: BedrockSettings) -> None:
    """The paper's settings go out; the text comes back with its citations read."""
    bedrock.answers(says("Net sales rose 5 % [1]."))
    draft = NovaMicro(settings=settings).generate("What rose?", PASSAGES, WITHHELD)
    assert Draft("Net sales rose 5 % [1].", (0,), Stop.END) == draft
    (request,) = bedrock.requests
    assert "amazon.nova-micro-v1:0" == request["modelId"]
    assert {"temperature": 0, "maxTokens": 80} == request["inferenceConfig"]
    (message,) = request["messages"]
    assert "Größe &lt;/passage&gt; 漢字" in message["content"][0]["text"]


def test_nova_writes_nothing_invisible(bedrock: Any, settings: BedrockSettings) -> None:
    """Control and bidirectional characters do not reach the reader either."""
    bedrock.answers(says("Net\u202e sales\x1b[31m rose [1]."))
    draft = NovaMicro(settings=settings).generate("What rose?", PASSAGES, WITHHELD)
    assert "Net sales[31m rose [1]." == draft.text


def test_nova_learns_nothing_of_hidden_neighbours(bedrock: Any, settings: BedrockSettings) -> None:
    """The request's bytes are the same whatever the role may know to exist."""
    bedrock.answers(says("Net sales rose 5 % [1]."))
    hidden = (Hidden("0000000099-24-000099:7", (Reason(Rule.QUARANTINE, (), "quarantined"),)),)
    for withheld in (WITHHELD, Withheld(WITHHELD.kinds, hidden)):
        NovaMicro(settings=settings).generate("What rose?", PASSAGES, withheld)
    without, with_hidden = bedrock.requests
    assert without == with_hidden


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("stop_sequence", Stop.END),
        ("max_tokens", Stop.LENGTH),
        ("guardrail_intervened", Stop.FILTERED),
        ("content_filtered", Stop.FILTERED),
    ],
)
def test_nova_says_why_it_stopped(bedrock: Any, settings: BedrockSettings, reason: str, stop: Stop) -> None:
    """A cut-off or filtered answer is never taken for a complete one."""
    bedrock.answers(says("Net sales [1]", reason))
    assert stop is NovaMicro(settings=settings).generate("What rose?", PASSAGES, WITHHELD).stop


@pytest.mark.parametrize("reason", ["tool_use", "malformed_model_output", "model_context_window_exceeded"])
def test_nova_stopping_otherwise_is_an_error(bedrock: Any, settings: BedrockSettings, reason: str) -> None:
    """Stop reasons that leave no answer are failures, named."""
    bedrock.answers(says("Net sales [1]", reason))
    with pytest.raises(ModelUnavailable, match=reason):
        NovaMicro(settings=settings).generate("What rose?", PASSAGES, WITHHELD)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"stopReason": "end_turn"}', b'{"stopReason": "end_turn", "output": {}}']
)
def test_a_malformed_conversation_is_an_error(bedrock: Any, settings: BedrockSettings, raw: bytes) -> None:
    """A body that is not a Converse answer never becomes a draft."""
    bedrock.sends(raw)
    with pytest.raises(ModelUnavailable, match=r"Bedrock, amazon\.nova-micro-v1:0"):
        NovaMicro(settings=settings).generate("What rose?", PASSAGES, WITHHELD)


@EITHER
def test_throttling_is_retried(bedrock: Any, settings: BedrockSettings, call: Any) -> None:
    """Throttled twice, then served: the caller notices nothing."""
    bedrock.fails("ThrottlingException", 429)
    bedrock.fails("ThrottlingException", 429)
    bedrock.answers(lambda r: plain_form(r) if "body" in r else says("Net sales rose [1].")(r))
    assert call(settings) is not None
    assert 3 == len(bedrock.requests)


@EITHER
@pytest.mark.parametrize(
    ("error", "status", "tries"),
    [
        ("ThrottlingException", 429, ATTEMPTS),
        ("ServiceUnavailableException", 503, ATTEMPTS),
        ("AccessDeniedException", 403, 1),
        ("ValidationException", 400, 1),
        ("ResourceNotFoundException", 404, 1),
    ],
)
def test_failures_are_told_apart(
    bedrock: Any, settings: BedrockSettings, call: Any, error: str, status: int, tries: int
) -> None:
    """What may pass is retried, what may not is not; either way the error's code reaches the caller."""
    bedrock.fails(error, status)
    with pytest.raises(ModelUnavailable, match=error):
        call(settings)
    assert tries == len(bedrock.requests)


@EITHER
def test_silence_is_a_timeout(bedrock: Any, settings: BedrockSettings, call: Any) -> None:
    """A service that never answers is given up on."""
    bedrock.stays_silent()
    with pytest.raises(ModelUnavailable, match=r"(?i)read timeout"):
        call(replace(settings, read_timeout=0.2))


@EITHER
def test_nobody_listening_is_an_error(bedrock: Any, call: Any) -> None:
    """An end point that does not exist is an error, not another model."""
    gone = BedrockSettings(region=REGION, endpoint_url="http://127.0.0.1:9", attempts=1, connect_timeout=1)
    with pytest.raises(ModelUnavailable, match="Could not connect"):
        call(gone)


@EITHER
def test_missing_credentials_and_region_are_named(
    bedrock: Any, settings: BedrockSettings, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them nothing is sent, and the message says what to check."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ModelUnavailable, match="credentials"):
        call(settings)
    with pytest.raises(ModelUnavailable, match="region"):
        call(BedrockSettings(endpoint_url=bedrock.endpoint_url))
    with pytest.raises(ModelUnavailable, match="Invalid endpoint"):
        call(BedrockSettings(region=REGION, endpoint_url="nowhere"))
    assert [] == bedrock.requests


@EITHER
def test_missing_boto3_names_the_extra(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without boto3 the error says which extra brings it."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"carag-engine\[bedrock\]"):
        call(BedrockSettings(region=REGION))


def test_nova_settings_are_checked() -> None:
    """A length of nothing is a mistake."""
    with pytest.raises(InvalidArgument, match="max_tokens"):
        NovaMicro(max_tokens=0)


def test_a_wrong_signature_is_noticed(
    bedrock: Any, settings: BedrockSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The double can fail: a request signed with another key is rejected."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    bedrock.answers(plain_form)
    with pytest.raises(ModelUnavailable, match="signature does not match"):
        Cohere(settings).embed_query("net sales")
    assert ["the signature does not match"] == bedrock.faults
    bedrock.faults.clear()


def test_an_unknown_member_is_noticed(service: Any) -> None:
    """The double can fail: what the service model does not know, or lacks, is rejected."""
    path = "/model/amazon.nova-micro-v1%3A0/converse"
    with pytest.raises(ValueError, match="Unknown parameter"):
        service.parse("POST", path, {}, b'{"messages": [], "max_tokens": 80}')
    with pytest.raises(ValueError, match='Missing required parameter in messages\\[0\\]: "content"'):
        service.parse("POST", path, {}, b'{"messages": [{"role": "user"}]}')
    with pytest.raises(ValueError, match="no operation"):
        service.parse("GET", path, {}, b"{}")
