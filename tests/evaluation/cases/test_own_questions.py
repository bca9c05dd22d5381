"""Questions and canaries of the user's own: what is none is refused with file, line and reason, and asks nothing."""

from __future__ import annotations

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

GOOD = '{"question": "When?", "role": "public", "purpose": "read"}'
BAD_QUESTIONS = {
    "no JSON": "not JSON",
    "[1]": "JSON list",
    "{}": "no question and no role and no purpose",
    '{"question": null, "role": "public", "purpose": "read"}': "no question; want",
    '{"question": "When?", "question": "Who?", "role": "public", "purpose": "read"}': "occurs twice",
    '{"question": "When?", "role": "public", "purpose": "read", "docs": []}': "did you mean 'documents'",
    '{"question": 7, "role": "public", "purpose": "read"}': "question is a int",
    '{"question": " ", "role": "public", "purpose": "read"}': "question is empty",
    '{"question": "When?", "role": "publik", "purpose": "read"}': "did you mean 'public'",
    '{"question": "When?", "role": ["public"], "purpose": "read"}': "role is",
    '{"question": "When?", "role": "public", "purpose": "reed"}': "did you mean 'read'",
    '{"question": "When?", "role": "public", "purpose": "read", "documents": "rent"}': "want a list",
    '{"question": "When?", "role": "public", "purpose": "read", "documents": ["nowhere"]}': "'nowhere' is no document",
    '{"question": "When?", "role": "public", "purpose": "read", "documents": [["rent"]]}': "is no document",
    '{"question": "When?", "role": "public", "purpose": "read", "documents": ["rent", "rent"]}': "twice",
    '{"question": "When?", "role": "public", "purpose": "read", "as_of": 2025}': "want a date",
    '{"question": "When?", "role": "public", "purpose": "read", "as_of": "May"}': "neither a date nor a time",
    '{"question": "When?", "role": "public", "purpose": "read", "as_of": "2025-05-01T10:00"}': "no time zone",
    '{"question": "When?", "role": "public", "purpose": "read", "as_of": "1969-05-01"}': "before 1970",
    GOOD: "line 1 asks the same",
}
BAD_CANARIES = {
    "{}": "no document and no text",
    '{"document": "merger", "text": "HERON-4711", "note": "x"}': "unknown key 'note'",
    '{"document": "nowhere", "text": "HERON-4711"}': "'nowhere' is no document",
    '{"document": "rent", "text": "HERON-4711"}': "no passage of 'rent' holds this text",
    '{"document": "merger", "text": " "}': "text is empty",
    '{"document": "merger", "text": 4711}': "text is a int",
    '{"document": ["merger"], "text": "HERON-4711"}': "is no document",
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
    with pytest.raises(InvalidArgument, match=r"holds no (question|canary)"):
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
