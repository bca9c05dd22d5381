"""An embedder and a generator on an OpenAI-compatible server: complete, checked and recorded answers, or an error."""

from __future__ import annotations

import json
import logging
import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag import Document, Engine, Outcome, Session
from carag.audit import Access, Begin
from carag.errors import AuditUnavailable, InvalidArgument, ModelUnavailable
from carag.generation import OpenAiGenerator, Stop, generator_by_name
from carag.retrieval import ConfidenceGate, OpenAiEmbedder, Withheld, embedder_by_name
from tests.engine.documents import DIM, Counting
from tests.models.conftest import KEY_ENV, SECRET, Server, as_json, delta, embeddings, event, says

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = Session(role="public", purpose="public_qa")
QUESTION = "When do branches report?"
DOCUMENTS = [
    Document(id="open", text="Branches report by the fifth of May.", bits=()),
    Document(id="shut", text="Branches of Mr Li report on his health.", bits="PD_SPECIAL"),
]
PASSAGES: Any = [
    SimpleNamespace(
        text="By May.",
        source="memo, open",
        chunk_id="open:00000",
        similarity=1.0,
        head=None,
    )
]


def embedder(server: Server, **changes: Any) -> OpenAiEmbedder:
    arguments = {"url": server.url, "key_env": KEY_ENV, "timeout": 5, "retries": 0, "dim": DIM}
    return OpenAiEmbedder("m", **(arguments | changes))


def generator(server: Server, **changes: Any) -> OpenAiGenerator:
    return OpenAiGenerator(
        "m", **({"url": server.url, "key_env": KEY_ENV, "timeout": 5, "retries": 0} | changes)
    )


def drafted(server: Server) -> Any:
    return generator(server).generate(QUESTION, PASSAGES, Withheld(()))


# --- embedder ---


