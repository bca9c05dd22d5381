"""The file of sessions: a turn a line, checked whole before any is measured, each mistake named by its line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import Batch, MeasuredSession, read_sessions
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {"session_id": "s", "assistant_id": "a", "qa_id": "1", "query": "Q", "assistant": "A"}


def line(**changed: Any) -> str:
    return json.dumps({**GOOD, **changed})


def read(path: Path, *lines: str | bytes) -> list[MeasuredSession]:
    path.write_bytes(b"".join((one if isinstance(one, bytes) else one.encode()) + b"\n" for one in lines))
    return read_sessions(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.jsonl"


def test_turns_are_gathered_by_session_wherever_they_stand(path: Path) -> None:
    found = read(
        path,
        line(),
        "",
        line(session_id="t", assistant_id="b", query="", assistant="", weight=0),
        line(qa_id="2", weight=None),
        line(qa_id="3", weight=0.25),
    )
    assert found == [
        MeasuredSession(
            "s",
            "a",
            [
                Batch(qa_id="1", query="Q", assistant="A"),
                Batch(qa_id="2", query="Q", assistant="A"),
                Batch(qa_id="3", query="Q", assistant="A", weight=0.25),
            ],
        ),
        MeasuredSession("t", "b", [Batch(qa_id="1", query="", assistant="", weight=0.0)]),
    ]


def test_a_byte_order_mark_and_line_separators_within_texts_do_no_harm(path: Path) -> None:
    text = "one\u2028two\u0085three\rfour"
    (found,) = read(
        path,
        b"\xef\xbb\xbf" + line(query=text).encode(),
        json.dumps({**GOOD, "qa_id": "2", "query": text}, ensure_ascii=False),
    )
    assert [one.query for one in found.turns] == [text, text]


BAD = {
    "no JSON": ('{"session_id": ', "not valid JSON .*; want one object per line"),
    "a list": ("[1]", "the line is a list; want an object with session_id"),
    "a member less": ('{"session_id": "s"}', "assistant_id is missing; want session_id, assistant_id"),
    "an unknown member": (line(wait=1), "unknown member 'wait'; want .*weight"),
    "a member twice": (
        line()[:-1] + ', "query": "R"}',
        "the key 'query' occurs twice in one object; want it once$",
    ),
    "a number for a text": (line(query=3), "query is .*; want"),
    "an empty name": (line(session_id=""), "session_id"),
    "a name too long": (line(qa_id="x" * 1_000), "qa_id"),
    "a NUL": (line(assistant="a\0b"), "assistant holds a NUL"),
    "half a surrogate pair": (line()[:-2] + '\\ud800"}', "assistant"),
    "a negative weight": (line(weight=-0.1), "weight is -0.1; want a finite number of at least 0"),
    "an infinite weight": (line(weight=0)[:-2] + "1e999}", "weight is inf; want a finite number"),
    "a huge weight": (line(weight=0)[:-2] + "9" * 400 + "}", r"weight is 9+\.\.\.; want a finite number"),
    "NaN for a weight": (
        line(weight=float("nan")),
        "NaN is not a valid number; write null for an unknown one$",
    ),
    "a truth value for a weight": (line(weight=True), "weight is True; want a number"),
    "a text for a weight": (line(weight="1"), "weight is '1'; want a number"),
    "two assistants": (
        line(qa_id="2", assistant_id="b"),
        "belongs to the assistant 'a' above, but this line names 'b'; use one",
    ),
    "a turn twice": (
        line(query="another"),
        "session 's' already has a turn with the qa_id '1' above; give each",
    ),
    "deep nesting": ("[" * 100_000, "not valid JSON"),
}


@pytest.mark.parametrize(("wrong", "message"), BAD.values(), ids=BAD)
def test_each_mistake_is_named_by_its_line(path: Path, wrong: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"sessions\.jsonl:3: .*{message}"):
        read(path, line(), "", wrong, line(qa_id="9"))


def test_only_a_line_feed_ends_a_line(path: Path) -> None:
    (found,) = read(path, line().replace(", ", ",\r"), line(qa_id="2") + "\r")
    assert [one.qa_id for one in found.turns] == ["1", "2"]


def test_the_same_turn_id_in_two_sessions_is_no_mistake(path: Path) -> None:
    assert len(read(path, line(), line(session_id="t"))) == 2


@pytest.mark.parametrize("wrong", [line().encode() + b"\xff", "Ünïcode".encode("utf-16")])
def test_a_file_that_is_not_utf_8_is_refused(path: Path, wrong: bytes) -> None:
    with pytest.raises(InvalidArgument, match=r"sessions\.jsonl is not UTF-8 \(.*\); save it as UTF-8"):
        read(path, wrong)


def test_a_file_without_turns_or_that_is_none_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="contains no turns; want one per line"):
        read(path, "", " ")
    with pytest.raises(InvalidArgument, match=r"cannot read .*: No such file or directory; want a file"):
        read_sessions(tmp_path / "missing")
    with pytest.raises(InvalidArgument, match=r"cannot read .*; want a file of JSON Lines"):
        read_sessions(tmp_path)


@settings(max_examples=examples(40))
@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_no_bytes_bring_anything_but_sessions_or_a_clear_refusal(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument):
        read_sessions(path)
