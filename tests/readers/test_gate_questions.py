"""The questions of a gate are read strictly: an invalid line is refused with its number and the reason."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.readers import gate_questions
from carag.readers.gate_questions import MAX_LINE, read_gate_questions
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

GOOD = '{"question": "When?", "documents": ["a"]}'
WRONG = {
    "no JSON": ("{", "the line is not JSON"),
    "no object": ("[]", "the line is a JSON list"),
    "no UTF-8": (b'{"question": "\xff"}', "not UTF-8"),
    "a byte order mark": ("\ufeff" + GOOD, "the line is not JSON"),
    "nested too deep": ("[" * 100_000, "nested too deep"),
    "a key twice": (
        '{"question": "Who?", "question": "What?", "documents": []}',
        "occurs twice in one object",
    ),
    "an unknown key": (
        '{"question": "Who?", "document": ["a"], "documents": []}',
        "the key 'document' is unknown",
    ),
    "no question": ('{"documents": []}', "the key question is missing"),
    "no documents": ('{"question": "Who?"}', "the key documents is missing"),
    "null": ('{"question": "Who?", "documents": null}', "the key documents is missing"),
    "a question that is a number": ('{"question": 7, "documents": []}', "question is a int"),
    "an empty question": ('{"question": " ", "documents": []}', "question is empty"),
    "a question too long": (json.dumps({"question": "x" * 8193, "documents": []}), "want 8192 at most"),
    "documents that are a text": ('{"question": "Who?", "documents": "a"}', "want a list of ids"),
    "an id that is a number": ('{"question": "Who?", "documents": ["a", 7]}', "want a list of ids"),
    "a document twice": (
        '{"question": "Who?", "documents": ["a", "a"]}',
        "documents lists the same document twice",
    ),
    "too many documents": (
        json.dumps({"question": "Who?", "documents": [str(one) for one in range(1001)]}),
        "1001 documents; want 1000 at most",
    ),
    "a passage of another document": (
        '{"question": "Who?", "documents": ["a"], "passages": ["a:00000", "b:00000"]}',
        "the passage 'b:00000' is not in any of the documents",
    ),
    "a passage without an answer": (
        '{"question": "Who?", "documents": [], "passages": ["a:00000"]}',
        "is not in any of the documents",
    ),
    "a passage twice": (
        '{"question": "Who?", "documents": ["a"], "passages": ["a:00000", "a:00000"]}',
        "passages lists the same passage twice",
    ),
    "a line too long": (" " * MAX_LINE + GOOD, f"more than {MAX_LINE} bytes"),
    "a question again": (GOOD, "already occurs in line 2"),
    "a question again, with other spaces": (
        '{"question": " When?\\n", "documents": []}',
        "already occurs in line 2",
    ),
}


@pytest.mark.parametrize(("line", "why"), WRONG.values(), ids=WRONG)
def test_what_is_no_question_is_refused_with_its_line(tmp_path: Path, line: str | bytes, why: str) -> None:
    """Blank lines count, so the number is that of an editor."""
    file = tmp_path / "questions.jsonl"
    wrong = line if isinstance(line, bytes) else line.encode()
    file.write_bytes(b"\n" + GOOD.encode() + b"\n\n" + wrong + b"\n")
    with pytest.raises(InvalidArgument, match=r"questions\.jsonl, line 4: ") as refused:
        read_gate_questions(file)
    assert why in str(refused.value)


@pytest.mark.parametrize("name", ["nothing.jsonl", ".", "a\0b"])
def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot read .*; want a JSON Lines file"):
        read_gate_questions(f"{tmp_path}/{name}")


def test_a_file_has_from_one_to_the_greatest_number_of_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_questions, "MAX_QUESTIONS", 2)
    file = tmp_path / "questions.jsonl"
    lines = [json.dumps({"question": str(number), "documents": []}) for number in range(3)]
    file.write_text("\n".join(lines[:2]))
    assert 2 == len(read_gate_questions(file)[0])
    for text, why in (
        ("", "has no questions"),
        ("\n \n", "has no questions"),
        ("\n".join(lines), "line 3: more than 2"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidArgument, match=why):
            read_gate_questions(file)


LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
QUESTIONS = st.text(LETTERS, min_size=1, max_size=20).filter(str.strip)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(QUESTIONS, st.lists(st.text(max_size=5), max_size=3, unique=True)),
        min_size=1,
        max_size=3,
        unique_by=lambda one: " ".join(one[0].split()),
    ),
    st.booleans(),
)
def test_what_is_written_is_read_with_the_hash_of_the_file(
    tmp_path: Path, written: list[tuple[str, list[str]]], ascii_only: bool
) -> None:
    file = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"question": question, "documents": documents}, ensure_ascii=ascii_only)
        for question, documents in written
    ]
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    found, digest = read_gate_questions(file)
    assert [(question, tuple(documents)) for question, documents in written] == [one[1:3] for one in found]
    assert list(range(1, len(written) + 1)) == [one.line for one in found]
    assert hashlib.sha256(file.read_bytes()).digest() == digest


def test_passages_may_be_named(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "Who?", "documents": ["a:b"], "passages": ["a:b:00003"]}\n' + GOOD)
    found, _ = read_gate_questions(file)
    assert [("a:b:00003",), ()] == [one.passages for one in found]