def test_vectors_are_those_of_their_texts_whatever_the_order_of_the_answer(server: Server) -> None:
    texts = [f"text {at}" for at in range(7)]
    rows = embedder(server, batch=3).embed_documents(texts)
    assert ((7, DIM), np.float32) == (rows.shape, rows.dtype)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    wanted = np.array(Counting().embed_documents(texts))
    np.testing.assert_allclose(rows, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_array_equal(rows[0], embedder(server).embed_query(texts[0]))
    assert [3, 3, 1, 1] == [len(body["input"]) for _, body in server.requests]
    assert (0, DIM) == embedder(server).embed_documents([]).shape


def test_long_texts_go_whole_in_windows_under_the_prefix(server: Server) -> None:
    one = embedder(server, max_characters=10, document_prefix="passage: ", query_prefix="query: ")
    one.embed_documents(["abcdefghijklmnopqrstuvwxyz"])
    one.embed_query("who?")
    sent = [body["input"] for _, body in server.requests]
    assert ["passage: abcdefgh", "passage: ijklmnopq", "passage: rstuvwxyz"] == sent[0]
    assert ["query: who?"] == sent[1]


def test_the_dimension_is_stated_or_asked_for_or_learnt_once(server: Server) -> None:
    asked = embedder(server, dim=None, dimensions=DIM)
    asked.embed_query("a")
    assert [{"dimensions": DIM}] == [{"dimensions": body["dimensions"]} for _, body in server.requests]
    learnt = embedder(server, dim=None)
    assert 1 == len(server.requests), "nothing is sent before it is needed"
    assert (DIM, DIM) == (learnt.dim, learnt.dim)
    assert [["a"], ["dimension"]] == [body["input"] for _, body in server.requests]
    with pytest.raises(InvalidArgument, match="want one number"):
        embedder(server, dimensions=DIM + 1)


def answering(change: Any) -> Any:
    def make(body: dict[str, Any]) -> bytes:
        answer = json.loads(embeddings(body))
        answer["data"].sort(key=lambda item: item["index"])
        return as_json(change(answer["data"], answer) or answer)

    return make


WRONG = {
    "too wide": (lambda data, _: [item["embedding"].append(1.0) for item in data] and None, "shape"),
    "ragged": (lambda data, _: data[0]["embedding"].append(1.0), "not an array"),
    "not finite": (lambda data, _: data[0].update(embedding=[float("nan")] * DIM), "not finite"),
    "infinite": (lambda data, _: data[0].update(embedding=[1e999] * DIM), "not finite"),
    "zero": (lambda data, _: data[0].update(embedding=[0.0] * DIM), "zero"),
    "text": (lambda data, _: data[0].update(embedding="AAAA"), "not an array|shape"),
    "missing": (lambda data, _: data.pop() and None, "not one vector for each of 2"),
    "double": (lambda data, _: data[1].update(index=0), "not one vector"),
    "one too many": (lambda data, _: data.append(data[0]), "not one vector"),
    "index out of range": (lambda data, _: data[1].update(index=2), "not one vector"),
    "index of no number": (lambda data, _: data[1].update(index="1"), "not one vector"),
    "no index": (lambda data, _: data[1].pop("index") and None, "KeyError"),
    "no data": (lambda _, answer: answer.pop("data") and None, "KeyError"),
    "a list": (lambda *_: [1], "TypeError"),
}


@pytest.mark.parametrize(("change", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_gives_no_vector(server: Server, change: Any, why: str) -> None:
    server.gives(answering(change))
    with pytest.raises(ModelUnavailable, match=why):
        embedder(server).embed_documents(["one", "two"])


@pytest.mark.parametrize("raw", [b"", b"{", b"[" * 100_000, b"\xff", b"null"])
def test_what_is_no_json_gives_no_vector(server: Server, raw: bytes) -> None:
    server.gives(raw)
    with pytest.raises(ModelUnavailable, match="not in OpenAI's form"):
        embedder(server).embed_query("one")


def test_the_fingerprint_changes_with_whatever_may_change_a_vector(server: Server) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"url": "https://models.example/v1"},
        {"version": "2"},
        {"dimensions": DIM},
        {"max_characters": 9},
        {"document_prefix": "a"},
        {"query_prefix": "a"},
    ]
    assert len(changes) == len({embedder(server, **one).fingerprint for one in changes})
    same = [{"timeout": 9}, {"retries": 1}, {"batch": 1}, {"dim": None}, {"key_env": None}]
    assert {embedder(server).fingerprint} == {embedder(server, **one).fingerprint for one in same}
    moved = {
        embedder(server, version="a", url=url).fingerprint for url in ("http://[::1]:1", "https://b.example")
    }
    assert 1 == len(moved), "weights that are named may move"
    one = generator(server).fingerprint
    assert one not in {
        generator(server, max_tokens=9).fingerprint,
        generator(server, url="http://[::1]").fingerprint,
    }


# --- generator ---


def test_a_stream_becomes_a_draft(server: Server) -> None:
    server.gives(says("By ", "May", " [1]."))
    draft = drafted(server)
    assert ("By May [1].", (0,), Stop.END) == (draft.text, draft.cited, draft.stop)
    path, body = server.requests[0]
    assert "/v1/chat/completions" == path
    assert (True, 0, ["system", "user"]) == (
        body["stream"],
        body["temperature"],
        [one["role"] for one in body["messages"]],
    )


@pytest.mark.parametrize(("reason", "stop"), [("length", Stop.LENGTH), ("content_filter", Stop.FILTERED)])
def test_why_it_stopped_is_told(server: Server, reason: str, stop: Stop) -> None:
    server.gives(says("By May [1].", reason=reason))
    assert stop is drafted(server).stop


DONE = event(b"[DONE]")
PART = event(delta("By May [1]."))
END = event(delta(None, "stop"))
CUT = {
    "nothing": b"",
    "no end": PART,
    "no mark": PART + END,
    "no reason": PART + DONE,
    "within a chunk": PART + END[:20],
    "an error": PART + event({"error": {"message": "overloaded"}}) + END + DONE,
    "a tool call": PART + event(delta(None, "tool_calls")) + DONE,
    "text after the end": END + PART + DONE,
    "another choice": event({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}) + DONE,
    "a number for text": event({"choices": [{"index": 0, "delta": {"content": 7}}]}) + END + DONE,
    "no choices": event({}) + DONE,
    "no object": event([1]) + DONE,
    "no JSON": event(b"{") + DONE,
    "no text": b"\xff\xfe" + DONE,
}


@pytest.mark.parametrize("raw", CUT.values(), ids=CUT.keys())
def test_a_stream_that_is_not_whole_gives_no_answer(server: Server, raw: bytes) -> None:
    server.gives(raw)
    with pytest.raises(ModelUnavailable, match=r"stream .*, and none of it is used") as raised:
        drafted(server)
    assert "May" not in str(raised.value)


@pytest.mark.parametrize("chunked", [True, False])
def test_a_connection_that_breaks_within_a_stream_gives_no_answer(server: Server, chunked: bool) -> None:
    def breaks(handler: Any, _: object) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        body = b"%x\r\n%b\r\n" % (len(PART + END), PART + END) if chunked else PART + END
        handler.wfile.write(head + (b"Transfer-Encoding: chunked\r\n" if chunked else b"") + b"\r\n" + body)

    server.does(breaks)
    with pytest.raises(ModelUnavailable):
        drafted(server)


def test_one_json_in_place_of_a_stream_is_no_answer(server: Server) -> None:
    server.gives(b"{}", headers={"Content-Type": "application/json"})
    with pytest.raises(ModelUnavailable, match="not text/event-stream"):
        drafted(server)


# --- in an engine ---


def opened(path: Path, server: Server, **changes: Any) -> Engine:
    # Its vectors mean nothing, so no threshold fits them.
    gate = ConfidenceGate(-1)
    models: dict[str, Any] = {"embedder": embedder(server), "generator": generator(server), "gate": gate}
    return Engine.open(path / "store", **(models | changes))


def test_nothing_of_a_question_is_sent_before_its_begin_record_is_durable(
    server: Server, tmp_path: Path
) -> None:
    seen: list[tuple[str, Any]] = []
    with opened(tmp_path, server) as engine:
        engine.add(DOCUMENTS)
        server.on_request = lambda path: seen.append((path, engine._log.record(engine._log.size - 1).event))
        answer = engine.ask(QUESTION, PUBLIC)
        event_ = engine._log.record(engine._log.size - 1).event
    assert (Outcome.ANSWER, "By May [1].") == (answer.outcome, answer.text)
    assert ["/v1/embeddings", "/v1/chat/completions"] == [path for path, _ in seen]
    assert all(isinstance(last, Begin) for _, last in seen)
    assert isinstance(event_, Access)
    assert ("openai:m", "openai:m") == (event_.models.embed, event_.models.generate)
    assert event_.begun is not None
    assert "health" not in json.dumps(server.requests[-2:])


def test_nothing_is_sent_if_the_begin_record_cannot_be_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, server) as engine:
        engine.add(DOCUMENTS)
        sent = len(server.requests)

        def fails(*_: object, **__: object) -> None:
            raise AuditUnavailable("no space")

        with monkeypatch.context() as broken:
            broken.setattr(engine._log, "append", fails)
            with pytest.raises(AuditUnavailable):
                engine.ask(QUESTION, PUBLIC)
        assert sent == len(server.requests)


