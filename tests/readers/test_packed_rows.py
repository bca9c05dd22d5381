"""JSON Lines may be gzipped, within a limit, and nested fields may be left out by name."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document
from carag.engine.freshness import placed_reader
from carag.readers import Problem, ReadDocument, folder, read_folder
from carag.readers.packed import MAX_GROWTH

if TYPE_CHECKING:
    from collections.abc import Callable

SHARED = Path(os.environ.get("CARAG_SHARED_DATA", "/nonexistent")) / "rbi"
ROW: dict[str, Any] = {
    "id": "bae:1",
    "number": "BAE/2024-25/7",
    "title": "Limits",
    "date": "2024-05-02",
    "meant_for": "All Small Finance Banks",
    "text": "The limit is 5.",
}


def lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def told(path: Path, leaves_out: Callable[[str], bool] | None = None) -> list[tuple[str, str]]:
    return [
        (one.where, one.kind.value if isinstance(one, Problem) else "read")
        for one in read_folder(path, leaves_out=leaves_out)
    ]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.ndjson.gz", "A.JSONL.GZ", "2024.05.jsonl.gz"])
def test_a_gzipped_file_is_read_as_the_same_file_unpacked(tmp_path: Path, name: str) -> None:
    rows = lines(ROW, {"id": "b"}, ROW, {"id": "c", "text": " "})
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / name).write_bytes(gzip.compress(rows))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.jsonl").write_bytes(rows)
    plain = told(tmp_path / "plain")
    assert [kind for _, kind in plain] == ["read", "broken", "duplicate", "empty"]
    assert [(name + place.removeprefix("a.jsonl"), kind) for place, kind in plain] == told(
        tmp_path / "packed"
    )


def test_a_bomb_is_not_unpacked_and_the_other_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused as soon as it grows beyond the limit."""
    monkeypatch.setattr(folder, "_FREE", 1 << 16)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\n" * (1 << 20), 9))
    (tmp_path / "b.jsonl").write_bytes(lines(ROW))
    bomb, _ = read_folder(tmp_path)
    assert isinstance(bomb, Problem)
    assert f"more than {MAX_GROWTH} times" in bomb.reason
    assert [("a.jsonl.gz", "broken"), ("b.jsonl:1", "read")] == told(tmp_path)


@pytest.mark.parametrize("cut", [0, 5, 30, -8, -1])
def test_what_is_cut_off_or_no_gzip_is_a_problem(tmp_path: Path, cut: int) -> None:
    """Rows before the damage are documents; the early end is reported."""
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines(ROW))[:cut] if cut else b"no gzip at all")
    assert told(tmp_path)[-1] == ("a.jsonl.gz", "broken")


def test_other_gzipped_files_are_skipped_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"text"))
    (one,) = read_folder(tmp_path)
    assert isinstance(one, Problem)
    assert one.kind.value == "skipped"
    assert ".jsonl.gz" in one.reason


@pytest.mark.parametrize("nested", [{"a": 1}, [{"a": 1}], [1], [["a"]], [None]])
def test_a_nested_field_refuses_the_row_unless_it_is_left_out_by_name(tmp_path: Path, nested: Any) -> None:
    """Left-out fields are reported once per file, with the number of rows; a fact in their place says so too."""
    rows = [ROW | {"id": f"r{number}", "sections": nested, "tags": ["x"]} for number in range(3)]
    (tmp_path / "a.jsonl").write_bytes(lines(*rows))
    assert [("a.jsonl:1", "broken"), ("a.jsonl:2", "broken"), ("a.jsonl:3", "broken")] == told(tmp_path)
    assert told(tmp_path, "other".__eq__) == told(tmp_path)
    *read, said = read_folder(tmp_path, leaves_out="sections".__eq__)
    assert isinstance(said, Problem)
    assert (said.where, said.kind.value) == ("a.jsonl", "left_out")
    assert "'sections' (3)" in said.reason
    for one in read:
        assert isinstance(one, ReadDocument)
        assert one.facts["sections"].startswith("left out")  # type: ignore[union-attr]
        assert one.facts["tags"] == ["x"]


def test_what_is_no_nested_field_is_never_left_out(tmp_path: Path) -> None:
    rows = lines(ROW | {"sections": 3, "parts": "two", "tags": ["a"], "none": None})
    (tmp_path / "a.jsonl").write_bytes(rows)
    (one,) = read_folder(tmp_path, leaves_out=lambda _: True)
    assert isinstance(one, ReadDocument)
    assert (one.facts["sections"], one.facts["parts"], one.facts["tags"]) == (3, "two", ["a"])


@pytest.mark.parametrize(
    "field", ["internal", "status", "entity_classes", "meant_for", "supersedes", "public_at"]
)
def test_a_circular_whose_nested_field_has_a_meaning_is_refused(tmp_path: Path, field: str) -> None:
    """Without the field, the circular could be open to more sessions than was meant."""
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines(ROW | {field: {"is": True}, "sections": [{}]})))
    ((_, one),) = placed_reader("circulars")(tmp_path)
    assert isinstance(one, str)
    assert f"broken: {field} is" in one


def test_a_circular_is_read_without_its_sections(tmp_path: Path) -> None:
    sections = [{"heading": "1", "text": "The limit is 5."}]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines(ROW | {"sections": sections})))
    one, said = (one for _, one in placed_reader("circulars")(tmp_path))
    assert isinstance(one, Document)
    assert one.facts is not None
    assert one.facts["checks"] == "passed"
    assert isinstance(said, str)
    assert said.startswith("a.jsonl.gz: left_out:")


@pytest.mark.release
@pytest.mark.skipif(not SHARED.is_dir(), reason="CARAG_SHARED_DATA names no real circulars")
def test_the_real_circulars_are_read_as_they_lie() -> None:
    """184 rows: 182 documents, and two without a text, which are reported."""
    found = [one for _, one in placed_reader("circulars")(SHARED / "circulars.jsonl.gz")]
    assert len(found) == 184
    lost = [one for one in found if isinstance(one, str)]
    assert len(lost) == 2
    assert all(": empty: no visible text" in one for one in lost)
