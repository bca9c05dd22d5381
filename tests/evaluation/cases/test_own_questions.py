"""Questions and canaries of your own: an invalid one is refused with file, line and reason, and nothing is asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.own_questions import read_canaries, read_questions
from tests.evaluation.own_store import CANARIES, CANARY, QUESTIONS, a_store, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def asked(**changed: object) -> str:
    return json.dumps({"question": "When?", "role": "public", "purpose": "read", **changed})


GOOD = asked()
BAD_QUESTIONS = {
    "no JSON": "not JSON",
    "[1]": "JSON list",
    "{}": "missing question and role and purpose",
    asked(question=None): "missing question; want",
    '{"question": "When?", "question": "Who?", "role": "public", "purpose": "read"}': "occurs twice",
    asked(docs=[]): "did you mean 'documents'",
    asked(question=7): "question is a int",
    asked(question=" "): "question is empty",
    asked(role="publik"): "did you mean 'public'",
    asked(role=["public"]): "role is",
    asked(purpose="reed"): "did you mean 'read'",
    asked(documents="rent"): "want a list",
    asked(documents=["nowhere"]): "'nowhere' is not a document",
    asked(documents=[["rent"]]): "is not a document",
    asked(documents=["rent", "rent"]): "twice",
    asked(as_of=2025): "want a string with a date",
    asked(as_of="May"): "neither a date nor a time",
    asked(as_of="2025-05-01T10:00"): "no time zone",
    asked(as_of="1969-05-01"): "before 1970",
    GOOD: "line 1 asks the same question",
}
BAD_CANARIES = {
    "{}": "missing document and text",
    '{"document": "merger", "text": "HERON-4711", "note": "x"}': "unknown key 'note'",
    '{"document": "nowhere", "text": "HERON-4711"}': "'nowhere' is not a document",
    '{"document": "rent", "text": "HERON-4711"}': "no passage of 'rent' contains exactly this text",
    '{"document": "merger", "text": " "}': "text is empty",
    '{"document": "merger", "text": 4711}': "text is a int",
    '{"document": ["merger"], "text": "HERON-4711"}': "is not a document",
}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroundTruth]:
    store = a_store(tmp_path_factory.mktemp("own") / "store")
    opened = GroundTruth.open(store, now=datetime(2026, 11, 1, tzinfo=UTC))
    with opened.store:
        yield opened


@pytest.mark.parametrize("line", BAD_QUESTIONS)
def test_a_bad_question_is_refused_with_line_and_reason(
    line: str, truth: GroundTruth, tmp_path: Path
) -> None:
    path = written(tmp_path / "q.jsonl", [GOOD, "", line])
    with pytest.raises(InvalidArgument) as refused:
        read_questions(path, truth)
    assert str(refused.value).startswith(f"{path}, line 3: ")
    assert BAD_QUESTIONS[line] in str(refused.value)
    assert str(refused.value).endswith("nothing was asked")


@pytest.mark.parametrize("line", BAD_CANARIES)
def test_a_bad_canary_is_refused_with_line_and_reason_and_not_quoted(
    line: str, truth: GroundTruth, tmp_path: Path
) -> None:
    path = written(tmp_path / "c.jsonl", [*CANARIES, line])
    with pytest.raises(InvalidArgument) as refused:
        read_canaries(path, truth)
    assert f"{path}, line 2: " in str(refused.value)
    assert BAD_CANARIES[line] in str(refused.value)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("read", [read_questions, read_canaries])
def test_files_that_are_missing_empty_or_not_utf_8_are_refused(
    read: object, truth: GroundTruth, tmp_path: Path
) -> None:
    assert callable(read)
    with pytest.raises(InvalidArgument, match=r"cannot read .*No such file"):
        read(tmp_path / "none", truth)
    with pytest.raises(InvalidArgument, match=r"contains no (question|canary)"):
        read(written(tmp_path / "empty", ["", " "]), truth)
    (tmp_path / "latin").write_bytes(b'{"document": "caf\xe9"}\n')
    with pytest.raises(InvalidArgument, match="line 1: byte 18 of the line is not UTF-8"):
        read(tmp_path / "latin", truth)


def test_good_files_are_read_and_one_text_is_one_question(truth: GroundTruth, tmp_path: Path) -> None:
    read = read_questions(written(tmp_path / "q.jsonl", QUESTIONS), truth)
    assert [one.line for one in read] == [1, 1, 3, 3, 5]
    assert [one.documents for one in read] == [("merger",), ("merger",), ("canteen",), None, ()]
    assert read_canaries(written(tmp_path / "c.jsonl", CANARIES), truth) == {"line-1": CANARY}
    assert "board" not in repr(read[0])