def test_a_failure_is_on_record_and_no_secret_with_it(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with opened(tmp_path, server) as engine:
        engine.add(DOCUMENTS)
        server.on_request = lambda path: server.fails(500) if "chat" in path else None
        with pytest.raises(ModelUnavailable, match="status 500") as raised:
            engine.ask(QUESTION, PUBLIC)
        records = [engine._log.record(seq) for seq in range(engine._log.size)]
        told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
        shown = "".join(told.format()) + caplog.text + repr(engine) + repr(records)
    assert (Outcome.ERROR, "MODEL_UNAVAILABLE") == (records[-1].event.outcome, records[-1].event.why)  # type: ignore[union-attr]
    assert SECRET not in shown
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_store_says_what_its_embedder_needs_and_opens_with_it(server: Server, tmp_path: Path) -> None:
    opened(tmp_path, server).close()
    with pytest.raises(
        InvalidArgument, match=r"from its name alone; give embedder_by_name\('openai:m', ...\)"
    ):
        Engine.open(tmp_path / "store")
    again = embedder_by_name("openai:m", {"url": server.url, "dim": DIM})
    Engine.open(tmp_path / "store", embedder=again).close()
    moved = embedder_by_name("openai:m", {"url": "http://[::1]/v1", "dim": DIM})
    with pytest.raises(InvalidArgument, match="cannot be compared"):
        Engine.open(tmp_path / "store", embedder=moved)


# --- by name ---


def test_arguments_come_by_name() -> None:
    made: Any = generator_by_name("openai:a:b", {"url": "http://[::1]/v1", "max_tokens": 7, "key_env": "KEY"})
    assert ("openai:a:b", 7) == (made.name, made._max_tokens)


@pytest.mark.parametrize(
    ("make", "name", "arguments", "why"),
    [
        (
            embedder_by_name,
            "openai:m",
            {"url": "http://[::1]", "urls": 1},
            "not take the argument 'urls'; it takes url, key_env",
        ),
        (embedder_by_name, "openai:m", {"model": "x"}, "not take the argument 'model'"),
        (embedder_by_name, "openai:m", None, "needs url"),
        (embedder_by_name, "openai:", None, "there is no embedder 'openai:'"),
        (embedder_by_name, "wordllama", {"url": "x"}, "it takes no arguments"),
        (embedder_by_name, "minilm", {"url": "x"}, "it takes threads"),
        (
            embedder_by_name,
            "bedrock:cohere.embed-multilingual-v3",
            {"url": "x"},
            "it takes region, endpoint_url",
        ),
        (embedder_by_name, "openai:m", {"url": "http://[::1]", "dim": "8"}, "dim is '8'"),
        (embedder_by_name, "openai:m", {"url": "http://[::1]", "batch": 0}, "batch is 0"),
        (generator_by_name, "openai:m", {}, r"needs url; make it with generator_by_name"),
        (generator_by_name, "openai:m", {"url": "http://[::1]", "max_tokens": 0}, "max_tokens is 0"),
        (generator_by_name, "openai:a\nb", {"url": "http://[::1]"}, "printable"),
        (generator_by_name, "extractive", {"k": 1}, "it takes least_coverage"),
    ],
)
def test_an_argument_that_is_not_known_or_not_there_is_named(
    make: Any, name: str, arguments: Any, why: str
) -> None:
    with pytest.raises(InvalidArgument, match=why):
        make(name, arguments)
